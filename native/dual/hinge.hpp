// Dual coordinate descent for linear models with a piecewise linear (or piecewise quadratic) loss and an L2 penalty.
//
//   primal   min over w, b   P = Σ p_i ℓ_i(x_i·w + b) + ½ alpha ‖w‖²
//            ℓ_i(f) = slope_high_i max(f − upper_i, 0) + slope_low_i max(lower_i − f, 0)
//   dual     max over θ      D = −Σ p_i ℓ*_i(θ_i) − ‖Σ p_i θ_i x_i‖² / (2 alpha)
//            −slope_low_i ≤ θ_i ≤ slope_high_i,   Σ p_i θ_i = 0 (with an intercept),
//            ℓ*_i(θ) = θ upper_i for θ > 0 and θ lower_i for θ < 0
//
// With curvature κ > 0 the loss is ½max(·)²/κ on both sides: ℓ* gains ½κθ² and the slopes are infinite.
//
// Coordinates are minimized exactly in random order, with w = −Σ p_i θ_i x_i / alpha kept up to date, and rows that stay
// at a kink or at a bound are set aside: Hsieh, Chang, Lin, Keerthi and Sundararajan (2008), A dual coordinate descent
// method for large-scale linear SVM.
//
// The intercept is not penalized, so the dual has the equality Σ p_i θ_i = 0, which single coordinates cannot keep. It is
// met by the method of multipliers: the penalty ½(Σ p_i θ_i)²/rho, whose multiplier is a centre c, makes
// b = c − Σ p_i θ_i / rho one more coefficient, and moving c to b after each epoch makes the limit exact. In the primal
// this is the proximal point method in b. The bound is taken at a θ repaired to satisfy the equality to rounding.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "core/rows.hpp"
#include "core/interrupt.hpp"

namespace certifit::dual {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kRounding = 1e-14;  // violations below it are rounding: nothing is left to improve

// SplitMix64 (Steele, Lea and Flood 2014): the permutations depend on the seed only.
class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint64_t next() {
        std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        return z ^ (z >> 31);
    }
    // Uniform in [0, n), n < 2^32: the high half of a product has no division.
    Index below(Index n) {
        return static_cast<Index>(((next() >> 32) * static_cast<std::uint64_t>(n)) >> 32);
    }
    template <class Number>
    void shuffle(std::vector<Number>& order) {
        for (Index i = static_cast<Index>(order.size()); i > 1; --i) std::swap(order[i - 1], order[below(i)]);
    }

  private:
    std::uint64_t state_;
};

struct Options {
    double alpha;
    double constant;  // the intercept as a feature of this size in the augmented dual; 0: no intercept
    double tolerance; // absolute gap
    Index max_iter;   // epochs
    std::uint64_t seed;
    bool hopeful = false;  // whether to end when the rate of the last epochs says that max_iter will not be enough
};

// The loss of every row.
struct Terms {
    const double *lower, *upper, *slope_low, *slope_high, *p;
    double curvature;

    double value(Index i, double f) const {
        const double above = f - upper[i], below = lower[i] - f;
        if (curvature > 0) {
            const double excess = above > 0 ? above : below > 0 ? below : 0.0;
            return 0.5 * excess * excess / curvature;
        }
        return above > 0 ? slope_high[i] * above : below > 0 ? slope_low[i] * below : 0.0;
    }
    // Whether each row has a slope on one side at most, none of them infinite, as the hinge has.
    bool one_sided(Index n) const {
        if (curvature > 0) return false;
        for (Index i = 0; i < n; ++i)
            if ((slope_low[i] > 0 && slope_high[i] > 0) || !(std::max(slope_low[i], slope_high[i]) < kInfinity)) return false;
        return true;
    }
    double conjugate(Index i, double theta) const {
        if (theta == 0) return 0.0;
        return theta * (theta > 0 ? upper[i] : lower[i]) + 0.5 * curvature * theta * theta;
    }
};

struct Result {
    double intercept = 0, objective = kInfinity, bound = -kInfinity;
    Index iterations = 0;
};

