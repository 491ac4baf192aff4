// How far a point of penalized least squares is from the best one: its duality gap, with the best scale s of its residual,
//
//   P − D = ½ (1−s)² ‖r‖²_p + Σ_j [h_j(w_j) + h_j*(s c_j) − s c_j w_j],   θ = −s r,  c = X̃'(pr)
//
// whose terms are all ≥ 0, so nothing cancels.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "coordinate/matrix.hpp"
#include "coordinate/penalty.hpp"

namespace certifit {

struct Certified {
    double intercept = 0, objective = 0, gap = kInfinity;
    Index iterations = 0;
};

// What the gap is made of. Columns that are not `fresh` were proven harmless without reading them: w_j = 0, and c_j is of an earlier
// residual. Without `fresh` all are.
struct Evidence {
    Index d;
    double energy;      // ‖r‖²_p
    double rounding;    // of a correlation, per unit of the column's norm
    double root_total;  // √Σp
    const double *coef, *c, *norm2, *mean;
    const char* fresh = nullptr;
};

struct Proof {
    double objective, gap, scale;
};

namespace detail {

// A free or one-sided coefficient without penalty wants c = 0 exactly; rounding is all that may be left of it.
inline double limit(double most, double allowed, double value, double tiny) {
    if (value - allowed <= tiny && allowed == 0.0) return most;
    return std::min(most, allowed / value);
}

// Conjugates that are finite beyond the kink make D(s) piecewise quadratic: bisection on its derivative.
inline double best_scale(const Penalty& penalty, const Evidence& e, const std::vector<Index>& terms, double most) {
    const auto slope = [&](double s) {
        double sum = -(1 - s) * e.energy;
        for (Index j : terms) sum += e.c[j] * (penalty.attained(j, s * e.c[j]) - e.coef[j]);
        return sum;
    };
    double low = 0, high = most;
    if (slope(high) <= 0) return high;
    if (high > 1.0 && slope(1.0) >= 0) high = 1.0;
    for (int k = 0; k < 30 && high - low > 1e-9; ++k) {
        const double middle = 0.5 * (low + high);
        (slope(middle) > 0 ? high : low) = middle;
    }
    // The end itself is exact near a solution, where s = 1.
    const double s = 0.5 * (low + high);
    return std::abs(s - 1) < 1e-8 && most >= 1 ? 1.0 : s;
}

}  // namespace detail

// radius(j): how far c_j may be from what it is now, for columns that are not fresh. `terms` is room for the columns that count.
template <class F>
Proof prove(const Penalty& penalty, const Evidence& e, std::vector<Index>& terms, F&& radius) {
    double objective = 0.5 * e.energy, most = kInfinity, product = 0, loose = 0;
    bool curved = false;
    terms.clear();
    for (Index j = 0; j < e.d; ++j) {
        const bool fresh = !e.fresh || e.fresh[j];
        double up = e.c[j], down = -e.c[j];
        if (!fresh) {
            const double reach = radius(j);
            up += reach, down += reach;
        }
        const double above = penalty.domain_above(j), below = penalty.domain_below(j);
        const double tiny = e.rounding * (std::sqrt(e.norm2[j]) + std::abs(e.mean[j]) * e.root_total);
        if (up > above) most = detail::limit(most, above, up, tiny);
        else if (up > 0 && above < kInfinity) most = std::min(most, above / up);
        if (down > below) most = detail::limit(most, below, down, tiny);
        else if (down > 0 && below < kInfinity) most = std::min(most, below / down);
        if (!fresh) continue;
        const double w = e.coef[j];
        if (w != 0.0) {
            objective += penalty.value(j, w);
            product += e.c[j] * w;
            loose += std::min(tiny, std::abs(e.c[j])) * std::abs(w) * (penalty.l1[j] == 0.0 ? 2 : 0);
        }
        const bool finite = above == kInfinity || below == kInfinity || !penalty.zero_allowed(j);
        if (w != 0.0 || finite) terms.push_back(j);
        curved |= finite;
    }
    double s = e.energy > 0 ? std::min(1 + product / e.energy, most) : std::min(1.0, most);
    if (!(s >= 0)) s = 0;
    if (curved) s = detail::best_scale(penalty, e, terms, std::min(most, 1e3));
    double gap = 0.5 * (1 - s) * (1 - s) * e.energy + loose;
    for (Index j : terms) {
        const double w = e.coef[j], v = s * e.c[j];
        gap += std::max(0.0, (w != 0.0 ? penalty.value(j, w) - v * w : 0.0) + penalty.conjugate(j, v));
    }
    if (!std::isfinite(gap) || !std::isfinite(objective)) gap = kInfinity;
    return {objective, std::max(gap, std::numeric_limits<double>::epsilon() * objective), s};
}

}  // namespace certifit
