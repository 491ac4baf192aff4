// Newton's method for a smooth loss of one score with an elastic-net penalty, for few columns.
//
//   min over w, b   P = Σ p_i ℓ(y_i, x_i·w + b) + Σ_j [l1_j |w_j| + ½ l2_j w_j²],     l1_j + l2_j > 0
//
// Each step minimizes the quadratic model of the loss plus the penalty: by Cholesky's factor where there is no l1; else by coordinate descent on
// the Hessian without its intercept, until the equations of the columns that are not zero solve the model exactly. The slopes that the model
// predicts, θ + h·(Aδ), are a dual point accurate to second order; it is balanced, scaled into the domain and evaluated, so that the bound
// holds whatever led to it. What does not end with a gap below the tolerance is left to the general method.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "coordinate/factor.hpp"
#include "coordinate/gram.hpp"
#include "core/interrupt.hpp"
#include "core/options.hpp"
#include "newton/losses.hpp"
#include "products/products.hpp"

namespace certifit::newton {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Penalty {
    const double *l1, *l2;
    double value(const std::vector<double>& w) const {
        double sum = 0;
        for (std::size_t j = 0; j < w.size(); ++j) sum += l1[j] * std::abs(w[j]) + 0.5 * l2[j] * w[j] * w[j];
        return sum;
    }
};

// Weights of the rows; of equal ones there is one.
struct Weights {
    const double* p;
    bool even = false;
};

// Numbers of the caller's, one a row or one for all, in whole vectors; behind the last row there are zeros.
struct Given {
    const double* x = nullptr;
    Index count = 0;
    bool even = false;
    vec::detail::Lanes last = {};

    Given() = default;
    Given(const double* numbers, Index n, bool same) : x(numbers), count(n), even(same) {
        for (Index i = n / 8 * 8; i < n; ++i) last[i % 8] = (*this)[i];
    }
    double operator[](Index i) const { return x[even ? 0 : i]; }
    [[gnu::always_inline]] vec::detail::Lanes at(Index k) const {
        if (k + 8 > count) return last;
        return even ? vec::detail::Lanes{} + x[0] : *reinterpret_cast<const vec::detail::Lanes*>(x + k);
    }
};

// What belongs to a row, padded to whole vectors with rows of no weight. Of tall data these vectors are the memory of a fit: none that the others say.
struct Rows {
    Index count = 0, padded = 0;
    Given y, p;
    std::vector<double> f, theta, bent, moved, q;  // bent: p ℓ''
    std::vector<double> extra;                     // of losses that keep one

