// A hierarchy as the list of its merges, in SciPy's form.
//
// Row t of Z joins the clusters Z[t, 0] < Z[t, 1] at height Z[t, 2] into cluster n + t of Z[t, 3] points; points are 0 … n − 1.
// Every method here finds pairs of points with heights first; sorted by height, a union-find turns them into rows (Müllner 2011).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "core/index.hpp"

namespace certifit::linkage {

struct Merge {
    std::int64_t first, second;  // a point of either side
    double height;
};

class Union {
  public:
    explicit Union(Index n) : parent_(static_cast<std::size_t>(n)) { std::iota(parent_.begin(), parent_.end(), std::int64_t{0}); }
    std::int64_t find(std::int64_t i) {
        while (parent_[at(i)] != i) i = parent_[at(i)] = parent_[at(parent_[at(i)])];
        return i;
    }
    // Whether they were apart.
    bool join(std::int64_t i, std::int64_t j) {
        i = find(i), j = find(j);
        if (i == j) return false;
        parent_[at(std::max(i, j))] = std::min(i, j);
        return true;
    }

  private:
    std::vector<std::int64_t> parent_;
    static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
};

inline std::vector<double> as_rows(std::vector<Merge> merges, Index n) {
    std::stable_sort(merges.begin(), merges.end(), [](const Merge& a, const Merge& b) { return a.height < b.height; });
    Union sets(n);
    std::vector<std::int64_t> name(static_cast<std::size_t>(n));
    std::iota(name.begin(), name.end(), std::int64_t{0});
    std::vector<double> size(static_cast<std::size_t>(n), 1.0), rows;
    rows.reserve(4 * merges.size());
    std::int64_t next = n;
    for (const Merge& merge : merges) {
        const auto a = static_cast<std::size_t>(sets.find(merge.first)), b = static_cast<std::size_t>(sets.find(merge.second));
        const double total = size[a] + size[b];
        rows.insert(rows.end(), {static_cast<double>(std::min(name[a], name[b])), static_cast<double>(std::max(name[a], name[b])),
                                 merge.height, total});
        sets.join(merge.first, merge.second);
        const std::size_t root = std::min(a, b);
        size[root] = total, name[root] = next++;
    }
    return rows;
}

}  // namespace certifit::linkage
