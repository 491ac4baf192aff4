// The best split of a node on one feature, from its histogram.
//
//   gain = G_L²/(H_L + l2) + G_R²/(H_R + l2) − G²/(H + l2)            (twice the drop of the quadratic model of the loss)
//
// Numeric: every cut between bins, missing values tried on both sides. Categorical: categories sorted by gradient over
// curvature, then cut (Fisher 1958: with l2 = 0 no other partition is better). Monotone features and bounded nodes: the values of
// the children are clipped to their bounds and the gain is that of the clipped values.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "boosting/histogram.hpp"
#include "boosting/ordered.hpp"

namespace certifit::boosting {

struct Options {
    double l2 = 0, min_samples_leaf = 1, min_curvature = 0, min_gain = 0;
    double category_smoothing = 0, category_l2 = 0, category_support = 0;
    Index max_leaves = 31, max_depth = 1 << 20;
};

struct Split {
    double gain = 0;
    Index feature = -1;
    int bin = 0;  // numeric: bins <= bin go left
    bool missing_left = false, categorical = false;
    std::array<std::uint64_t, 4> left_set{};  // categorical: bins that go left
    Pair left{};                              // sums of the left child

    bool found() const { return feature >= 0; }
    bool goes_left(int b, int missing) const {
        if (categorical) return (left_set[b >> 6] >> (b & 63)) & 1;
        return b == missing ? missing_left : b <= bin;
    }
};

struct Bounds {
    double low = -HUGE_VAL, high = HUGE_VAL;
    bool finite() const { return low > -HUGE_VAL || high < HUGE_VAL; }
    double clip(double v) const { return std::min(std::max(v, low), high); }
};

namespace detail {

// Sums of n cuts as numbers.
CERTIFIT_CLONES inline void numbers(const std::int64_t* __restrict sums, int n, int shift, std::int64_t mask, double unit_g,
                                    double unit_c, double unit_h, double unit, double* __restrict g, double* __restrict h,
                                    double* __restrict c) {
    for (int k = 0; k < n; ++k) {
        g[k] = static_cast<double>(sums[2 * k]) * unit_g;
        c[k] = static_cast<double>(sums[2 * k + 1] >> shift) * unit_c;
        h[k] = static_cast<double>(sums[2 * k + 1] & mask) * unit * unit_h;
    }
}

// Gains of n cuts; −1 where a child is too small. Returns the highest, or 0.
CERTIFIT_CLONES inline double gains(const double* __restrict g, const double* __restrict h, const double* __restrict c, int n,
                                    double G, double H, double C, double l2, double min_count, double min_h,
                                    double* __restrict out) {
    for (int k = 0; k < n; ++k) {
        const double gr = G - g[k], hr = H - h[k], cr = C - c[k];
        const double value = g[k] * g[k] / (h[k] + l2) + gr * gr / (hr + l2);
        const bool allowed = (c[k] >= min_count) & (cr >= min_count) & (h[k] > min_h) & (hr > min_h);
        out[k] = allowed ? value : -1.0;
    }
    double most[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    int k = 0;
    for (; k + 8 <= n; k += 8)
        for (int l = 0; l < 8; ++l) most[l] = out[k + l] > most[l] ? out[k + l] : most[l];
    for (; k < n; ++k) most[0] = out[k] > most[0] ? out[k] : most[0];
    for (int l = 1; l < 8; ++l) most[0] = most[l] > most[0] ? most[l] : most[0];
    return most[0];
}

}  // namespace detail

// Newton's value of a leaf.
inline double leaf_value(double g, double h, double l2) { return h + l2 > 0 ? -g / (h + l2) : 0.0; }

class FeatureSearch {
  public:
    FeatureSearch(const Bins& bins, const Units& units, const Options& options, const std::int8_t* monotone)
        : bins_(bins), units_(units), options_(options), monotone_(monotone) {}

    // Improves `best` if feature j has a better split of a node with these sums.
    void search(Index j, const Pair* hist, Pair node, const Bounds& bounds, Split& best) const {
        const Pair* bin = hist + bins_.offset[j];
        if (bins_.categorical[j])
            categorical(j, bin, node, bounds, best);
        else
            numeric(j, bin, node, bounds, best);
    }

