// Losses of one score, eight rows at a time: value, slope θ = ℓ' and curvature h = ℓ'' at a score, and the conjugate ℓ* at a slope.
//
// `extra` is what a loss `keeps` of y, or makes again as `known`. A slope outside of the domain of the conjugate says so by `inside`.
#pragma once

#include <cmath>

#include "core/exponential.hpp"
#include "core/vector.hpp"

namespace certifit::newton {

namespace detail {

using vec::detail::Lanes;

[[gnu::always_inline]] inline Lanes least(const Lanes& a, const Lanes& b) { return a < b ? a : b; }
[[gnu::always_inline]] inline Lanes most(const Lanes& a, const Lanes& b) { return a > b ? a : b; }
[[gnu::always_inline]] inline Lanes constant(double x) { return Lanes{} + x; }

}  // namespace detail

// ln(1 + e^(−m)), m = (2y − 1) f, for targets 0 and 1.
struct Logistic {
    static constexpr bool keeps = false;
    [[gnu::always_inline]] static detail::Lanes known(const detail::Lanes&) { return detail::constant(0.0); }
    [[gnu::always_inline]] static void value(const detail::Lanes& y, const detail::Lanes& f, const detail::Lanes&, detail::Lanes& out) {
        using namespace detail;
        const Lanes m = (2.0 * y - 1.0) * f, far = most(m, -m);
        out = log_one_plus(exponential(most(-far, constant(-708.0)))) - least(m, constant(0.0));
    }
    [[gnu::always_inline]] static void slopes(const detail::Lanes& y, const detail::Lanes& f, detail::Lanes& theta, detail::Lanes& h) {
        using namespace detail;
        const Lanes m = (2.0 * y - 1.0) * f, far = most(m, -m), small = exponential(most(-far, constant(-708.0)));
        const Lanes likely = 1.0 / (1.0 + small), rare = small * likely;
        theta = (1.0 - 2.0 * y) * (m > 0.0 ? rare : likely);
        h = rare * likely;
    }
    [[gnu::always_inline]] static void conjugate(const detail::Lanes& y, const detail::Lanes& theta, const detail::Lanes&, detail::Lanes& out,
                                                 detail::Lanes& inside) {
        using namespace detail;
        const Lanes q = (1.0 - 2.0 * y) * theta;
        out = negative_entropy(q, 1.0 - q);
        inside = least(inside, least(q, 1.0 - q));
    }
};

namespace detail {

// step(y, p, x, at) for every eight rows; the last ones are filled up with rows of no weight.
template <class Step>
[[gnu::always_inline]] inline void by_eight(const double* y, const double* p, const double* x, vec::Index n, Step step) {
    const auto lanes = [](const double* from) -> const Lanes& { return *reinterpret_cast<const Lanes*>(from); };
    vec::Index k = 0;
    for (; k + 8 <= n; k += 8) step(lanes(y + k), lanes(p + k), lanes(x + k), k);
    if (k == n) return;
    Lanes last[3] = {};
    for (vec::Index t = k; t < n; ++t) last[0][t - k] = y[t], last[1][t - k] = p[t], last[2][t - k] = x[t];
    step(last[0], last[1], last[2], k);
}

}  // namespace detail

// Σ p ℓ; NaN where a score is no finite number.
CERTIFIT_CLONES [[maybe_unused]] static double logistic_risk(const double* y, const double* p, const double* f, vec::Index n) {
    detail::Lanes sum = {}, odd = {}, value;
    detail::by_eight(y, p, f, n, [&](const detail::Lanes& label, const detail::Lanes& weight, const detail::Lanes& score, vec::Index) {
        Logistic::value(label, score, score, value);
        sum += weight * value, odd += 0.0 * score;
    });
    return vec::detail::total(sum) + vec::detail::total(odd);
}

// Σ p ℓ*; infinite where a slope is outside of the domain, NaN where one is no finite number.
CERTIFIT_CLONES [[maybe_unused]] static double logistic_conjugate(const double* y, const double* p, const double* theta, vec::Index n) {
    detail::Lanes sum = {}, odd = {}, inside = {}, value;
    detail::by_eight(y, p, theta, n, [&](const detail::Lanes& label, const detail::Lanes& weight, const detail::Lanes& slope, vec::Index) {
        Logistic::conjugate(label, slope, slope, value, inside);
        sum += weight * value, odd += 0.0 * slope;
    });
    const double rest = vec::detail::total(odd);
    for (int k = 0; k < 8; ++k)
        if (rest == 0.0 && !(inside[k] >= 0.0)) return HUGE_VAL;
    return vec::detail::total(sum) + rest;
}

// θ and h of each row.
CERTIFIT_CLONES [[maybe_unused]] static void logistic_slopes(const double* y, const double* f, vec::Index n, double* theta, double* h) {
    detail::by_eight(y, y, f, n, [&](const detail::Lanes& label, const detail::Lanes&, const detail::Lanes& score, vec::Index at) {
        detail::Lanes slope, curve;
        Logistic::slopes(label, score, slope, curve);
        const vec::Index count = n - at < 8 ? n - at : 8;
        for (vec::Index t = 0; t < count; ++t) theta[at + t] = slope[t], h[at + t] = curve[t];
    });
}

// e^f − y f − (y − y ln y), y ≥ 0.
struct Poisson {
    static constexpr bool keeps = true;
    static double extra(double y) { return y > 0 ? y * std::log(y) : 0.0; }
    [[gnu::always_inline]] static detail::Lanes known(const detail::Lanes& y) { return x_log_x(y); }
    // ln y; where there is no count, or a mean is not near it, sums of terms as large as it are what they are.
    [[gnu::always_inline]] static detail::Lanes level(const detail::Lanes& y) { return logarithm(y > 1e-300 ? y : detail::constant(1.0)); }
    [[gnu::always_inline]] static void value(const detail::Lanes& y, const detail::Lanes& f, const detail::Lanes& extra, detail::Lanes& out) {
        using namespace detail;
        const Lanes mean = exponential(least(most(f, constant(-708.0)), constant(709.0)));
        const Lanes away = f - level(y), far = most(away, -away);
        const Lanes near = y * beyond_tangent(far < 0.5 ? away : constant(0.0));
        out = (far < 0.5) & (y > 1e-300) ? near : most(mean - y * f - y + extra, constant(0.0));
    }
    [[gnu::always_inline]] static void slopes(const detail::Lanes& y, const detail::Lanes& f, detail::Lanes& theta, detail::Lanes& h) {
        using namespace detail;
        h = exponential(least(most(f, constant(-708.0)), constant(709.0)));
        theta = h - y;
    }
    [[gnu::always_inline]] static void conjugate(const detail::Lanes& y, const detail::Lanes& theta, const detail::Lanes& extra, detail::Lanes& out,
                                                 detail::Lanes& inside) {
        using namespace detail;
        const Lanes mean = theta + y, count = y > 1e-300 ? y : constant(1.0), share = theta / count, far = most(share, -share);
        const Lanes small = far < 0.5 ? share : constant(0.0), near = y * ((1.0 + small) * log_one_plus(small) - small) + theta * level(y);
        out = (far < 0.5) & (y > 1e-300) ? near : x_log_x(mean) - extra - theta;
        inside = least(inside, mean);
    }
};

// ½ max(0, 1 − m)², m = (2y − 1) f, for targets 0 and 1. Its steps end at the optimum: once no row crosses its margin, the model is exact.
struct SquaredHinge {
    static constexpr bool keeps = false;
    [[gnu::always_inline]] static void value(const detail::Lanes& y, const detail::Lanes& f, const detail::Lanes&, detail::Lanes& out) {
        using namespace detail;
        const Lanes missing = most(1.0 - (2.0 * y - 1.0) * f, constant(0.0));
        out = 0.5 * missing * missing + 0.0 * f;  // of a score that is no number, neither is the loss
    }
    [[gnu::always_inline]] static void slopes(const detail::Lanes& y, const detail::Lanes& f, detail::Lanes& theta, detail::Lanes& h) {
        using namespace detail;
        const Lanes sign = 2.0 * y - 1.0, missing = 1.0 - sign * f;
        theta = missing > 0.0 ? -sign * missing : constant(0.0);
        h = missing > 0.0 ? constant(1.0) : constant(0.0);
    }
    [[gnu::always_inline]] static void conjugate(const detail::Lanes& y, const detail::Lanes& theta, const detail::Lanes&, detail::Lanes& out,
                                                 detail::Lanes& inside) {
        using namespace detail;
        const Lanes v = (2.0 * y - 1.0) * theta;
        out = v * (1.0 + 0.5 * v);
        inside = least(inside, -v);
    }
};

}  // namespace certifit::newton
