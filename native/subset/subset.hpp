// The best columns of every size, for least squares.
//
//     min over S, |S| = s     RSS(S) = min_w ‖y − X_S w‖²          for s = 0 … K at once
//
// Branch and bound over the columns that are dropped (Furnival and Wilson 1974; Gatu and Kontoghiorghes 2006). A node is a set A
// of columns, of which some are kept for good; what lies below it are the subsets of A that contain these. All that is asked of
// the data is the Gram matrix of (y, X), held as a swept tableau: for a basis B of A
//
//     T_BB = −P = −G_BB⁻¹,    T_Bj = coefficients of x_j on X_B,    T_By = w,
//     T_yy = RSS(A),    T_jj = what B leaves of x_j (zero),
//
// and dropping a column i of B is one update of the rest,  T_jl −= T_ji T_il / T_ii.
//
// Two bounds. No subset without i is better than A∖{i}:  RSS ≥ RSS(A) + w_i²/P_ii. And if diag(δ) ⪯ G, then leaving out the
// columns D costs, whatever else is fitted,
//
//     RSS(A∖D) = min over v with v_D = 0 of RSS(A) + (v − w)ᵀG(v − w)  ≥  RSS(A) + Σ_{i ∈ D} δ_i w_i²,
//
// so a subset of s columns costs at least the sum of the |A| − s smallest terms: a bound that adds up, where the first is a
// maximum.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "core/index.hpp"
#include "core/interrupt.hpp"
#include "core/simd.hpp"

namespace certifit::subset {

inline constexpr double kPerfect = 1e-12;  // of the variance of y: what is left of a perfect fit by rounding

// row −= factor · other
CERTIFIT_CLONES inline void subtract(double* row, const double* other, double factor, Index length) {
    for (Index j = 0; j < length; ++j) row[j] -= factor * other[j];
}

// A symmetric tableau: y in place 0, a column of X in each further one.
struct Tableau {
    Index stride = 0;
    std::vector<double> entries;
    std::vector<Index> column;        // of X, by place; places count from 1
    std::vector<std::uint8_t> basic;  // whether the place is swept
    Index dependent = 0;              // places that are not

    double* row(Index i) { return entries.data() + i * stride; }
    const double* row(Index i) const { return entries.data() + i * stride; }
    Index size() const { return static_cast<Index>(column.size()) - 1; }
    double rss() const { return std::max(0.0, row(0)[0]); }

    // Takes a place into the basis, or out of it.
    void sweep(Index k) {
        const Index n = size() + 1;
        double* const pivot = row(k);
        const double d = pivot[k];
        for (Index i = 0; i < n; ++i)
            if (i != k && pivot[i] != 0.0) subtract(row(i), pivot, pivot[i] / d, n);
        const double factor = (basic[k] ? -1.0 : 1.0) / d;
        for (Index i = 0; i < n; ++i) {
            if (i == k) continue;
            // The updates above have cleared column k; row k still has what they need.
            row(i)[k] = pivot[i] *= factor;
        }
        pivot[k] = -1.0 / d;
        dependent += basic[k] ? 1 : -1;
        basic[k] ^= 1;
    }
};

struct Search {
    Index d = 0, most = 0;
    double least_pivot = 0.0, slack = 0.0;
    std::vector<double> delta;
    std::vector<double> best, left;     // by size: the least RSS found, and a bound of what was left aside
    std::vector<std::uint8_t> support;  // (most + 1) × d
    std::int64_t nodes = 0, limit = 0;
    double seconds = std::numeric_limits<double>::infinity();
    std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
    SignalPoll* signals = nullptr;

    // A node more; now and then a look at signals and at the clock, after which the limit is where the search stands.
    void count() {
        if ((++nodes & 255) != 0) return;
        signals->poll();
        const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - started;
        if (passed.count() > seconds) limit = std::min(limit, nodes);
    }

