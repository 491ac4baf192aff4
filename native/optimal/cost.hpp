// What a leaf costs, and what every question about many sets of rows at once costs at least.
//
//     classes    Σ s − max_k Σ_{y = k} s            one plane of sums a class, in whole numbers
//     numbers    Σ s y² − (Σ s y)² / Σ s            planes Σ s, Σ s y, Σ s y²
//
// The cost of the best tree never rises when rows are taken away: all bounds stand on that.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/index.hpp"
#include "core/simd.hpp"

namespace certifit::optimal {

// Sums of many sets: plane k of set (e, c) at sums[k · plane + e · width + c]. Set (e, c) has the rows whose child column lies in
// the first e cells and whose root column lies in the cells 0 … c.
template <class V>
struct Sums {
    const V* data;
    Index plane, width;
    int planes;
    const V* row(int k, Index e) const { return data + k * plane + e * width; }
};

// Where the questions of a child column are: after cell e (`exact`), or somewhere within it, its rows left out.
struct Questions {
    Index cells;
    bool exact;
    Index count() const { return exact ? cells - 1 : cells; }
    Index shift() const { return exact ? 1 : 0; }
};

template <class V, int Fixed>
struct Classes {
    using Value = V;
    struct Rows {
        std::vector<std::uint32_t> label;
        std::vector<V> weight;
        std::vector<double> reach;  // what a row can add to the cost of a tree at most
        Index size() const { return static_cast<Index>(weight.size()); }
        void resize(Index n) { label.resize(n), weight.resize(n), reach.resize(n); }
        void take(const Rows& from, Index i, Index to) {
            label[to] = from.label[i], weight[to] = from.weight[i], reach[to] = from.reach[i];
        }
    };
    int classes = Fixed;

