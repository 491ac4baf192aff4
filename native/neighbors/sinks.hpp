// What a search does with a row it meets: keep the k nearest, or all within a radius.
//
// Rows are ordered by (distance, number of the row), so that the k nearest are one set whatever the order of the search.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "core/index.hpp"

namespace certifit::neighbors {

using Entry = std::pair<double, std::int64_t>;

// The k nearest so far, kept in the arrays of the answer: sorted where k is small, a heap with the farthest at its root where it
// is not.
class Nearest {
  public:
    static constexpr Index kSorted = 64;

    Nearest(double* distance, std::int64_t* row, Index k, std::int64_t except)
        : distance_(distance), row_(row), k_(k), except_(except) {}

    // To begin with, k rows that are farther than any.
    void clear() {
        std::fill(distance_, distance_ + k_, std::numeric_limits<double>::infinity());
        std::fill(row_, row_ + k_, std::numeric_limits<std::int64_t>::max());
    }

    // No row farther than this is wanted.
    double bound() const { return distance_[k_ <= kSorted ? k_ - 1 : 0]; }

    void offer(double distance, std::int64_t row) {
        const Entry found{distance, row};
        const Index last = k_ <= kSorted ? k_ - 1 : 0;
        if (!(found < Entry{distance_[last], row_[last]}) || row == except_) return;
        k_ <= kSorted ? insert(found) : replace(found);
    }

    // In order, the nearest first.
    void finish() {
        if (k_ <= kSorted) return;
        std::vector<Entry> all(static_cast<std::size_t>(k_));
        for (Index i = 0; i < k_; ++i) all[static_cast<std::size_t>(i)] = {distance_[i], row_[i]};
        std::sort(all.begin(), all.end());
        for (Index i = 0; i < k_; ++i) put(i, all[static_cast<std::size_t>(i)]);
    }

  private:
    double* distance_;
    std::int64_t* row_;
    Index k_;
    std::int64_t except_;

    Entry at(Index i) const { return {distance_[i], row_[i]}; }
    void put(Index i, const Entry& entry) { distance_[i] = entry.first, row_[i] = entry.second; }

    void insert(const Entry& found) {
        Index i = k_ - 1;
        for (; i > 0 && found < at(i - 1); --i) put(i, at(i - 1));
        put(i, found);
    }

    void replace(const Entry& found) {
        Index i = 0;
        for (Index child = 1; child < k_; child = 2 * i + 1) {
            if (child + 1 < k_ && at(child) < at(child + 1)) ++child;
            if (!(found < at(child))) break;
            put(i, at(child)), i = child;
        }
        put(i, found);
    }
};

// All rows within a distance.
class Within {
  public:
    Within(double radius, std::vector<Entry>& found, std::int64_t except) : radius_(radius), found_(found), except_(except) {}
    double bound() const { return radius_; }
    void offer(double distance, std::int64_t row) {
        if (distance <= radius_ && row != except_) found_.emplace_back(distance, row);
    }
    void finish() { std::sort(found_.begin(), found_.end()); }

  private:
    double radius_;
    std::vector<Entry>& found_;
    std::int64_t except_;
};

}  // namespace certifit::neighbors
