// Counting by class, and what the counts say of new rows.
//
//   moments      W_kj = Σ s_i,   m_kj = Σ s_i x_ij / W_kj,   S_kj = Σ s_i (x_ij − m_kj)²       over the rows i of k with x_ij known
//   gaussian     out_ik = Σ_j [c_kj − a_kj (x_ij − m_kj)²]                                     over the known x_ij
//   categories   count_kv = Σ s_i over the rows of class k whose column has the category v; out_ik = Σ_j table_j[x_ij][k]
//
// NaN is a missing value. Rows are taken in chunks that depend on the shape alone, and partial sums are added in their order.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/rows.hpp"
#include "core/simd.hpp"
#include "products/products.hpp"

namespace certifit::bayes {

struct Labels {
    const std::int64_t* group;
    const double* weight;
    Index n, classes;
};

namespace detail {

// Sums of s·(x − c) and the known weight; a NaN adds nothing.
#define CERTIFIT_BAYES(T)                                                                                                        \
    CERTIFIT_CLONES [[maybe_unused]] static void first(const T* __restrict x, Index d, double s, double* __restrict w,           \
                                                       double* __restrict m) {                                                   \
        for (Index j = 0; j < d; ++j) {                                                                                          \
            const double v = static_cast<double>(x[j]);                                                                          \
            const bool known = v == v;                                                                                           \
            w[j] += known ? s : 0.0;                                                                                             \
            m[j] += known ? s * v : 0.0;                                                                                         \
        }                                                                                                                        \
    }                                                                                                                            \
    CERTIFIT_CLONES [[maybe_unused]] static void second(const T* __restrict x, Index d, double s, const double* __restrict mean, \
                                                        double* __restrict r, double* __restrict q) {                            \
        for (Index j = 0; j < d; ++j) {                                                                                          \
            const double v = static_cast<double>(x[j]);                                                                          \
            const double z = v == v ? v - mean[j] : 0.0;                                                                         \
            r[j] += s * z;                                                                                                       \
            q[j] += s * z * z;                                                                                                   \
        }                                                                                                                        \
    }                                                                                                                            \
    CERTIFIT_CLONES [[maybe_unused]] static double distance(const T* __restrict x, Index d, const double* __restrict mean,       \
                                                            const double* __restrict a, const double* __restrict c) {            \
        double sum[8] = {};                                                                                                      \
        Index j = 0;                                                                                                             \
        for (; j + 8 <= d; j += 8)                                                                                               \
            for (Index l = 0; l < 8; ++l) {                                                                                      \
                const double v = static_cast<double>(x[j + l]), z = v - mean[j + l];                                             \
                sum[l] += v == v ? c[j + l] - a[j + l] * z * z : 0.0;                                                            \
            }                                                                                                                    \
        for (; j < d; ++j) {                                                                                                     \
            const double v = static_cast<double>(x[j]), z = v - mean[j];                                                         \
            sum[0] += v == v ? c[j] - a[j] * z * z : 0.0;                                                                        \
        }                                                                                                                        \
        return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));                                \
    }
CERTIFIT_BAYES(double)
CERTIFIT_BAYES(float)
#undef CERTIFIT_BAYES

}  // namespace detail

