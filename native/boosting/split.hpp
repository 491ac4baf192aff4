// The best split of a node on one feature, from its histogram.
//
//   gain = G_L²/(H_L + l2) + G_R²/(H_R + l2) − G²/(H + l2)            (twice the drop of the quadratic model of the loss)
//
// Numeric: every cut between bins, missing values tried on both sides. Categorical: categories sorted by gradient over
// curvature, then cut (Fisher 1958: with l2 = 0 no other partition is better). Monotone features and bounded nodes: the values of the
// children are clipped to their bounds and the gain is that of the clipped values.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "boosting/histogram.hpp"

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

// Gains of n cuts; −1 where a child is too small.
CERTIFIT_CLONES inline void gains(const double* __restrict g, const double* __restrict h, const double* __restrict c, int n,
                                  double G, double H, double C, double l2, double min_count, double min_h,
                                  double* __restrict out) {
    for (int k = 0; k < n; ++k) {
        const double gr = G - g[k], hr = H - h[k], cr = C - c[k];
        const double value = g[k] * g[k] / (h[k] + l2) + gr * gr / (hr + l2);
        const bool allowed = (c[k] >= min_count) & (cr >= min_count) & (h[k] > min_h) & (hr > min_h);
        out[k] = allowed ? value : -1.0;
    }
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

    struct Cuts {
        alignas(64) std::array<double, kSlots> g, h, c, gain;
        std::array<Pair, kSlots> sums;
    };

    // Fills the gains of the first n cuts. With no bounds in play the formula is evaluated for all cuts at once.
    void evaluate(Cuts& cuts, int n, Pair node, const Bounds& bounds, int direction, double l2) const {
        for (int k = 0; k < n; ++k)
            cuts.g[k] = units_.g(cuts.sums[k][0]), cuts.h[k] = units_.h(cuts.sums[k][1]), cuts.c[k] = units_.c(cuts.sums[k][1]);
        const double G = units_.g(node[0]), H = units_.h(node[1]), C = units_.c(node[1]);
        const double min_c = options_.min_samples_leaf * (1 - 1e-12), min_h = options_.min_curvature;
        detail::gains(cuts.g.data(), cuts.h.data(), cuts.c.data(), n, G, H, C, l2, min_c, min_h, cuts.gain.data());
        if (direction == 0 && !bounds.finite()) return;
        for (int k = 0; k < n; ++k) {
            if (cuts.gain[k] < 0) continue;
            const double left = bounds.clip(leaf_value(cuts.g[k], cuts.h[k], l2));
            const double right = bounds.clip(leaf_value(G - cuts.g[k], H - cuts.h[k], l2));
            cuts.gain[k] = direction * (right - left) < 0
                               ? -1.0
                               : score(cuts.g[k], cuts.h[k], bounds, l2) + score(G - cuts.g[k], H - cuts.h[k], bounds, l2);
        }
    }

    // The first best of n gains, as a gain over the undivided node; −1 when no cut is worth it.
    int pick(const Cuts& cuts, int n, Pair node, const Bounds& bounds, double& gain) const {
        int best = -1;
        double most = 0;
        for (int k = 0; k < n; ++k)
            if (cuts.gain[k] > most) most = cuts.gain[k], best = k;
        if (best < 0) return best;
        const double whole = score(units_.g(node[0]), units_.h(node[1]), bounds, options_.l2);
        gain = most - whole;
        return gain > options_.min_gain && gain > 1e-12 * std::fabs(whole) ? best : -1;
    }

    void numeric(Index j, const Pair* bin, Pair node, const Bounds& bounds, Split& best) const {
        Cuts cuts;
        const int values = bins_.values[j];
        const Pair missing = bin[values];
        const bool some_missing = missing[1] != 0;
        for (int pass = 0; pass <= (some_missing ? 1 : 0); ++pass) {
            // Without missing values the last cut would leave the right child empty.
            const int n = pass == 0 && some_missing ? values : values - 1;
            Pair sum = pass ? missing : Pair{};
            for (int k = 0; k < n; ++k) sum += bin[k], cuts.sums[k] = sum;
            evaluate(cuts, n, node, bounds, monotone_ ? monotone_[j] : 0, options_.l2);
            double gain = 0;
            const int k = pick(cuts, n, node, bounds, gain);
            if (k < 0 || gain <= best.gain) continue;
            best = Split{};
            best.gain = gain, best.feature = j, best.bin = k, best.left = cuts.sums[k];
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
        evaluate(cuts, tried, node, bounds, 0, options_.l2 + options_.category_l2);
        double gain = 0;
        const int k = pick(cuts, tried, node, bounds, gain);
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
