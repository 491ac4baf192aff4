// Newton's method for a smooth loss of one score with an L2 penalty on every column, its steps by conjugate gradients: no matrix of columns is
// formed, so that many columns and sparse rows cost what their entries do.
//
//   min over w, b   P = Σ p_i ℓ(y_i, x_i·w + b) + ½ Σ_j l2_j w_j²,     l2_j > 0
//
// The intercept is eliminated from the equations of a step: with m = Σ p h x / Σ p h they are
//
//   (Σ p h (x − m)(x − m)' + L) δ = −(Σ p θ (x − m) + L w),     β = −Σ p θ / Σ p h − m·δ,
//
// and directions are scaled by the diagonal of that matrix. Far from the optimum a rough step is enough, near it one whose residual leaves room for
// the proof (Dembo, Eisenstat & Steihaug 1982). The slopes that a step predicts, θ + h·(Aδ), are a dual point; what is left of the equations is part
// of its value, so that the bound holds whatever led to it. Where the curvature falls along the step, as it does where classes are nearly apart,
// twice the step is tried, and twice that: it costs no product with X.
//
// Of each row the score, its change and its curvature are held, and nothing else.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "core/interrupt.hpp"
#include "core/options.hpp"
#include "core/team.hpp"
#include "newton/losses.hpp"
#include "newton/newton.hpp"
#include "products/blocks.hpp"

namespace certifit::newton {

namespace detail {

// Some rows as they are given, their last vector filled up with rows of no weight.
struct Span {
    const double *y, *p, *f, *moved;
    Index count;
};

[[gnu::always_inline]] inline Lanes some(const double* x, Index left, double otherwise) {
    if (left >= 8) return *reinterpret_cast<const Lanes*>(x);
    Lanes out = constant(otherwise);
    for (Index t = 0; t < left; ++t) out[t] = x[t];
    return out;
}
[[gnu::always_inline]] inline void keep(const Lanes& v, double* x, Index left) {
    if (left >= 8) *reinterpret_cast<Lanes*>(x) = v;
    else
        for (Index t = 0; t < left; ++t) x[t] = v[t];
}

template <class Loss>
[[gnu::always_inline]] inline double risk_along(const Span& rows, double step) {
    Lanes sum = {}, value;
    for (Index k = 0; k < rows.count; k += 8) {
        const Index left = rows.count - k;
        const Lanes y = some(rows.y + k, left, 0.0), f = some(rows.f + k, left, 0.0) + step * some(rows.moved + k, left, 0.0);
        Loss::value(y, f, Loss::known(y), value);
        sum += some(rows.p + k, left, 0.0) * value + 0.0 * f;  // a score that is no finite number stays visible
    }
    return vec::detail::total(sum);
}

// q = p θ, bent = p h
template <class Loss>
[[gnu::always_inline]] inline void slopes_at(const Span& rows, double* q, double* bent, double& level, double& bend) {
    Lanes all = {}, curve = {}, theta, h;
    for (Index k = 0; k < rows.count; k += 8) {
        const Index left = rows.count - k;
        const Lanes p = some(rows.p + k, left, 0.0);
        Loss::slopes(some(rows.y + k, left, 0.0), some(rows.f + k, left, 0.0), theta, h);
        theta *= p, h *= p, all += theta, curve += h;
        keep(theta, q + k, left), keep(h, bent + k, left);
    }
    level += vec::detail::total(all), bend += vec::detail::total(curve);
}

// Σ p ℓ*(θ + h·moved), infinite outside of the domain; q = p (θ + h·moved) and their sum
template <class Loss>
[[gnu::always_inline]] inline double conjugate_ahead(const Span& rows, double* q, double& level) {
    Lanes sum = {}, all = {}, inside = {}, theta, h, value;
    for (Index k = 0; k < rows.count; k += 8) {
        const Index left = rows.count - k;
        const Lanes y = some(rows.y + k, left, 0.0), p = some(rows.p + k, left, 0.0);
        Loss::slopes(y, some(rows.f + k, left, 0.0), theta, h);
        const Lanes ahead = p > 0.0 ? theta + h * some(rows.moved + k, left, 0.0) : theta;  // rows without weight are not asked
        Loss::conjugate(y, ahead, Loss::known(y), value, inside);
        sum += p * value, all += p * ahead;
        keep(p * ahead, q + k, left);
    }
    level += vec::detail::total(all);
    for (int k = 0; k < 8; ++k)
        if (!(inside[k] >= 0.0)) return kInfinity;
    return vec::detail::total(sum);
}

}  // namespace detail

#define CERTIFIT_TRUNCATED(Loss)                                                                                                                       \
    CERTIFIT_CLONES [[maybe_unused]] static double risk_along(Loss, const detail::Span& rows, double step) {                                           \
        return detail::risk_along<Loss>(rows, step);                                                                                                   \
    }                                                                                                                                                  \
    CERTIFIT_CLONES [[maybe_unused]] static void slopes_at(Loss, const detail::Span& rows, double* q, double* bent, double& level, double& bend) {     \
        detail::slopes_at<Loss>(rows, q, bent, level, bend);                                                                                           \
    }                                                                                                                                                  \
    CERTIFIT_CLONES [[maybe_unused]] static double conjugate_ahead(Loss, const detail::Span& rows, double* q, double& level) {                            \
        return detail::conjugate_ahead<Loss>(rows, q, level);                                                                                             \
    }
CERTIFIT_TRUNCATED(Logistic)
CERTIFIT_TRUNCATED(Poisson)
#undef CERTIFIT_TRUNCATED

template <class Loss, class X>
class Truncated {
  public:
    // At most so many products with the Hessian.
    Truncated(const X& rows, const double* y, const double* p, const double* l2, const Options& options, double most, Team& team)
        : X_(rows), y_(y), p_(p), l2_(l2), options_(options), most_(most), team_(team), fold_(rows, team), n_(rows.n), d_(rows.d), f_(u(n_)),
          moved_(u(n_), 0.0), bent_(u(n_)), mean_(u(d_)), inverse_(u(d_)), residual_(u(d_)), step_(u(d_)) {}

