// Softmax regression, everything one pass over X tells about a point:
//
//   f_i = W x_i + b,   π_i = softmax(f_i),   Σ_i p_i (log Σ_k e^{f_ik} − f_{i,y_i}),   G = Σ_i p_i (π_i − e_{y_i}) x̃_iᵀ
//
// Rows are taken four at a time in the products: their scores share each load of W, and their slopes each load and store of G. There the
// classes lie side by side, padded to a multiple of eight. Exponentials, their sums and logarithms are taken of eight rows at a time, class by
// class, so that a block of rows is turned twice. Partial sums are added in the order of the chunks of rows (products.hpp), so that no result
// depends on the number of threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/exponential.hpp"
#include "products/products.hpp"

namespace certifit::softmax {

constexpr Index kBlock = 64;  // rows at a time

struct Rows {
    const std::int64_t* y;  // classes 0 … K − 1
    const double* p;
    Index n, classes;
};

// Some rows on their way: z (rows × width) are scores first and weighted slopes p (π − e_y) in the end; t (classes × kBlock) is turned.
struct Block {
    double *z, *t;
    Index rows, width, classes;
    const std::int64_t* y;
    const double* p;  // filled up with zeros to a multiple of eight
};

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

// G (d × width) += xᵀ e,  level += Σ e
template <class T>
[[gnu::always_inline]] inline void backward(const T* x, Index rows, Index d, const double* e, Index width, double* level, double* G) {
    Index i = 0;
    for (; i + 4 <= rows; i += 4, x += 4 * d, e += 4 * width)
        for (Index k = 0; k < width; k += 8) {
            Lanes e0, e1, e2, e3, g;
            load(e + k, e0), load(e + width + k, e1), load(e + 2 * width + k, e2), load(e + 3 * width + k, e3);
            load(level + k, g), store(level + k, g + ((e0 + e1) + (e2 + e3)));
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
            load(level + k, g), store(level + k, g + e0);
            for (Index j = 0; j < d; ++j) load(G + j * width + k, g), store(G + j * width + k, g + static_cast<double>(x[j]) * e0);
        }
}

// Eight vectors of eight numbers as a matrix, turned.
[[gnu::always_inline]] inline void turn(Lanes (&v)[8]) {
    using certifit::detail::Whole;
    Lanes a[8], b[8];
    for (int k = 0; k < 8; k += 2) {
        a[k] = __builtin_shuffle(v[k], v[k + 1], (Whole{0, 8, 2, 10, 4, 12, 6, 14}));
        a[k + 1] = __builtin_shuffle(v[k], v[k + 1], (Whole{1, 9, 3, 11, 5, 13, 7, 15}));
    }
    for (int k : {0, 1, 4, 5}) {
        b[k] = __builtin_shuffle(a[k], a[k + 2], (Whole{0, 1, 8, 9, 4, 5, 12, 13}));
        b[k + 2] = __builtin_shuffle(a[k], a[k + 2], (Whole{2, 3, 10, 11, 6, 7, 14, 15}));
    }
    for (int k = 0; k < 4; ++k) {
        v[k] = __builtin_shuffle(b[k], b[k + 4], (Whole{0, 1, 2, 3, 8, 9, 10, 11}));
        v[k + 4] = __builtin_shuffle(b[k], b[k + 4], (Whole{4, 5, 6, 7, 12, 13, 14, 15}));
    }
}

[[gnu::always_inline]] inline const Lanes& lanes(const double* x) { return *reinterpret_cast<const Lanes*>(x); }

}  // namespace detail

#define CERTIFIT_SOFTMAX(T)                                                                                                  \
    CERTIFIT_CLONES [[maybe_unused]] static void forward(const T* x, Index rows, Index d, const double* W, const double* b,  \
                                                         Index width, double* z) {                                           \
        detail::forward(x, rows, d, W, b, width, z);                                                                         \
    }                                                                                                                        \
    CERTIFIT_CLONES [[maybe_unused]] static void backward(const T* x, Index rows, Index d, const double* e, Index width,     \
                                                          double* level, double* G) {                                        \
        detail::backward(x, rows, d, e, width, level, G);                                                                    \
    }
CERTIFIT_SOFTMAX(double)
CERTIFIT_SOFTMAX(float)
#undef CERTIFIT_SOFTMAX

// t from z.
CERTIFIT_CLONES [[maybe_unused]] static void turn_in(const Block& block) {
    detail::Lanes v[8];
    for (Index g = 0; g < block.rows; g += 8)
        for (Index k = 0; k < block.width; k += 8) {
            for (Index r = 0; r < 8; ++r) detail::load(block.z + (g + r) * block.width + k, v[r]);
            detail::turn(v);
            for (Index c = 0; c < std::min<Index>(8, block.classes - k); ++c) detail::store(block.t + (k + c) * kBlock + g, v[c]);
        }
}

