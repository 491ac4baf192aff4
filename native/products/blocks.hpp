// Blocks of the rows of X, dense or sparse, for passes that read a block twice: the second time from a near cache.
#pragma once

#include <algorithm>
#include <vector>

#include "products/products.hpp"
#include "products/sparse.hpp"

namespace certifit::products {

namespace detail {

constexpr Index kTwice = 1 << 13;  // entries of a block of rows that is read twice, from the nearest cache the second time

template <class T>
[[gnu::always_inline]] inline void add_squares(const T* x, Index rows, Index d, const double* p, double* sum) {
    for (Index i = 0; i < rows; ++i, x += d)
        for (Index j = 0; j < d; ++j) sum[j] += p[i] * (static_cast<double>(x[j]) * static_cast<double>(x[j]));
}

}  // namespace detail

CERTIFIT_CLONES [[maybe_unused]] static void squares_by_row(const double* x, Index rows, Index d, const double* p, double* sum) {
    detail::add_squares(x, rows, d, p, sum);
}
CERTIFIT_CLONES [[maybe_unused]] static void squares_by_row(const float* x, Index rows, Index d, const double* p, double* sum) {
    detail::add_squares(x, rows, d, p, sum);
}

// Rows that are visited together.
template <class T>
Index together(const Table<T>& X) {
    const Index d = std::max<Index>(X.d, 1);
    return X.by_row ? std::max<Index>(4, detail::kTwice / d / 4 * 4) : std::max<Index>(64, kBlock / d / 8 * 8);
}
template <class T, class I>
Index together(const CsrRows<T, I>&) {
    return 64;
}

template <class T>
Index chunks(const Table<T>& X) {
    return chunk_count(X.n, X.d, 1);
}
template <class T, class I>
Index chunks(const CsrRows<T, I>& X) {
    return sparse_chunks(X.n, stored(X), X.d);
}

template <class T>
Index entries(const Table<T>& X) {
    return X.n * X.d;
}
template <class T, class I>
Index entries(const CsrRows<T, I>& X) {
    return stored(X);
}

// f = X w + b of some rows
template <class T>
void block_scores(const Table<T>& X, Index i, Index rows, const double* w, double b, double* f) {
    X.scores(i, rows, w, b, f);
}
template <class T, class I>
void block_scores(const CsrRows<T, I>& X, Index i, Index rows, const double* w, double b, double* f) {
    for (Index t = 0; t < rows; ++t) f[t] = X.dot(i + t, w) + b;
}

// g += qᵀX
template <class T>
void block_pull(const Table<T>& X, Index i, Index rows, const double* q, double* g) {
    X.pull(i, rows, q, g);
}
template <class T, class I>
void block_pull(const CsrRows<T, I>& X, Index i, Index rows, const double* q, double* g) {
    for (Index t = 0; t < rows; ++t) X.add(i + t, q[t], g);
}

// sum += Σ p x²
template <class T>
void block_squares(const Table<T>& X, Index i, Index rows, const double* p, double* sum) {
    if (X.by_row) return squares_by_row(X.data + i * X.d, rows, X.d, p, sum);
    for (Index j = 0; j < X.d; ++j) sum[j] += vec::spread(X.data + j * X.n + i, 0.0, p, rows);
}
template <class T, class I>
void block_squares(const CsrRows<T, I>& X, Index i, Index rows, const double* p, double* sum) {
    for (Index t = 0; t < rows; ++t)
        for (Index k = static_cast<Index>(X.start[i + t]); k < static_cast<Index>(X.start[i + t + 1]); ++k)
            sum[X.indices[k]] += p[t] * (static_cast<double>(X.data[k]) * static_cast<double>(X.data[k]));
}

// Sums over all rows, block by block: work(i, rows, q, part) with room for two numbers a row at q. No result depends on the threads.
template <class X>
class Fold {
  public:
    Fold(const X& rows, Team& team) : X_(rows), team_(team), count_(chunks(rows)), together_(together(rows)) {}

    // `width` numbers, added in the order of the chunks.
    template <class F>
    void operator()(Index width, double* out, F&& work) {
        parts_.assign(static_cast<std::size_t>(count_ * width), 0.0);
        team_.run(count_, entries(X_) >= kAlone, [&](Index c, int) {
            std::vector<double> q(static_cast<std::size_t>(2 * together_));
            const Index end = X_.n * (c + 1) / count_;
            for (Index i = X_.n * c / count_; i < end; i += together_)
                work(i, std::min(together_, end - i), q.data(), parts_.data() + c * width);
        });
        add_up(parts_, count_, width, out);
    }

  private:
    const X X_;
    Team& team_;
    Index count_, together_;
    std::vector<double> parts_;
};

}  // namespace certifit::products