// Weight, mean and scatter of each class in each column, all K × d.
template <class T>
void moments(const T* X, Index d, const Labels& rows, double* weight, double* mean, double* scatter, int threads) {
    const Index n = rows.n, size = rows.classes * d, count = products::chunk_count(n, d, 2 * rows.classes);
    std::vector<double> parts(count * 2 * size, 0.0), all(2 * size);
    products::over_chunks(n, count, n * d, threads, [&](Index c, Index from, Index to) {
        double* part = parts.data() + c * 2 * size;
        for (Index i = from; i < to; ++i)
            detail::first(X + i * d, d, rows.weight[i], part + rows.group[i] * d, part + size + rows.group[i] * d);
    });
    products::add_up(parts, count, 2 * size, all.data());
    for (Index k = 0; k < size; ++k) weight[k] = all[k], mean[k] = all[k] > 0.0 ? all[size + k] / all[k] : 0.0;
    std::fill(parts.begin(), parts.end(), 0.0);
    products::over_chunks(n, count, n * d, threads, [&](Index c, Index from, Index to) {
        double* part = parts.data() + c * 2 * size;
        for (Index i = from; i < to; ++i) {
            const Index at = rows.group[i] * d;
            detail::second(X + i * d, d, rows.weight[i], mean + at, part + at, part + size + at);
        }
    });
    products::add_up(parts, count, 2 * size, all.data());
    for (Index k = 0; k < size; ++k) {
        const double rest = weight[k] > 0.0 ? all[k] / weight[k] : 0.0;  // what rounding left of the mean
        mean[k] += rest;
        scatter[k] = std::max(0.0, all[size + k] - weight[k] * rest * rest);
    }
}

// out (n × K)
template <class T>
void gaussian(const T* X, Index n, Index d, Index K, const double* mean, const double* a, const double* c, double* out,
              int threads) {
    products::over_chunks(n, products::chunk_count(n, d * K, 1), n * d * K, threads, [&](Index, Index from, Index to) {
        for (Index i = from; i < to; ++i)
            for (Index k = 0; k < K; ++k) out[i * K + k] = detail::distance(X + i * d, d, mean + k * d, a + k * d, c + k * d);
    });
}

// A category number, or −1 for what is missing, negative, or at least `size`.
template <class T>
inline Index category(T value, Index size) {
    const double v = static_cast<double>(value);
    return v >= 0.0 && v < static_cast<double>(size) ? static_cast<Index>(v) : -1;
}

// Column j has the categories offset[j] … offset[j + 1] − 1 of count (total × K).
template <class T>
void count_categories(const T* X, Index d, const Labels& rows, const std::int64_t* offset, double* count, int threads) {
    const Index K = rows.classes, size = offset[d] * K;
    const Index chunks = products::chunk_count(rows.n, d, std::max<Index>(1, size / std::max<Index>(d, 1)));
    std::vector<double> parts(chunks * size, 0.0);
    products::over_chunks(rows.n, chunks, rows.n * d * 4, threads, [&](Index c, Index from, Index to) {
        double* part = parts.data() + c * size;
        for (Index i = from; i < to; ++i)
            for (Index j = 0; j < d; ++j) {
                const Index v = category(X[i * d + j], offset[j + 1] - offset[j]);
                if (v >= 0) part[(offset[j] + v) * K + rows.group[i]] += rows.weight[i];
            }
    });
    products::add_up(parts, chunks, size, count);
}

// out (n × K) = Σ_j table[offset[j] + x_ij]
template <class T>
void look_up(const T* X, Index n, Index d, Index K, const std::int64_t* offset, const double* table, double* out, int threads) {
    products::over_chunks(n, products::chunk_count(n, d * K, 1), n * d * K, threads, [&](Index, Index from, Index to) {
        for (Index i = from; i < to; ++i) {
            double* o = out + i * K;
            for (Index k = 0; k < K; ++k) o[k] = 0.0;
            for (Index j = 0; j < d; ++j) {
                const Index v = category(X[i * d + j], offset[j + 1] - offset[j]);
                if (v < 0) continue;
                const double* t = table + (offset[j] + v) * K;
                for (Index k = 0; k < K; ++k) o[k] += t[k];
            }
        }
    });
}

// out (d × K) = Σ s_i x_ij over the rows i of each class: every stored entry is added once, whatever the number of classes.
template <class T, class I>
void sparse_sums(const CsrRows<T, I>& X, const Labels& rows, double* out) {
    const Index K = rows.classes;
    std::fill(out, out + X.d * K, 0.0);
    for (Index i = 0; i < X.n; ++i) {
        double* o = out + rows.group[i];
        const double s = rows.weight[i];
        for (I k = X.start[i]; k < X.start[i + 1]; ++k)
            o[static_cast<Index>(X.indices[k]) * K] += s * static_cast<double>(X.data[k]);
    }
}

