// Products with a dense matrix X of many rows, each of them one pass over its memory:
//
//   scores     f = X w + b
//   pullback   G = Q X, for a few rows of Q at once
//   residual   r = y − X w − b,  g = Xᵀ(p r),  Σ p r,  Σ p r²
//   logistic   f = X w + b, slopes θ and curvatures h of the logistic loss at f,  Xᵀ(p θ),  Σ p θ
//   gram       [1 X]ᵀ diag(h) [1 X]
//   energy     Σ x², which is finite when all entries are
//   codes      Σ_j mix(x_ij, j), a number that tells rows apart
//
// The rows are cut into chunks that depend on the shape alone; threads share the chunks, and partial sums are added in
// the order of the chunks. So no result depends on the number of threads. X may be float; all sums are double.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "core/aligned.hpp"
#include "core/exponential.hpp"
#include "core/team.hpp"
#include "core/vector.hpp"

namespace certifit::products {

namespace detail {

using vec::detail::Lanes;
using vec::detail::load;
using vec::detail::total;

[[gnu::always_inline]] inline void store(double* x, const Lanes& v) { *reinterpret_cast<Lanes*>(x) = v; }

// f = X w + b for rows stored one after the other; four rows share each load of w.
template <class T>
[[gnu::always_inline]] inline void scores_by_row(const T* x, Index rows, Index d, const double* w, double b, double* f) {
    Index i = 0;
    for (; i + 4 <= rows; i += 4, x += 4 * d) {
        Lanes s0 = {}, s1 = {}, s2 = {}, s3 = {}, v, a;
        Index j = 0;
        for (; j + 8 <= d; j += 8) {
            load(w + j, v);
            load(x + j, a), s0 += a * v;
            load(x + d + j, a), s1 += a * v;
            load(x + 2 * d + j, a), s2 += a * v;
            load(x + 3 * d + j, a), s3 += a * v;
        }
        double t0 = total(s0), t1 = total(s1), t2 = total(s2), t3 = total(s3);
        for (; j < d; ++j) {
            t0 += static_cast<double>(x[j]) * w[j];
            t1 += static_cast<double>(x[d + j]) * w[j];
            t2 += static_cast<double>(x[2 * d + j]) * w[j];
            t3 += static_cast<double>(x[3 * d + j]) * w[j];
        }
        f[i] = t0 + b, f[i + 1] = t1 + b, f[i + 2] = t2 + b, f[i + 3] = t3 + b;
    }
    for (; i < rows; ++i, x += d) f[i] = vec::detail::dot(x, w, d) + b;
}

// g += qᵀX for rows stored one after the other; four rows share each load and store of g.
template <class T>
[[gnu::always_inline]] inline void pull_by_row(const T* x, Index rows, Index d, const double* q, double* g) {
    Index i = 0;
    for (; i + 4 <= rows; i += 4, x += 4 * d) {
        const double q0 = q[i], q1 = q[i + 1], q2 = q[i + 2], q3 = q[i + 3];
        Lanes s, a0, a1, a2, a3;
        Index j = 0;
        for (; j + 8 <= d; j += 8) {
            load(g + j, s);
            load(x + j, a0), load(x + d + j, a1), load(x + 2 * d + j, a2), load(x + 3 * d + j, a3);
            store(g + j, s + ((q0 * a0 + q1 * a1) + (q2 * a2 + q3 * a3)));
        }
        for (; j < d; ++j)
            g[j] += (q0 * static_cast<double>(x[j]) + q1 * static_cast<double>(x[d + j])) +
                    (q2 * static_cast<double>(x[2 * d + j]) + q3 * static_cast<double>(x[3 * d + j]));
    }
    for (; i < rows; ++i, x += d)
        for (Index j = 0; j < d; ++j) g[j] += q[i] * static_cast<double>(x[j]);
}

// f = X w + b for columns stored one after the other, `stride` apart.
template <class T>
[[gnu::always_inline]] inline void scores_by_column(const T* x, Index stride, Index rows, Index d, const double* w,
                                                    double b, double* f) {
    std::fill_n(f, rows, b);
    Index j = 0;
    for (; j + 4 <= d; j += 4) {
        const T *x0 = x + j * stride, *x1 = x0 + stride, *x2 = x1 + stride, *x3 = x2 + stride;
        const double w0 = w[j], w1 = w[j + 1], w2 = w[j + 2], w3 = w[j + 3];
        Lanes s, a0, a1, a2, a3;
        Index i = 0;
        for (; i + 8 <= rows; i += 8) {
            load(f + i, s), load(x0 + i, a0), load(x1 + i, a1), load(x2 + i, a2), load(x3 + i, a3);
            store(f + i, s + ((w0 * a0 + w1 * a1) + (w2 * a2 + w3 * a3)));
        }
        for (; i < rows; ++i)
            f[i] += (w0 * static_cast<double>(x0[i]) + w1 * static_cast<double>(x1[i])) +
                    (w2 * static_cast<double>(x2[i]) + w3 * static_cast<double>(x3[i]));
    }
    for (; j < d; ++j)
        for (Index i = 0; i < rows; ++i) f[i] += w[j] * static_cast<double>(x[j * stride + i]);
}

// g += qᵀX for columns stored one after the other.
template <class T>
[[gnu::always_inline]] inline void pull_by_column(const T* x, Index stride, Index rows, Index d, const double* q,
                                                  double* g) {
    for (Index j = 0; j < d; ++j) g[j] += vec::detail::dot(x + j * stride, q, rows);
}

}  // namespace detail

#define CERTIFIT_PRODUCTS(T)                                                                                           \
    CERTIFIT_CLONES [[maybe_unused]] static void scores_by_row(const T* x, Index rows, Index d, const double* w,       \
                                                               double b, double* f) {                                  \
        detail::scores_by_row(x, rows, d, w, b, f);                                                                    \
    }                                                                                                                  \
    CERTIFIT_CLONES [[maybe_unused]] static void pull_by_row(const T* x, Index rows, Index d, const double* q,         \
                                                             double* g) {                                              \
        detail::pull_by_row(x, rows, d, q, g);                                                                         \
    }                                                                                                                  \
    CERTIFIT_CLONES [[maybe_unused]] static void scores_by_column(const T* x, Index stride, Index rows, Index d,       \
                                                                  const double* w, double b, double* f) {              \
        detail::scores_by_column(x, stride, rows, d, w, b, f);                                                         \
    }                                                                                                                  \
    CERTIFIT_CLONES [[maybe_unused]] static void pull_by_column(const T* x, Index stride, Index rows, Index d,         \
                                                                const double* q, double* g) {                          \
        detail::pull_by_column(x, stride, rows, d, q, g);                                                              \
    }
CERTIFIT_PRODUCTS(double)
CERTIFIT_PRODUCTS(float)
#undef CERTIFIT_PRODUCTS

namespace detail {

template <int Wide, class T>
[[gnu::always_inline]] inline void turn(const T* x, Index rows, Index d, double* to, Index stride) {
    for (Index t = 0; t < rows; ++t)
        for (int s = 0; s < Wide; ++s) to[s * stride + t] = static_cast<double>(x[t * d + s]);
}

}  // namespace detail

// Some rows, stored one after the other, as columns that are `stride` apart; eight columns at a time, so that few lines are open.
template <class T>
void turn(const T* x, Index rows, Index d, double* to, Index stride) {
    Index j = 0;
    for (; j + 8 <= d; j += 8) detail::turn<8>(x + j, rows, d, to + j * stride, stride);
    x += j, to += j * stride;
    switch (d - j) {
        case 1: return detail::turn<1>(x, rows, d, to, stride);
        case 2: return detail::turn<2>(x, rows, d, to, stride);
        case 3: return detail::turn<3>(x, rows, d, to, stride);
        case 4: return detail::turn<4>(x, rows, d, to, stride);
        case 5: return detail::turn<5>(x, rows, d, to, stride);
        case 6: return detail::turn<6>(x, rows, d, to, stride);
        case 7: return detail::turn<7>(x, rows, d, to, stride);
        default: return;
    }
}

// Whether all numbers are the same: no early end, so that the comparisons are of whole vectors.
CERTIFIT_CLONES [[maybe_unused]] static bool equal(const double* x, Index n) {
    Index other = 0;
    for (Index i = 0; i < n; ++i) other += x[i] != x[0];
    return other == 0;
}

// A dense matrix, one row or one column after the other.
template <class T>
struct Table {
    const T* data;
    Index n, d;
    bool by_row;