// The intercept with the least Σ p ℓ(score + b): the kink at which the slope changes sign, found by halves. On a flat piece, its middle.
inline double best_intercept(const Terms& terms, std::span<const double> scores) {
    using Kink = std::pair<double, double>;  // position of b, jump of the slope
    std::vector<Kink> kinks;
    kinks.reserve(2 * scores.size());
    double slope = 0, total = 0;
    for (Index i = 0; i < static_cast<Index>(scores.size()); ++i) {
        const double low = terms.p[i] * terms.slope_low[i], high = terms.p[i] * terms.slope_high[i];
        if (low > 0 && std::isfinite(terms.lower[i])) kinks.emplace_back(terms.lower[i] - scores[i], low), slope -= low;
        if (high > 0 && std::isfinite(terms.upper[i])) kinks.emplace_back(terms.upper[i] - scores[i], high);
    }
    if (kinks.empty()) return 0.0;
    for (const Kink& kink : kinks) total += kink.second;
    auto first = kinks.begin(), last = kinks.end();  // `slope` is that before the first
    while (last - first > 1) {
        const auto middle = first + (last - first) / 2;
        std::nth_element(first, middle, last);
        double ahead = slope;
        for (auto kink = first; kink != middle; ++kink) ahead += kink->second;
        if (ahead >= -1e-12 * total) last = middle;
        else slope = ahead, first = middle;
    }
    slope += first->second;
    const bool flat = std::abs(slope) <= 1e-12 * total && last != kinks.end();
    return flat ? 0.5 * (first->first + std::min_element(last, kinks.end())->first) : first->first;
}

// Makes Σpθ zero: rows off their bounds first, where a change costs nothing to first order, then all of one sign.
inline void balance(const Terms& terms, std::vector<double>& t) {
    const Index n = static_cast<Index>(t.size());
    for (int round = 0; round < 3; ++round) {
        double sum = 0, room = 0;
        for (Index i = 0; i < n; ++i) sum += terms.p[i] * t[i];
        if (sum == 0) return;
        const auto slack = [&](Index i) {  // how far θ can move against the sum without passing zero or a bound
            if (sum > 0) return t[i] > 0 && t[i] < terms.slope_high[i] ? t[i]
                                : t[i] < 0 && t[i] > -terms.slope_low[i] ? t[i] + terms.slope_low[i] : 0.0;
            return t[i] < 0 && t[i] > -terms.slope_low[i] ? -t[i]
                   : t[i] > 0 && t[i] < terms.slope_high[i] ? terms.slope_high[i] - t[i] : 0.0;
        };
        for (Index i = 0; i < n; ++i) {
            const double s = slack(i);
            if (s < kInfinity) room += terms.p[i] * s;
        }
        const double share = room > 0 ? std::min(1.0, std::abs(sum) / room) : 0.0;
        for (Index i = 0; i < n; ++i) {
            const double s = slack(i);
            if (s < kInfinity) t[i] += sum > 0 ? -share * s : share * s;
        }
        double left = 0, mass = 0;
        for (Index i = 0; i < n; ++i) left += terms.p[i] * t[i];
        if (std::abs(left) <= 1e-16) return;
        for (Index i = 0; i < n; ++i)
            if (t[i] * left > 0) mass += terms.p[i] * std::abs(t[i]);
        const double factor = std::max(0.0, 1.0 - std::abs(left) / mass);
        for (Index i = 0; i < n; ++i)
            if (t[i] * left > 0) t[i] *= factor;
    }
}

// 0: θ is zero, 1: it is between its limits, 2: it is at one. A solver leaves both θ and the distance to the kink a little off; at the
// optimum one of them vanishes, so that the larger one decides, the distance in units of `unit`.
inline std::int8_t class_of(const Terms& terms, Index i, double theta, double f, double unit) {
    const double lower = terms.slope_low[i] > 0 ? terms.lower[i] : -kInfinity, upper = terms.slope_high[i] > 0 ? terms.upper[i] : kInfinity;
    const double size = std::abs(theta), room = (theta > 0 ? terms.slope_high[i] : terms.slope_low[i]) - size;
    const double far = std::min(std::abs(f - upper), std::abs(f - lower)) / unit;
    const bool flat = f <= upper && f >= lower;
    if (size == 0 || (flat && size <= far)) return 0;
    return room <= 0 || (!flat && room <= far) ? 2 : 1;
}

template <class Rows>
class HingeDual {
  public:
    std::vector<double> w, theta;

    HingeDual(const Rows& X, const Terms& terms, const Options& options, std::vector<double> theta0, double centre)
        : w(X.d, 0.0), theta(std::move(theta0)), X_(X), terms_(terms), options_(options), random_(options.seed), b_(centre) {
        const double extra = options.constant * options.constant;
        const auto bend = [&](Index i) {
            const double square = X.squared_norm(i);
            mean_square_ += square / static_cast<double>(X.n);
            return terms.p[i] * (square + extra) / options.alpha + terms.curvature;
        };
        one_sided_ = terms.one_sided(X.n);
        if (one_sided_) {
            sides_.reserve(static_cast<std::size_t>(X.n));
            for (Index i = 0; i < X.n; ++i) sides_.push_back(Side::of(terms, i, bend(i), theta[i]));
        } else {
            step_.resize(X.n);
            for (Index i = 0; i < X.n; ++i) step_[i] = bend(i);
        }
        rebuild();
    }