namespace detail {

// out[i][k] for the rows from … to − 1 and B blocks of L classes that begin at `first`, at most B·L of them and at least L: the
// last block ends with the last class and may repeat some. Sums stay in registers from the first entry of a row to its last.
template <int L, int B, class T, class I>
[[gnu::always_inline]] inline void score_blocks(const CsrRows<T, I>& X, Index from, Index to, Index K, Index first, Index classes,
                                                const double* slope, const double* constant, double* out) {
    typedef double Block __attribute__((vector_size(L * sizeof(double))));
    Index at[B];
    for (int b = 0; b < B; ++b) at[b] = first + std::min<Index>(b * L, classes - L);
    for (Index i = from; i < to; ++i) {
        Block sum[B];
        for (int b = 0; b < B; ++b) std::memcpy(&sum[b], constant + at[b], sizeof(Block));
        for (I p = X.start[i]; p < X.start[i + 1]; ++p) {
            const double v = static_cast<double>(X.data[p]);
            const double* t = slope + static_cast<Index>(X.indices[p]) * K;
            for (int b = 0; b < B; ++b) {
                Block here;
                std::memcpy(&here, t + at[b], sizeof(Block));
                sum[b] += v * here;
            }
        }
        for (int b = 0; b < B; ++b) std::memcpy(out + i * K + at[b], &sum[b], sizeof(Block));
    }
}

template <class T, class I>
[[gnu::always_inline]] inline void score_rows(const CsrRows<T, I>& X, Index from, Index to, Index K, const double* slope,
                                              const double* constant, double* out) {
    constexpr Index kMost = 32;
    for (Index first = 0; first < K; first += kMost) {
        const Index classes = std::min(kMost, K - first);
#define CERTIFIT_SCORES(L, B) score_blocks<L, B>(X, from, to, K, first, classes, slope, constant, out)
        if (classes > 24) CERTIFIT_SCORES(8, 4);
        else if (classes > 16) CERTIFIT_SCORES(8, 3);
        else if (classes > 8) CERTIFIT_SCORES(8, 2);
        else if (classes > 4) CERTIFIT_SCORES(4, 2);
        else if (classes > 2) CERTIFIT_SCORES(2, 2);
        else if (classes > 1) CERTIFIT_SCORES(2, 1);
        else CERTIFIT_SCORES(1, 1);
#undef CERTIFIT_SCORES
    }
}

#define CERTIFIT_BAYES(T, I)                                                                                           \
    CERTIFIT_CLONES [[maybe_unused]] static void scores_of(const CsrRows<T, I>& X, Index from, Index to, Index K,      \
                                                           const double* slope, const double* constant, double* out) { \
        score_rows(X, from, to, K, slope, constant, out);                                                              \
    }
CERTIFIT_BAYES(double, std::int32_t)
CERTIFIT_BAYES(double, std::int64_t)
CERTIFIT_BAYES(float, std::int32_t)
CERTIFIT_BAYES(float, std::int64_t)
#undef CERTIFIT_BAYES

}  // namespace detail

// out (n × K) = constant + X·slope, slope (d × K)
template <class T, class I>
void sparse_scores(const CsrRows<T, I>& X, Index K, const double* slope, const double* constant, double* out, int threads) {
    const Index stored = static_cast<Index>(X.start[X.n]);
    products::over_chunks(X.n, products::chunk_count(X.n, std::max<Index>(1, stored * K / std::max<Index>(X.n, 1)), 1),
                          stored * K, threads,
                          [&](Index, Index from, Index to) { detail::scores_of(X, from, to, K, slope, constant, out); });
}

}  // namespace certifit::bayes
