// Rows of counts, one for each text, in the arrays of a CSR matrix.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "text/terms.hpp"

namespace certifit::text {

struct Rows {
    std::vector<std::int64_t> ends{0};
    std::vector<Id> columns;
    std::vector<std::int32_t> counts;

    void close() { ends.push_back(static_cast<std::int64_t>(columns.size())); }
};

// Counts of terms that are known, or, if it learns, of all; a row has its columns in order of first arrival.
class Counting {
  public:
    Counting(Terms& terms, bool learns) : terms_(terms), learns_(learns), seen_(terms.size(), -1) {}

    void operator()(Bytes term) {
        const Id id = learns_ ? terms_.intern(term) : terms_.find(term);
        if (id < 0) return;
        if (static_cast<std::size_t>(id) >= seen_.size()) seen_.resize(2 * static_cast<std::size_t>(id) + 64, -1);
        std::int64_t& entry = seen_[static_cast<std::size_t>(id)];
        if (entry >= rows.ends.back()) {
            ++rows.counts[static_cast<std::size_t>(entry)];
            return;
        }
        entry = static_cast<std::int64_t>(rows.columns.size());
        rows.columns.push_back(id);
        rows.counts.push_back(1);
    }

    void close() { rows.close(); }

    Rows rows;

  private:
    Terms& terms_;
    bool learns_;
    std::vector<std::int64_t> seen_;  // where a term was last counted: if before this row, not yet in it
};

// Columns by hash, without terms to remember; with signs, terms that meet in a column cancel on average.
class Hashing {
  public:
    Hashing(Id columns, bool with_signs) : columns_(columns), with_signs_(with_signs) {}

    void operator()(Bytes term) {
        const std::int64_t hash = murmur3(term);
        const auto column = static_cast<Id>((hash < 0 ? -hash : hash) % columns_);
        row_.emplace_back(column, with_signs_ && hash < 0 ? -1 : 1);
    }

    void close() {
        std::sort(row_.begin(), row_.end());
        for (std::size_t i = 0; i < row_.size();) {
            std::int32_t sum = 0;
            const Id column = row_[i].first;
            for (; i < row_.size() && row_[i].first == column; ++i) sum += row_[i].second;
            rows.columns.push_back(column);
            rows.counts.push_back(sum);
        }
        row_.clear();
        rows.close();
    }

    Rows rows;

  private:
    Id columns_;
    bool with_signs_;
    std::vector<std::pair<Id, std::int32_t>> row_;
};

}  // namespace certifit::text