    Result solve() {
        std::vector<Number> active(X_.n);
        std::iota(active.begin(), active.end(), Number{0});
        double margin = kInfinity;           // rows beyond it are set aside
        double wanted = options_.tolerance;  // estimated gap at which the exact one is worth a pass
        Index due = 64;                      // or epochs: the estimate can be slow to follow
        Index asked = 0;                     // last epoch that visited all rows
        bool partial = true;                 // whether an estimate from some of the rows is believed
        Result best;
        SignalPoll signals;
        for (Index epoch = 1; epoch <= options_.max_iter; ++epoch) {
            signals.poll();
            const bool whole = margin == kInfinity;
            if (whole) asked = epoch;
            const Epoch seen = one_sided_ ? sweep_sides(active, margin, signals) : sweep(active, margin, signals);
            best.iterations = epoch;
            // θ that does not balance has to be repaired, at about the price of what is moved.
            const double loose = options_.constant > 0 ? std::abs(sum_) : 0.0, estimate = seen.gap + loose;
            const bool good = estimate <= wanted && (whole || partial);
            const bool last = epoch == options_.max_iter || (whole && seen.violation <= kRounding && balanced()) ||
                              (options_.hopeful && !good && hopeless(epoch, whole ? estimate : kInfinity, wanted));
            if (good || last || epoch == due) {
                if (epoch == due) due *= 2;
                for (Index i = 0; one_sided_ && i < X_.n; ++i) theta[i] = sides_[i].sign * sides_[i].t;
                check(best);
                if (last || best.objective - best.bound <= options_.tolerance) break;
                // Not yet: look again when the estimate has fallen by as much as the gap must.
                const double ratio = options_.tolerance / (best.objective - best.bound);
                if (good && whole) wanted = 0.7 * estimate * std::clamp(ratio, 0.1, 0.9);
                if (good && !whole) partial = false;
                rebuild();  // removes the rounding that many small updates left in w
                margin = kInfinity;
            } else {
                // Rows set aside say nothing about the gap: before it is believed, all of them are asked again.
                // So are they every few epochs: the intercept moves on while they rest.
                const bool done = estimate <= wanted || !(seen.violation > 0) || epoch - asked >= 10;
                margin = done && !whole ? kInfinity : seen.violation;
            }
            if (margin == kInfinity) {
                active.resize(X_.n);
                std::iota(active.begin(), active.end(), Number{0});
            }
            if (options_.constant > 0) {  // the multiplier step; the augmented term starts again from the new centre
                if (loose > kUneven * seen.gap && loose > kUneven * wanted) stiffen();
                b_ -= leap() * sum_ * options_.constant * options_.constant / options_.alpha;
            }
        }
        w = std::move(best_w_);
        theta = std::move(best_theta_);
        return best;
    }

  private:
    using Number = std::uint32_t;  // of a row
    struct Epoch {
        double gap = 0, violation = 0;
    };

    // A row whose loss has one side, all that a visit needs in one place: ℓ = cap·max(m, 0) of m = sign·f − kink, with θ = sign·t.
    struct Side {
        double sign, kink, cap, mass, inverse, t;  // inverse: of the curvature of the dual in t

        static Side of(const Terms& terms, Index i, double bend, double theta) {
            const bool above = terms.slope_high[i] > 0, below = terms.slope_low[i] > 0;
            const double sign = below ? -1.0 : 1.0, kink = below ? -terms.lower[i] : above ? terms.upper[i] : 0.0;
            return {sign, kink, below ? terms.slope_low[i] : terms.slope_high[i], terms.p[i], bend > 0 ? 1.0 / bend : 1e300, sign * theta};
        }
    };

    static constexpr Index kAhead = 6;       // visits by which a row is fetched before it is wanted
    static constexpr Index kWindow = 8;      // epochs of the first look at the rate
    static constexpr double kWeak = 1e3;     // mean ‖x‖² beside alpha·n from which the penalty is weak
    static constexpr double kLeap = 30.0;    // multiplier steps at once, at most
    static constexpr double kUneven = 3.0;   // times the gap and what is wanted of it: the balance is what is slow
    static constexpr double kStiffer = 4.0;  // by which the intercept then grows as a feature