    void scores(Index from, Index rows, const double* w, double b, double* f) const {
        if (by_row)
            scores_by_row(data + from * d, rows, d, w, b, f);
        else
            scores_by_column(data + from, n, rows, d, w, b, f);
    }
    void pull(Index from, Index rows, const double* q, double* g) const {
        if (by_row)
            pull_by_row(data + from * d, rows, d, q, g);
        else
            pull_by_column(data + from, n, rows, d, q, g);
    }
};

constexpr Index kBlock = 1 << 15;   // entries of X that stay in a core's cache between two uses
constexpr Index kChunk = 1 << 17;   // entries of X worth a thread's while
constexpr Index kChunks = 32;
constexpr Index kNarrow = 12;  // columns up to which rows are turned into columns before they are multiplied
constexpr Index kNarrowRows = 504;
// Multiplications below which one thread does all: on a busy machine, a thread that waits for its turn costs milliseconds.
constexpr Index kAlone = Index(1) << 21;

// Chunks of consecutive rows; `sums` partial results of d numbers a chunk stay small beside X.
inline Index chunk_count(Index n, Index d, Index sums) {
    return std::max<Index>(1, std::min({kChunks, n * d / kChunk, n / (8 * std::max<Index>(sums, 1))}));
}

// work(chunk, from, to) for all chunks of n rows; `cost` multiplications in all. A pass that is worth threads takes a hundred
// times as long as to start one.
template <class F>
void over_chunks(Index n, Index count, Index cost, int threads, F&& work) {
    Team(threads).run(count, cost >= kAlone, [&](Index c, int) { work(c, n * c / count, n * (c + 1) / count); });
}

// work(from, rows) for the blocks of a chunk.
template <class F>
void over_blocks(Index from, Index to, Index d, F&& work) {
    const Index step = std::max<Index>(64, kBlock / std::max<Index>(d, 1) / 8 * 8);
    for (Index i = from; i < to; i += step) work(i, std::min(step, to - i));
}

// Adds the partial sums, width numbers a chunk, in their order.
inline void add_up(const std::vector<double>& parts, Index count, Index width, double* out) {
    std::copy_n(parts.data(), width, out);
    for (Index c = 1; c < count; ++c)
        for (Index j = 0; j < width; ++j) out[j] += parts[c * width + j];
}

template <class T>
void scores(const Table<T>& X, const double* w, double b, double* f, int threads) {
    over_chunks(X.n, chunk_count(X.n, X.d, 1), X.n * X.d, threads, [&](Index, Index from, Index to) {
        over_blocks(from, to, X.d, [&](Index i, Index rows) { X.scores(i, rows, w, b, f + i); });
    });
}

// out (k × d) = Q (k × n) X
template <class T>
void pullback(const Table<T>& X, const double* Q, Index k, double* out, int threads) {
    const Index count = chunk_count(X.n, X.d, k), width = k * X.d;
    std::vector<double> parts(count * width, 0.0);
    over_chunks(X.n, count, X.n * X.d, threads, [&](Index c, Index from, Index to) {
        over_blocks(from, to, X.d, [&](Index i, Index rows) {
            for (Index r = 0; r < k; ++r) X.pull(i, rows, Q + r * X.n + i, parts.data() + c * width + r * X.d);
        });
    });
    add_up(parts, count, width, out);
}

// out = (g, Σ p r, Σ p r²), d + 2 numbers, with r = y − X w − b and g = Xᵀ(p r); only the first p is read where all are `even`.
template <class T>
void residual(const Table<T>& X, const double* y, const double* p, const double* w, double b, double* out,
              int threads, bool even = false) {
    const Index count = chunk_count(X.n, X.d, 1), width = X.d + 2;
    const bool narrow = X.by_row && X.d <= kNarrow;
    std::vector<double> parts(count * width, 0.0);
    over_chunks(X.n, count, X.n * X.d, threads, [&](Index c, Index from, Index to) {
        double* part = parts.data() + c * width;
        std::vector<double> q(narrow ? kNarrowRows : std::max<Index>(64, kBlock / std::max<Index>(X.d, 1) / 8 * 8));
        AlignedVector<double> turned(narrow ? X.d * kNarrowRows : 0);
        const auto visit = [&](Index i, Index rows) {
            // Vectors run along the rows where a row is shorter than they are.
            const Table<double> block{turned.data(), kNarrowRows, X.d, false};
            if (narrow) {
                turn(X.data + i * X.d, rows, X.d, turned.data(), kNarrowRows);
                block.scores(0, rows, w, b, q.data());
            } else {
                X.scores(i, rows, w, b, q.data());
            }
            double level = 0.0, energy = 0.0;
            for (Index t = 0; t < rows; ++t) {
                const double r = y[i + t] - q[t];
                q[t] = (even ? p[0] : p[i + t]) * r;
                level += q[t];
                energy += q[t] * r;
            }
            part[X.d] += level, part[X.d + 1] += energy;
            if (narrow)
                block.pull(0, rows, q.data(), part);
            else
                X.pull(i, rows, q.data(), part);
        };
        if (narrow)
            for (Index i = from; i < to; i += kNarrowRows) visit(i, std::min(kNarrowRows, to - i));
        else
            over_blocks(from, to, X.d, visit);
    });
    add_up(parts, count, width, out);
}

// Slopes and curvatures of ln(1 + e^(−m)), m = (2y − 1) f, for targets 0 and 1, both from one exponential; q = p θ.
CERTIFIT_CLONES [[maybe_unused]] static void logistic_slopes(const double* y, const double* p, const double* f, Index rows,
                                                             double* theta, double* h, double* q) {
    for (Index t = 0; t < rows; ++t) {
        const double far = f[t] < 0 ? -f[t] : f[t], small = exponential(far > 708.0 ? -708.0 : -far);
        const double likely = 1.0 / (1.0 + small), rare = small * likely;
        const bool right = (f[t] > 0) == (y[t] > 0.5);
        theta[t] = (1.0 - 2.0 * y[t]) * (right ? rare : likely);
        h[t] = rare * likely;
        q[t] = p[t] * theta[t];
    }
}

// out = (Xᵀ(p θ), Σ p θ), d + 1 numbers; f, theta and h are of the rows.
template <class T>
void logistic(const Table<T>& X, const double* y, const double* p, const double* w, double b, double* f, double* theta,
              double* h, double* out, int threads) {
    const Index count = chunk_count(X.n, X.d, 1), width = X.d + 1;
    std::vector<double> parts(count * width, 0.0);
    over_chunks(X.n, count, X.n * X.d, threads, [&](Index c, Index from, Index to) {
        double* part = parts.data() + c * width;
        std::vector<double> q(std::max<Index>(64, kBlock / std::max<Index>(X.d, 1) / 8 * 8));
        over_blocks(from, to, X.d, [&](Index i, Index rows) {
            X.scores(i, rows, w, b, f + i);
            logistic_slopes(y + i, p + i, f + i, rows, theta + i, h + i, q.data());
            for (Index t = 0; t < rows; ++t) part[X.d] += q[t];
            X.pull(i, rows, q.data(), part);
        });
    });
    add_up(parts, count, width, out);
}

#define CERTIFIT_ENERGY(T)                                                                                             \
    CERTIFIT_CLONES [[maybe_unused]] static double energy(const T* x, Index n) {                                       \
        detail::Lanes s0 = {}, s1 = {}, a, b;                                                                          \
        Index i = 0;                                                                                                   \
        for (; i + 16 <= n; i += 16) {                                                                                 \
            detail::load(x + i, a), s0 += a * a;                                                                       \
            detail::load(x + i + 8, b), s1 += b * b;                                                                   \
        }                                                                                                              \
        double sum = detail::total(s0 + s1);                                                                           \
        for (; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);                               \
        return sum;                                                                                                    \
    }
CERTIFIT_ENERGY(double)
CERTIFIT_ENERGY(float)
#undef CERTIFIT_ENERGY

template <class T>
double energy(const T* x, Index n, int threads) {
    const Index count = chunk_count(n, 1, 1);
    std::vector<double> parts(count);
    over_chunks(n, count, n, threads, [&](Index c, Index from, Index to) { parts[c] = energy(x + from, to - from); });
    double sum = 0.0;
    add_up(parts, count, 1, &sum);
    return sum;
}

// out (m × m) = Aᵀ diag(h) A with A = X, or A = [1 X] when `ones`: tiles of 4 × 4 sums in registers, the weighted columns
// of a tile packed beside them. Made for few columns, where a general matrix product spends its time on packing.
template <class T>
class WeightedGram {
  public:
    WeightedGram(const Table<T>& X, const double* h, bool ones) : X_(X), h_(h), ones_(ones), m_(X.d + ones) {
        // The block of all columns stays in a core's cache; sums over fewer rows would cost more than their products.
        rows_ = std::clamp<Index>((1 << 16) / std::max<Index>(m_, 1) / 8 * 8, 128, 512);
    }