    int planes() const { return Fixed ? Fixed : classes; }
    void add(const Rows& rows, Index i, V* cell, Index plane) const { cell[rows.label[i] * plane] += rows.weight[i]; }
    V cost(const V* cell) const {
        V sum = cell[0], most = cell[0];
        for (int k = 1; k < planes(); ++k) sum += cell[k], most = std::max(most, cell[k]);
        return sum - most;
    }
    // Of what is left of `all` without `cell`.
    V rest(const V* all, const V* cell) const {
        V sum = all[0] - cell[0], most = sum;
        for (int k = 1; k < planes(); ++k) sum += all[k] - cell[k], most = std::max<V>(most, all[k] - cell[k]);
        return sum - most;
    }
    double purity(const V* cell) const {  // what a split should raise: the weight of all rows less Gini's impurity
        double sum = 0.0, squares = 0.0;
        for (int k = 0; k < planes(); ++k)
            sum += static_cast<double>(cell[k]), squares += static_cast<double>(cell[k]) * static_cast<double>(cell[k]);
        return sum > 0.0 ? squares / sum : 0.0;
    }
    // best[c] = min(best[c], cost of the set `one(·, c)` + cost of the set `two(·, c)`); `spare` holds two rows.
    template <class One, class Two>
    __attribute__((always_inline)) void least(One one, Two two, Index width, V* __restrict best, V* __restrict spare) const {
        V* __restrict const most = spare + width;
        std::fill_n(spare, width, V{0});
        const auto add = [&](auto& set) __attribute__((always_inline)) {
            std::fill_n(most, width, V{0});
            for (int k = 0; k < planes(); ++k)
                for (Index c = 0; c < width; ++c) {
                    const V sum = set(k, c);
                    spare[c] += sum, most[c] = most[c] < sum ? sum : most[c];
                }
            for (Index c = 0; c < width; ++c) spare[c] -= most[c];
        };
        add(one), add(two);
        for (Index c = 0; c < width; ++c) best[c] = spare[c] < best[c] ? spare[c] : best[c];
    }
};

struct Numbers {
    using Value = double;
    struct Rows {
        std::vector<double> weight, sum, square, reach;
        Index size() const { return static_cast<Index>(weight.size()); }
        void resize(Index n) { weight.resize(n), sum.resize(n), square.resize(n), reach.resize(n); }
        void take(const Rows& from, Index i, Index to) {
            weight[to] = from.weight[i], sum[to] = from.sum[i], square[to] = from.square[i], reach[to] = from.reach[i];
        }
    };
    static constexpr int planes() { return 3; }
    void add(const Rows& rows, Index i, double* cell, Index plane) const {
        cell[0] += rows.weight[i], cell[plane] += rows.sum[i], cell[2 * plane] += rows.square[i];
    }
    static double of(double w, double y, double yy) {
        const double cost = yy - (w > 0.0 ? y * y / w : 0.0);
        return cost > 0.0 ? cost : 0.0;
    }
    double cost(const double* cell) const { return of(cell[0], cell[1], cell[2]); }
    double rest(const double* all, const double* cell) const { return of(all[0] - cell[0], all[1] - cell[1], all[2] - cell[2]); }
    double purity(const double* cell) const { return cell[0] > 0.0 ? cell[1] * cell[1] / cell[0] : 0.0; }
    template <class One, class Two>
    __attribute__((always_inline)) void least(One one, Two two, Index width, double* __restrict best, double*) const {
        for (Index c = 0; c < width; ++c) {
            const double cost = of(one(0, c), one(1, c), one(2, c)) + of(two(0, c), two(1, c), two(2, c));
            best[c] = cost < best[c] ? cost : best[c];
        }
    }
};

// For every cell c of the root column, lowers left[c] to the least cost of a question of the child column about the rows of the
// cells up to c, and right[c] about the rows of the cells after c.
template <class Kind, class V = typename Kind::Value>
__attribute__((always_inline)) inline void question_bounds(const Kind& kind, const Sums<V>& sums, Index width, Questions child,
                                                           V* left, V* right, V* spare) {
    const Index m = child.cells, last = width - 1;
    for (Index e = 0; e < child.count(); ++e) {
        const Index below = e + child.shift(), above = e + 1;
        kind.least([&](int k, Index c) { return sums.row(k, below)[c]; },
                   [&](int k, Index c) { return sums.row(k, m)[c] - sums.row(k, above)[c]; }, width, left, spare);
        kind.least([&](int k, Index c) { return sums.row(k, below)[last] - sums.row(k, below)[c]; },
                   [&](int k, Index c) {
                       return (sums.row(k, m)[last] - sums.row(k, above)[last]) - (sums.row(k, m)[c] - sums.row(k, above)[c]);
                   },
                   width, right, spare);
    }
}

// Of two classes: the sides of a question that is worth its price say different classes, so it costs
//     N(all) + P(below) − N(below or within)    or    P(all) + N(below) − P(below or within),
// and the same differences, taken from those of all cells, are those of the cells after c.
template <class V>
__attribute__((always_inline)) inline void question_bounds(const Classes<V, 2>&, const Sums<V>& sums, Index width,
                                                           Questions child, V* left, V* right, V*) {
    constexpr Index kLanes = 32 / sizeof(V);
    const Index m = child.cells, last = width - 1;
    for (Index from = 0; from < width; from += kLanes) {
        V low[kLanes], high[kLanes], low_after[kLanes], high_after[kLanes];
        std::fill_n(low, kLanes, std::numeric_limits<V>::max()), std::copy_n(low, kLanes, high);
        std::copy_n(low, kLanes, low_after), std::copy_n(low, kLanes, high_after);
        for (Index e = 0; e < child.count(); ++e) {
            const V *const p = sums.row(0, e + child.shift()), *const n = sums.row(1, e + child.shift());
            const V *const p_above = sums.row(0, e + 1), *const n_above = sums.row(1, e + 1);
            const V all_low = p[last] - n_above[last], all_high = n[last] - p_above[last];
            for (Index j = 0; j < kLanes; ++j) {
                const V l = p[from + j] - n_above[from + j], h = n[from + j] - p_above[from + j];
                const V l_after = all_low - l, h_after = all_high - h;
                low[j] = l < low[j] ? l : low[j], high[j] = h < high[j] ? h : high[j];
                low_after[j] = l_after < low_after[j] ? l_after : low_after[j];
                high_after[j] = h_after < high_after[j] ? h_after : high_after[j];
            }
        }
        if (child.count() < 1) continue;
        const V *const p = sums.row(0, m), *const n = sums.row(1, m);
        for (Index j = 0; j < kLanes; ++j) {
            const Index c = from + j;
            left[c] = std::min<V>(n[c] + low[j], p[c] + high[j]);
            right[c] = std::min<V>(n[last] - n[c] + low_after[j], p[last] - p[c] + high_after[j]);
        }
    }
}

// The same for the machine at hand.
#define CERTIFIT_QUESTIONS(Kind)                                                                                              \
    CERTIFIT_CLONES inline void questions(const Kind& kind, const Sums<Kind::Value>& sums, Index width, Questions child,      \
                                          Kind::Value* left, Kind::Value* right, Kind::Value* spare) {                        \
        question_bounds(kind, sums, width, child, left, right, spare);                                                        \
    }
using FewTwoClasses = Classes<std::int16_t, 2>;
using TwoClasses = Classes<std::int32_t, 2>;
using HeavyTwoClasses = Classes<std::int64_t, 2>;
using ManyClasses = Classes<std::int64_t, 0>;
CERTIFIT_QUESTIONS(FewTwoClasses)
CERTIFIT_QUESTIONS(TwoClasses)
CERTIFIT_QUESTIONS(HeavyTwoClasses)
CERTIFIT_QUESTIONS(ManyClasses)
CERTIFIT_QUESTIONS(Numbers)
#undef CERTIFIT_QUESTIONS

// to[c · width + e] = from[e · width + c] for e < rows, c < columns; both may be rounded up to the next eight.
template <class V>
inline void turn(const V* from, V* to, Index rows, Index columns, Index width) {
    for (Index e = 0; e < rows; ++e)
        for (Index c = 0; c < columns; ++c) to[c * width + e] = from[e * width + c];
}
template <>
inline void turn(const std::int16_t* from, std::int16_t* to, Index rows, Index columns, Index width) {
    using Eight = std::int16_t __attribute__((vector_size(16), aligned(2), may_alias));
    using Mask = std::int16_t __attribute__((vector_size(16)));
    constexpr Mask kLow = {0, 8, 1, 9, 2, 10, 3, 11}, kHigh = {4, 12, 5, 13, 6, 14, 7, 15};
    for (Index e = 0; e < rows; e += 8)
        for (Index c = 0; c < columns; c += 8) {
            Mask a[8], b[8];
            for (Index i = 0; i < 8; ++i) a[i] = *reinterpret_cast<const Eight*>(from + (e + i) * width + c);
            // Three times over, each row meets the one four further on.
            for (int step = 0; step < 3; ++step) {
                for (Index i = 0; i < 4; ++i) {
                    b[2 * i] = __builtin_shuffle(a[i], a[i + 4], kLow);
                    b[2 * i + 1] = __builtin_shuffle(a[i], a[i + 4], kHigh);
                }
                for (Index i = 0; i < 8; ++i) a[i] = b[i];
            }
            for (Index i = 0; i < 8; ++i) *reinterpret_cast<Eight*>(to + (c + i) * width + e) = a[i];
        }
}

}  // namespace certifit::optimal