    Found solve(const double* start, double centre) {
        Found at;
        SignalPoll signals;
        at.w.assign(start, start + d_), at.intercept = centre;
        scores(at.w.data(), centre, f_.data());
        at.objective = risk(0.0) + penalty(at.w, step_, 0.0);
        for (at.iterations = 1; at.iterations <= options_.max_iter && std::isfinite(at.objective); ++at.iterations) {
            signals.poll();
            if (!descend(at, signals) || at.objective - at.bound <= options_.tolerance || products_ > most_) break;
        }
        return at;
    }

  private:
    static constexpr double kFar = 10.0;        // times √(tolerance·scale): a step that promises more proves nothing yet
    static constexpr double kRough = 0.1;       // of its size, in the norm of the diagonal: what a step may leave of its equations
    static constexpr double kProof = 0.1;       // of the tolerance: what that may cost the bound
    static constexpr double kSteep = 0.55;      // of what a step promises: a parabola holds half
    static constexpr Index kRows = 1 << 12;     // rows of a task without X
    using Numbers = std::vector<double>;

    static std::size_t u(Index i) { return static_cast<std::size_t>(i); }
    double dot(const Numbers& a, const Numbers& b) const { return vec::dot(a.data(), b.data(), d_); }

    double penalty(const Numbers& w, const Numbers& step, double share) const {
        double sum = 0;
        for (Index j = 0; j < d_; ++j) sum += l2_[j] * (w[u(j)] + share * step[u(j)]) * (w[u(j)] + share * step[u(j)]);
        return 0.5 * sum;
    }

    detail::Span rows(Index i, Index count) const { return {y_ + i, p_ + i, f_.data() + i, moved_.data() + i, count}; }

