// The residual of least squares in twice the working precision, for problems that lose digits without it:
//
//   r = y − X w − b,   g = Xᵀ(p r) and Σ p r as pairs of a number and what its rounding left,   Σ p r²
//
// Products and sums keep their errors, which are summed beside them (Ogita, Rump and Oishi 2005, Dot2). Eight rows go side by side.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/aligned.hpp"
#include "products/products.hpp"

namespace certifit::products {

struct Twice {
    std::vector<double> high, low;  // d + 1 numbers: g, and Σ p r
    double energy = 0;              // Σ p r²

    // Of column j with this mean, penalty and coefficient: g − mean·Σ p r − l2·w, the first of them only about means.
    double slope(Index j, double mean, double l2, double w, bool about) const;
};

namespace detail {

inline constexpr Index kAbreast = 8;  // rows

// s + e is exactly s + a (Knuth); e is added to what is left already.
[[gnu::always_inline]] inline void add_twice(double& s, double& left, double a) {
    const double t = s + a, z = t - s;
    left += (s - (t - z)) + (a - z);
    s = t;
}

// s − e is exactly s − a·b.
[[gnu::always_inline]] inline void add_product(double& s, double& left, double a, double b) {
    const double x = a * b, slip = std::fma(a, b, -x);
    add_twice(s, left, x);
    left += slip;
}

// Eight rows, column after column, into the sums of the columns, eight a column; the last column is of ones.
CERTIFIT_CLONES [[maybe_unused]] static double fold_twice(const double* x, Index d, const double* y, const double* p, const double* w, double b,
                                                          double* high, double* low) {
    double r[kAbreast], left[kAbreast], q[kAbreast], rest[kAbreast];
    for (Index t = 0; t < kAbreast; ++t) r[t] = y[t], left[t] = 0.0;
    for (Index t = 0; t < kAbreast; ++t) add_twice(r[t], left[t], -b);
    for (Index j = 0; j < d; ++j) {
        const double v = -w[j];
        for (Index t = 0; t < kAbreast; ++t) add_product(r[t], left[t], x[j * kAbreast + t], v);
    }
    double energy = 0;
    for (Index t = 0; t < kAbreast; ++t) {
        const double sum = r[t] + left[t];
        left[t] -= sum - r[t];
        q[t] = p[t] * sum;
        rest[t] = std::fma(p[t], sum, -q[t]) + p[t] * left[t];
        energy += q[t] * sum;
    }
    for (Index j = 0; j < d; ++j) {
        const double* column = x + j * kAbreast;
        double *h = high + j * kAbreast, *l = low + j * kAbreast;
        for (Index t = 0; t < kAbreast; ++t) {
            add_product(h[t], l[t], column[t], q[t]);
            l[t] += column[t] * rest[t];
        }
    }
    double *h = high + d * kAbreast, *l = low + d * kAbreast;
    for (Index t = 0; t < kAbreast; ++t) {
        add_twice(h[t], l[t], q[t]);
        l[t] += rest[t];
    }
    return energy;
}

}  // namespace detail

inline double Twice::slope(Index j, double mean, double l2, double w, bool about) const {
    double s = high[j], left = low[j];
    if (about) {
        detail::add_product(s, left, -mean, high.back());
        left -= mean * low.back();
    }
    detail::add_product(s, left, -l2, w);
    return s + left;
}

namespace detail {

// The sums of some rows. Only the first p is read where all are `even`.
inline void fold_rows(const Table<double>& X, Index from, Index to, const double* y, const double* p, const double* w, double b, bool even,
                      Twice& out) {
    const Index d = X.d, width = (d + 1) * kAbreast;
    AlignedVector<double> x(d * kAbreast, 0.0), high(width, 0.0), low(width, 0.0);
    for (Index i = from; i < to; i += kAbreast) {
        const Index rows = std::min(kAbreast, to - i);
        double target[kAbreast] = {}, weight[kAbreast] = {};  // rows that are not there weigh nothing
        if (rows < kAbreast) std::fill(x.begin(), x.end(), 0.0);
        for (Index t = 0; t < rows; ++t) target[t] = y[i + t], weight[t] = even ? p[0] : p[i + t];
        if (X.by_row) {
            for (Index t = 0; t < rows; ++t)
                for (Index j = 0; j < d; ++j) x[j * kAbreast + t] = X.data[(i + t) * d + j];
        } else {
            for (Index j = 0; j < d; ++j) std::copy_n(X.data + j * X.n + i, rows, x.begin() + j * kAbreast);
        }
        out.energy += fold_twice(x.data(), d, target, weight, w, b, high.data(), low.data());
    }
    for (Index j = 0; j <= d; ++j)
        for (Index t = 0; t < kAbreast; ++t) {
            add_twice(out.high[j], out.low[j], high[j * kAbreast + t]);
            out.low[j] += low[j * kAbreast + t];
        }
}

}  // namespace detail

inline Twice residual_twice(const Table<double>& X, const double* y, const double* p, const double* w, double b, bool even, int threads) {
    const Index d = X.d, count = chunk_count(X.n, d, 2);
    std::vector<Twice> parts(static_cast<std::size_t>(count), Twice{std::vector<double>(d + 1, 0.0), std::vector<double>(d + 1, 0.0)});
    over_chunks(X.n, count, 8 * X.n * d, threads,
                [&](Index c, Index from, Index to) { detail::fold_rows(X, from, to, y, p, w, b, even, parts[static_cast<std::size_t>(c)]); });
    Twice& out = parts.front();
    for (Index c = 1; c < count; ++c) {
        const Twice& part = parts[static_cast<std::size_t>(c)];
        for (Index j = 0; j <= d; ++j) {
            detail::add_twice(out.high[j], out.low[j], part.high[j]);
            out.low[j] += part.low[j];
        }
        out.energy += part.energy;
    }
    return std::move(out);
}

}  // namespace certifit::products