    void keep(const Tableau& t, Index size, double rss, auto&& has) {
        best[size] = rss;
        std::uint8_t* const row = support.data() + size * d;
        std::fill_n(row, d, std::uint8_t{0});
        for (Index i = 1; i <= t.size(); ++i)
            if (has(i)) row[t.column[i]] = 1;
    }
};

// Good subsets to begin with: columns are added one after the other, each time the one that helps most, and then exchanged as
// long as that helps.
inline void greedy(Tableau t, Search& found) {
    const auto helpful = [&](Index except) {
        Index which = 0;
        double most = 0.0;
        for (Index i = 1; i <= t.size(); ++i) {
            const double* const row = t.row(i);
            if (t.basic[i] || i == except || row[i] <= found.least_pivot) continue;
            const double gain = row[0] * row[0] / row[i];
            if (gain > most) most = gain, which = i;
        }
        return which;
    };
    const auto report = [&](Index size) {
        if (t.rss() < found.best[size]) found.keep(t, size, t.rss(), [&](Index i) { return t.basic[i] != 0; });
    };
    report(0);
    for (Index size = 1; size <= found.most; ++size) {
        const Index next = helpful(0);
        if (!next || t.rss() < kPerfect) return;
        t.sweep(next);
        for (bool better = true; better && t.rss() > kPerfect;) {
            found.signals->poll();
            better = false;
            for (Index i = 1; i <= t.size() && !better; ++i) {
                if (!t.basic[i]) continue;
                const double before = t.rss();
                t.sweep(i);
                const Index other = helpful(i);
                const double* const row = other ? t.row(other) : nullptr;
                better = other && t.rss() - row[0] * row[0] / row[other] < before * (1 - 1e-6);
                t.sweep(better ? other : i);
            }
        }
        report(size);
    }
}

class Explorer {
  public:
    Explorer(const Tableau& root, Search& search) : s_(search), root_(root), levels_(static_cast<std::size_t>(root.size()) + 1) {
        levels_[0].t = root;
        levels_[0].kept.assign(static_cast<std::size_t>(root.size()) + 1, 0);
        build(levels_[0].t);
    }
    void run() { explore(0, 0); }

  private:
    struct Level {
        Tableau t;
        std::vector<std::uint8_t> kept;          // by place
        std::vector<Index> order, cheap,
            rank;  // free places by falling cost of dropping them; by rising term of the second bound
        std::vector<double> cost, term, prefix;  // by place, by place, sums of the smallest terms
    };
    Search& s_;
    const Tableau& root_;  // nothing is swept in it: the Gram matrix
    std::vector<Level> levels_;

    // The tableau of its columns from the Gram matrix: into the basis goes the column of which most is left, as long as there is
    // one.
    void build(Tableau& t) {
        const Index n = t.size() + 1;
        for (Index i = 0; i < n; ++i)
            for (Index j = 0; j < n; ++j) t.row(i)[j] = root_.row(t.column[i] + 1)[t.column[j] + 1];
        std::fill(t.basic.begin(), t.basic.end(), std::uint8_t{0});
        for (t.dependent = n - 1; t.dependent > 0;) {
            Index most = 0;
            double left = s_.least_pivot;
            for (Index i = 1; i < n; ++i)
                if (!t.basic[i] && t.row(i)[i] > left) left = t.row(i)[i], most = i;
            if (!most) return;
            t.sweep(most);
        }
    }

    double threshold(Index size) const { return s_.best[size] - s_.slack; }

    // The costs of dropping each free column of a node, in order; `fixed` columns are kept for good.
    void price(Level& node) {
        const Tableau& t = node.t;
        const Index a = t.size();
        node.cost.assign(static_cast<std::size_t>(a) + 1, 0.0), node.term.assign(static_cast<std::size_t>(a) + 1, 0.0);
        node.order.clear();
        for (Index i = 1; i <= a; ++i) {
            if (node.kept[i]) continue;
            node.order.push_back(i);
            if (t.dependent) continue;  // another column may take the place of one that goes: both bounds are RSS(A)
            const double w = t.row(i)[0];
            node.cost[i] = w * w / -t.row(i)[i];
            node.term[i] = std::min(w * w * s_.delta[t.column[i]], node.cost[i]);
        }
        node.cheap = node.order;
        std::sort(node.order.begin(), node.order.end(), [&](Index i, Index j) {
            return node.cost[i] != node.cost[j] ? node.cost[i] > node.cost[j] : i < j;
        });
        std::sort(node.cheap.begin(), node.cheap.end(), [&](Index i, Index j) {
            return node.term[i] != node.term[j] ? node.term[i] < node.term[j] : i > j;
        });
        node.rank.assign(static_cast<std::size_t>(a) + 1, 0), node.prefix.assign(1, 0.0);
        for (std::size_t r = 0; r < node.cheap.size(); ++r) {
            node.rank[node.cheap[r]] = static_cast<Index>(r);
            node.prefix.push_back(node.prefix.back() + node.term[node.cheap[r]]);
        }
    }