    // The same for the n rows of the node in the order of their bins (ordered.hpp).
    void search(Index j, const std::uint32_t* rows, Index n, const Pair* pairs, Pair node, const Bounds& bounds,
                Split& best) const {
        if (bins_.categorical[j]) {
            std::array<Pair, kSlots> hist{};
            for (Index k = 0; k < n; ++k) hist[rows[k] >> kRowBits] += pairs[rows[k] & kRowMask];
            return categorical(j, hist.data(), node, bounds, best);
        }
        const std::uint32_t values = static_cast<std::uint32_t>(bins_.values[j]);
        Pair missing{};
        for (; n > 0 && rows[n - 1] >> kRowBits == values; --n) missing += pairs[rows[n - 1] & kRowMask];
        if (n == 0) return;
        Cuts cuts;
        int m = 1;
        Pair sum{};
        std::uint32_t entry = rows[0];
        for (Index k = 1; k < n; ++k) {
            const std::uint32_t next = rows[k];
            sum += pairs[entry & kRowMask];
            cuts.sums[m] = sum, cuts.bin[m] = static_cast<std::uint8_t>(entry >> kRowBits);
            m += (entry ^ next) >> kRowBits != 0;
            entry = next;
        }
        cuts.sums[m] = sum + pairs[entry & kRowMask], cuts.bin[m] = static_cast<std::uint8_t>(entry >> kRowBits);
        cut(j, cuts, m, missing, node, bounds, best);
    }

    // −min over v within the bounds of 2Gv + (H + l2)v².
    double score(double g, double h, const Bounds& bounds, double l2) const {
        const double v = bounds.clip(leaf_value(g, h, l2));
        return -(2 * g * v + (h + l2) * v * v);
    }

  private:
    const Bins& bins_;
    const Units& units_;
    const Options& options_;
    const std::int8_t* monotone_;

    // Cuts after the bins that hold rows: a cut after an empty one is the cut before it.
    struct Cuts {
        alignas(64) std::array<double, kSlots> g, h, c, gain;
        std::array<Pair, kSlots> sums;
        std::array<std::uint8_t, kSlots> bin;
    };

    // Fills the gains of cuts first … last − 1 and returns the highest, or 0. With no bounds in play the formula is evaluated
    // for all cuts at once.
    double evaluate(Cuts& cuts, int first, int last, Pair node, const Bounds& bounds, int direction, double l2) const {
        const double G = units_.g(node[0]), H = units_.h(node[1]), C = units_.c(node[1]);
        const double min_c = options_.min_samples_leaf * (1 - 1e-12), min_h = options_.min_curvature;
        const bool constant = units_.constant_curvature;
        double *g = cuts.g.data() + first, *h = cuts.h.data() + first, *c = cuts.c.data() + first,
               *gain = cuts.gain.data() + first;
        const int n = last - first;
        detail::numbers(reinterpret_cast<const std::int64_t*>(cuts.sums.data() + first), n, units_.shift,
                        constant ? -1 : (std::int64_t{1} << units_.shift) - 1, units_.gradient, units_.count, units_.curvature,
                        constant ? units_.count : 1.0, g, h, c);
        double most = detail::gains(g, h, c, n, G, H, C, l2, min_c, min_h, gain);
        if (direction == 0 && !bounds.finite()) return most;
        most = 0;
        for (int k = 0; k < n; ++k) {
            if (gain[k] < 0) continue;
            const double left = bounds.clip(leaf_value(g[k], h[k], l2));
            const double right = bounds.clip(leaf_value(G - g[k], H - h[k], l2));
            gain[k] = direction * (right - left) < 0
                          ? -1.0
                          : score(g[k], h[k], bounds, l2) + score(G - g[k], H - h[k], bounds, l2);
            most = std::max(most, gain[k]);
        }
        return most;
    }

    // The first best of the cuts, as a gain over the undivided node; −1 when no cut is worth it.
    int pick(const Cuts& cuts, int first, double most, Pair node, const Bounds& bounds, double& gain) const {
        if (!(most > 0)) return -1;
        const double whole = score(units_.g(node[0]), units_.h(node[1]), bounds, options_.l2);
        gain = most - whole;
        if (!(gain > options_.min_gain && gain > 1e-12 * std::fabs(whole))) return -1;
        while (cuts.gain[first] != most) ++first;
        return first;
    }