    void resize(Index n) {
        count = n, padded = (n + 7) / 8 * 8;
        for (auto* part : {&f, &theta, &bent, &moved, &q}) part->assign(static_cast<std::size_t>(padded), 0.0);
    }
};

struct Sums {
    double level = 0, bend = 0;  // Σ p ℓ', Σ p ℓ''
};

namespace detail {

[[gnu::always_inline]] inline const Lanes& lanes(const std::vector<double>& x, Index k) { return *reinterpret_cast<const Lanes*>(x.data() + k); }
[[gnu::always_inline]] inline Lanes& lanes(std::vector<double>& x, Index k) { return *reinterpret_cast<Lanes*>(x.data() + k); }

template <class Loss>
[[gnu::always_inline]] inline Lanes extra_of(const Rows& rows, Index k) {
    if constexpr (Loss::keeps)
        return lanes(rows.extra, k);
    else
        return Lanes{};
}

// Σ p ℓ at f + share·moved
template <class Loss>
[[gnu::always_inline]] inline double risk(const Rows& rows, double share) {
    Lanes sum = {}, value;
    for (Index k = 0; k < rows.padded; k += 8) {
        const Lanes f = lanes(rows.f, k) + share * lanes(rows.moved, k);
        Loss::value(rows.y.at(k), f, extra_of<Loss>(rows, k), value), sum += rows.p.at(k) * value;
    }
    return vec::detail::total(sum);
}

template <class Loss>
[[gnu::always_inline]] inline Sums slopes(Rows& rows) {
    Lanes level = {}, bend = {}, h;
    for (Index k = 0; k < rows.padded; k += 8) {
        Loss::slopes(rows.y.at(k), lanes(rows.f, k), lanes(rows.theta, k), h);
        const Lanes q = rows.p.at(k) * lanes(rows.theta, k), bent = rows.p.at(k) * h;
        lanes(rows.q, k) = q, lanes(rows.bent, k) = bent, level += q, bend += bent;
    }
    return {vec::detail::total(level), vec::detail::total(bend)};
}

// q = p (θ + h (moved + shift)); their sum
[[gnu::always_inline]] inline double predicted(Rows& rows, double shift) {
    Lanes level = {};
    for (Index k = 0; k < rows.padded; k += 8) {
        const Lanes q = rows.p.at(k) * lanes(rows.theta, k) + lanes(rows.bent, k) * (lanes(rows.moved, k) + shift);
        lanes(rows.q, k) = q, level += q;
    }
    return vec::detail::total(level);
}

// Σ p ℓ*(scale·(θ + h (moved + shift))); infinite outside of the domain
template <class Loss>
[[gnu::always_inline]] inline double conjugate(const Rows& rows, double shift, double scale) {
    Lanes sum = {}, value, inside = {};
    for (Index k = 0; k < rows.padded; k += 8) {
        // Rows without weight are not asked.
        const Lanes p = rows.p.at(k), h = lanes(rows.bent, k) / (p > 0.0 ? p : Lanes{} + 1.0);
        const Lanes theta = scale * (lanes(rows.theta, k) + h * (lanes(rows.moved, k) + shift));
        const Lanes counted = p > 0.0 ? theta : lanes(rows.theta, k);
        Loss::conjugate(rows.y.at(k), counted, extra_of<Loss>(rows, k), value, inside);
        sum += rows.p.at(k) * value;
    }
    for (int k = 0; k < 8; ++k)
        if (!(inside[k] >= 0.0)) return kInfinity;
    return vec::detail::total(sum);
}

}  // namespace detail

// One copy of each pass for each instruction set and loss.
#define CERTIFIT_NEWTON(Loss)                                                                                                       \
    CERTIFIT_CLONES [[maybe_unused]] static double risk(Loss, const Rows& rows, double share) {                                     \
        return detail::risk<Loss>(rows, share);                                                                                     \
    }                                                                                                                               \
    CERTIFIT_CLONES [[maybe_unused]] static Sums slopes(Loss, Rows& rows) { return detail::slopes<Loss>(rows); }                     \
    CERTIFIT_CLONES [[maybe_unused]] static double conjugate(Loss, const Rows& rows, double shift, double scale) {                  \
        return detail::conjugate<Loss>(rows, shift, scale);                                                                         \
    }
CERTIFIT_NEWTON(Logistic)
CERTIFIT_NEWTON(Poisson)
CERTIFIT_NEWTON(SquaredHinge)
#undef CERTIFIT_NEWTON
CERTIFIT_CLONES [[maybe_unused]] static double predicted(Rows& rows, double shift) { return detail::predicted(rows, shift); }

struct Found {
    std::vector<double> w;
    double intercept = 0, objective = kInfinity, bound = -kInfinity;
    Index iterations = 0;
};

// What all ways to a step share: the rows, the search along the step, and the bound.
template <class Loss>
class Steps {
  protected:
    Steps(Index n, Index d, const double* y, Weights p, const Penalty& penalty, const Options& options)
        : d_(d), penalty_(penalty), options_(options), step_(u(d)), gradient_(u(d)) {
        rows_.resize(n);
        rows_.y = {y, n, false}, rows_.p = {p.p, n, p.even};
        if constexpr (Loss::keeps) {
            rows_.extra.assign(rows_.f.size(), 0.0);
            for (Index i = 0; i < n; ++i) rows_.extra[u(i)] = Loss::extra(y[i]);
        }
    }

    static constexpr double kFar = 10.0;  // times √(tolerance·scale): a step that promises more proves nothing yet
    static std::size_t u(Index i) { return static_cast<std::size_t>(i); }

    bool proves(double promised) const { return -promised <= kFar * std::sqrt(options_.tolerance * options_.scale); }

