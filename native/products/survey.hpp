// A look at some rows, before and after a fit: are the numbers ordinary, and do the terms of the scores cancel?
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "products/products.hpp"

namespace certifit::products {

namespace detail {

// sum[j] += x_ij, or (x_ij − mean[j])², over the rows that are looked at.
template <bool Squared, class T>
[[gnu::always_inline]] inline void add_rows(const T* x, Index rows, Index stride, Index d, const double* mean, double* sum) {
    for (Index i = 0; i < rows; ++i, x += stride)
        for (Index j = 0; j < d; ++j) {
            const double apart = static_cast<double>(x[j]) - (Squared ? mean[j] : 0.0);
            sum[j] += Squared ? apart * apart : apart;
        }
}

}  // namespace detail

#define CERTIFIT_SURVEY(T)                                                                                                          \
    CERTIFIT_CLONES [[maybe_unused]] static void add_rows(const T* x, Index rows, Index stride, Index d, double* sum) {              \
        detail::add_rows<false>(x, rows, stride, d, nullptr, sum);                                                                  \
    }                                                                                                                               \
    CERTIFIT_CLONES [[maybe_unused]] static void add_squares(const T* x, Index rows, Index stride, Index d, const double* mean,      \
                                                             double* sum) {                                                         \
        detail::add_rows<true>(x, rows, stride, d, mean, sum);                                                                      \
    }
CERTIFIT_SURVEY(double)
CERTIFIT_SURVEY(float)
#undef CERTIFIT_SURVEY

constexpr Index kTogether = 64;  // numbers: rows of few columns are added several at a time

// Means and Σ (x − mean)² of the columns over every `step`-th row; the number of these rows.
template <class T>
Index moments(const Table<T>& X, Index step, double* mean, double* squares) {
    const Index count = (X.n + step - 1) / step;
    const double share = 1.0 / static_cast<double>(count);
    if (X.by_row) {
        // As if `many` rows were one of many·d columns.
        const Index many = step == 1 && X.d < kTogether ? kTogether / X.d : 1, wide = many * X.d, whole = count / many;
        std::vector<double> sum(wide), around(wide);
        const auto folded = [&](double* out) {
            std::fill_n(out, X.d, 0.0);
            for (Index k = 0; k < wide; ++k) out[k % X.d] += sum[k];
        };
        add_rows(X.data, whole, step * wide, wide, sum.data());
        folded(mean);
        add_rows(X.data + whole * many * step * X.d, count - whole * many, step * X.d, X.d, mean);
        for (Index j = 0; j < X.d; ++j) mean[j] *= share;
        for (Index k = 0; k < wide; ++k) sum[k] = 0.0, around[k] = mean[k % X.d];
        add_squares(X.data, whole, step * wide, wide, around.data(), sum.data());
        folded(squares);
        add_squares(X.data + whole * many * step * X.d, count - whole * many, step * X.d, X.d, mean, squares);
        return count;
    }
    for (Index j = 0; j < X.d; ++j) {
        const T* x = X.data + j * X.n;
        double sum = 0, energy = 0;
        for (Index i = 0; i < X.n; i += step) sum += static_cast<double>(x[i]);
        mean[j] = sum * share;
        for (Index i = 0; i < X.n; i += step) {
            const double apart = static_cast<double>(x[i]) - mean[j];
            energy += apart * apart;
        }
        squares[j] = energy;
    }
    return count;
}

struct Judged {
    double energy = 0;       // the largest Σ x² of a column
    std::vector<Index> far;  // columns that vary and have a mean beyond `offset` deviations
};

inline Judged judged(const double* mean, const double* squares, Index d, double count, double offset) {
    Judged out;
    for (Index j = 0; j < d; ++j) {
        const double energy = squares[j] + count * mean[j] * mean[j];
        if (energy > out.energy || energy != energy) out.energy = energy;  // what is not a number stays
        const double spread = std::sqrt(squares[j] / count);
        if (std::abs(mean[j]) > offset * spread && spread > 0) out.far.push_back(j);
    }
    return out;
}

// Over every `step`-th row and the scores of K planes, W row after row: the largest |x|·|w| + |b|, the largest and the least x·w + b.
struct Reach {
    double far = 0, high = -std::numeric_limits<double>::infinity(), low = std::numeric_limits<double>::infinity();
};

template <class T>
Reach reach(const Table<T>& X, Index step, const double* W, const double* b, Index K) {
    const Index along = X.by_row ? 1 : X.n, across = X.by_row ? X.d : 1;
    Reach out;
    for (Index i = 0; i < X.n; i += step)
        for (Index k = 0; k < K; ++k) {
            const T* x = X.data + i * across;
            double f = b[k], size = std::abs(f);
            for (Index j = 0; j < X.d; ++j) {
                const double term = static_cast<double>(x[j * along]) * W[k * X.d + j];
                f += term, size += std::abs(term);
            }
            if (size > out.far || size != size) out.far = size;  // what is not a number stays
            out.high = std::max(out.high, f), out.low = std::min(out.low, f);
        }
    return out;
}

}  // namespace certifit::products