    // Times the multiplier step: a secant through the sums at the last two centres says where theirs is zero. The step alone is far too short
    // where a weak penalty lets the rows follow any intercept. Under a stronger one the sums of an epoch are not yet those of their centre, and a
    // secant through them leads away (900 × 12 under a strong penalty: 592 epochs, 12 without).
    double leap() {
        if (!(mean_square_ > kWeak * options_.alpha * static_cast<double>(X_.n))) return 1.0;
        const double pull = options_.constant * options_.constant / options_.alpha, centre = b_ + sum_ * pull;
        const double moved = centre - std::exchange(centre_, centre), changed = sum_ - std::exchange(former_sum_, sum_);
        const double wanted = moved / (changed * pull);
        return std::isfinite(wanted) ? std::clamp(wanted, 1.0, kLeap) : 1.0;
    }

    // The multiplier moves the faster, the larger the intercept is as a feature; larger than the rows themselves, it would slow them down.
    void stiffen() {
        const double before = options_.constant * options_.constant, now = std::min(kStiffer * before, mean_square_);
        if (!(now > before)) return;
        options_.constant = std::sqrt(now);
        for (Index i = 0; i < X_.n; ++i) {
            const double more = terms_.p[i] * (now - before) / options_.alpha;
            if (one_sided_) sides_[i].inverse = 1.0 / (1.0 / sides_[i].inverse + more);
            else step_[i] += more;
        }
    }

    // Whenever their number has doubled, the least estimates of the last half of the epochs and of the half before show a rate; at twice
    // that the epochs that are left must do. Epochs of some of the rows, whose estimate is infinite here, know nothing of the others.
    bool hopeless(Index epoch, double estimate, double wanted) {
        least_ = std::min(least_, estimate);
        if (epoch < kWindow || (epoch & (epoch - 1)) || !(least_ < kInfinity)) return false;
        const double before = std::exchange(former_, least_), now = std::exchange(least_, kInfinity);
        if (!(before < kInfinity)) return false;
        const double rate = 2.0 * std::log(before / now) / static_cast<double>(epoch);
        return !(2.0 * rate * static_cast<double>(options_.max_iter - epoch) >= std::log(now / wanted));
    }

    bool balanced() const { return options_.constant == 0 || std::abs(sum_) <= kRounding; }

    // w and Σpθ from θ.
    void rebuild() {
        std::fill(w.begin(), w.end(), 0.0);
        sum_ = 0;
        for (Index i = 0; i < X_.n; ++i) {
            if (theta[i] == 0) continue;
            X_.add(i, -terms_.p[i] * theta[i] / options_.alpha, w.data());
            sum_ += terms_.p[i] * theta[i];
        }
    }

    // The same as `sweep` for rows of one side, with a single branch: whether θ changes.
    Epoch sweep_sides(std::vector<Number>& active, double margin, SignalPoll& signals) {
        Epoch seen;
        random_.shuffle(active);
        const double inverse = 1.0 / options_.alpha, pull = options_.constant * options_.constant * inverse;
        Index kept = 0;
        const Index count = static_cast<Index>(active.size());
        for (Index k = 0; k < count; ++k) {
            if ((k & 4095) == 4095) signals.poll();
            if (k + kAhead < count) X_.prefetch(active[k + kAhead]), __builtin_prefetch(&sides_[active[k + kAhead]], 1);
            const Number i = active[k];
            Side& side = sides_[i];
            // All that does not wait for the intercept first: it goes from row to row, and nothing else does for certain.
            const double part = side.sign * X_.dot(i, w.data()) - side.kink, old = side.t, mass = side.sign * side.mass;
            const double there = old + part * side.inverse, lever = side.sign * side.inverse, share = mass * pull;
            const double fresh = std::min(std::max(there + lever * b_, 0.0), side.cap), change = fresh - old;
            const double m = part + side.sign * b_;
            const bool low = old <= 0.0, high = old >= side.cap;
            const double inward = low && m < 0 ? 0.0 : high && m > 0 ? 0.0 : std::abs(m);
            active[kept] = i;
            kept += !((low && m < -margin) || (high && m > margin));
            seen.violation = std::max(seen.violation, inward);
            seen.gap += side.mass * (side.cap * std::max(m, 0.0) - fresh * m);
            if (change == 0) continue;
            side.t = fresh;
            b_ -= change * share, sum_ += change * mass;
            X_.add(i, -mass * change * inverse, w.data());
        }
        active.resize(kept);
        return seen;
    }