    // Halves the step until P falls by a share of what is promised.
    bool search(Found& at, std::vector<double>& ahead, double shift, double promised) {
        double share = 1.0;
        for (int half = 0; half < 40; ++half, share *= 0.5) {
            if (share < 1.0)
                for (Index j = 0; j < d_; ++j) ahead[u(j)] = at.w[u(j)] + share * step_[u(j)];
            const double reached = risk(Loss{}, rows_, share) + penalty_.value(ahead);
            // Near the optimum the promise is below rounding: accept what does not rise.
            const bool level = std::abs(promised) <= 1e-13 * at.objective && reached <= at.objective * (1 + 1e-15);
            if (reached <= at.objective + 1e-4 * share * std::min(promised, 0.0) || level) {
                std::swap(at.w, ahead);
                for (Index i = 0; i < rows_.count; ++i) rows_.f[u(i)] += share * rows_.moved[u(i)];
                at.intercept += share * shift, at.objective = reached;
                return true;
            }
        }
        return false;
    }

    // D at the slopes that the model predicts: balanced, and scaled until the columns without an l2 allow them.
    template <class Pull>
    double bound(const Sums& sums, double intercept, Pull&& pull) {
        double shift = 0, level = predicted(rows_, shift);
        if (options_.intercept) shift = -level / sums.bend, level = predicted(rows_, shift);
        std::vector<double> v(u(d_));
        pull(rows_.q.data(), v.data());
        return value(v, level, intercept, shift);
    }

    // D at slopes θ + h (moved + shift) with the products v and the sum `level`.
    double value(const std::vector<double>& v, double level, double intercept, double shift) const {
        double scale = 1.0, energy = 0;
        for (Index j = 0; j < d_; ++j)
            if (penalty_.l2[j] == 0.0 && std::abs(v[u(j)]) > penalty_.l1[j]) scale = std::min(scale, penalty_.l1[j] / std::abs(v[u(j)]));
        for (Index j = 0; j < d_; ++j) {
            const double excess = std::max(scale * std::abs(v[u(j)]) - penalty_.l1[j], 0.0);
            if (penalty_.l2[j] > 0.0) energy += excess * excess / penalty_.l2[j];
        }
        // What rounding left of the balance, times what it may cost.
        const double slack = options_.intercept ? std::abs(scale * level) * (2.0 * std::abs(intercept) + 1.0) : 0.0;
        const double found = -conjugate(Loss{}, rows_, shift, scale) - 0.5 * energy - slack;
        return std::isfinite(found) ? found : -kInfinity;
    }

    Index d_;
    Penalty penalty_;
    Options options_;
    Rows rows_;
    std::vector<double> step_, gradient_;
};

template <class Loss, class T>
class Newton : Steps<Loss> {
    using Base = Steps<Loss>;
    using Base::d_, Base::penalty_, Base::options_, Base::rows_, Base::step_, Base::gradient_, Base::u;

  public:
    Newton(const products::Table<T>& X, const double* y, Weights p, const Penalty& penalty, const Options& options)
        : Base(X.n, X.d, y, p, penalty, options), X_(X), m_(X.d + options.intercept), matrix_(u(m_ * m_)), unit_(u(m_)) {
        smooth_ = std::all_of(penalty.l1, penalty.l1 + d_, [](double x) { return x == 0.0; });
    }

    Found solve(const double* start, double centre) {
        Found at;
        at.w.assign(start, start + d_), at.intercept = centre;
        products::scores(X_, at.w.data(), centre, rows_.f.data(), options_.threads);
        at.objective = risk(Loss{}, rows_, 0.0) + penalty_.value(at.w);
        for (at.iterations = 1; at.iterations <= options_.max_iter && std::isfinite(at.objective); ++at.iterations) {
            signals_.poll();
            if (!descend(at)) break;
            if (at.objective - at.bound <= options_.tolerance) break;
        }
        return at;
    }

  private:
    static constexpr int kEpochs = 12;       // after which columns that have much in common want Newton steps between the sweeps
    static constexpr Index kSweeps = 500;    // with them
    static constexpr double kSolved = 1e-7;  // precision of a model then, as a share of the present violation

