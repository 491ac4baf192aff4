// Columns of numbers as bytes.
//
// Fit: the distinct values v_1 < … < v_m of a column with their weights c_i; with m <= B every value has its bin, otherwise
// cuts are placed greedily so that every bin holds about its share of what is left, and a value heavier than an equal share
// gets a bin of its own (the rule of LightGBM, Ke et al. 2017). A cut between v_i and v_{i+1} is their midpoint. Or the cuts are
// the quantiles k / B of the weighted values, the mean of two neighbors where the weight up to one is exactly that share
// (definition 2 of Hyndman and Fan 1996, the rule of scikit-learn's histograms); those that coincide are one. Values are sorted
// by radix (least significant digit first), so the cost is linear in the rows.
//
// Transform: bin(x) = #{edges e : x > e}, by a search of eight halvings without branches; NaN has the bin after the last.
// Weights enter only through sums of c_i: a row of weight 2 and the row given twice have the same edges.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "core/index.hpp"
#include "core/radix.hpp"
#include "core/simd.hpp"
#include "core/team.hpp"

namespace certifit::binning {

// A matrix of any layout; strides count elements.
template <class T>
struct View {
    const T* data;
    Index rows, columns, row_stride, column_stride;
    const T& at(Index i, Index j) const { return data[i * row_stride + j * column_stride]; }
};

// The number to compare with: low <= edge < high.
inline double between(double low, double high) {
    const double middle = 0.5 * low + 0.5 * high;
    return middle >= low && middle < high ? middle : low;
}

// One distinct value and its weight.
struct Atom {
    double value, mass;
};

// How cuts are placed: `shares` of the weights (null: greedily), and by how much a sum of weights may pass one by rounding.
struct Placing {
    const double* shares = nullptr;
    double rounding = 0.0;
};

constexpr double kFarthest = 1e300;  // beyond it an edge could not be told from infinity

// The quantiles at max_bins − 1 increasing shares.
template <class Atoms>
std::vector<double> quantile_cuts(Atoms&& atoms, double total, int max_bins, const Placing& placing) {
    std::vector<double> edges;
    int next = 0;
    double below = 0.0, last = 0.0;
    bool open = false;  // the weight up to `last` is exactly the share: the quantile is halfway to the next value
    auto add = [&](double edge) {
        edge = std::min(edge, kFarthest);
        if (edges.empty() || edges.back() < edge) edges.push_back(edge);
    };
    atoms([&](Atom a) {
        if (open) add(between(last, a.value)), open = false;
        below += a.mass, last = a.value;
        for (; next < max_bins - 1 && below >= placing.shares[next] * total; ++next) {
            if (below - placing.shares[next] * total <= placing.rounding)
                open = true;
            else
                add(a.value);
        }
    });
    if (open || next < max_bins - 1) add(last);
    return edges;
}

// Edges from sorted rows; `atoms(visit)` calls visit(atom) for every distinct value in increasing order, as often as asked, so
// that the distinct values of a long column need not be kept.
template <class Atoms>
std::vector<double> cuts(Atoms&& atoms, int max_bins, const Placing& placing = {}) {
    const auto limit = static_cast<std::size_t>(max_bins);
    std::size_t m = 0;
    double total = 0.0;
    atoms([&](Atom a) { ++m, total += a.mass; });
    std::vector<double> edges;
    const bool each = m <= limit;
    if (!each && placing.shares != nullptr) return quantile_cuts(atoms, total, max_bins, placing);
    const double equal = total / max_bins;
    double rest = 0.0, share = 0.0, current = 0.0;
    int bins = max_bins;
    if (!each) {
        atoms([&](Atom a) { a.mass >= equal ? void(--bins) : void(rest += a.mass); });
        share = bins > 0 ? rest / bins : rest;
    }
    bool first = true;
    Atom last{};
    atoms([&](Atom next) {
        if (!first && each) edges.push_back(between(last.value, next.value));
        if (!first && !each && edges.size() + 1 < limit) {
            const bool heavy = last.mass >= equal;
            if (!heavy) rest -= last.mass;
            current += last.mass;
            if (heavy || current >= share || (next.mass >= equal && current >= 0.5 * share)) {
                edges.push_back(between(last.value, next.value));
                current = 0.0;
                if (!heavy && bins > 1) share = rest / --bins;
            }
        }
        first = false, last = next;
    });
    return edges;
}

template <class Key>
struct Weighted {
    Key key;
    double weight;
};

template <class T>
struct Scratch {
    using Key = decltype(key_of(T{}));
    std::vector<Key> keys, spare;
    std::vector<Weighted<Key>> pairs, spare_pairs;
};

// Edges from the keys collected in `s`.
template <class T>
std::vector<double> edges_of(Scratch<T>& s, bool weighted, int max_bins, const Placing& placing) {
    using Key = typename Scratch<T>::Key;
    auto edges = [max_bins, &placing](auto& items, auto& spare, auto key_in, auto weight) {
        spare.resize(items.size());
        radix_sort(items, spare, key_in);
        return cuts(
            [&](auto&& visit) {
                for (std::size_t i = 0; i < items.size();) {
                    const Key key = key_in(items[i]);
                    double c = 0.0;
                    for (; i < items.size() && key_in(items[i]) == key; ++i) c += weight(items[i]);
                    visit(Atom{number_of(key), c});
                }
            },
            max_bins, placing);
    };
    if (weighted)
        return edges(
            s.pairs, s.spare_pairs, [](const auto& item) { return item.key; }, [](const auto& item) { return item.weight; });
    return edges(s.keys, s.spare, [](Key key) { return key; }, [](Key) { return 1.0; });
}

template <class T>
void add(Scratch<T>& s, T x, const double* weight, Index row) {
    if (std::isnan(x)) return;
    if (weight == nullptr)
        s.keys.push_back(key_of(x));
    else if (weight[row] > 0)
        s.pairs.push_back({key_of(x), weight[row]});
}

// Edges of the listed columns. Row-major input is read some columns at a time: a column alone would fetch every cache line of
// the matrix. What is sorted at one time takes no more than `budget` bytes a row (but one column at least), and is used again for
// the next columns.
template <class T>
std::vector<std::vector<double>> quantiles(const View<T>& X, const double* weight, std::span<const std::int64_t> columns,
                                           int max_bins, const Placing& placing, int threads, Index budget) {
    std::vector<std::vector<double>> edges(columns.size());
    const bool rows_first = X.column_stride == 1 && X.columns > 1;
    const Index count = static_cast<Index>(columns.size());
    const Index bytes = 2 * (weight ? sizeof(Weighted<typename Scratch<T>::Key>) : sizeof(T));
    const Index at_once = std::max<Index>(budget / bytes, 1);
    Team team(static_cast<int>(std::min<Index>(threads, at_once)));
    const Index together = rows_first ? std::clamp<Index>(at_once / team.size(), 1, 4) : 1;
    std::vector<Scratch<T>> scratch(team.size() * together);
    for (auto& s : scratch)
        weight ? (s.pairs.reserve(X.rows), s.spare_pairs.reserve(X.rows)) : (s.keys.reserve(X.rows), s.spare.reserve(X.rows));
    team.blocks(count, together, X.rows > 1000, [&](Index first, Index last, int worker) {
        Scratch<T>* mine = scratch.data() + worker * together;
        for (Index k = first; k < last; ++k) mine[k - first].keys.clear(), mine[k - first].pairs.clear();
        for (Index i = 0; i < X.rows; ++i)
            for (Index k = first; k < last; ++k) add(mine[k - first], X.at(i, columns[k]), weight, i);
        for (Index k = first; k < last; ++k) edges[k] = edges_of(mine[k - first], weight != nullptr, max_bins, placing);
    });
    return edges;
}

// Largest float <= x: for floats f, (f > x) == (f > round_down(x)).
inline float round_down(double x) {
    const float f = static_cast<float>(x);
    return static_cast<double>(f) > x ? std::nextafterf(f, -std::numeric_limits<float>::infinity()) : f;
}

template <class T>
T edge_as(double x) {
    if constexpr (sizeof(T) == 4)
        return round_down(x);
    else
        return x;
}

constexpr int kSlots = 256, kBlock = 512;

// One column's rule, with the edges in the type of X: sorted edges padded with infinity, or sorted categories with their bins.
template <class T>
struct Rule {
    T edges[kSlots];
    int top = 0;  // first halving step
    std::uint8_t missing = 0;
    bool categorical = false;
    std::vector<double> categories;
    const std::uint8_t* codes = nullptr;
};

// All rules of a table, given flat: values[offsets[j]:offsets[j+1]] are edges or categories.
struct Table {
    std::span<const std::int64_t> offsets;
    std::span<const double> values;
    std::span<const std::uint8_t> codes, categorical, missing;
    Index columns() const { return static_cast<Index>(missing.size()); }
};

template <class T>
std::vector<Rule<T>> rules_of(const Table& table) {
    std::vector<Rule<T>> rules(table.columns());
    for (Index j = 0; j < table.columns(); ++j) {
        Rule<T>& rule = rules[j];
        const Index from = table.offsets[j], size = table.offsets[j + 1] - from;
        rule.missing = table.missing[j];
        rule.categorical = table.categorical[j] != 0;
        if (rule.categorical) {
            rule.categories.assign(table.values.begin() + from, table.values.begin() + from + size);
            rule.codes = table.codes.data() + from;
            continue;
        }
        for (Index k = 0; k < kSlots; ++k)
            rule.edges[k] = k < size ? edge_as<T>(table.values[from + k]) : std::numeric_limits<T>::infinity();
        rule.top = size ? static_cast<int>(std::bit_floor(static_cast<unsigned>(size))) : 0;
    }
    return rules;
}

namespace detail {

template <class T>
[[gnu::always_inline]] inline void search(const T* __restrict x, const T* __restrict edges, int top, std::uint8_t missing,
                                          std::uint8_t* __restrict out) {
    alignas(64) std::int32_t k[kBlock];
    for (int i = 0; i < kBlock; ++i) k[i] = 0;
    for (int step = top; step > 0; step >>= 1)
        for (int i = 0; i < kBlock; ++i) k[i] += x[i] > edges[k[i] + step - 1] ? step : 0;
    for (int i = 0; i < kBlock; ++i) out[i] = x[i] == x[i] ? static_cast<std::uint8_t>(k[i]) : missing;
}

CERTIFIT_CLONES inline void search_block(const float* x, const float* edges, int top, std::uint8_t missing, std::uint8_t* out) {
    search(x, edges, top, missing, out);
}
CERTIFIT_CLONES inline void search_block(const double* x, const double* edges, int top, std::uint8_t missing, std::uint8_t* out) {
    search(x, edges, top, missing, out);
}

}  // namespace detail

// Bins of kBlock values of one column.
template <class T>
void bins_of(const Rule<T>& rule, const T* x, int count, std::uint8_t* out) {
    if (!rule.categorical) {
        detail::search_block(x, rule.edges, rule.top, rule.missing, out);
        return;
    }
    for (int i = 0; i < count; ++i) {
        const auto found = std::lower_bound(rule.categories.begin(), rule.categories.end(), static_cast<double>(x[i]));
        const bool known = found != rule.categories.end() && *found == static_cast<double>(x[i]);
        out[i] = known ? rule.codes[found - rule.categories.begin()] : rule.missing;
    }
}

// Bins of rows first … first + count, count <= kBlock, column after column: out[j * kBlock + i].
template <class T>
void bin_block(const View<T>& X, const std::vector<Rule<T>>& rules, Index first, int count, std::uint8_t* out, T* buffer) {
    constexpr Index kTogether = 64 / sizeof(T);  // one cache line of a row-major matrix
    for (Index j0 = 0; j0 < X.columns; j0 += kTogether) {
        const Index j1 = std::min(j0 + kTogether, X.columns);
        if (X.row_stride == 1) {
            for (Index j = j0; j < j1; ++j) {
                T* column = buffer + (j - j0) * kBlock;
                std::memcpy(column, X.data + first + j * X.column_stride, count * sizeof(T));
            }
        } else {
            for (int i = 0; i < count; ++i)
                for (Index j = j0; j < j1; ++j) buffer[(j - j0) * kBlock + i] = X.at(first + i, j);
        }
        for (Index j = j0; j < j1; ++j) {
            T* column = buffer + (j - j0) * kBlock;
            std::fill(column + count, column + kBlock, T{0});
            bins_of(rules[j], column, count, out + j * kBlock);
        }
    }
}

// Where a bin goes: out[row * row_stride + column[j]].
struct Layout {
    Index row_stride;
    std::span<const std::int64_t> column;
};

template <class T>
void transform(const View<T>& X, const Table& table, const Layout& layout, std::uint8_t* out, int threads) {
    const std::vector<Rule<T>> rules = rules_of<T>(table);
    struct Scratch {
        std::vector<T> buffer;
        std::vector<std::uint8_t> bins;
    };
    Team team(threads);
    std::vector<Scratch> scratch(team.size());
    team.blocks(X.rows, kBlock, X.rows > 8 * kBlock, [&](Index first, Index last, int worker) {
        auto& [buffer, bins] = scratch[worker];
        buffer.resize(64 / sizeof(T) * kBlock), bins.resize(X.columns * kBlock);
        const int count = static_cast<int>(last - first);
        bin_block(X, rules, first, count, bins.data(), buffer.data());
        if (layout.row_stride == 1) {
            for (Index j = 0; j < X.columns; ++j) std::memcpy(out + layout.column[j] + first, bins.data() + j * kBlock, count);
        } else {
            for (int i = 0; i < count; ++i)
                for (Index j = 0; j < X.columns; ++j)
                    out[(first + i) * layout.row_stride + layout.column[j]] = bins[j * kBlock + i];
        }
    });
}

}  // namespace certifit::binning