    void numeric(Index j, const Pair* bin, Pair node, const Bounds& bounds, Split& best) const {
        Cuts cuts;
        const int values = bins_.values[j];
        int m = 1;
        Pair sum{};
        for (int b = 0; b < values; ++b) {
            sum += bin[b];
            cuts.sums[m] = sum, cuts.bin[m] = static_cast<std::uint8_t>(b);
            m += (bin[b][0] | bin[b][1]) != 0;
        }
        cut(j, cuts, m - 1, bin[values], node, bounds, best);
    }

    // Cuts 1 … m of a numeric feature, missing values on the right and on the left.
    void cut(Index j, Cuts& cuts, int m, Pair missing, Pair node, const Bounds& bounds, Split& best) const {
        const bool some_missing = missing[1] != 0;
        // Cuts that leave fewer units on a side than a leaf must have are passed over.
        const double units = std::floor(std::min(options_.min_samples_leaf * (1 - 1e-12) / units_.count, 0x1p50));
        const std::int64_t least = static_cast<std::int64_t>(units), all = node[1] >> units_.shift;
        for (int pass = 0; pass <= (some_missing ? 1 : 0); ++pass) {
            // Without missing values the last cut would leave the right child empty.
            int first = 1, last = pass == 0 && some_missing ? m + 1 : m;
            if (pass == 1) {
                for (int k = 1; k < last; ++k) cuts.sums[k] += missing;
                if (m > 0 && cuts.bin[1] > 0) cuts.sums[0] = missing, cuts.bin[0] = 0, first = 0;  // missing values alone
            }
            while (first < last && (cuts.sums[first][1] >> units_.shift) < least) ++first;
            while (first < last && all - (cuts.sums[last - 1][1] >> units_.shift) < least) --last;
            if (first >= last) continue;
            const double most = evaluate(cuts, first, last, node, bounds, monotone_ ? monotone_[j] : 0, options_.l2);
            double gain = 0;
            const int k = pick(cuts, first, most, node, bounds, gain);
            if (k < 0 || gain <= best.gain) continue;
            best = Split{};
            best.gain = gain, best.feature = j, best.bin = cuts.bin[k], best.left = cuts.sums[k];
            best.missing_left = some_missing ? pass == 1 : 2 * cuts.c[k] > units_.c(node[1]);
        }
    }

    void categorical(Index j, const Pair* bin, Pair node, const Bounds& bounds, Split& best) const {
        Cuts cuts;
        std::array<int, kSlots> order;
        std::array<double, kSlots> key;
        int n = 0;
        for (int b = 0; b <= bins_.values[j]; ++b) {
            if (bin[b][1] == 0 || units_.c(bin[b][1]) < options_.category_support) continue;
            key[b] = units_.g(bin[b][0]) / (units_.h(bin[b][1]) + options_.category_smoothing);
            order[n++] = b;
        }
        if (n < 1) return;
        std::stable_sort(order.begin(), order.begin() + n, [&](int a, int b) { return key[a] < key[b]; });
        Pair sum{};
        for (int k = 0; k < n; ++k) sum += bin[order[k]], cuts.sums[k] = sum;
        const int tried = cuts.sums[n - 1][1] == node[1] ? n - 1 : n;
        if (tried < 1) return;
        const double most = evaluate(cuts, 0, tried, node, bounds, 0, options_.l2 + options_.category_l2);
        double gain = 0;
        const int k = pick(cuts, 0, most, node, bounds, gain);
        if (k < 0 || gain <= best.gain) return;
        best = Split{};
        best.gain = gain, best.feature = j, best.categorical = true, best.left = cuts.sums[k];
        // Categories this node has not seen follow the heavier child; rare ones are on the right, where they were counted.
        const bool heavier_left = 2 * cuts.c[k] > units_.c(node[1]);
        for (int b = 0; b < kSlots; ++b) {
            const bool present = b <= bins_.values[j] && bin[b][1] != 0;
            if (!present && heavier_left) best.left_set[b >> 6] |= std::uint64_t{1} << (b & 63);
        }
        for (int i = 0; i <= k; ++i) best.left_set[order[i] >> 6] |= std::uint64_t{1} << (order[i] & 63);
        best.missing_left = best.goes_left(bins_.values[j], -1);
    }
};

}  // namespace certifit::boosting
