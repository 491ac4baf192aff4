// Sequential minimal optimization on a block of variables whose kernel matrix Q is at hand:
//
//   minimize over β    ½ βᵀQβ + rᵀβ − Σ_i c_i(β_i)      low ≤ β ≤ high,    Σ_{i in group} β_i unchanged for every group
//
//   c_i(β) = lower_i·β for β ≥ 0, upper_i·β for β ≤ 0        lower ≤ upper: convex, with a kink at zero
//
// This is the dual of every loss with two linear sides (hinge, ε-insensitive) on a kernel, f = Kβ + b; r are the scores that
// variables outside the block give. One group is an intercept, two are the ν forms.
//
// The pair (i, j) is chosen by second order: i may rise at the least slope, j is the one whose exchange with i gains most.
// Fan, Chen and Lin (2005), Working set selection using second order information for training SVM.
#pragma once

#include <limits>

#include "smo/tiles.hpp"

namespace certifit::smo {

// What a variable gains by moving, and where it must stop.
struct Terms {
    double lower, upper, low, high;
    // Slope of c to the right and to the left; ∓∞ where the variable cannot go.
    double rise(double beta) const {
        return beta < high ? (beta >= 0.0 ? lower : upper) : -std::numeric_limits<double>::infinity();
    }
    double fall(double beta) const { return beta > low ? (beta > 0.0 ? lower : upper) : std::numeric_limits<double>::infinity(); }
    // The end of the piece on which the slope holds: a bound, or the kink at zero.
    double above(double beta) const { return beta < 0.0 ? std::min(0.0, high) : high; }
    double below(double beta) const { return beta > 0.0 ? std::max(0.0, low) : low; }
};

// The arrays of a block; the variables of a group are neighbors.
template <class T>
struct Block {
    std::vector<T> Q;  // q × stride
    std::vector<double> diagonal, beta, g, rise, fall;
    std::vector<Terms> terms;
    std::vector<Index> ends;  // of the groups
    Index q = 0, stride = 0;
};

constexpr double kFlat = 1e-12;  // least curvature of an exchange: equal rows have none

struct Choice {
    Index at = -1;
    double value = 0.0, worst = 0.0;
};

namespace detail {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The least g − rise of [from, to).
[[gnu::always_inline]] inline Choice least(const double* g, const double* rise, Index from, Index to) {
    Lanes best = Lanes{} + kInfinity;
    using certifit::detail::Whole;
    Whole at = {}, here = {0, 1, 2, 3, 4, 5, 6, 7};
    here += from;
    Index i = from;
    for (; i + 8 <= to; i += 8, here += 8) {
        const Lanes slope = *reinterpret_cast<const Lanes*>(g + i) - *reinterpret_cast<const Lanes*>(rise + i);
        const auto better = slope < best;
        best = better ? slope : best, at = better ? here : at;
    }
    Choice out{-1, kInfinity, 0.0};
    for (int k = 0; k < 8; ++k)
        if (best[k] < out.value || (best[k] == out.value && out.at >= 0 && at[k] < out.at)) out.value = best[k], out.at = at[k];
    for (; i < to; ++i)
        if (g[i] - rise[i] < out.value) out.value = g[i] - rise[i], out.at = i;
    return out;
}

[[gnu::always_inline]] inline void widen(const float* x, Lanes& out) {
    out = __builtin_convertvector(*reinterpret_cast<const vec::detail::HalfLanes*>(x), Lanes);
}
[[gnu::always_inline]] inline void widen(const double* x, Lanes& out) { out = *reinterpret_cast<const Lanes*>(x); }

// The variable whose exchange with one of slope `low` gains most: (g − fall − low)² / curvature.
template <class T>
[[gnu::always_inline]] inline Choice partner(const double* g, const double* fall, const double* diagonal, const T* row,
                                             double own, double low, Index from, Index to) {
    Lanes best = {}, worst = {};
    using certifit::detail::Whole;
    Whole at = Whole{} - 1, here = {0, 1, 2, 3, 4, 5, 6, 7};
    here += from;
    Index i = from;
    for (; i + 8 <= to; i += 8, here += 8) {
        Lanes k;
        widen(row + i, k);
        const Lanes difference = (*reinterpret_cast<const Lanes*>(g + i) - *reinterpret_cast<const Lanes*>(fall + i)) - low;
        Lanes curvature = (*reinterpret_cast<const Lanes*>(diagonal + i) + own) - (k + k);
        curvature = curvature > kFlat ? curvature : Lanes{} + kFlat;
        const Lanes positive = difference > 0.0 ? difference : Lanes{};
        const Lanes gain = positive * positive / curvature;
        const auto better = gain > best;
        best = better ? gain : best, at = better ? here : at;
        worst = positive > worst ? positive : worst;
    }
    Choice out;
    for (int k = 0; k < 8; ++k) {
        if (best[k] > out.value || (best[k] == out.value && at[k] >= 0 && at[k] < out.at)) out.value = best[k], out.at = at[k];
        out.worst = std::max(out.worst, worst[k]);
    }
    for (; i < to; ++i) {
        const double difference = g[i] - fall[i] - low;
        if (!(difference > 0.0)) continue;
        const double gain = difference * difference / std::max(diagonal[i] + own - 2.0 * static_cast<double>(row[i]), kFlat);
        if (gain > out.value) out.value = gain, out.at = i;
        out.worst = std::max(out.worst, difference);
    }
    return out;
}

template <class T>
[[gnu::always_inline]] inline void shift(double* g, const T* a, const T* b, double s, Index q) {
    Index k = 0;
    for (; k + 8 <= q; k += 8) {
        Lanes x, y;
        widen(a + k, x), widen(b + k, y);
        *reinterpret_cast<Lanes*>(g + k) += s * (x - y);
    }
    for (; k < q; ++k) g[k] += s * (static_cast<double>(a[k]) - static_cast<double>(b[k]));
}

}  // namespace detail

CERTIFIT_CLONES [[maybe_unused]] static Choice least(const double* g, const double* rise, Index from, Index to) {
    return detail::least(g, rise, from, to);
}
CERTIFIT_CLONES [[maybe_unused]] static Choice partner(const double* g, const double* fall, const double* diagonal,
                                                       const float* row, double own, double low, Index from, Index to) {
    return detail::partner(g, fall, diagonal, row, own, low, from, to);
}
CERTIFIT_CLONES [[maybe_unused]] static Choice partner(const double* g, const double* fall, const double* diagonal,
                                                       const double* row, double own, double low, Index from, Index to) {
    return detail::partner(g, fall, diagonal, row, own, low, from, to);
}
CERTIFIT_CLONES [[maybe_unused]] static void shift(double* g, const float* a, const float* b, double s, Index q) {
    detail::shift(g, a, b, s, q);
}
CERTIFIT_CLONES [[maybe_unused]] static void shift(double* g, const double* a, const double* b, double s, Index q) {
    detail::shift(g, a, b, s, q);
}

// Exchanges within groups until no two slopes differ by more than tol; returns the number of exchanges. g holds Qβ + r and is
// kept so.
template <class T, class Poll>
Index exchange(Block<T>& p, double tol, Index max_steps, Poll&& poll) {
    for (Index k = 0; k < p.q; ++k) p.rise[k] = p.terms[k].rise(p.beta[k]), p.fall[k] = p.terms[k].fall(p.beta[k]);
    for (Index steps = 0;;) {
        Index i = -1, from = 0;
        Choice j;
        double worst = 0.0;
        for (const Index to : p.ends) {
            const Choice low = least(p.g.data(), p.rise.data(), from, to);
            if (low.at >= 0) {
                const T* row = p.Q.data() + low.at * p.stride;
                const Choice found =
                    partner(p.g.data(), p.fall.data(), p.diagonal.data(), row, p.diagonal[low.at], low.value, from, to);
                worst = std::max(worst, found.worst);
                if (found.at >= 0 && found.value > j.value) j = found, i = low.at;
            }
            from = to;
        }
        if (!(worst > tol) || i < 0 || steps >= max_steps) return steps;
        const T *a = p.Q.data() + i * p.stride, *b = p.Q.data() + j.at * p.stride;
        const double curvature = std::max(p.diagonal[i] + p.diagonal[j.at] - 2.0 * static_cast<double>(a[j.at]), kFlat);
        const double wanted = ((p.g[j.at] - p.fall[j.at]) - (p.g[i] - p.rise[i])) / curvature;
        double &bi = p.beta[i], &bj = p.beta[j.at];
        const double end_i = p.terms[i].above(bi), end_j = p.terms[j.at].below(bj);
        const double room_i = end_i - bi, room_j = bj - end_j, step = std::min({wanted, room_i, room_j});
        if (!(step > 0.0)) return steps;
        const double to_i = step == room_i ? end_i : std::min(bi + step, end_i),
                     to_j = step == room_j ? end_j : std::max(bj - step, end_j);
        if (to_i == bi && to_j == bj) return steps;  // less than rounding
        bi = to_i, bj = to_j;
        p.rise[i] = p.terms[i].rise(bi), p.fall[i] = p.terms[i].fall(bi);
        p.rise[j.at] = p.terms[j.at].rise(bj), p.fall[j.at] = p.terms[j.at].fall(bj);
        shift(p.g.data(), a, b, step, p.q);
        if ((++steps & 1023) == 0) poll();
    }
}

}  // namespace certifit::smo
