// Columns as ordinal codes.
//
// A split of a tree asks only for the order of the values of a column, so each column is replaced once by small integers:
//   exact    the dense rank of the value among the distinct values of the column
//   binned   the number of one of at most `max_bins` groups of neighboring values with about equal weight (binning.hpp)
// Every code remembers the least and the greatest value it stands for; a threshold between two codes is the middle between the
// greatest value of the lower one and the least value of the upper one. Missing values get the last code of their column.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "binning/binning.hpp"
#include "core/radix.hpp"

namespace certifit::tree {

using Row = std::uint32_t;

struct Column {
    std::vector<double> low, high;  // least and greatest value of each code
    std::vector<double> mass;       // weight of each code
    bool missing = false;           // whether the code low.size() (missing) occurs
    bool categorical = false;

    std::uint32_t codes() const { return static_cast<std::uint32_t>(low.size()); }
    std::uint32_t missing_code() const { return codes(); }
};

// One column, sorted: `order` lists the rows by value (missing last), `code` their codes in that order.
struct SortedColumn {
    std::vector<Row> order;
    std::vector<std::uint32_t> code;
};

template <class T>
struct Keyed {
    decltype(key_of(T{})) key;
    Row row;
};

// Memory for sorting, used again for the next column.
template <class T>
struct SortScratch {
    std::vector<Keyed<T>> items, spare;
};

// `weight` may be null (all ones).
template <class T>
void code_column(const T* x, const double* weight, Row n, SortScratch<T>& scratch, Column& column, SortedColumn& sorted) {
    auto& items = scratch.items;
    items.clear();
    std::vector<Row> absent;
    for (Row i = 0; i < n; ++i) {
        if (std::isnan(x[i]))
            absent.push_back(i);
        else
            items.push_back({key_of(x[i]), i});
    }
    scratch.spare.resize(items.size());
    radix_sort(items, scratch.spare, [](const Keyed<T>& item) { return item.key; });
    const std::size_t m = items.size();
    sorted.order.resize(n);
    sorted.code.resize(n);
    std::uint32_t distinct = 0;
    for (std::size_t i = 0; i < m; ++i) {
        if (i > 0 && items[i].key != items[i - 1].key) ++distinct;
        sorted.order[i] = items[i].row;
        sorted.code[i] = distinct;
    }
    if (m > 0) ++distinct;
    column.low.assign(distinct, 0.0);
    column.mass.assign(distinct, 0.0);
    for (std::size_t i = 0; i < m; ++i) {
        const std::uint32_t c = sorted.code[i];
        column.low[c] = static_cast<double>(x[sorted.order[i]]) + 0.0;
        column.mass[c] += weight ? weight[sorted.order[i]] : 1.0;
    }
    column.high = column.low;
    column.missing = !absent.empty();
    for (std::size_t i = 0; i < absent.size(); ++i) {
        sorted.order[m + i] = absent[i];
        sorted.code[m + i] = distinct;
    }
}

// Groups of the codes of a column, cut as the bins of boosting are.
inline Column grouped(const Column& column, std::uint32_t max_bins, std::vector<std::uint32_t>& group) {
    const std::uint32_t codes = column.codes();
    group.resize(codes + 1);
    if (column.categorical || codes <= max_bins) {
        for (std::uint32_t c = 0; c <= codes; ++c) group[c] = c;
        return column;
    }
    const std::vector<double> edges = binning::cuts(
        [&](auto&& visit) {
            for (std::uint32_t c = 0; c < codes; ++c) visit(binning::Atom{column.low[c], column.mass[c]});
        },
        static_cast<int>(max_bins));
    Column out;
    out.missing = column.missing;
    std::uint32_t bin = 0;
    for (std::uint32_t c = 0; c < codes; ++c) {
        while (bin < edges.size() && column.low[c] > edges[bin]) ++bin;
        group[c] = bin;
        if (out.low.size() <= bin) out.low.push_back(column.low[c]), out.high.push_back(column.low[c]);
        out.high[bin] = column.low[c];
    }
    group[codes] = out.codes();
    return out;
}

}  // namespace certifit::tree
