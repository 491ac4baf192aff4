// Rows of X for methods that visit one sample at a time: dense (row-major) or CSR, float or double.
//
// Sums and coefficients are double whatever the type of X. For K scores a sample has K weight vectors; each layout of X
// wants its own layout of them: one vector after the other for dense rows (long dot products), one feature after the
// other for sparse rows (the K weights of a feature share a cache line).
#pragma once

#include <cstddef>

#include "core/index.hpp"
#include "core/vector.hpp"

namespace certifit {

template <class T>
struct DenseRows {
    static constexpr Index kShort = 8;  // a call takes longer than fewer products
    const T* data;
    Index n, d;

    const T* row(Index i) const { return data + i * d; }
    double dot(Index i, const double* w) const {
        if (d >= kShort) return vec::dot(row(i), w, d);
        double sum = 0;
        for (Index j = 0; j < d; ++j) sum += static_cast<double>(row(i)[j]) * w[j];
        return sum;
    }
    void add(Index i, double a, double* w) const {
        if (d >= kShort) return vec::subtract(-a, row(i), 0.0, w, d);
        for (Index j = 0; j < d; ++j) w[j] += a * static_cast<double>(row(i)[j]);
    }
    double squared_norm(Index i) const {
        double total = 0;
        for (Index j = 0; j < d; ++j) total += static_cast<double>(row(i)[j]) * static_cast<double>(row(i)[j]);
        return total;
    }
    void prefetch(Index i) const {
        const char* start = reinterpret_cast<const char*>(row(i));
        const Index bytes = d * static_cast<Index>(sizeof(T)) < 1024 ? d * static_cast<Index>(sizeof(T)) : 1024;
        for (Index k = 0; k < bytes; k += 64) __builtin_prefetch(start + k);
    }

    Index place(Index k, Index j, Index) const { return k * d + j; }
    void scores(Index i, const double* W, Index K, double* f) const {
        for (Index k = 0; k < K; ++k) f[k] = vec::dot(row(i), W + k * d, d);
    }
    void add(Index i, const double* a, double* W, Index K) const {
        for (Index k = 0; k < K; ++k)
            if (a[k] != 0.0) vec::subtract(-a[k], row(i), 0.0, W + k * d, d);
    }
};

template <class T, class I>
struct CsrRows {
    const T* data;
    const I* indices;
    const I* start;
    Index n, d;

    double dot(Index i, const double* w) const {
        // Two sums: the next product need not wait for the last addition.
        double even = 0, odd = 0;
        Index k = static_cast<Index>(start[i]);
        const Index end = static_cast<Index>(start[i + 1]);
        for (; k + 2 <= end; k += 2) {
            even += static_cast<double>(data[k]) * w[indices[k]];
            odd += static_cast<double>(data[k + 1]) * w[indices[k + 1]];
        }
        if (k < end) even += static_cast<double>(data[k]) * w[indices[k]];
        return even + odd;
    }
    void add(Index i, double a, double* w) const {
        for (Index k = static_cast<Index>(start[i]); k < static_cast<Index>(start[i + 1]); ++k)
            w[indices[k]] += a * static_cast<double>(data[k]);
    }
    double squared_norm(Index i) const {
        double total = 0;
        for (Index k = static_cast<Index>(start[i]); k < static_cast<Index>(start[i + 1]); ++k)
            total += static_cast<double>(data[k]) * static_cast<double>(data[k]);
        return total;
    }
    void prefetch(Index i) const {
        const Index k = static_cast<Index>(start[i]), count = static_cast<Index>(start[i + 1]) - k;
        for (Index j = 0; j < count && j < 128; j += static_cast<Index>(64 / sizeof(T))) __builtin_prefetch(data + k + j);
        for (Index j = 0; j < count && j < 128; j += static_cast<Index>(64 / sizeof(I))) __builtin_prefetch(indices + k + j);
    }

    Index place(Index k, Index j, Index K) const { return j * K + k; }
    void scores(Index i, const double* W, Index K, double* f) const {
        for (Index k = 0; k < K; ++k) f[k] = 0;
        for (Index e = static_cast<Index>(start[i]); e < static_cast<Index>(start[i + 1]); ++e) {
            const double x = static_cast<double>(data[e]);
            const double* w = W + static_cast<Index>(indices[e]) * K;
            for (Index k = 0; k < K; ++k) f[k] += x * w[k];
        }
    }
    void add(Index i, const double* a, double* W, Index K) const {
        for (Index e = static_cast<Index>(start[i]); e < static_cast<Index>(start[i + 1]); ++e) {
            const double x = static_cast<double>(data[e]);
            double* w = W + static_cast<Index>(indices[e]) * K;
            for (Index k = 0; k < K; ++k) w[k] += x * a[k];
        }
    }
};

}  // namespace certifit