// Scores t become probabilities; Σ p ℓ. Scores 708 below the highest count as so much below it.
CERTIFIT_CLONES [[maybe_unused]] static double soften(const Block& block) {
    using namespace detail;
    Lanes sum = {};
    double own[8] = {};
    for (Index g = 0; g < block.rows; g += 8) {
        double* t = block.t + g;
        Lanes most = lanes(t), odd = {}, all = {};
        for (Index r = 0; r < 8; ++r) own[r] = g + r < block.rows ? block.t[block.y[g + r] * kBlock + g + r] : 0.0;
        for (Index k = 0; k < block.classes; ++k) {
            const Lanes& f = lanes(t + k * kBlock);
            most = f > most ? f : most, odd += 0.0 * f;  // a NaN or an infinity among the scores stays visible
        }
        for (Index k = 0; k < block.classes; ++k) {
            const Lanes below = lanes(t + k * kBlock) - most, e = exponential(below < -708.0 ? Lanes{} - 708.0 : below);
            store(t + k * kBlock, e), all += e;
        }
        const Lanes loss = logarithm(all) + ((most - lanes(own)) + odd), unit = 1.0 / all;
        sum += lanes(block.p + g) * (loss < 0.0 ? Lanes{} : loss);
        for (Index k = 0; k < block.classes; ++k) store(t + k * kBlock, lanes(t + k * kBlock) * unit);
    }
    return vec::detail::total(sum);
}

// Probabilities t become q = π + (diag(π) − ππᵀ)·shift; Σ p Σ_k q_k ln q_k, and whether any q is negative or no number.
CERTIFIT_CLONES [[maybe_unused]] static double balance(const Block& block, const double* shift, bool& outside) {
    using namespace detail;
    Lanes sum = {}, least = {};
    for (Index g = 0; g < block.rows; g += 8) {
        double* t = block.t + g;
        Lanes mean = {}, entropy = {};
        for (Index k = 0; k < block.classes; ++k) mean += lanes(t + k * kBlock) * shift[k];
        for (Index k = 0; k < block.classes; ++k) {
            const Lanes pi = lanes(t + k * kBlock), q = pi + pi * (shift[k] - mean), some = q > 1e-300 ? q : Lanes{} + 1.0;
            entropy += q * logarithm(some);  // at the smallest numbers, zero to all digits that count
            least = q >= 0.0 ? least : Lanes{} - 1.0;
            store(t + k * kBlock, q);
        }
        const Lanes weight = lanes(block.p + g);
        sum += weight * entropy;
    }
    for (int r = 0; r < 8; ++r) outside = outside || least[r] < 0.0;
    return vec::detail::total(sum);
}

// z = p (t − e_y)
CERTIFIT_CLONES [[maybe_unused]] static void turn_out(const Block& block) {
    detail::Lanes v[8];
    for (Index g = 0; g < block.rows; g += 8)
        for (Index k = 0; k < block.width; k += 8) {
            const detail::Lanes weight = detail::lanes(block.p + g);
            for (Index c = 0; c < 8; ++c) v[c] = k + c < block.classes ? weight * detail::lanes(block.t + (k + c) * kBlock + g) : detail::Lanes{};
            detail::turn(v);
            for (Index r = 0; r < 8; ++r) detail::store(block.z + (g + r) * block.width + k, v[r]);
        }
    for (Index r = 0; r < block.rows; ++r) block.z[r * block.width + block.y[r]] -= block.p[r];
}

// bend (classes × classes) += Σ p ππᵀ, eight partial sums for each pair k ≤ l.
CERTIFIT_CLONES [[maybe_unused]] static void squares(const Block& block, double* bend) {
    for (Index k = 0, at = 0; k < block.classes; ++k)
        for (Index l = k; l < block.classes; ++l, at += 8) {
            detail::Lanes sum;
            detail::load(bend + at, sum);
            for (Index g = 0; g < block.rows; g += 8)
                sum += detail::lanes(block.p + g) * detail::lanes(block.t + k * kBlock + g) * detail::lanes(block.t + l * kBlock + g);
            detail::store(bend + at, sum);
        }
}

