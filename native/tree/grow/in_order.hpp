// The rows of a node in the order of a feature, and the split that a scan of them finds.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "tree/grow/statistics.hpp"
#include "tree/table.hpp"

namespace certifit::tree {

// A node to be split: its rows, what its response may be, and the path to it, from which features are drawn.
struct Job {
    std::int32_t node;
    Row begin, end;
    int depth;
    double low, high;  // bounds of the response, from monotone constraints
    std::uint64_t path;
    Row size() const { return end - begin; }
};

// A split of it, with what its two sides hold.
struct Split {
    double score = -kInf;
    int feature = -1;
    // Codes; first_right = codes() when only missing values go right. Of a sorted column: places among the rows of the node, of
    // which the first `known` are not missing.
    std::uint32_t last_left = 0, first_right = 0;
    Row known = 0;
    bool missing_left = false, any_missing = false;
    double threshold = std::numeric_limits<double>::quiet_NaN();  // if it was drawn; otherwise midway between the codes
    double left_weight = 0, right_weight = 0, left_response = 0, right_response = 0;
    std::vector<std::uint32_t> left_categories, right_categories;
    bool found() const { return feature >= 0; }
};

// What a scan asks for: entries sorted by code, …
template <class Table>
struct ByCode {
    const typename Table::Entry* e;
    std::uint32_t absent;

    Row row(Row k) const { return Table::row_of(e[k]); }
    bool greater(Row k) const { return Table::code_of(e[k]) != Table::code_of(e[k - 1]); }
    bool equal(Row m) const { return Table::code_of(e[0]) == Table::code_of(e[m - 1]); }
    Row known(Row m) const {
        while (m > 0 && Table::code_of(e[m - 1]) == absent) --m;
        return m;
    }
    // The places of a split become what it keeps of them.
    void settle(Split& split, Row) const {
        if (!split.found()) return;
        split.last_left = Table::code_of(e[split.last_left]);
        split.first_right = Table::code_of(e[split.first_right]);
    }
};

// … or the rows of a sorted column.
struct InOrder {
    const Place* places;
    const Values& values;
    int f;

    Row row(Row k) const { return row_at(places[k]); }
    bool greater(Row k) const { return places[k] >= kGreater; }
    bool equal(Row m) const { return value(0) == value(m - 1); }
    double value(Row k) const { return values.at(row(k), f); }
    Row known(Row m) const {  // those before the first one that is missing
        Row low = 0;
        while (low < m) {
            const Row middle = low + (m - low) / 2;
            if (std::isnan(value(middle)))
                m = middle;
            else
                low = middle + 1;
        }
        return low;
    }
    void settle(Split& split, Row known) const { split.known = known; }
};

// By code, then by row; few entries by comparison, many by the bytes of their codes.
template <class Table>
void sort_entries(std::vector<typename Table::Entry>& entries, std::vector<typename Table::Entry>& spare, Row m, std::uint32_t codes) {
    if (m < 400) {
        std::sort(entries.begin(), entries.begin() + m);
        return;
    }
    if (spare.size() < m) spare.resize(m);
    for (std::uint32_t shift = 0; shift == 0 || (codes >> shift) > 0; shift += 8) {
        std::array<Row, 257> start{};
        for (Row k = 0; k < m; ++k) ++start[((Table::code_of(entries[k]) >> shift) & 255) + 1];
        for (int b = 0; b < 256; ++b) start[b + 1] += start[b];
        for (Row k = 0; k < m; ++k) spare[start[(Table::code_of(entries[k]) >> shift) & 255]++] = entries[k];
        std::swap(entries, spare);
        if (shift == 24) break;
    }
    if (entries.size() < m) entries.resize(m);
}

}  // namespace certifit::tree