    Epoch sweep(std::vector<Number>& active, double margin, SignalPoll& signals) {
        Epoch seen;
        random_.shuffle(active);
        const double pull = options_.constant * options_.constant / options_.alpha;
        const bool intercept = options_.constant > 0;
        const double kappa = terms_.curvature;
        Index kept = 0;
        const Index count = static_cast<Index>(active.size());
        for (Index k = 0; k < count; ++k) {
            if ((k & 4095) == 4095) signals.poll();
            const Index i = active[k];
            if (k + 2 < count) X_.prefetch(active[k + 2]);
            const double f = X_.dot(i, w.data()) + b_, old = theta[i], H = step_[i];
            const double high = f - terms_.upper[i] - kappa * old, low = f - terms_.lower[i] - kappa * old;
            const double top = terms_.slope_high[i], bottom = -terms_.slope_low[i];
            // The slope of the dual at θ, and whether the row may rest: it wants to stay where it is, by a margin.
            const double slope = old > 0 ? high : old < 0 ? low : high > 0 ? high : low < 0 ? low : 0.0;
            const bool stays = (old >= top && slope > 0) || (old <= bottom && slope < 0) || slope == 0;
            const bool rests = old == 0 ? (high < -margin || top == 0) && (low > margin || bottom == 0)
                                        : (old >= top && slope > margin) || (old <= bottom && slope < -margin);
            if (rests) continue;
            active[kept++] = i;
            double fresh = old;
            if (!stays) {
                seen.violation = std::max(seen.violation, std::abs(slope));
                if (H > 0) {
                    const double up = old + high / H, down = old + low / H;
                    fresh = up > 0 ? std::min(up, top) : down < 0 ? std::max(down, bottom) : 0.0;
                } else {
                    fresh = high > 0 ? top : low < 0 ? bottom : old;
                }
                const double change = fresh - old;
                if (change != 0) {
                    theta[i] = fresh;
                    const double mass = terms_.p[i] * change;
                    X_.add(i, -mass / options_.alpha, w.data());
                    if (intercept) sum_ += mass, b_ -= mass * pull;
                }
            }
            seen.gap += terms_.p[i] * (terms_.value(i, f) + terms_.conjugate(i, fresh) - fresh * f);
        }
        active.resize(kept);
        return seen;
    }

    // The exact gap at the current w and a repaired θ; keeps the best of both sides.
    void check(Result& best) {
        const Index n = X_.n, d = X_.d;
        std::vector<double> scores(n);
        for (Index i = 0; i < n; ++i) scores[i] = X_.dot(i, w.data());
        const double norm = vec::dot(w.data(), w.data(), d);
        auto risk = [&](double b) {
            double total = 0;
            for (Index i = 0; i < n; ++i) total += terms_.p[i] * terms_.value(i, scores[i] + b);
            return total + 0.5 * options_.alpha * norm;
        };
        double b = options_.constant > 0 ? b_ : 0.0, objective = risk(b);
        if (options_.constant > 0 && terms_.curvature == 0) {
            const double other = best_intercept(terms_, scores), value = risk(other);
            if (value <= objective) b = other, objective = value;
        }
        // Of values that differ by rounding only, the later point is the better one.
        if (objective <= best.objective * (1 + 1e-14)) best.objective = objective, best.intercept = b, best_w_ = w;

        std::vector<double> fixed = theta, v(d, 0.0);
        if (options_.constant > 0) balance(terms_, fixed);
        double bound = 0;
        for (Index i = 0; i < n; ++i) {
            if (fixed[i] == 0) continue;
            bound -= terms_.p[i] * terms_.conjugate(i, fixed[i]);
            X_.add(i, terms_.p[i] * fixed[i], v.data());
        }
        bound -= 0.5 * vec::dot(v.data(), v.data(), d) / options_.alpha;
        if (bound > best.bound) best.bound = bound, best_theta_ = std::move(fixed);
        if (best_theta_.empty()) best_theta_ = theta;  // a bound that is not a number never gets better
    }

    const Rows& X_;
    Terms terms_;
    Options options_;
    Random random_;
    double b_, sum_ = 0, mean_square_ = 0, least_ = kInfinity, former_ = kInfinity, centre_ = kInfinity, former_sum_ = 0;
    bool one_sided_ = false;
    std::vector<Side> sides_;
    std::vector<double> step_, best_w_, best_theta_;
};

}  // namespace certifit::dual
