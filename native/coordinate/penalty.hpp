// The separable penalty of coordinate descent and everything one coordinate needs to know about it.
//
//   h_j(w) = l1_j |w| + ½ l2_j w²   on lower_j ≤ w ≤ upper_j,     or with an exponent 1 < q ≤ 2
//   h_j(w) = (l1_j / q) |w|^q + ½ l2_j w²   on the same box.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace certifit {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The root w ≥ 0 of  H w + a w^e = z  for H, a, z ≥ 0 and 0 < e ≤ 1. The left side is concave and increasing, so Newton
// started below the root climbs to it monotonically; the start is where the larger term alone reaches z/2.
inline double power_root(double H, double a, double e, double z) {
    if (!(z > 0)) return 0.0;
    if (!(a > 0)) return H > 0 ? z / H : kInfinity;
    const double alone = std::pow(z / a, 1.0 / e);
    if (!(H > 0)) return alone;
    const double upper = std::min(z / H, alone);
    double w = std::min(0.5 * z / H, std::pow(0.5 * z / a, 1.0 / e));
    if (!(w > 0)) return upper;
    for (int k = 0; k < 100; ++k) {
        const double power = a * std::pow(w, e);
        const double next = std::clamp(w + (z - H * w - power) / (H + e * power / w), w, upper);
        if (!(next > w * (1 + 1e-15))) return std::max(w, next);
        w = next;
    }
    return w;
}

struct Penalty {
    const double *l1, *l2, *lower, *upper;
    double q = 0.0;  // 0: the absolute value; otherwise the exponent

    bool power() const { return q != 0.0; }
    double clip(std::ptrdiff_t j, double w) const { return std::min(std::max(w, lower[j]), upper[j]); }
    bool zero_allowed(std::ptrdiff_t j) const { return lower[j] <= 0.0 && upper[j] >= 0.0; }

    double value(std::ptrdiff_t j, double w) const {
        const double size = std::abs(w);
        const double kink = size == 0.0 ? 0.0 : power() ? l1[j] / q * std::pow(size, q) : l1[j] * size;
        return kink + 0.5 * l2[j] * w * w;
    }

    // argmin over the box of ½ H₀ w² − z w + h_j(w), where H₀ ≥ 0; `now` is kept where every w is as good.
    double minimizer(std::ptrdiff_t j, double z, double H0, double now) const {
        const double H = H0 + l2[j];
        double w;
        if (power()) {
            w = std::copysign(power_root(H, l1[j], q - 1.0, std::abs(z)), z);
        } else {
            const double t = std::abs(z) - l1[j];
            if (t > 0) {
                w = H > 0 ? std::copysign(t / H, z) : (z > 0 ? upper[j] : lower[j]);
            } else {
                w = (H > 0 || l1[j] > 0) ? 0.0 : now;
            }
        }
        w = clip(j, w);
        return std::isfinite(w) ? w : now;
    }

    // The conjugate h_j*(v) = sup_w v w − h_j(w) is finite for −domain_below ≤ v ≤ domain_above.
    bool unbounded(std::ptrdiff_t j) const { return l2[j] == 0.0 && (!power() || l1[j] == 0.0); }
    double domain_above(std::ptrdiff_t j) const { return unbounded(j) && upper[j] == kInfinity ? l1[j] : kInfinity; }
    double domain_below(std::ptrdiff_t j) const { return unbounded(j) && lower[j] == -kInfinity ? l1[j] : kInfinity; }

    // The w that attains h_j*(v), for v in the domain.
    double attained(std::ptrdiff_t j, double v) const {
        if (power() && l1[j] > 0) return clip(j, std::copysign(power_root(l2[j], l1[j], q - 1.0, std::abs(v)), v));
        const double t = std::abs(v) - l1[j];
        if (t <= 0) return clip(j, 0.0);
        const double end = v > 0 ? upper[j] : lower[j];
        if (l2[j] > 0) return clip(j, std::copysign(t / l2[j], v));
        return std::isfinite(end) ? end : clip(j, 0.0);
    }
    double conjugate(std::ptrdiff_t j, double v) const {
        const double w = attained(j, v);
        return w == 0.0 ? 0.0 : v * w - value(j, w);
    }

    // Distance of 0 to −c + ∂h_j(w) + normal cone of the box, where c is the negative gradient of the smooth part.
    double violation(std::ptrdiff_t j, double w, double c) const {
        double below, above;  // the ends of the subdifferential
        if (power()) {
            const double slope = w == 0.0 ? 0.0 : std::copysign(l1[j] * std::pow(std::abs(w), q - 1.0), w);
            below = above = slope + l2[j] * w - c;
        } else {
            below = (w > 0 ? l1[j] : -l1[j]) + l2[j] * w - c;
            above = (w < 0 ? -l1[j] : l1[j]) + l2[j] * w - c;
        }
        if (w <= lower[j]) below = -kInfinity;
        if (w >= upper[j]) above = kInfinity;
        return std::max({below, -above, 0.0});
    }
};

}  // namespace certifit
