// Norms of differences, before the root: what is compared is Σ|δ|^p, and Python takes the root of what is returned.
//
// Sums run in a fixed order that depends on the number of columns only: equal rows are at equal distances.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>

#include "core/simd.hpp"
#include "core/vector.hpp"

namespace certifit::neighbors {

enum class Kind { squared, absolute, maximum, power, missing };

struct Norm {
    Kind kind;
    double p;  // of Kind::power
};

namespace detail {

using vec::detail::Lanes;
using vec::detail::load;

// One column's part, and how parts join.
template <Kind K>
struct Part {
    double p;
    double of(double delta) const {
        if constexpr (K == Kind::squared || K == Kind::missing) return delta * delta;
        if constexpr (K == Kind::absolute || K == Kind::maximum) return std::fabs(delta);
        return std::pow(std::fabs(delta), p);
    }
    static double join(double a, double b) { return K == Kind::maximum ? (a < b ? b : a) : a + b; }
};

template <class T, class U>
[[gnu::always_inline]] inline double squared(const T* x, const U* z, std::ptrdiff_t d) {
    Lanes s0 = {}, s1 = {}, a, b;
    std::ptrdiff_t j = 0;
    for (; j + 16 <= d; j += 16) {
        load(x + j, a), load(z + j, b), a -= b, s0 += a * a;
        load(x + j + 8, a), load(z + j + 8, b), a -= b, s1 += a * a;
    }
    for (; j + 8 <= d; j += 8) load(x + j, a), load(z + j, b), a -= b, s0 += a * a;
    s0 += s1;
    double sum = vec::detail::total(s0);
    for (; j < d; ++j) {
        const double delta = static_cast<double>(x[j]) - static_cast<double>(z[j]);
        sum += delta * delta;
    }
    return sum;
}

template <Kind K>
[[gnu::always_inline]] inline double folded(const double* x, const double* z, std::ptrdiff_t d) {
    Lanes s0 = {}, a, b;
    std::ptrdiff_t j = 0;
    for (; j + 8 <= d; j += 8) {
        load(x + j, a), load(z + j, b), a -= b;
        a = a < 0.0 ? -a : a;
        if constexpr (K == Kind::absolute) s0 += a;
        if constexpr (K == Kind::maximum) s0 = s0 < a ? a : s0;
    }
    double sum = 0.0;
    for (int l = 0; l < 8; ++l) sum = Part<K>::join(sum, s0[l]);
    for (; j < d; ++j) sum = Part<K>::join(sum, std::fabs(x[j] - z[j]));
    return sum;
}

}  // namespace detail

CERTIFIT_CLONES [[maybe_unused]] static double squared_distance(const double* x, const double* z, std::ptrdiff_t d) {
    return detail::squared(x, z, d);
}
CERTIFIT_CLONES [[maybe_unused]] static double squared_distance(const float* x, const float* z, std::ptrdiff_t d) {
    return detail::squared(x, z, d);
}
CERTIFIT_CLONES [[maybe_unused]] static double absolute_distance(const double* x, const double* z, std::ptrdiff_t d) {
    return detail::folded<Kind::absolute>(x, z, d);
}
CERTIFIT_CLONES [[maybe_unused]] static double maximum_distance(const double* x, const double* z, std::ptrdiff_t d) {
    return detail::folded<Kind::maximum>(x, z, d);
}

// Of two dense rows. Missing entries (NaN): the mean square of the columns that both rows have, times the number of columns;
// rows without such a column are infinitely far apart.
inline double distance(const Norm& norm, const double* x, const double* z, std::ptrdiff_t d) {
    switch (norm.kind) {
        case Kind::squared: return squared_distance(x, z, d);
        case Kind::absolute: return absolute_distance(x, z, d);
        case Kind::maximum: return maximum_distance(x, z, d);
        case Kind::power: {
            double sum = 0.0;
            for (std::ptrdiff_t j = 0; j < d; ++j) sum += std::pow(std::fabs(x[j] - z[j]), norm.p);
            return sum;
        }
        case Kind::missing: break;
    }
    double sum = 0.0;
    std::ptrdiff_t known = 0;
    for (std::ptrdiff_t j = 0; j < d; ++j) {
        const double delta = x[j] - z[j];
        if (delta == delta) sum += delta * delta, ++known;
    }
    return known ? sum * (static_cast<double>(d) / static_cast<double>(known)) : std::numeric_limits<double>::infinity();
}

// visit(part) with the part of the norm's kind; missing entries have no part of their own.
template <class F>
void with_part(const Norm& norm, F&& visit) {
    switch (norm.kind) {
        case Kind::absolute: return visit(detail::Part<Kind::absolute>{1.0});
        case Kind::maximum: return visit(detail::Part<Kind::maximum>{1.0});
        case Kind::power: return visit(detail::Part<Kind::power>{norm.p});
        default: return visit(detail::Part<Kind::squared>{2.0});
    }
}

}  // namespace certifit::neighbors
