// Losses of one score, eight rows at a time: value, slope θ = ℓ' and curvature h = ℓ'' at a score, and the conjugate ℓ* at a slope.
//
// `extra` is what a loss keeps of y. A slope outside of the domain of the conjugate says so by `inside`.
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

// ln(1 + x), x ≥ 0: the rounding of 1 + x is undone (Kahan), so that small x keep their digits.
[[gnu::always_inline]] inline Lanes log_one_plus(const Lanes& x) {
    const Lanes u = 1.0 + x, low = u - 1.0;
    return low > 0.0 ? logarithm(u) * (x / (low > 0.0 ? low : constant(1.0))) : x;
}

// x ln x, zero at zero
[[gnu::always_inline]] inline Lanes x_log_x(const Lanes& x) { return x > 1e-300 ? x * logarithm(x > 1e-300 ? x : constant(1.0)) : constant(0.0); }

}  // namespace detail

// ln(1 + e^(−m)), m = (2y − 1) f, for targets 0 and 1.
struct Logistic {
    static double extra(double) { return 0.0; }
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
        out = x_log_x(q) + x_log_x(1.0 - q);
        inside = least(inside, least(q, 1.0 - q));
    }
};

// e^f − y f − (y − y ln y), y ≥ 0.
struct Poisson {
    static double extra(double y) { return y > 0 ? y * std::log(y) : 0.0; }
    [[gnu::always_inline]] static void value(const detail::Lanes& y, const detail::Lanes& f, const detail::Lanes& extra, detail::Lanes& out) {
        using namespace detail;
        const Lanes mean = exponential(least(most(f, constant(-708.0)), constant(709.0)));
        out = most(mean - y * f - y + extra, constant(0.0));
    }
    [[gnu::always_inline]] static void slopes(const detail::Lanes& y, const detail::Lanes& f, detail::Lanes& theta, detail::Lanes& h) {
        using namespace detail;
        h = exponential(least(most(f, constant(-708.0)), constant(709.0)));
        theta = h - y;
    }
    [[gnu::always_inline]] static void conjugate(const detail::Lanes& y, const detail::Lanes& theta, const detail::Lanes& extra, detail::Lanes& out,
                                                 detail::Lanes& inside) {
        using namespace detail;
        const Lanes mean = theta + y;
        out = x_log_x(mean) - extra - theta;
        inside = least(inside, mean);
    }
};

}  // namespace certifit::newton