    void run(double* out, int threads) const {
        const Index n = X_.n, width = m_ * m_;
        const Index count = std::max<Index>(1, std::min({Index(8), n / (4 * rows_), n / std::max<Index>(1, 8 * m_)}));
        std::vector<double> parts(count * width, 0.0);
        // Products of tiles in registers are some 32 times cheaper than those of a pass that waits for memory.
        over_chunks(n, count, n * width / 32, threads, [&](Index c, Index from, Index to) {
            double* part = parts.data() + c * width;
            std::vector<double> packed(4 * rows_), block(X_.by_row ? m_ * rows_ : 0);
            std::vector<T> one(X_.by_row ? 0 : rows_, T(1));
            for (Index i = from; i < to; i += rows_) {
                const Index rows = std::min(rows_, to - i);
                if (X_.by_row) {
                    transpose(i, rows, block.data());
                    add([&](Index j) { return block.data() + j * rows_; }, i, rows, packed.data(), part);
                } else {
                    add([&](Index j) { return j < ones_ ? one.data() : X_.data + (j - ones_) * n + i; }, i, rows,
                        packed.data(), part);
                }
            }
        });
        add_up(parts, count, width, out);
        for (Index j = 0; j < m_; ++j)
            for (Index k = 0; k < j; ++k) out[k * m_ + j] = out[j * m_ + k];
    }

