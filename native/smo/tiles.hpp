// Tiles of a kernel matrix: eight rows against a panel of columns, held in registers from the products to the kernel's function.
//
//   linear      x·z              polynomial  (x·z + c)^p              Gaussian   exp(−(‖x‖² + ‖z‖² − 2 x·z))
//
// The rows come scaled by the root of gamma (and centered, for the Gaussian), so that there is no other parameter. Single
// precision takes half the memory and twice the lanes; what it loses is won back by `solve` in solver.hpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/exponential.hpp"
#include "core/index.hpp"
#include "core/tile.hpp"

namespace certifit::smo {

enum class Form { linear, polynomial, gaussian };

struct Shape {
    Form form;
    double offset;
    int degree;
};

template <class T>
inline constexpr Index kLanes = 64 / sizeof(T);
template <class T>
inline constexpr Index kPanel = 2 * kLanes<T>;  // columns of a tile
inline constexpr Index kStrip = 8;              // rows of a tile

namespace detail {

template <class T>
struct WideOf;
template <>
struct WideOf<float> {
    typedef float type __attribute__((vector_size(64), aligned(4), may_alias));
};
template <>
struct WideOf<double> {
    typedef double type __attribute__((vector_size(64), aligned(8), may_alias));
};
template <class T>
using Wide = typename WideOf<T>::type;
typedef std::int32_t Whole32 __attribute__((vector_size(64), aligned(4), may_alias));

// e^x for x ≤ 0; what is below the smallest normal number is 0.
[[gnu::always_inline]] inline Wide<double> decay(Wide<double> x) {
    const auto kept = x > -708.0;
    const Wide<double> safe = kept ? x : Wide<double>{};
    return kept ? Wide<double>(exponential(Lanes(safe))) : Wide<double>{};
}
[[gnu::always_inline]] inline Wide<float> decay(Wide<float> x) {
    constexpr float kRound = 12582912.0f;  // 1.5·2^23: adding it leaves the nearest whole number in the low bits
    const auto kept = x > -87.0f;
    const Wide<float> safe = kept ? x : Wide<float>{};
    const Wide<float> t = safe * 1.44269504f + kRound, n = t - kRound;
    const Wide<float> r = (safe - n * 0.693359375f) + n * 2.12194440e-4f;
    Wide<float> p = r * (1.0f / 5040) + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    const Wide<float> scale = (Wide<float>)(((Whole32)t + 127) << 23);
    return kept ? p * scale : Wide<float>{};
}

// v = k(a, b) of the products a·b in v, for one row of a and lanes of b.
template <class T>
[[gnu::always_inline]] inline Wide<T> kernel_of(Wide<T> v, const Shape& shape, T square_a, const Wide<T>& square_b) {
    if (shape.form == Form::gaussian) {
        const Wide<T> distance = (square_a + square_b) - (v + v);
        return decay(distance > T(0) ? -distance : Wide<T>{});
    }
    if (shape.form == Form::polynomial) {
        const Wide<T> base = v + static_cast<T>(shape.offset);
        v = base;
        for (int p = 1; p < shape.degree; ++p) v *= base;
    }
    return v;
}

// g += Σ_r delta_r · rows_r, eight rows at a time.
template <class T>
[[gnu::always_inline]] inline void combine(const T* const* rows, const T* delta, Index m, Index from, Index to, double* g) {
    typedef T Eight __attribute__((vector_size(8 * sizeof(T)), aligned(sizeof(T)), may_alias));
    for (Index r = 0; r < m; r += 8) {
        const T* row[8];
        T s[8];
        for (Index k = 0; k < 8; ++k) row[k] = rows[std::min(r + k, m - 1)], s[k] = r + k < m ? delta[r + k] : T(0);
        Index c = from;
        for (; c + 8 <= to; c += 8) {
            Eight sum = {};
#pragma GCC unroll 8
            for (Index k = 0; k < 8; ++k) sum += s[k] * *reinterpret_cast<const Eight*>(row[k] + c);
            *reinterpret_cast<Lanes*>(g + c) += __builtin_convertvector(sum, Lanes);
        }
        for (; c < to; ++c) {
            T sum = 0;
            for (Index k = 0; k < 8; ++k) sum += s[k] * row[k][c];
            g[c] += static_cast<double>(sum);
        }
    }
}

}  // namespace detail

// out[r][c] = k(a_r, b_c). a: [d][kStrip], b: [d][kPanel], squares of both.
template <class T>
struct KernelTile {
    template <class Set>
    [[gnu::always_inline]] static void run(const T* a, const T* b, Index d, const Shape& shape, const T* square_a,
                                           const T* square_b, T* const* out) {
        using V = detail::Wide<T>;
        alignas(64) T products[kStrip * kPanel<T>];
        tile::multiply<Set, kStrip, kStrip, kPanel<T>>(a, b, d, kPanel<T>, products);
        for (Index r = 0; r < kStrip; ++r)
            for (Index c = 0; c < kPanel<T>; c += kLanes<T>)
                *reinterpret_cast<V*>(out[r] + c) =
                    detail::kernel_of<T>(*reinterpret_cast<const V*>(products + r * kPanel<T> + c), shape, square_a[r],
                                         *reinterpret_cast<const V*>(square_b + c));
    }
};
template <class T>
using KernelTiles = tile::Versions<KernelTile<T>, void(const T*, const T*, Index, const Shape&, const T*, const T*, T* const*)>;

CERTIFIT_CLONES [[maybe_unused]] static void combine(const float* const* rows, const float* delta, Index m, Index from, Index to,
                                                     double* g) {
    detail::combine(rows, delta, m, from, to, g);
}
CERTIFIT_CLONES [[maybe_unused]] static void combine(const double* const* rows, const double* delta, Index m, Index from,
                                                     Index to, double* g) {
    detail::combine(rows, delta, m, from, to, g);
}

}  // namespace certifit::smo