    void scores(const double* w, double b, double* out) {
        double none;
        fold_(1, &none, [&](Index i, Index count, double*, double*) { products::block_scores(X_, i, count, w, b, out + i); });
    }

    // Σ p ℓ, so far along the step.
    double risk(double share) {
        const Index blocks = (n_ + kRows - 1) / kRows;
        Numbers parts(u(blocks));
        team_.run(blocks, n_ * 64 >= products::kAlone, [&](Index k, int) {
            parts[u(k)] = risk_along(Loss{}, rows(k * kRows, std::min(kRows, n_ - k * kRows)), share);
        });
        double sum = 0;
        for (double part : parts) sum += part;
        return sum;
    }

    // The equations at a point: slopes, means and the diagonal, in one pass.
    void measure(const Numbers& w) {
        const bool ones = options_.intercept;
        Numbers sums(u(3 * d_ + 2));
        fold_(3 * d_ + 2, sums.data(), [&](Index i, Index count, double* q, double* part) {
            slopes_at(Loss{}, rows(i, count), q, bent_.data() + i, part[3 * d_], part[3 * d_ + 1]);
            products::block_pull(X_, i, count, q, part);
            products::block_squares(X_, i, count, bent_.data() + i, part + d_);
            if (ones) products::block_pull(X_, i, count, bent_.data() + i, part + 2 * d_);
        });
        level_ = ones ? sums[u(3 * d_)] : 0.0, bend_ = sums[u(3 * d_ + 1)];
        const double unit = ones && bend_ > 0.0 ? 1.0 / bend_ : 0.0;
        gradient_.assign(sums.begin(), sums.begin() + d_);
        for (Index j = 0; j < d_; ++j) {
            const double mean = mean_[u(j)] = sums[u(2 * d_ + j)] * unit, own = sums[u(d_ + j)];
            gradient_[u(j)] += l2_[j] * w[u(j)];
            residual_[u(j)] = mean * level_ - gradient_[u(j)];
            inverse_[u(j)] = 1.0 / (std::max(own - mean * mean * bend_, 1e-12 * own) + l2_[j]);
        }
    }

    void product(const Numbers& v, Numbers& out) {
        const double shift = options_.intercept ? dot(mean_, v) : 0.0;
        Numbers sums(u(d_ + 1));
        fold_(d_ + 1, sums.data(), [&](Index i, Index count, double* q, double* part) {
            products::block_scores(X_, i, count, v.data(), -shift, q);
            double level = 0;
            for (Index t = 0; t < count; ++t) q[t] *= bent_[u(i + t)], level += q[t];
            part[d_] += level;
            products::block_pull(X_, i, count, q, part);
        });
        ++products_;
        const double level = options_.intercept ? sums[u(d_)] : 0.0;
        for (Index j = 0; j < d_; ++j) out[u(j)] = sums[u(j)] - mean_[u(j)] * level + l2_[j] * v[u(j)];
    }

    double provable(const Numbers& r) const {
        double sum = 0;
        for (Index j = 0; j < d_; ++j) sum += r[u(j)] * r[u(j)] / l2_[j];
        return 0.5 * sum;
    }

    // One step; false where there is none that descends.
    bool descend(Found& at, SignalPoll& signals) {
        measure(at.w);
        if (options_.intercept && !(bend_ > 0.0)) return false;
        if (!solve_equations(signals)) return false;
        const double shift = options_.intercept ? -level_ / bend_ - dot(mean_, step_) : 0.0;
        const double promised = dot(gradient_, step_) + level_ * shift;
        scores(step_.data(), shift, moved_.data());
        if (-promised <= kFar * std::sqrt(options_.tolerance * options_.scale)) at.bound = std::max(at.bound, bound(at.intercept + shift));
        return search(at, shift, promised);
    }