// visit(part, i, block) for all blocks of rows from i on; the sums of the parts, `size` numbers of each chunk. One thread meets the chunks in
// their order and adds up as it goes: all parts together would be dozens of arrays of the size of the coefficients.
template <class Visit>
std::vector<double> walk(Index d, const Rows& rows, Index size, int threads, Visit&& visit) {
    const Index n = rows.n, K = rows.classes, width = (K + 7) / 8 * 8;
    const Index count = products::chunk_count(n, d + width, width), held = kBlock * (width + K + 1);
    const bool alone = threads == 1;
    std::vector<double> parts((alone ? 1 : count) * size, 0.0), scratch((alone ? 1 : count) * held, 0.0), all(size);
    products::over_chunks(n, count, n * d * K, threads, [&](Index c, Index from, Index to) {
        const Index place = alone ? 0 : c;
        double *part = parts.data() + place * size, *z = scratch.data() + place * held, *t = z + kBlock * width, *p = t + kBlock * K;
        for (Index i = from; i < to; i += kBlock) {
            const Index m = std::min(kBlock, to - i);
            std::copy_n(rows.p + i, m, p);
            std::fill(p + m, p + kBlock, 0.0), std::fill(z + m * width, z + kBlock * width, 0.0);
            visit(part, i, Block{z, t, m, width, K, rows.y + i, p});
        }
        if (!alone) return;
        for (Index j = 0; j < size; ++j) all[j] = c == 0 ? part[j] : all[j] + part[j];
        std::fill_n(part, size, 0.0);
    });
    if (!alone) products::add_up(parts, count, size, all.data());
    return all;
}

// The slopes of a block, after `t` holds its probabilities: part is two numbers, the level and G.
template <class T>
void pull(const T* x, Index d, const Block& block, double* part) {
    turn_out(block);
    backward(x, block.rows, d, block.z, block.width, part + 2, part + 2 + block.width);
}

// sums (classes × (d + 1)): the slope of the intercept, then those of the coefficients.
inline void unpadded(const std::vector<double>& all, Index d, Index K, double* sums) {
    const Index width = (K + 7) / 8 * 8;
    for (Index k = 0; k < K; ++k)
        for (Index j = 0; j <= d; ++j) sums[k * (d + 1) + j] = all[2 + j * width + k];
}

// A plane for each class, W (d × width) and b, padded.
struct Planes {
    std::vector<double> W, b;

    // w and intercepts of class k from `w + k·stride`.
    Planes(const double* w, Index stride, const double* intercept, Index apart, Index d, Index K) : W(d * ((K + 7) / 8 * 8), 0.0), b((K + 7) / 8 * 8, 0.0) {
        const Index width = static_cast<Index>(b.size());
        for (Index k = 0; k < K; ++k) {
            b[k] = intercept ? intercept[k * apart] : 0.0;
            for (Index j = 0; j < d; ++j) W[j * width + k] = w[k * stride + j];
        }
    }

    template <class T>
    void scores(const T* x, Index d, const Block& block) const {
        forward(x, block.rows, d, W.data(), b.data(), block.width, block.z);
        turn_in(block);
    }
};

// Copies between a block and arrays of classes × rows.
inline void keep(const Block& block, double* out, Index stride) {
    for (Index k = 0; k < block.classes; ++k) std::copy_n(block.t + k * kBlock, block.rows, out + k * stride);
}

// Scores f and probabilities pi (classes × n) at (W, b), W classes × d; returns the mean loss.
template <class T>
double evaluate(const T* X, Index d, const Rows& rows, const double* W, const double* b, double* f, double* pi, double* sums,
                int threads) {
    const Index n = rows.n, K = rows.classes, width = (K + 7) / 8 * 8;
    const Planes planes(W, d, b, 1, d, K);
    const auto all = walk(d, rows, 2 + (d + 1) * width, threads, [&](double* part, Index i, const Block& block) {
        planes.scores(X + i * d, d, block);
        keep(block, f + i, n);
        part[0] += soften(block);
        keep(block, pi + i, n);
        pull(X + i * d, d, block, part);
    });
    unpadded(all, d, K, sums);
    return all[0];
}

// The dual point θ = q − e_y with q = π + (diag(π) − ππᵀ)·shift: its sums, the negative entropy Σ p Σ_k q_k ln q_k, and whether any q
// is outside of the domain.
template <class T>
void dual(const T* X, Index d, const Rows& rows, const double* pi, const double* shift, double* sums, double* extra, int threads) {
    const Index n = rows.n, K = rows.classes, width = (K + 7) / 8 * 8;
    const auto all = walk(d, rows, 2 + (d + 1) * width, threads, [&](double* part, Index i, const Block& block) {
        for (Index k = 0; k < K; ++k) {
            std::copy_n(pi + k * n + i, block.rows, block.t + k * kBlock);
            std::fill(block.t + k * kBlock + block.rows, block.t + (k + 1) * kBlock, 0.0);
        }
        bool outside = false;
        part[0] += balance(block, shift, outside), part[1] += outside;
        pull(X + i * d, d, block, part);
    });
    unpadded(all, d, K, sums);
    extra[0] = all[0], extra[1] = all[1];
}

}  // namespace certifit::softmax
