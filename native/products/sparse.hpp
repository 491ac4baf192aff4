// Sums over the rows of a sparse X, each stored number read once: what `products.hpp` and `sums.hpp` have for a dense one.
//
//   gram       Xᵀ diag(p) X, dense; and sums of x by rows of Q
//   residual   r = y − X w − b,  g = Xᵀ(p r),  Σ p r,  Σ p r²
//   sums_of    [1 X y]ᵀ diag(p) [1 X y]
//
// A pair of numbers of one row is one multiplication into its place: a product of two sparse matrices looks for the places first. Indices of a row
// need not be sorted, nor be different.
#pragma once

#include <algorithm>
#include <vector>

#include "core/rows.hpp"
#include "products/products.hpp"

namespace certifit::products {

template <class T, class I>
Index stored(const CsrRows<T, I>& X) {
    return static_cast<Index>(X.start[X.n]);
}

// Chunks of rows; partial sums of `width` numbers a chunk stay small beside `work` multiplications.
inline Index sparse_chunks(Index n, Index work, Index width) {
    return std::max<Index>(1, std::min({kChunks, n, work / kChunk, work / (16 * std::max<Index>(width, 1))}));
}

namespace detail {

// One weight for each row, or one for all of them.
struct Weights {
    const double* p;
    Index step;
    Weights(const double* p_, bool even) : p(p_), step(even ? 0 : 1) {}
    double operator[](Index i) const { return p[i * step]; }
};

// G += p Σ over the rows from `from` to `to` of x x', a pair of different columns in one of its two places.
template <class T, class I>
void add_pairs(const CsrRows<T, I>& X, const Weights& p, Index from, Index to, Index width, double* G) {
    for (Index i = from; i < to; ++i) {
        const Index end = static_cast<Index>(X.start[i + 1]);
        for (Index a = static_cast<Index>(X.start[i]); a < end; ++a) {
            const double x = p[i] * static_cast<double>(X.data[a]);
            double* row = G + static_cast<Index>(X.indices[a]) * width;
            for (Index b = a; b < end; ++b) row[X.indices[b]] += x * static_cast<double>(X.data[b]);
        }
    }
}

// Σ p, Σ p r and Σ p r² of rows one after the other, added to `sums`: most rows of a tall sparse X have nothing else to say.
inline void add_levels(const Weights& p, Index first, const double* r, Index rows, double* sums) {
    Lanes ones = {}, level = {}, energy = {}, weight = Lanes{} + p[first];
    Index t = 0;
    for (; t + 8 <= rows; t += 8) {
        Lanes about;
        if (p.step) load(p.p + first + t, weight);
        load(r + t, about);
        const Lanes q = weight * about;
        ones += weight, level += q, energy += q * about;
    }
    sums[0] += total(ones), sums[1] += total(level), sums[2] += total(energy);
    for (; t < rows; ++t) {
        const double weight_of = p[first + t], q = weight_of * r[t];
        sums[0] += weight_of, sums[1] += q, sums[2] += q * r[t];
    }
}

// visit(i) for the rows that have numbers.
template <class T, class I, class F>
void over_filled(const CsrRows<T, I>& X, Index from, Index to, F&& visit) {
    for (Index i = from; i < to; ++i)
        if (X.start[i] != X.start[i + 1]) visit(i);
}

constexpr Index kHeld = 512;  // rows whose residuals are held at a time

// Both places of each pair get the sum of the two; squares of pairs in one place (a column that a row has twice) count twice.
inline void mirror(double* G, Index d, Index width) {
    constexpr Index kTile = 32;  // rows and columns of which both places stay in the cache
    for (Index J = 0; J < d; J += kTile)
        for (Index K = 0; K <= J; K += kTile)
            for (Index j = J; j < std::min(J + kTile, d); ++j)
                for (Index k = K; k < std::min(K + kTile, j); ++k) {
                    const double sum = G[j * width + k] + G[k * width + j];
                    G[j * width + k] = G[k * width + j] = sum;
                }
}

}  // namespace detail

// out (d × d) = Xᵀ diag(p) X; no row has a column twice.
template <class T, class I>
void gram(const CsrRows<T, I>& X, const double* p, double* out, int threads) {
    const Index d = X.d, size = d * d, pairs = stored(X) * (stored(X) / std::max<Index>(X.n, 1) + 1);
    const Index count = sparse_chunks(X.n, pairs, size);
    std::fill_n(out, size, 0.0);
    std::vector<double> parts((count - 1) * size, 0.0);
    over_chunks(X.n, count, pairs, threads, [&](Index c, Index from, Index to) {
        detail::add_pairs(X, {p, false}, from, to, d, c ? parts.data() + (c - 1) * size : out);
    });
    for (Index c = 1; c < count; ++c)
        for (Index j = 0; j < size; ++j) out[j] += parts[(c - 1) * size + j];
    detail::mirror(out, d, d);
}

// out (k × d) = Q (k × n) X
template <class T, class I>
void pullback(const CsrRows<T, I>& X, const double* Q, Index k, double* out, int threads) {
    const Index width = k * X.d, count = sparse_chunks(X.n, k * stored(X), width);
    std::vector<double> parts(count * width, 0.0);
    over_chunks(X.n, count, k * stored(X), threads, [&](Index c, Index from, Index to) {
        for (Index i = from; i < to; ++i)
            for (Index r = 0; r < k; ++r) X.add(i, Q[r * X.n + i], parts.data() + c * width + r * X.d);
    });
    add_up(parts, count, width, out);
}

// out = (g, Σ p r, Σ p r²), d + 2 numbers; only the first p is read where all are `even`.
template <class T, class I>
void residual(const CsrRows<T, I>& X, const double* y, const double* weights, const double* w, double b, double* out, int threads,
              bool even = false) {
    const detail::Weights p(weights, even);
    const Index width = X.d + 2, count = sparse_chunks(X.n, stored(X), width);
    std::vector<double> parts(count * width, 0.0);
    over_chunks(X.n, count, 2 * stored(X), threads, [&](Index c, Index from, Index to) {
        double *part = parts.data() + c * width, sums[3] = {}, r[detail::kHeld];
        for (Index first = from; first < to; first += detail::kHeld) {
            const Index end = std::min(first + detail::kHeld, to);
            for (Index i = first; i < end; ++i) r[i - first] = y[i] - b;
            detail::over_filled(X, first, end, [&](Index i) {
                r[i - first] -= X.dot(i, w);
                X.add(i, p[i] * r[i - first], part);
            });
            detail::add_levels(p, first, r, end - first, sums);
        }
        part[X.d] += sums[1], part[X.d + 1] += sums[2];
    });
    add_up(parts, count, width, out);
}

// m × m numbers, m = d + 2, the lower triangle, with y about a `centre`; no row has a column twice.
template <class T, class I>
std::vector<double> sums_of(const CsrRows<T, I>& X, const double* y, const double* weights, int threads, bool even, double centre) {
    const detail::Weights p(weights, even);
    const Index d = X.d, m = d + 2, size = m * m, pairs = stored(X) * (stored(X) / std::max<Index>(X.n, 1) + 3);
    const Index count = sparse_chunks(X.n, pairs, size);
    std::vector<double> parts(count * size, 0.0), out(size);
    over_chunks(X.n, count, pairs, threads, [&](Index c, Index from, Index to) {
        double *part = parts.data() + c * size, *last = part + (d + 1) * m;
        std::vector<double> along(d, 0.0), against(d, 0.0);
        double sums[3] = {}, about[detail::kHeld];
        for (Index first = from; first < to; first += detail::kHeld) {
            const Index end = std::min(first + detail::kHeld, to);
            for (Index i = first; i < end; ++i) about[i - first] = y[i] - centre;
            detail::add_levels(p, first, about, end - first, sums);
            detail::over_filled(X, first, end, [&](Index i) {
                X.add(i, p[i], along.data());
                X.add(i, p[i] * about[i - first], against.data());
                detail::add_pairs(X, p, i, i + 1, m, part + m + 1);
            });
        }
        for (Index j = 0; j < d; ++j) part[(j + 1) * m] += along[j], last[j + 1] += against[j];
        part[0] += sums[0], last[0] += sums[1], last[m - 1] += sums[2];
    });
    add_up(parts, count, size, out.data());
    detail::mirror(out.data() + m + 1, d, m);
    return out;
}

}  // namespace certifit::products