    // δ from its equations, whose right hand side is the residual at zero.
    bool solve_equations(SignalPoll& signals) {
        Numbers z(u(d_)), direction(u(d_), 0.0), image(u(d_));
        std::fill(step_.begin(), step_.end(), 0.0);
        double rho = 0, first = 0;
        const Index most = 20 + 2 * d_;
        for (Index k = 0; k < most; ++k) {
            if (k % 16 == 15) signals.poll();
            const double before = rho;
            rho = 0;
            for (Index j = 0; j < d_; ++j) z[u(j)] = residual_[u(j)] * inverse_[u(j)], rho += z[u(j)] * residual_[u(j)];
            if (!std::isfinite(rho)) return false;
            if (k == 0) first = rho;
            // Near the optimum what is left of the equations has to leave room for the proof; far from it, and at the last digits, it need not.
            const double rough = std::min(kRough, std::sqrt(first / std::max(options_.scale, 1e-300)));
            const bool done = first > 100.0 * options_.tolerance ? rho <= rough * rough * first : false;
            if (done || rho <= 1e-26 * first || (provable(residual_) <= kProof * options_.tolerance && rho <= 0.01 * options_.tolerance)) break;
            if (products_ > most_) return k > 0;
            for (Index j = 0; j < d_; ++j) direction[u(j)] = z[u(j)] + (k == 0 ? 0.0 : rho / before) * direction[u(j)];
            product(direction, image);
            const double curved = dot(direction, image), length = rho / curved;
            if (!(curved > 0.0 && std::isfinite(length))) return k > 0;
            for (Index j = 0; j < d_; ++j) step_[u(j)] += length * direction[u(j)], residual_[u(j)] -= length * image[u(j)];
        }
        return true;
    }

    // D at the slopes that the step predicts.
    double bound(double intercept) {
        Numbers sums(u(d_ + 2));
        fold_(d_ + 2, sums.data(), [&](Index i, Index count, double* q, double* part) {
            part[d_ + 1] += conjugate_ahead(Loss{}, rows(i, count), q, part[d_]);
            products::block_pull(X_, i, count, q, part);
        });
        double energy = 0;
        for (Index j = 0; j < d_; ++j) energy += sums[u(j)] * sums[u(j)] / l2_[j];
        // What rounding left of the balance, times what it may cost.
        const double slack = options_.intercept ? std::abs(sums[u(d_)]) * (2.0 * std::abs(intercept) + 1.0) : 0.0;
        const double found = -sums[u(d_ + 1)] - 0.5 * energy - slack;
        return std::isfinite(found) ? found : -kInfinity;
    }

    // Halves the step until P falls by a share of what is promised; or doubles it while P falls faster than a parabola would.
    bool search(Found& at, double shift, double promised) {
        double share = 1.0, reached = 0;
        bool accepted = false;
        for (int half = 0; half < 40 && !accepted; ++half) {
            reached = risk(share) + penalty(at.w, step_, share);
            // Near the optimum the promise is below rounding: accept what does not rise.
            const bool level = std::abs(promised) <= 1e-13 * at.objective && reached <= at.objective * (1 + 1e-15);
            accepted = reached <= at.objective + 1e-4 * share * std::min(promised, 0.0) || level;
            if (!accepted) share *= 0.5;
        }
        if (!accepted) return false;
        for (bool on = share == 1.0 && at.objective - reached > -kSteep * promised; on;) {
            const double further = risk(2.0 * share) + penalty(at.w, step_, 2.0 * share);
            on = further < reached;
            if (on) share *= 2.0, reached = further;
        }
        for (Index j = 0; j < d_; ++j) at.w[u(j)] += share * step_[u(j)];
        for (Index i = 0; i < n_; ++i) f_[u(i)] += share * moved_[u(i)];
        at.intercept += share * shift, at.objective = reached;
        return true;
    }

    const X X_;
    const double *y_, *p_, *l2_;
    const Options options_;
    const double most_;
    Team& team_;
    products::Fold<X> fold_;
    Index n_, d_, products_ = 0;
    double level_ = 0, bend_ = 0;
    Numbers f_, moved_, bent_, mean_, inverse_, residual_, gradient_, step_;
};

}  // namespace certifit::newton