    // One step; false where there is none that descends.
    bool descend(Found& at) {
        const Sums sums = slopes(Loss{}, rows_);
        products::pullback(X_, rows_.q.data(), 1, gradient_.data(), options_.threads);
        products::WeightedGram(X_, rows_.bent.data(), options_.intercept).run(matrix_.data(), options_.threads);
        double shift = 0;
        if (!(smooth_ ? by_factor(at.w, sums, shift) : by_coordinates(at.w, sums, shift))) return false;
        std::vector<double> ahead = at.w;
        double promised = options_.intercept ? sums.level * shift : 0.0;
        for (Index j = 0; j < d_; ++j) ahead[u(j)] += step_[u(j)], promised += gradient_[u(j)] * step_[u(j)];
        promised += penalty_.value(ahead) - penalty_.value(at.w);
        products::scores(X_, step_.data(), shift, rows_.moved.data(), options_.threads);
        if (this->proves(promised)) {
            const auto pull = [&](const double* q, double* v) { products::pullback(X_, q, 1, v, options_.threads); };
            at.bound = std::max(at.bound, this->bound(sums, at.intercept + shift, pull));
        }
        return this->search(at, ahead, shift, promised);
    }

    // (H + L)⁻¹ by Cholesky's factor in units of the diagonal, refined once.
    bool by_factor(const std::vector<double>& w, const Sums& sums, double& shift) {
        const Index ones = options_.intercept;
        for (Index j = 0; j < d_; ++j) matrix_[u((j + ones) * (m_ + 1))] += penalty_.l2[j];
        std::vector<double> right(u(m_)), scaled = matrix_, none(u(m_), 0.0);
        if (ones) right[0] = -sums.level;
        for (Index j = 0; j < d_; ++j) right[u(j + ones)] = -gradient_[u(j)] - penalty_.l2[j] * w[u(j)];
        for (Index j = 0; j < m_; ++j) {
            const double diagonal = matrix_[u(j * (m_ + 1))];
            if (!(diagonal > 0) || !std::isfinite(diagonal)) return false;
            unit_[u(j)] = 1.0 / std::sqrt(diagonal);
        }
        for (Index j = 0; j < m_; ++j)
            for (Index k = 0; k < m_; ++k) scaled[u(j * m_ + k)] *= unit_[u(j)] * unit_[u(k)];
        std::vector<Index> all(u(m_));
        for (Index j = 0; j < m_; ++j) all[u(j)] = j;
        factor_.forget();
        factor_.update(scaled.data(), m_, none.data(), all, m_);
        if (!factor_.regular()) return false;
        std::vector<double> x = right;
        apply(x);
        for (Index j = 0; j < m_; ++j) right[u(j)] -= vec::dot(matrix_.data() + j * m_, x.data(), m_);
        apply(right);
        shift = ones ? x[0] + right[0] : 0.0;
        for (Index j = 0; j < d_; ++j) step_[u(j)] = x[u(j + ones)] + right[u(j + ones)];
        return true;
    }

    void apply(std::vector<double>& x) const {
        for (Index j = 0; j < m_; ++j) x[u(j)] *= unit_[u(j)];
        factor_.solve(x.data());
        for (Index j = 0; j < m_; ++j) x[u(j)] *= unit_[u(j)];
    }

