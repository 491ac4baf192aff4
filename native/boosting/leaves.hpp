// The exact value of a leaf for a piecewise linear loss.
//
//   minimize over v   Σ_i  up_i · max(v − b_i, 0) + down_i · max(a_i − v, 0)  +  ½ l2 v²
//
// The slope is non-decreasing and jumps at the breakpoints a_i (by down_i) and b_i (by up_i): sort them and stop where it turns
// non-negative. Where the minimizers form an interval, the one nearest to zero is taken: the smallest step that helps as much.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace certifit::boosting {

struct Hinges {
    const double *a, *b, *down, *up;  // of every row of the table
};

inline double hinge_minimizer(const Hinges& hinges, std::span<const std::uint32_t> rows, double l2,
                              std::vector<std::pair<double, double>>& points) {
    points.clear();
    double slope = 0.0, total = 0.0;
    for (const std::uint32_t i : rows) {
        if (hinges.down[i] > 0)
            points.emplace_back(hinges.a[i], hinges.down[i]), slope -= hinges.down[i], total += hinges.down[i];
        if (hinges.up[i] > 0) points.emplace_back(hinges.b[i], hinges.up[i]), total += hinges.up[i];
    }
    if (points.empty()) return 0.0;
    std::sort(points.begin(), points.end());
    const double rounding = 1e-12 * total;
    double low = points.back().first, high = HUGE_VAL;
    bool turned = false;
    double before = -HUGE_VAL;
    for (const auto& [at, jump] : points) {
        if (l2 > 0 && at > before) {
            // Between breakpoints the slope rises with l2.
            if (slope + l2 * at >= 0) return std::clamp(-slope / l2, before, at);
        }
        slope += jump;
        before = at;
        if (l2 > 0) {
            if (slope + l2 * at >= 0) return at;
            continue;
        }
        if (!turned && slope >= -rounding) low = at, turned = true;
        if (slope > rounding) {
            high = at;
            break;
        }
    }
    if (l2 > 0) return -slope / l2;
    return std::min(std::max(0.0, low), high);
}

}  // namespace certifit::boosting
