// Columns as ordinal codes.
//
// A split of a tree asks only for the order of the values of a column, so each column is replaced once by small integers:
//   exact    the dense rank of the value among the distinct values of the column
//   binned   the number of one of at most `max_bins` groups of neighboring values with about equal weight
// Every code remembers the least and the greatest value it stands for; a threshold between two codes is the middle between the
// greatest value of the lower one and the least value of the upper one. Missing values get the last code of their column.
// Columns are sorted by their bits, least significant digit first (radix sort): O(n) a column, and stable.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace certifit::tree {

using Row = std::uint32_t;

struct Column {
    std::vector<double> low, high;  // least and greatest value of each code
    std::vector<double> place;      // share of the weight below the middle of each code
    bool missing = false;           // whether the code low.size() (missing) occurs
    bool categorical = false;

    std::uint32_t codes() const { return static_cast<std::uint32_t>(low.size()); }
    std::uint32_t missing_code() const { return codes(); }
};

// The middle of a < b, never b itself, so that x <= threshold keeps b on the right.
inline double middle(double a, double b) {
    const double m = 0.5 * a + 0.5 * b;
    return m >= a && m < b ? m : a;
}

template <class T>
struct KeyOf;
template <>
struct KeyOf<float> {
    using type = std::uint32_t;
};
template <>
struct KeyOf<double> {
    using type = std::uint64_t;
};

template <class T>
typename KeyOf<T>::type ordered_bits(T x) {
    using Key = typename KeyOf<T>::type;
    constexpr Key sign = Key{1} << (8 * sizeof(Key) - 1);
    const Key bits = std::bit_cast<Key>(x + T{0});  // -0 + 0 = +0
    return bits & sign ? ~bits : bits | sign;
}

template <class Key>
struct Keyed {
    Key key;
    Row row;
};

// Stable sort by key. `scratch` has the same length as `items`.
template <class Key>
void radix_sort(std::vector<Keyed<Key>>& items, std::vector<Keyed<Key>>& scratch) {
    constexpr int kBits = 11, kPasses = (8 * sizeof(Key) + kBits - 1) / kBits;
    constexpr std::uint32_t kMask = (1u << kBits) - 1;
    const std::size_t n = items.size();
    if (n < 1500) {
        std::sort(items.begin(), items.end(), [](const auto& a, const auto& b) {
            return a.key < b.key || (a.key == b.key && a.row < b.row);
        });
        return;
    }
    std::vector<std::array<std::uint32_t, 1u << kBits>> counts(kPasses);
    for (auto& c : counts) c.fill(0);
    for (const auto& item : items)
        for (int p = 0; p < kPasses; ++p) ++counts[p][(item.key >> (p * kBits)) & kMask];
    for (int p = 0; p < kPasses; ++p) {
        auto& count = counts[p];
        if (count[(items[0].key >> (p * kBits)) & kMask] == n) continue;  // all items share this digit
        std::uint32_t at = 0;
        for (auto& c : count) {
            const std::uint32_t here = c;
            c = at;
            at += here;
        }
        for (const auto& item : items) scratch[count[(item.key >> (p * kBits)) & kMask]++] = item;
        items.swap(scratch);
    }
}

// One column, sorted: `order` lists the rows by value (missing last), `code` their codes in that order.
struct SortedColumn {
    std::vector<Row> order;
    std::vector<std::uint32_t> code;
};

// `weight` may be null (all ones).
template <class T>
void code_column(const T* x, const double* weight, Row n, Column& column, SortedColumn& sorted) {
    using Key = typename KeyOf<T>::type;
    thread_local std::vector<Keyed<Key>> items, scratch;
    items.clear();
    items.reserve(n);
    std::vector<Row> absent;
    for (Row i = 0; i < n; ++i) {
        if (std::isnan(x[i]))
            absent.push_back(i);
        else
            items.push_back({ordered_bits(x[i]), i});
    }
    scratch.resize(items.size());
    if (!items.empty()) radix_sort(items, scratch);
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
    column.high.assign(distinct, 0.0);
    for (std::size_t i = 0; i < m; ++i) {
        const std::uint32_t c = sorted.code[i];
        const double value = static_cast<double>(x[sorted.order[i]]) + 0.0;
        if (i == 0 || c != sorted.code[i - 1]) column.low[c] = value;
        column.high[c] = value;
    }
    column.place.resize(distinct);
    double before = 0;
    for (std::size_t i = 0; i < m;) {
        const std::uint32_t c = sorted.code[i];
        double mass = 0;
        for (; i < m && sorted.code[i] == c; ++i) mass += weight ? weight[sorted.order[i]] : 1.0;
        column.place[c] = before + 0.5 * mass;
        before += mass;
    }
    for (double& place : column.place) place /= before;
    column.missing = !absent.empty();
    for (std::size_t i = 0; i < absent.size(); ++i) {
        sorted.order[m + i] = absent[i];
        sorted.code[m + i] = distinct;
    }
}

// Groups of the codes of a column: the range of quantiles is cut into max_bins equal parts.
inline Column grouped(const Column& column, std::uint32_t max_bins, std::vector<std::uint32_t>& group) {
    const std::uint32_t codes = column.codes();
    group.resize(codes + 1);
    if (column.categorical || codes <= max_bins) {
        for (std::uint32_t c = 0; c <= codes; ++c) group[c] = c;
        return column;
    }
    Column out;
    out.missing = column.missing;
    out.low.assign(max_bins, 0.0);
    out.high.assign(max_bins, 0.0);
    for (std::uint32_t c = 0; c < codes; ++c) {
        const auto bin = static_cast<std::uint32_t>(column.place[c] * max_bins);
        group[c] = std::min(bin, max_bins - 1);
        if (c == 0 || group[c] != group[c - 1]) out.low[group[c]] = column.low[c];
        out.high[group[c]] = column.high[c];
    }
    group[codes] = max_bins;
    return out;
}

}  // namespace certifit::tree
