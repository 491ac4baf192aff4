// The losses of certifit.losses, as far as one row at a time needs them.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "core/exponential.hpp"

namespace certifit::sgd {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

enum class Kind {
    squared, absolute, huber, quantile, epsilon, logistic, hinge, squared_hinge, modified_huber, exponential, poisson, gamma
};

// By its name in Python.
inline std::optional<Kind> kind_of(std::string_view name) {
    constexpr std::pair<std::string_view, Kind> known[] = {
        {"squared", Kind::squared},   {"absolute", Kind::absolute}, {"huber", Kind::huber},
        {"quantile", Kind::quantile}, {"epsilon_insensitive", Kind::epsilon}, {"logistic", Kind::logistic},
        {"hinge", Kind::hinge},       {"squared_hinge", Kind::squared_hinge}, {"modified_huber", Kind::modified_huber},
        {"exponential", Kind::exponential}, {"poisson", Kind::poisson},   {"gamma", Kind::gamma}};
    for (const auto& [word, kind] : known)
        if (name == word) return kind;
    return std::nullopt;
}

// The formulas of certifit.losses; `a` and `c` are the parameters of the loss.
struct Loss {
    Kind kind;
    double a = 0.0, c = 0.0;

    [[gnu::always_inline]] static double logistic(double f) {
        const double e = exponential(-std::min(std::fabs(f), 708.0)), share = 1.0 / (1.0 + e);
        return f >= 0 ? share : e * share;
    }
    static double xlogx(double u) { return u > 0 ? u * std::log(u) : 0.0; }

    [[gnu::always_inline]] double derivative(double y, double f) const {
        switch (kind) {
            case Kind::squared: return f - y;
            case Kind::absolute: return f > y ? 1.0 : f < y ? -1.0 : 0.0;
            case Kind::huber: return c * std::clamp(f - y, -a, a);
            case Kind::quantile: return f > y ? 1.0 - a : f < y ? -a : 0.0;
            case Kind::epsilon: return f > y + a ? 1.0 : f < y - a ? -1.0 : 0.0;
            case Kind::logistic: return logistic(f) - y;
            case Kind::hinge: return y > 0.5 ? (f < a ? -1.0 : 0.0) : (f > -a ? 1.0 : 0.0);
            case Kind::squared_hinge: {
                const double sign = 2.0 * y - 1.0;
                return -sign * std::max(1.0 - sign * f, 0.0);
            }
            case Kind::modified_huber: {
                const double sign = 2.0 * y - 1.0;
                return -sign * std::clamp(1.0 - sign * f, 0.0, 2.0);
            }
            case Kind::exponential: {
                const double sign = 2.0 * y - 1.0;
                return -sign * std::exp(-sign * f);
            }
            case Kind::poisson: return std::exp(f) - y;
            case Kind::gamma: return -std::expm1(std::log(y) - f);
        }
        return 0.0;
    }

    double value(double y, double f) const {
        switch (kind) {
            case Kind::squared: return 0.5 * (f - y) * (f - y);
            case Kind::absolute: return std::fabs(f - y);
            case Kind::huber: {
                const double r = std::fabs(f - y), inner = std::min(r, a);
                return c * inner * (r - 0.5 * inner);
            }
            case Kind::quantile: return f > y ? (1.0 - a) * (f - y) : a * (y - f);
            case Kind::epsilon: return std::max(std::fabs(f - y) - a, 0.0);
            case Kind::logistic: {
                const double soft = ((f > 0 ? f : 0.0) - y * f) + std::log1p(std::exp(-std::fabs(f)));
                const double entropy = y > 0 && y < 1 ? -xlogx(y) - xlogx(1.0 - y) : 0.0;
                return std::max(soft - entropy, 0.0);
            }
            case Kind::hinge: return std::max(a - (2.0 * y - 1.0) * f, 0.0);
            case Kind::squared_hinge: {
                const double m = std::max(1.0 - (2.0 * y - 1.0) * f, 0.0);
                return 0.5 * m * m;
            }
            case Kind::modified_huber: {
                const double m = std::max(1.0 - (2.0 * y - 1.0) * f, 0.0), inner = std::min(m, 2.0);
                return inner * (m - 0.5 * inner);
            }
            case Kind::exponential: return std::exp(-(2.0 * y - 1.0) * f);
            case Kind::poisson: {  // near a count that is met, terms as large as it would cancel
                const double away = f - std::log(y);
                if (std::fabs(away) < 0.5) return y * (std::expm1(away) - away);
                return std::max(std::exp(f) - y * f - y + xlogx(y), 0.0);
            }
            case Kind::gamma: {
                const double ratio = std::log(y) - f;
                return std::max(std::expm1(ratio) - ratio, 0.0);
            }
        }
        return 0.0;
    }

    bool smooth() const {
        return kind == Kind::squared || kind == Kind::huber || kind == Kind::logistic || kind == Kind::squared_hinge ||
               kind == Kind::modified_huber || kind == Kind::exponential || kind == Kind::poisson || kind == Kind::gamma;
    }

    // ℓ'' and the conjugate, of the smooth losses only.
    double curvature(double y, double f) const {
        switch (kind) {
            case Kind::squared: return 1.0;
            case Kind::huber: return std::fabs(f - y) <= a ? c : 0.0;
            case Kind::logistic: {
                const double e = std::exp(-std::fabs(f));
                return e / ((1.0 + e) * (1.0 + e));
            }
            case Kind::squared_hinge: return (2.0 * y - 1.0) * f < 1.0 ? 1.0 : 0.0;
            case Kind::modified_huber: return std::fabs(f) < 1.0 ? 1.0 : 0.0;
            case Kind::exponential: return std::exp(-(2.0 * y - 1.0) * f);
            case Kind::poisson: return std::exp(f);
            case Kind::gamma: return std::exp(std::log(y) - f);
            default: return 0.0;
        }
    }

    double conjugate(double y, double u) const {
        switch (kind) {
            case Kind::squared: return u * (0.5 * u + y);
            case Kind::huber: return std::fabs(u) <= a * c ? u * (0.5 * u / c + y) : kInfinity;
            case Kind::logistic: {
                const double q = y + u, rest = (1.0 - y) - u, rare = std::min(q, rest);
                if (!(rare >= 0)) return kInfinity;
                const double entropy = y > 0 && y < 1 ? -xlogx(y) - xlogx(1.0 - y) : 0.0;
                return xlogx(rare) + (1.0 - rare) * std::log1p(-rare) + entropy;
            }
            case Kind::squared_hinge: {
                const double v = (2.0 * y - 1.0) * u;
                return v <= 0 ? v * (1.0 + 0.5 * v) : kInfinity;
            }
            case Kind::modified_huber: {
                const double v = (2.0 * y - 1.0) * u;
                return v <= 0 && v >= -2.0 ? v * (1.0 + 0.5 * v) : kInfinity;
            }
            case Kind::exponential: {
                const double v = -(2.0 * y - 1.0) * u;
                return v >= 0 ? xlogx(v) - v : kInfinity;
            }
            case Kind::poisson: {
                if (!(u + y >= 0)) return kInfinity;
                const double share = u / y;
                if (std::fabs(share) < 0.5) return y * ((1.0 + share) * std::log1p(share) - share) + u * std::log(y);
                return xlogx(u + y) - xlogx(y) - u;
            }
            case Kind::gamma: return u <= 1 ? u * std::log(y) + xlogx(1.0 - u) + u : kInfinity;
            default: return kInfinity;
        }
    }
};

}  // namespace certifit::sgd
