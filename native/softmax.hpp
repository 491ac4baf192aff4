// Softmax regression, everything one pass over X tells about a point:
//
//   f_i = W x_i + b,   π_i = softmax(f_i),   Σ_i p_i (log Σ_k e^{f_ik} − f_{i,y_i}),   G = Σ_i p_i (π_i − e_{y_i}) x̃_iᵀ
//
// Rows are taken four at a time: their scores share each load of W, and their slopes each load and store of G. The classes
// lie side by side, padded to a multiple of eight. Partial sums are added in the order of the chunks of rows (products.hpp), so
// that no result depends on the number of threads.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "products.hpp"

namespace certifit::softmax {

using products::Index;

namespace detail {

using vec::detail::Lanes;
using vec::detail::load;
using products::detail::store;

// z (rows × width) = x W + b, W stored as d × width.
template <class T>
[[gnu::always_inline]] inline void forward(const T* x, Index rows, Index d, const double* W, const double* b, Index width, double* z) {
    Index i = 0;
    for (; i + 4 <= rows; i += 4, x += 4 * d, z += 4 * width)
        for (Index k = 0; k < width; k += 8) {
            Lanes s0, s1, s2, s3, v;
            load(b + k, s0), s1 = s0, s2 = s0, s3 = s0;
            for (Index j = 0; j < d; ++j) {
                load(W + j * width + k, v);
                s0 += static_cast<double>(x[j]) * v;
                s1 += static_cast<double>(x[d + j]) * v;
                s2 += static_cast<double>(x[2 * d + j]) * v;
                s3 += static_cast<double>(x[3 * d + j]) * v;
            }
            store(z + k, s0), store(z + width + k, s1), store(z + 2 * width + k, s2), store(z + 3 * width + k, s3);
        }
    for (; i < rows; ++i, x += d, z += width)
        for (Index k = 0; k < width; k += 8) {
            Lanes s, v;
            load(b + k, s);
            for (Index j = 0; j < d; ++j) load(W + j * width + k, v), s += static_cast<double>(x[j]) * v;
            store(z + k, s);
        }
}

// G (d × width) += xᵀ e
template <class T>
[[gnu::always_inline]] inline void backward(const T* x, Index rows, Index d, const double* e, Index width, double* G) {
    Index i = 0;
    for (; i + 4 <= rows; i += 4, x += 4 * d, e += 4 * width)
        for (Index k = 0; k < width; k += 8) {
            Lanes e0, e1, e2, e3, g;
            load(e + k, e0), load(e + width + k, e1), load(e + 2 * width + k, e2), load(e + 3 * width + k, e3);
            for (Index j = 0; j < d; ++j) {
                double* at = G + j * width + k;
                load(at, g);
                store(at, g + ((static_cast<double>(x[j]) * e0 + static_cast<double>(x[d + j]) * e1) +
                               (static_cast<double>(x[2 * d + j]) * e2 + static_cast<double>(x[3 * d + j]) * e3)));
            }
        }
    for (; i < rows; ++i, x += d, e += width)
        for (Index k = 0; k < width; k += 8) {
            Lanes e0, g;
            load(e + k, e0);
            for (Index j = 0; j < d; ++j) load(G + j * width + k, g), store(G + j * width + k, g + static_cast<double>(x[j]) * e0);
        }
}

}  // namespace detail

#define CERTIFIT_SOFTMAX(T)                                                                                                  \
    CERTIFIT_CLONES [[maybe_unused]] static void forward(const T* x, Index rows, Index d, const double* W, const double* b,  \
                                                         Index width, double* z) {                                           \
        detail::forward(x, rows, d, W, b, width, z);                                                                         \
    }                                                                                                                        \
    CERTIFIT_CLONES [[maybe_unused]] static void backward(const T* x, Index rows, Index d, const double* e, Index width,     \
                                                          double* G) {                                                       \
        detail::backward(x, rows, d, e, width, G);                                                                           \
    }
CERTIFIT_SOFTMAX(double)
CERTIFIT_SOFTMAX(float)
#undef CERTIFIT_SOFTMAX

struct Rows {
    const std::int64_t* y;  // classes 0 … K − 1
    const double* p;
    Index n, classes;
};

struct Found {
    double* f;     // classes × n
    double* pi;    // classes × n
    double* sums;  // classes × (d + 1): the slope of the intercept, then those of the coefficients
    double value;
};

// W is classes × d, b has one number a class; X is stored row by row.
template <class T>
void evaluate(const T* X, Index d, const Rows& rows, const double* W, const double* b, Found& found, int threads) {
    constexpr Index kBlock = 64;
    const Index n = rows.n, K = rows.classes, width = (K + 7) / 8 * 8;
    std::vector<double> turned(d * width, 0.0), start(width, 0.0);
    for (Index k = 0; k < K; ++k) {
        start[k] = b[k];
        for (Index j = 0; j < d; ++j) turned[j * width + k] = W[k * d + j];
    }
    const Index count = products::chunk_count(n, d + width, width), size = (d + 1) * width + 1;
    std::vector<double> parts(count * size, 0.0), block(count * kBlock * width);
    products::over_chunks(n, count, n * d * K, threads, [&](Index c, Index from, Index to) {
        double *part = parts.data() + c * size, *z = block.data() + c * kBlock * width;
        for (Index i = from; i < to; i += kBlock) {
            const Index m = std::min(kBlock, to - i);
            forward(X + i * d, m, d, turned.data(), start.data(), width, z);
            for (Index k = 0; k < K; ++k)
                for (Index r = 0; r < m; ++r) found.f[k * n + i + r] = z[r * width + k];
            for (Index r = 0; r < m; ++r) {
                double* e = z + r * width;
                const double own = e[rows.y[i + r]], p = rows.p[i + r];
                double highest = e[0], total = 0.0;
                for (Index k = 1; k < K; ++k) highest = e[k] > highest ? e[k] : highest;
                for (Index k = 0; k < K; ++k) total += e[k] = std::exp(e[k] - highest);
                const double loss = std::log(total) + (highest - own);
                part[size - 1] += p * (loss < 0.0 ? 0.0 : loss);  // a NaN stays one
                for (Index k = 0; k < K; ++k) e[k] /= total;
            }
            for (Index k = 0; k < K; ++k)
                for (Index r = 0; r < m; ++r) found.pi[k * n + i + r] = z[r * width + k];
            for (Index r = 0; r < m; ++r) {
                double* e = z + r * width;
                const double p = rows.p[i + r];
                e[rows.y[i + r]] -= 1.0;
                for (Index k = 0; k < K; ++k) part[k] += e[k] *= p;
                for (Index k = K; k < width; ++k) e[k] = 0.0;
            }
            backward(X + i * d, m, d, z, width, part + width);
        }
    });
    std::vector<double> sums(size);
    products::add_up(parts, count, size, sums.data());
    found.value = sums[size - 1];
    for (Index k = 0; k < K; ++k)
        for (Index j = 0; j <= d; ++j) found.sums[k * (d + 1) + j] = sums[j * width + k];
}

}  // namespace certifit::softmax