    // The model without its intercept: ½δ'Cδ + c'δ + R(w + δ).
    bool by_coordinates(const std::vector<double>& w, const Sums& sums, double& shift) {
        const Index ones = options_.intercept;
        const double bend = ones ? matrix_[0] : 1.0;
        if (!(bend > 0)) return false;
        std::vector<double> C(u(d_ * d_)), r = gradient_, x = w;
        for (Index j = 0; j < d_; ++j) {
            const double* row = matrix_.data() + (j + ones) * m_ + ones;
            const double along = ones ? matrix_[u((j + ones) * m_)] / bend : 0.0;
            for (Index k = 0; k < d_; ++k) C[u(j * d_ + k)] = row[k] - (ones ? along * matrix_[u((k + ones) * m_)] : 0.0);
            if (ones) r[u(j)] -= along * sums.level;
            // A column without curvature (of zeros) moves nothing: its penalty alone decides, and wants zero.
            if (!(C[u(j * (d_ + 1))] + penalty_.l2[j] > 0) && !(std::abs(r[u(j)]) <= penalty_.l1[j])) return false;
        }
        factor_.forget();
        Index before = -1;
        for (int epoch = 0; epoch < kEpochs; ++epoch) {
            Index used = 0;
            double largest = 0;
            for (Index j = 0; j < d_; ++j) {
                const double curve = C[u(j * (d_ + 1))], pull = curve * x[u(j)] - r[u(j)], l1 = penalty_.l1[j];
                const double curved = curve + penalty_.l2[j];
                const double fresh = curved > 0 ? (pull > l1 ? pull - l1 : pull < -l1 ? pull + l1 : 0.0) / curved : 0.0, change = fresh - x[u(j)];
                if (change != 0.0) {
                    x[u(j)] = fresh;
                    vec::subtract(-change, C.data() + j * d_, 0.0, r.data(), d_);
                    largest = std::max(largest, change * change * curve);
                }
                used += fresh != 0.0;
            }
            if (largest == 0.0 || (used == before && settled(C, r, x))) break;
            before = used;
            if (epoch + 1 == kEpochs) by_newton_between(C, w, r, x);
        }
        shift = 0;
        if (ones) shift = -sums.level;
        for (Index j = 0; j < d_; ++j) {
            step_[u(j)] = x[u(j)] - w[u(j)];
            if (ones) shift -= matrix_[u((j + ones) * m_)] * step_[u(j)];
        }
        shift /= bend;
        return true;
    }

    // The rest of the same model, where sweeps are slow.
    void by_newton_between(const std::vector<double>& C, const std::vector<double>& w, std::vector<double>& r, std::vector<double>& x) {
        const std::vector<double> lower(u(d_), -kInfinity), upper(u(d_), kInfinity);
        const certifit::Penalty penalty{penalty_.l1, penalty_.l2, lower.data(), upper.data()};
        std::vector<Index> active;
        double violation = 0;
        for (Index j = 0; j < d_; ++j) {
            if (C[u(j * (d_ + 1))] + penalty_.l2[j] > 0) active.push_back(j);
            violation = std::max(violation, penalty.violation(j, w[u(j)], -gradient_[u(j)]));
        }
        std::vector<double> c(u(d_));
        for (Index j = 0; j < d_; ++j) c[u(j)] = -r[u(j)];
        factor_.forget();
        const Target target{.tolerance = kSolved * violation, .trusted = true};
        GramSolver(C.data(), d_, d_, penalty, factor_).solve(active, x.data(), c.data(), target, kSweeps, signals_);
        for (Index j = 0; j < d_; ++j) r[u(j)] = -c[u(j)];
    }

    // The equations of the columns that are not zero, where their solution keeps all signs: then it solves the model.
    bool settled(const std::vector<double>& C, std::vector<double>& r, std::vector<double>& x) {
        std::vector<Index> used;
        for (Index j = 0; j < d_; ++j)
            if (x[u(j)] != 0.0) used.push_back(j);
        if (used.empty()) return true;
        factor_.update(C.data(), d_, penalty_.l2, used, d_);
        if (!factor_.regular()) return false;
        std::vector<double> change(used.size()), after = r;
        for (std::size_t k = 0; k < used.size(); ++k) {
            const Index j = used[k];
            change[k] = -(r[u(j)] + std::copysign(penalty_.l1[j], x[u(j)]) + penalty_.l2[j] * x[u(j)]);
        }
        factor_.solve(change.data());
        for (std::size_t k = 0; k < used.size(); ++k) {
            const Index j = used[k];
            if (!((x[u(j)] + change[k]) * x[u(j)] > 0.0)) return false;
            vec::subtract(-change[k], C.data() + j * d_, 0.0, after.data(), d_);
        }
        for (Index j = 0; j < d_; ++j)
            if (x[u(j)] == 0.0 && !(std::abs(after[u(j)]) <= penalty_.l1[j] * (1 + 1e-12))) return false;
        for (std::size_t k = 0; k < used.size(); ++k) x[u(used[k])] += change[k];
        r = std::move(after);
        return true;
    }

    products::Table<T> X_;
    Index m_;
    bool smooth_;
    Factor factor_;
    SignalPoll signals_;
    std::vector<double> matrix_, unit_;
};

}  // namespace certifit::newton