  private:
    // The columns of a block of rows, one after the other.
    void transpose(Index i, Index rows, double* block) const {
        if (ones_) std::fill_n(block, rows, 1.0);
        const Index d = X_.d;
        for (Index j = 0; j < d; j += 8) {
            const Index wide = std::min<Index>(8, d - j);
            const T* x = X_.data + i * d + j;
            double* to = block + (j + ones_) * rows_;
            for (Index t = 0; t < rows; ++t, x += d)
                for (Index s = 0; s < wide; ++s) to[s * rows_ + t] = static_cast<double>(x[s]);
        }
    }

    // Adds the products of a block; `column` tells where its columns are.
    template <class F>
    void add(F&& column, Index i, Index rows, double* packed, double* part) const {
        using U = std::remove_cvref_t<decltype(*column(0))>;
        double sums[16];
        for (Index j = 0; j < m_; j += 4) {
            const double* left[4];
            for (Index r = 0; r < 4; ++r) {
                left[r] = packed + r * rows_;
                if (j + r < m_) vec::pack(column(j + r), 0.0, h_ + i, packed + r * rows_, rows);
            }
            for (Index k = 0; k <= j; k += 4) {
                const U* right[4];
                for (Index s = 0; s < 4; ++s) right[s] = column(std::min(k + s, m_ - 1));
                vec::dot16(left, right, rows, sums);
                for (Index r = 0; r < std::min<Index>(4, m_ - j); ++r)
                    for (Index s = 0; s < std::min<Index>(4, m_ - k); ++s) part[(j + r) * m_ + k + s] += sums[4 * r + s];
            }
        }
    }

