// Rows that are copies of others, in a table of codes: one pass over X, where a sample of its rows says that there are many.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/interrupt.hpp"
#include "core/rows.hpp"
#include "products/products.hpp"

namespace certifit::products {

// The sum of the codes of its numbers that are not zero; whether two rows have the same ones.
template <class T>
std::uint64_t content(const DenseRows<T>& X, Index i) {
    std::uint64_t code = 0;
    for (Index j = 0; j < X.d; ++j)
        code += code_of(X.row(i)[j], j);
    return code;
}

template <class T, class I>
std::uint64_t content(const CsrRows<T, I>& X, Index i) {
    std::uint64_t code = 0;
    for (auto k = X.start[i]; k < X.start[i + 1]; ++k)
        code += code_of(X.data[k], static_cast<Index>(X.indices[k]));
    return code;
}

template <class T>
bool same(const DenseRows<T>& X, Index a, Index b) {
    for (Index j = 0; j < X.d; ++j)
        if (X.row(a)[j] != X.row(b)[j]) return false;
    return true;
}

// Of rows in the same order of columns; zeros that are kept count.
template <class T, class I>
bool same(const CsrRows<T, I>& X, Index a, Index b) {
    const auto count = X.start[a + 1] - X.start[a];
    if (count != X.start[b + 1] - X.start[b]) return false;
    for (I k = 0; k < count; ++k)
        if (X.indices[X.start[a] + k] != X.indices[X.start[b] + k] || X.data[X.start[a] + k] != X.data[X.start[b] + k]) return false;
    return true;
}

template <class Rows>
class Copies {
  public:
    std::vector<Index> first;  // the rows that differ from all before them

    // y: of each row, without which it is no copy.
    Copies(const Rows& X, const double* y) : X_(X), y_(y), table_(kLeast, kNone) {}

    // Which of `first` each row is. Nothing where copies are too few to be worth it.
    std::vector<Index> found() {
        std::vector<Index> which;
        if (!promising()) return which;
        which.reserve(static_cast<std::size_t>(X_.n));
        SignalPoll signals;
        for (Index i = 0; i < X_.n; ++i) {
            if ((i & 4095) == 4095) signals.poll();
            which.push_back(place(i));
        }
        if (static_cast<double>(first.size()) > kMost * static_cast<double>(X_.n)) which.clear();
        return which;
    }

  private:
    static constexpr Index kNone = -1;
    static constexpr std::size_t kLeast = 1 << 12;
    static constexpr Index kSample = 1 << 10;
    static constexpr double kMost = 0.8;  // of the rows: what is left of fewer copies is no smaller problem

    // Pairs in a sample tell how many copies a row has: each row meets its copies with the share of the sample.
    bool promising() {
        const Index size = std::min(X_.n, kSample);
        double pairs = 0;
        std::vector<double> held;
        for (Index k = 0; k < size; ++k) {
            const auto at = static_cast<std::size_t>(place(k * X_.n / size));
            if (at == held.size()) held.push_back(0.0);
            pairs += held[at]++;
        }
        first.clear(), codes_.clear(), table_.assign(kLeast, kNone);
        const double m = static_cast<double>(size);
        return 2.0 * pairs / m * (static_cast<double>(X_.n) / m) >= 0.5;
    }

    // The number of the row in `first`, where it is put if it is new.
    Index place(Index i) {
        const std::uint64_t code = content(X_, i) + code_of(y_[i], kNone);
        for (std::size_t at = code & (table_.size() - 1);; at = (at + 1) & (table_.size() - 1)) {
            const Index held = table_[at];
            if (held == kNone) {
                table_[at] = static_cast<Index>(first.size());
                first.push_back(i), codes_.push_back(code);
                if (2 * first.size() > table_.size()) grow();
                return static_cast<Index>(first.size()) - 1;
            }
            const auto k = static_cast<std::size_t>(held);
            if (codes_[k] == code && y_[first[k]] == y_[i] && same(X_, first[k], i)) return held;
        }
    }

    void grow() {
        table_.assign(2 * table_.size(), kNone);
        for (std::size_t k = 0; k < codes_.size(); ++k) {
            std::size_t at = codes_[k] & (table_.size() - 1);
            while (table_[at] != kNone) at = (at + 1) & (table_.size() - 1);
            table_[at] = static_cast<Index>(k);
        }
    }

    const Rows& X_;
    const double* y_;
    std::vector<std::uint64_t> codes_;
    std::vector<Index> table_;
};

}  // namespace certifit::products
