// Residuals and slopes of least squares in twice the working precision: every sum is a pair of a number and what its rounding left.
//
// A sum and its error are s + e = a + b (Knuth), a product and its error x + e = a·b (Dekker, with Veltkamp's splitting); sums of products of pairs:
// Ogita, Rump, Oishi 2005. No compiler may fuse these operations: what is fused is not rounded as the formulas expect.
#pragma once

#include <algorithm>
#include <vector>

#include "products/products.hpp"

namespace certifit::products {

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC push_options
#pragma GCC optimize("fp-contract=off")
#endif

namespace twice {

constexpr double kSplit = 134217729.0;  // 2²⁷ + 1
constexpr Index kLanes = 8;

using Vector = double __attribute__((vector_size(kLanes * sizeof(double))));

struct Pair {
    double high = 0, low = 0;

    void add(double value, double rest) {
        const double sum = high + value, part = sum - high;
        low += ((high - (sum - part)) + (value - part)) + rest;
        high = sum;
    }
    double settled() const { return high + low; }
};

// a·b, whose error is added to `rest`.
inline double product(double a, double b, double& rest) {
    const double x = a * b, c = kSplit * a, e = kSplit * b;
    const double a_high = c - (c - a), a_low = a - a_high, b_high = e - (e - b), b_low = b - b_high;
    rest += a_low * b_low - (((x - a_high * b_high) - a_low * b_high) - a_high * b_low);
    return x;
}

// Σ x·(a + rest) over n entries
CERTIFIT_CLONES [[maybe_unused]] static Pair dot(const double* x, const double* a, const double* rest, Index n) {
    Vector high = {}, low = {};
    Index i = 0;
    for (; i + kLanes <= n; i += kLanes) {
        Vector u, v, more;
        __builtin_memcpy(&u, x + i, sizeof u), __builtin_memcpy(&v, a + i, sizeof v), __builtin_memcpy(&more, rest + i, sizeof more);
        const Vector t = u * v, c = u * kSplit, e = v * kSplit;
        const Vector u_high = c - (c - u), u_low = u - u_high, v_high = e - (e - v), v_low = v - v_high;
        const Vector slip = u_low * v_low - (((t - u_high * v_high) - u_low * v_high) - u_high * v_low);
        const Vector sum = high + t, part = sum - high;
        low += ((high - (sum - part)) + (t - part)) + (slip + u * more);
        high = sum;
    }
    Pair total;
    for (Index k = 0; k < kLanes; ++k) total.add(high[k], low[k]);
    for (; i < n; ++i) {
        double slip = x[i] * rest[i];
        const double t = product(x[i], a[i], slip);
        total.add(t, slip);
    }
    return total;
}

// (high, low) += (a + rest)·x for n entries
CERTIFIT_CLONES [[maybe_unused]] static void add(const double* x, Index n, double a, double rest, double* high, double* low) {
    const double e = kSplit * a, a_high = e - (e - a), a_low = a - a_high;
    for (Index i = 0; i < n; ++i) {
        const double u = x[i], t = u * a, c = kSplit * u, u_high = c - (c - u), u_low = u - u_high;
        const double slip = u_low * a_low - (((t - u_high * a_high) - u_low * a_high) - u_high * a_low);
        const double sum = high[i] + t, part = sum - high[i];
        low[i] += ((high[i] - (sum - part)) + (t - part)) + (slip + u * rest);
        high[i] = sum;
    }
}

// What the rows of a chunk have to say: slopes and their rests, Σ p r and its rest, Σ p r²; 2d + 3 numbers.
inline void rows(const Table<double>& X, Index from, Index to, const double* y, const double* p, const double* w, double b, double* out) {
    const Index d = X.d;
    const std::vector<double> none(static_cast<std::size_t>(d), 0.0);
    double *high = out, *low = out + d;
    Pair level;
    double energy = 0;
    std::vector<double> f, f_low, q, q_low;
    over_blocks(from, to, d, [&](Index i, Index count) {
        for (auto* each : {&f, &f_low, &q, &q_low}) each->assign(static_cast<std::size_t>(count), 0.0);
        if (X.by_row) {
            for (Index t = 0; t < count; ++t) {
                const Pair score = dot(X.data + (i + t) * d, w, none.data(), d);
                f[t] = score.high, f_low[t] = score.low;
            }
        } else {
            for (Index j = 0; j < d; ++j) add(X.data + j * X.n + i, count, w[j], 0.0, f.data(), f_low.data());
        }
        for (Index t = 0; t < count; ++t) {
            Pair left{y[i + t], 0.0};
            left.add(-b, 0.0), left.add(-f[t], -f_low[t]);
            const double r = left.settled();
            Pair exact{left.high, left.low};
            exact.add(-r, 0.0);
            double slip = p[i + t] * exact.settled();
            q[t] = product(p[i + t], r, slip), q_low[t] = slip;
            level.add(q[t], q_low[t]);
            energy += q[t] * r;
        }
        if (X.by_row) {
            for (Index t = 0; t < count; ++t) add(X.data + (i + t) * d, d, q[t], q_low[t], high, low);
        } else {
            for (Index j = 0; j < d; ++j) {
                const Pair slope = dot(X.data + j * X.n + i, q.data(), q_low.data(), count);
                Pair sum{high[j], low[j]};
                sum.add(slope.high, slope.low);
                high[j] = sum.high, low[j] = sum.low;
            }
        }
    });
    out[2 * d] = level.high, out[2 * d + 1] = level.low, out[2 * d + 2] = energy;
}

}  // namespace twice

// out = (g, its rests, Σ p r, its rest, Σ p r²), 2d + 3 numbers, with r = y − X w − b and g = Xᵀ(p r).
inline void residual_twice(const Table<double>& X, const double* y, const double* p, const double* w, double b, double* out, int threads) {
    const Index count = chunk_count(X.n, X.d, 2), d = X.d, width = 2 * d + 3;
    std::vector<double> parts(static_cast<std::size_t>(count * width), 0.0);
    over_chunks(X.n, count, 8 * X.n * d, threads, [&](Index c, Index from, Index to) { twice::rows(X, from, to, y, p, w, b, parts.data() + c * width); });
    std::copy_n(parts.data(), width, out);
    for (Index c = 1; c < count; ++c) {
        const double* part = parts.data() + c * width;
        const auto merge = [&](Index high, Index low) {
            twice::Pair sum{out[high], out[low]};
            sum.add(part[high], part[low]);
            out[high] = sum.high, out[low] = sum.low;
        };
        for (Index j = 0; j < d; ++j) merge(j, d + j);
        merge(2 * d, 2 * d + 1);
        out[2 * d + 2] += part[2 * d + 2];
    }
}

#if !defined(__clang__) && defined(__GNUC__)
#pragma GCC pop_options
#endif

}  // namespace certifit::products
