// All sums of squares and products of a dense X of few columns, of a target y and of ones, in one pass over the rows:
//
//   [1 X y]' diag(p) [1 X y]
//
// Rows are turned into columns in blocks that stay in the cache, and 4 × 4 columns are multiplied at a time. Equal weights are taken out.
#pragma once

#include <algorithm>
#include <vector>

#include "core/aligned.hpp"
#include "products/products.hpp"

namespace certifit::products {

class Sums {
  public:
    // Of weights that are known to be `even` only the first is read. y is taken about a `centre`.
    Sums(const Table<double>& X, const double* y, const double* p, bool even = false, double centre = 0.0)
        : X_(X), y_(y), p_(p), centre_(centre), m_(X.d + 2) {
        even_ = even || equal(p, X.n);
        // Not 512: columns 4096 bytes apart would share the same few places of the nearest cache.
        rows_ = std::clamp<Index>((1 << 16) / m_ / 8 * 8, 64, 504);
    }

    // m × m numbers, m = d + 2, the lower triangle.
    std::vector<double> run(int threads) const {
        const Index n = X_.n, width = m_ * m_;
        const Index count = std::max<Index>(1, std::min({Index(16), n / (8 * rows_), n / (8 * m_)}));
        std::vector<double> parts(count * width, 0.0), out(width);
        over_chunks(n, count, n * width / 32, threads, [&](Index c, Index from, Index to) {
            AlignedVector<double> block(m_ * rows_), packed(even_ ? 0 : 4 * rows_);
            for (Index i = from; i < to; i += rows_)
                add(i, std::min(rows_, to - i), block.data(), packed.data(), parts.data() + c * width);
        });
        add_up(parts, count, width, out.data());
        if (even_)
            for (double& sum : out) sum *= p_[0];
        return out;
    }

  private:
    void add(Index i, Index rows, double* block, double* packed, double* part) const {
        const Index d = X_.d;
        std::fill_n(block, rows, 1.0);
        double* last = block + (d + 1) * rows_;
        for (Index t = 0; t < rows; ++t) last[t] = y_[i + t] - centre_;
        if (X_.by_row) {
            turn(X_.data + i * d, rows, d, block + rows_, rows_);
        } else {
            for (Index j = 0; j < d; ++j) std::copy_n(X_.data + j * X_.n + i, rows, block + (j + 1) * rows_);
        }
        double sums[16];
        const double *left[4], *right[4];
        for (Index j = 0; j < m_; j += 4) {
            for (Index r = 0; r < 4; ++r) {
                left[r] = block + std::min(j + r, m_ - 1) * rows_;
                if (even_ || j + r >= m_) continue;
                vec::pack(left[r], 0.0, p_ + i, packed + r * rows_, rows);
                left[r] = packed + r * rows_;
            }
            for (Index k = 0; k <= j; k += 4) {
                for (Index s = 0; s < 4; ++s) right[s] = block + std::min(k + s, m_ - 1) * rows_;
                vec::dot16(left, right, rows, sums);
                for (Index r = 0; r < std::min<Index>(4, m_ - j); ++r)
                    for (Index s = 0; s < std::min<Index>(4, m_ - k); ++s) part[(j + r) * m_ + k + s] += sums[4 * r + s];
            }
        }
    }

    const Table<double> X_;
    const double *y_, *p_;
    double centre_;
    Index m_, rows_;
    bool even_;
};

inline std::vector<double> sums_of(const Table<double>& X, const double* y, const double* p, int threads, bool even, double centre) {
    return Sums(X, y, p, even, centre).run(threads);
}

}  // namespace certifit::products