    // No subset of `size` columns below the node from which place i was dropped has a smaller RSS.
    double bound(const Level& node, Index i, Index size) const {
        const Index further = node.t.size() - 1 - size;
        const double sum = node.rank[i] < further ? node.prefix[further + 1] : node.prefix[further] + node.term[i];
        return node.t.rss() + std::max(node.cost[i], sum);
    }

    void explore(Index level, Index fixed) {
        Level& node = levels_[level];
        const Index a = node.t.size();
        s_.count();
        if (a <= s_.most && node.t.rss() < s_.best[a]) s_.keep(node.t, a, node.t.rss(), [](Index) { return true; });
        if (fixed == a) return;
        price(node);
        if (hopeless(node, fixed)) return;
        // Dropping order[i] with everything before it kept for good: each subset is met once.
        const Index free = static_cast<Index>(node.order.size());
        for (Index i = 0; i < free && fixed + i <= s_.most; ++i) {
            const Index place = node.order[i];
            const Index low = fixed + i, high = std::min(a - 1, s_.most);
            bool promising = false;
            for (Index size = high; size >= low && !promising; --size) promising = bound(node, place, size) < threshold(size);
            if (promising && s_.nodes >= s_.limit) {
                for (Index size = low; size <= high; ++size) s_.left[size] = std::min(s_.left[size], bound(node, place, size));
            } else if (promising) {
                drop(node, levels_[level + 1], place);
                explore(level + 1, fixed + i);
            }
            node.kept[place] = 1;
        }
    }

    // Whether no subset below the node can be better than what is known, now that its own coefficients are.
    bool hopeless(const Level& node, Index fixed) const {
        const Index a = node.t.size();
        for (Index size = std::min(a - 1, s_.most); size >= fixed; --size)
            if (node.t.rss() + node.prefix[a - size] < threshold(size)) return false;
        return true;
    }

    void drop(const Level& from, Level& to, Index k) {
        const Tableau& t = from.t;
        Tableau& u = to.t;
        const Index n = t.size() + 1;
        u.stride = n - 1, u.dependent = t.dependent - (t.basic[k] ? 0 : 1);
        u.entries.resize(static_cast<std::size_t>((n - 1) * (n - 1)));
        u.column.resize(static_cast<std::size_t>(n) - 1), u.basic.resize(static_cast<std::size_t>(n) - 1);
        to.kept.resize(static_cast<std::size_t>(n) - 1);
        for (Index i = 0, out = 0; i < n; ++i)
            if (i != k) u.column[out] = t.column[i], u.basic[out] = t.basic[i], to.kept[out++] = from.kept[i];
        // Columns that depended on the one that goes may be needed now. Updates of near-dependent columns add up their errors.
        if (t.dependent && t.basic[k]) return build(u);
        const double* const pivot = t.row(k);
        for (Index i = 0, out = 0; i < n; ++i) {
            if (i == k) continue;
            double* const row = u.row(out++);
            std::copy_n(t.row(i), k, row), std::copy(t.row(i) + k + 1, t.row(i) + n, row + k);
            if (!t.basic[k]) continue;
            const double factor = pivot[i] / pivot[k];
            subtract(row, pivot, factor, k), subtract(row + k, pivot + k + 1, factor, n - 1 - k);
        }
    }
};

}  // namespace certifit::subset