    Table<T> X_;
    const double* h_;
    Index ones_, m_, rows_;
};

// The finalizer of splitmix64: every bit of the input moves half of the bits of the output.
[[gnu::always_inline]] inline std::uint64_t mixed(std::uint64_t bits, std::uint64_t salt) {
    std::uint64_t z = bits + (salt + 1) * 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

template <class T>
[[gnu::always_inline]] inline std::uint64_t code_of(T x, Index j) {
    const double value = static_cast<double>(x);
    // Zeros of both signs count nothing, as they do in a sparse matrix, and missing values are alike whatever their bits.
    const double known = value == value ? value : std::numeric_limits<double>::quiet_NaN();
    return value == 0.0 ? 0 : mixed(std::bit_cast<std::uint64_t>(known), static_cast<std::uint64_t>(j) + 1);
}

#define CERTIFIT_CODES(T)                                                                                              \
    CERTIFIT_CLONES [[maybe_unused]] static void add_codes(const T* x, Index step, Index count, Index first,           \
                                                           bool along, std::uint64_t* out) {                           \
        if (along) /* the entries of one row */                                                                        \
            for (Index j = 0; j < count; ++j) *out += code_of(x[j * step], first + j);                                 \
        else /* some rows of one column */                                                                             \
            for (Index i = 0; i < count; ++i) out[i] += code_of(x[i * step], first);                                   \
    }
CERTIFIT_CODES(double)
CERTIFIT_CODES(float)
#undef CERTIFIT_CODES

template <class T>
void codes(const Table<T>& X, std::uint64_t* out) {
    std::fill_n(out, X.n, std::uint64_t{0});
    if (X.by_row) {
        for (Index i = 0; i < X.n; ++i) add_codes(X.data + i * X.d, 1, X.d, 0, true, out + i);
        return;
    }
    constexpr Index kRows = 1024;  // sums that stay in the nearest cache
    for (Index i = 0; i < X.n; i += kRows)
        for (Index j = 0; j < X.d; ++j) add_codes(X.data + j * X.n + i, 1, std::min(kRows, X.n - i), j, false, out + i);
}

}  // namespace certifit::products
