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

#include "core/exponential.hpp"
#include "products/products.hpp"

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

// e^(z − highest) in place, the rows `width` apart; differences below −708 count as −708.
CERTIFIT_CLONES [[maybe_unused]] static void exponentials(Index rows, Index width, const double* __restrict highest, double* __restrict z) {
    for (Index r = 0; r < rows; ++r)
        for (Index k = 0; k < width; ++k) {
            const double a = z[r * width + k] - highest[r];
            z[r * width + k] = exponential(a < -708.0 ? -708.0 : (a > 0.0 ? 0.0 : a));
        }
}

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

constexpr Index kBlock = 64;  // rows at a time

struct Rows {
    const std::int64_t* y;  // classes 0 … K − 1
    const double* p;
    Index n, classes;
};

// The passes below share their shape: rows of slopes are made block by block, weighted by p, and summed with their rows of X.
//
// make(part, i, m, z, width) fills the slopes π − e_y of m rows into z and adds to part[0] and part[1] what else it sums up;
// sums (classes × (d + 1)) gets the slope of the intercept, then those of the coefficients.
template <class T, class Make>
void pass(const T* X, Index d, const Rows& rows, double* sums, double* extra, int threads, Make&& make) {
    const Index n = rows.n, K = rows.classes, width = (K + 7) / 8 * 8;
    const Index count = products::chunk_count(n, d + width, width), size = (d + 1) * width + 2;
    std::vector<double> parts(count * size, 0.0), block(count * kBlock * width);
    products::over_chunks(n, count, n * d * K, threads, [&](Index c, Index from, Index to) {
        double *part = parts.data() + c * size, *z = block.data() + c * kBlock * width;
        for (Index i = from; i < to; i += kBlock) {
            const Index m = std::min(kBlock, to - i);
            make(part, i, m, z, width);
            for (Index r = 0; r < m; ++r) {
                double* e = z + r * width;
                for (Index k = 0; k < K; ++k) part[2 + k] += e[k] *= rows.p[i + r];
                for (Index k = K; k < width; ++k) e[k] = 0.0;
            }
            backward(X + i * d, m, d, z, width, part + 2 + width);
        }
    });
    std::vector<double> all(size);
    products::add_up(parts, count, size, all.data());
    extra[0] = all[0], extra[1] = all[1];
    for (Index k = 0; k < K; ++k)
        for (Index j = 0; j <= d; ++j) sums[k * (d + 1) + j] = all[2 + j * width + k];
}

// Scores f and probabilities pi (classes × n) at (W, b), W classes × d; returns the mean loss.
template <class T>
double evaluate(const T* X, Index d, const Rows& rows, const double* W, const double* b, double* f, double* pi, double* sums,
                int threads) {
    const Index n = rows.n, K = rows.classes, padded = (K + 7) / 8 * 8;
    std::vector<double> turned(d * padded, 0.0), start(padded, 0.0);
    for (Index k = 0; k < K; ++k) {
        start[k] = b[k];
        for (Index j = 0; j < d; ++j) turned[j * padded + k] = W[k * d + j];
    }
    double extra[2];
    pass(X, d, rows, sums, extra, threads, [&](double* part, Index i, Index m, double* z, Index width) {
        forward(X + i * d, m, d, turned.data(), start.data(), width, z);
        for (Index k = 0; k < K; ++k)
            for (Index r = 0; r < m; ++r) f[k * n + i + r] = z[r * width + k];
        double highest[kBlock], behind[kBlock];
        for (Index r = 0; r < m; ++r) {
            const double* e = z + r * width;
            double most = e[0], sum = 0.0;
            for (Index k = 0; k < K; ++k) most = e[k] > most ? e[k] : most, sum += e[k];
            highest[r] = most;
            behind[r] = (most - e[rows.y[i + r]]) + 0.0 * sum;  // a NaN or an infinity among the scores stays visible
        }
        exponentials(m, width, highest, z);
        for (Index r = 0; r < m; ++r) {
            double *e = z + r * width, total = 0.0;
            for (Index k = 0; k < K; ++k) total += e[k];
            const double loss = std::log(total) + behind[r], unit = 1.0 / total;
            part[0] += rows.p[i + r] * (loss < 0.0 ? 0.0 : loss);
            for (Index k = 0; k < K; ++k) e[k] *= unit;
        }
        for (Index k = 0; k < K; ++k)
            for (Index r = 0; r < m; ++r) pi[k * n + i + r] = z[r * width + k];
        for (Index r = 0; r < m; ++r) z[r * width + rows.y[i + r]] -= 1.0;
    });
    return extra[0];
}

// The dual point θ = q − e_y with q = π + (diag(π) − ππᵀ)·shift: its sums, the negative entropy Σ p Σ_k q_k ln q_k, and how far
// below zero (weighted) any q is: a point with a negative one is outside of the domain.
template <class T>
void dual(const T* X, Index d, const Rows& rows, const double* pi, const double* shift, double* sums, double* extra, int threads) {
    const Index n = rows.n, K = rows.classes;
    pass(X, d, rows, sums, extra, threads, [&](double* part, Index i, Index m, double* z, Index width) {
        for (Index k = 0; k < K; ++k)
            for (Index r = 0; r < m; ++r) z[r * width + k] = pi[k * n + i + r];
        for (Index r = 0; r < m; ++r) {
            double *q = z + r * width, mean = 0.0, entropy = 0.0, below = 0.0;
            for (Index k = 0; k < K; ++k) mean += q[k] * shift[k];
            for (Index k = 0; k < K; ++k) {
                q[k] += q[k] * (shift[k] - mean);
                if (q[k] > 0.0)
                    entropy += q[k] * std::log(q[k]);
                else if (!(q[k] == 0.0))
                    below += 1.0;  // negative, or not a number
            }
            part[0] += rows.p[i + r] * entropy, part[1] += below;
            q[rows.y[i + r]] -= 1.0;
        }
    });
}

}  // namespace certifit::softmax
