// The products of a network, in single precision.
//
// Every matrix lies in panels of 32 columns, one row of a panel after the other: entry (r, c) of a matrix with room for R rows is at
// (c / 32)·32R + 32r + c % 32. So whatever a product reads or writes is contiguous, a batch and a weight matrix alike, and eight rows
// of a panel are what the registers hold. A last panel of at most 16 columns is computed at half width; what pads a panel is zero.
#pragma once

#include <cstddef>
#include <cstring>

#include "core/simd.hpp"

namespace certifit::network {

using Index = std::ptrdiff_t;

constexpr Index kWide = 32;  // columns of a panel
constexpr Index kTall = 8;   // rows of a tile

constexpr Index panels(Index columns) { return (columns + kWide - 1) / kWide; }
constexpr Index padded(Index rows) { return (rows + kTall - 1) / kTall * kTall; }
// How many columns of panel p are computed.
constexpr Index width(Index columns, Index p) { return columns - p * kWide <= kWide / 2 ? kWide / 2 : kWide; }

// c = bias + a·b for `rows` rows (a multiple of 8) of a: a's panels lie a_stride apart and hold `inner` columns in all; b is one
// panel with a row for each of them. The bias, a row, may be null.
using Product = void (*)(const float* a, Index a_stride, Index inner, const float* b, const float* bias, float* c, Index rows,
                         Index columns);
// g = Σ_r aᵣ dᵣᵀ: eight columns of a panel of a against a panel of d, an 8 × 32 tile of a gradient.
using Outer = void (*)(const float* a, const float* d, Index rows, Index columns, float* g);

struct Products {
    Product product;
    Outer outer;
};

namespace detail {

#pragma GCC diagnostic ignored "-Wpsabi"  // vectors never leave inlined code

template <int Rows, int Vectors, class V>
[[gnu::always_inline]] inline void product(const float* a, Index a_stride, Index inner, const float* b, const float* bias, float* c,
                                           Index rows, Index columns) {
    constexpr int lanes = sizeof(V) / sizeof(float), step = Vectors * lanes;
    for (Index r0 = 0; r0 < rows; r0 += Rows)
        for (Index c0 = 0; c0 < columns; c0 += step) {
            V sum[Rows][Vectors] = {}, row[Vectors];
            if (bias)
#pragma GCC unroll 4
                for (int v = 0; v < Vectors; ++v) {
                    std::memcpy(&row[v], bias + c0 + v * lanes, sizeof(V));
#pragma GCC unroll 8
                    for (int r = 0; r < Rows; ++r) sum[r][v] = row[v];
                }
            const float* from = b + c0;
            for (Index k0 = 0; k0 < inner; k0 += kWide) {
                const float* x = a + k0 / kWide * a_stride + r0 * kWide;
                const Index last = inner - k0 < kWide ? inner - k0 : kWide;
                for (Index k = 0; k < last; ++k, from += kWide) {
#pragma GCC unroll 4
                    for (int v = 0; v < Vectors; ++v) std::memcpy(&row[v], from + v * lanes, sizeof(V));
#pragma GCC unroll 8
                    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
                        for (int v = 0; v < Vectors; ++v) sum[r][v] += row[v] * x[r * kWide + k];
                }
            }
#pragma GCC unroll 8
            for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
                for (int v = 0; v < Vectors; ++v) std::memcpy(c + (r0 + r) * kWide + c0 + v * lanes, &sum[r][v], sizeof(V));
        }
}

template <int Rows, int Vectors, class V>
[[gnu::always_inline]] inline void outer(const float* a, const float* d, Index rows, Index columns, float* g) {
    constexpr int lanes = sizeof(V) / sizeof(float), step = Vectors * lanes;
    for (Index i0 = 0; i0 < kTall; i0 += Rows)
        for (Index c0 = 0; c0 < columns; c0 += step) {
            V sum[Rows][Vectors] = {}, row[Vectors];
            const float *x = a + i0, *from = d + c0;
            for (Index r = 0; r < rows; ++r, x += kWide, from += kWide) {
#pragma GCC unroll 4
                for (int v = 0; v < Vectors; ++v) std::memcpy(&row[v], from + v * lanes, sizeof(V));
#pragma GCC unroll 8
                for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
                    for (int v = 0; v < Vectors; ++v) sum[i][v] += row[v] * x[i];
            }
#pragma GCC unroll 8
            for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
                for (int v = 0; v < Vectors; ++v) std::memcpy(g + (i0 + i) * kWide + c0 + v * lanes, &sum[i][v], sizeof(V));
        }
}

typedef float Four __attribute__((vector_size(16)));
inline void product_plain(const float* a, Index stride, Index inner, const float* b, const float* bias, float* c, Index rows,
                          Index columns) {
    product<4, 2, Four>(a, stride, inner, b, bias, c, rows, columns);
}
inline void outer_plain(const float* a, const float* d, Index rows, Index columns, float* g) {
    outer<4, 2, Four>(a, d, rows, columns, g);
}

#if defined(__x86_64__) && !defined(CERTIFIT_SANITIZE)
typedef float Eight __attribute__((vector_size(32)));
typedef float Sixteen __attribute__((vector_size(64)));

__attribute__((target("arch=x86-64-v3"))) inline void product_v3(const float* a, Index stride, Index inner, const float* b,
                                                                 const float* bias, float* c, Index rows, Index columns) {
    product<4, 2, Eight>(a, stride, inner, b, bias, c, rows, columns);
}
__attribute__((target("arch=x86-64-v3"))) inline void outer_v3(const float* a, const float* d, Index rows, Index columns, float* g) {
    outer<4, 2, Eight>(a, d, rows, columns, g);
}
__attribute__((target("arch=x86-64-v4"))) inline void product_v4(const float* a, Index stride, Index inner, const float* b,
                                                                 const float* bias, float* c, Index rows, Index columns) {
    if (columns > kWide / 2)
        product<8, 2, Sixteen>(a, stride, inner, b, bias, c, rows, columns);
    else
        product<8, 1, Sixteen>(a, stride, inner, b, bias, c, rows, columns);
}
__attribute__((target("arch=x86-64-v4"))) inline void outer_v4(const float* a, const float* d, Index rows, Index columns, float* g) {
    if (columns > kWide / 2)
        outer<8, 2, Sixteen>(a, d, rows, columns, g);
    else
        outer<8, 1, Sixteen>(a, d, rows, columns, g);
}
#endif

}  // namespace detail

inline Products best_products() {
#if defined(__x86_64__) && !defined(CERTIFIT_SANITIZE)
    if (__builtin_cpu_supports("x86-64-v4")) return {detail::product_v4, detail::outer_v4};
    if (__builtin_cpu_supports("x86-64-v3")) return {detail::product_v3, detail::outer_v3};
#endif
    return {detail::product_plain, detail::outer_plain};
}

// to[c][r] = from[r][c] for an 8 × 32 tile whose rows, and those of the result, are 32 apart.
CERTIFIT_CLONES [[maybe_unused]] static void transpose(const float* from, float* to, Index columns) {
    typedef float Part __attribute__((vector_size(32), aligned(4), may_alias));
    for (Index c = 0; c < columns; c += 8) {
        Part r[8], s[8], t[8];
        for (int i = 0; i < 8; ++i) r[i] = *reinterpret_cast<const Part*>(from + i * kWide + c);
        for (int i = 0; i < 8; i += 2) {
            s[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
            s[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
        }
        for (int i = 0; i < 8; i += 4)
            for (int j = 0; j < 2; ++j) {
                t[i + j] = __builtin_shufflevector(s[i + j], s[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
                t[i + j + 2] = __builtin_shufflevector(s[i + j], s[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
            }
        for (int i = 0; i < 4; ++i) {
            *reinterpret_cast<Part*>(to + (c + i) * kWide) = __builtin_shufflevector(t[i], t[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
            *reinterpret_cast<Part*>(to + (c + i + 4) * kWide) = __builtin_shufflevector(t[i], t[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
        }
    }
}

}  // namespace certifit::network
