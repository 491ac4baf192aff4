// Columns in order.
//
// A split of a tree asks only for the order of the values of a column. Each column is sorted once, and becomes
//   sorted   the rows in the order of their values, for trees that look for the best threshold of every feature at every node
//   exact    small integers: the dense rank of the value among the distinct values of the column
//   binned   the number of one of at most `max_bins` groups of neighboring values with about equal weight (binning.hpp)
// Every code remembers the least and the greatest value it stands for; a threshold between two codes is the middle between the
// greatest value of the lower one and the least value of the upper one. Missing values get the last code of their column, or the
// last places of its order.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "binning/binning.hpp"
#include "core/radix.hpp"

namespace certifit::tree {

using Row = std::uint32_t;

// A row in the order of a column; the upper bit says that its value is greater than that of the row before.
using Place = std::uint32_t;
inline constexpr Place kGreater = Place{1} << 31;
inline Row row_at(Place place) { return place & (kGreater - 1); }

struct Column {
    std::vector<double> low, high;  // least and greatest value of each code; `high` is empty where they are the same
    bool missing = false;           // whether some values are missing
    bool categorical = false;
    bool sorted = false;            // its rows are sorted, and it has no codes

    std::uint32_t codes() const { return static_cast<std::uint32_t>(low.size()); }
    std::uint32_t missing_code() const { return codes(); }
    const std::vector<double>& greatest() const { return high.empty() ? low : high; }
};

template <class T>
struct Keyed {
    decltype(key_of(T{})) key;
    Row row;
};

// A column in the order of its values; its memory is used again for the next column.
template <class T>
class Sorter {
  public:
    void sort(const T* x, Row n) {
        items_.clear();
        absent_.clear();
        for (Row i = 0; i < n; ++i) {
            if (std::isnan(x[i]))
                absent_.push_back(i);
            else
                items_.push_back({key_of(x[i]), i});
        }
        spare_.resize(items_.size());
        radix_sort(items_, spare_, [](const Keyed<T>& item) { return item.key; });
        distinct_ = items_.empty() ? 0 : 1;
        for (std::size_t k = 1; k < items_.size(); ++k) distinct_ += items_[k].key != items_[k - 1].key;
    }
    std::uint32_t distinct() const { return distinct_; }
    bool missing() const { return !absent_.empty(); }

    std::vector<Place> places() const {
        std::vector<Place> out;
        out.reserve(items_.size() + absent_.size());
        for (std::size_t k = 0; k < items_.size(); ++k)
            out.push_back(items_[k].row | (k > 0 && items_[k].key != items_[k - 1].key ? kGreater : 0));
        for (std::size_t k = 0; k < absent_.size(); ++k) out.push_back(absent_[k] | (k == 0 ? kGreater : 0));
        return out;
    }

    // The values of the codes, and the code of each row: one for each value, or for each group between the edges (null: none).
    template <class Code>
    void code(const std::vector<double>* edges, Column& column, std::vector<Code>& out) const {
        out.resize(items_.size() + absent_.size());
        column.low.reserve(edges ? edges->size() + 1 : distinct_);
        std::size_t group = 0;
        for (std::size_t k = 0; k < items_.size(); ++k) {
            if (k == 0 || items_[k].key != items_[k - 1].key) {
                const double value = number_of(items_[k].key);
                bool next = k == 0 || !edges;
                for (; edges && group < edges->size() && value > (*edges)[group]; ++group) next = true;
                if (next) column.low.push_back(value);
                if (edges) column.high.resize(column.low.size()), column.high.back() = value;
            }
            out[items_[k].row] = static_cast<Code>(column.low.size() - 1);
        }
        for (Row i : absent_) out[i] = static_cast<Code>(column.missing_code());
    }

    // Between at most `max_bins` groups, cut as the bins of boosting are; `weight` may be null (all ones).
    std::vector<double> edges(const double* weight, std::uint32_t max_bins) const {
        return binning::cuts(
            [&](auto&& visit) {
                for (std::size_t k = 0; k < items_.size();) {
                    const auto key = items_[k].key;
                    double mass = 0.0;
                    for (; k < items_.size() && items_[k].key == key; ++k) mass += weight ? weight[items_[k].row] : 1.0;
                    visit(binning::Atom{number_of(key), mass});
                }
            },
            static_cast<int>(max_bins));
    }

  private:
    std::vector<Keyed<T>> items_, spare_;
    std::vector<Row> absent_;
    std::uint32_t distinct_ = 0;
};

}  // namespace certifit::tree
