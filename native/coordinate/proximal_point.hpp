// Many columns that are free at once, about as many as rows or more: the Gram matrix is nearly singular there, sweeps are slow, and
// Newton steps on the support run into columns that leave it. The proximal point method keeps every step regular:
//
//   w⁺ = argmin over w of  ½ Σ_i p_i (r_i(w))² + Σ_j [h_j(w_j) + ½ π_j (w_j − w_j⁰)²],     r(w) = r⁰ − X̃ (w − w⁰),  π_j = κ ‖x̃_j‖²
//
// with π smaller from step to step. Each of them is minimized in the space of the rows: its dual is
//
//   ψ(r) = ½ Σ p_i r_i² − Σ p_i r_i r⁰_i + Σ_j max over w of [c_j (w − w⁰_j) − h_j(w) − ½ π_j (w − w_j⁰)²],     c = X̃'(p r),
//
// once differentiable with slope −p (r(w(c)) − r), and piecewise quadratic: semismooth Newton steps on the columns J that are free,
//
//   Δr = ρ − X̃_J (X̃_J'PX̃_J + diag(π + l2))⁻¹ X̃_J'(pρ),     ρ = r(w(c)) − r,
//
// end it. Some dozens of such steps solve any lasso, whatever its columns share (Li, Sun & Toh 2018).
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "coordinate/gram.hpp"

namespace certifit {

template <class M>
class ProximalPoint {
  public:
    ProximalPoint(const Columns<M>& columns, Gram& gram, Factor& factor, SignalPoll& signals)
        : columns_(columns), gram_(gram), factor_(factor), signals_(signals) {}

    // Solves over W; w, u and shift as in Descent. False where it found nothing lower, or too many columns are free: then nothing
    // has changed.
    bool solve(std::span<const Index> W, const Penalty& penalty, const Target& target, double* w, double* u, double& shift) {
        begin(W, penalty, w, u, shift);
        bool reached = false;
        for (int round = 0; round < kRounds && !reached; ++round) {
            if (!minimize(penalty)) return false;
            reached = good(penalty, target);
            share_ = std::max(share_ / kSlower, kNearest);
        }
        return finish(penalty, w, u, shift);
    }

  private:
    static constexpr int kRounds = 14;
    static constexpr int kSteps = 50;            // Newton steps of a round
    static constexpr double kFirst = 1e-2;       // π beside ‖x̃‖², in the first round
    static constexpr double kSlower = 5;         // by which it falls
    static constexpr double kNearest = 1e-8;     // where that ends: the factor is regular
    static constexpr double kInexact = 0.1;      // mismatch of a round's minimum, beside how far the round has come

    void begin(std::span<const Index> W, const Penalty& penalty, const double* w, const double* u, double shift) {
        const Index n = columns_.X.n;
        list_.clear();
        for (Index j : W)
            if (columns_.norm2[j] > 0 && columns_.norm2[j] < kInfinity) list_.push_back(j);
        const std::size_t k = list_.size();
        first_.resize(n), step_.resize(n), weighted_.resize(n);
        for (Index i = 0; i < n; ++i) first_[i] = columns_.p[i] > 0 ? u[i] / columns_.p[i] + (M::sparse ? shift : 0.0) : 0.0;
        rest_ = first_, r_ = first_;
        start_.resize(k), now_.resize(k), centre_.resize(k), next_.resize(k), c_.resize(columns_.X.d), dc_.resize(columns_.X.d);
        share_ = kFirst;
        for (std::size_t i = 0; i < k; ++i) start_[i] = now_[i] = w[list_[i]];
        pull(r_, c_);
        // From inside the domain few columns are free at first, though many would like to be.
        double scale = 1;
        for (Index j : list_) {
            const double most = c_[j] > 0 ? penalty.domain_above(j) : penalty.domain_below(j);
            if (most > 0.0 && std::abs(c_[j]) > most) scale = std::min(scale, most / std::abs(c_[j]));
        }
        if (scale == 1) return;
        for (double& v : r_) v *= scale;
        for (Index j : list_) c_[j] *= scale;
    }

    // c = X̃'(p x) for the columns of the list.
    void pull(const std::vector<double>& x, std::vector<double>& c) {
        for (Index i = 0; i < columns_.X.n; ++i) weighted_[i] = columns_.p[i] * x[i];
        columns_.correlate(list_, weighted_.data(), 0.0, c.data(), signals_);
    }

    // x −= X̃ a
    void push(std::span<const Index> columns, const std::vector<double>& a, std::vector<double>& x) {
        double shift = 0;
        columns_.steps(columns, a.data(), false, x.data(), shift);
        if (M::sparse && columns_.centered)
            for (double& v : x) v += shift;
    }

    double inner(const std::vector<double>& a, const std::vector<double>& b) const {
        double sum = 0;
        for (Index i = 0; i < columns_.X.n; ++i) sum += columns_.p[i] * a[i] * b[i];
        return sum;
    }

    // Where the maximum over w_j is attained.
    double attained(const Penalty& penalty, std::size_t i, double c) const {
        const double near = share_ * columns_.norm2[list_[i]];
        return penalty.minimizer(list_[i], near * centre_[i] + c, near, now_[i]);
    }

    // `rest` follows the coefficients.
    void move(const std::vector<double>& to) {
        moved_.clear(), change_.clear();
        for (std::size_t i = 0; i < list_.size(); ++i) {
            if (to[i] == now_[i]) continue;
            moved_.push_back(list_[i]), change_.push_back(to[i] - now_[i]);
            now_[i] = to[i];
        }
        push(moved_, change_, rest_);
    }

    // One round. False where the columns that are free have no Gram matrix.
    bool minimize(const Penalty& penalty) {
        const Index n = columns_.X.n;
        centre_ = now_;
        factor_.forget();
        for (std::size_t i = 0; i < list_.size(); ++i) next_[i] = attained(penalty, i, c_[list_[i]]);
        move(next_);
        for (int step = 0; step < kSteps; ++step) {
            signals_.poll();
            double far = 0, open = 0;
            for (std::size_t i = 0; i < list_.size(); ++i) far += share_ * columns_.norm2[list_[i]] * (now_[i] - centre_[i]) * (now_[i] - centre_[i]);
            for (Index i = 0; i < n; ++i) step_[i] = rest_[i] - r_[i], open += columns_.p[i] * step_[i] * step_[i];
            if (!(open > kInexact * kInexact * far)) return true;
            if (!direct(penalty)) return false;
            if (!advance(penalty)) return true;
        }
        return true;
    }

    // The Newton step from ρ, in place.
    bool direct(const Penalty& penalty) {
        free_.clear();
        for (std::size_t i = 0; i < list_.size(); ++i) {
            const Index j = list_[i];
            if (now_[i] > penalty.lower[j] && now_[i] < penalty.upper[j] && (now_[i] != 0.0 || penalty.l1[j] == 0.0)) free_.push_back(j);
        }
        if (free_.empty()) return true;
        const int generation = gram_.generation;
        if (!gram_.extend(columns_, free_, signals_)) return false;
        if (generation != gram_.generation) factor_.forget();
        diagonal_.assign(gram_.size(), 0.0);
        order_.clear();
        for (Index j : free_) {
            const Index s = gram_.slot(j);
            diagonal_[s] = penalty.l2[j] + share_ * columns_.norm2[j];
            order_.push_back(s);
        }
        factor_.update(gram_.data(), gram_.stride(), diagonal_.data(), order_, gram_.size());
        for (Index i = 0; i < columns_.X.n; ++i) weighted_[i] = columns_.p[i] * step_[i];
        for (std::size_t k = 0; k < order_.size(); ++k) free_[k] = gram_.columns[order_[k]];
        columns_.correlate(free_, weighted_.data(), 0.0, dc_.data(), signals_);
        change_.resize(free_.size());
        for (std::size_t k = 0; k < free_.size(); ++k) change_[k] = dc_[free_[k]];
        factor_.solve(change_.data());
        push(free_, change_, step_);
        return true;
    }

    // Along the step to where ψ has (nearly) no slope; false where it does not fall.
    bool advance(const Penalty& penalty) {
        pull(step_, dc_);
        double base = 0, bend = 0;
        for (Index i = 0; i < columns_.X.n; ++i) {
            base += columns_.p[i] * (r_[i] - first_[i]) * step_[i];
            bend += columns_.p[i] * step_[i] * step_[i];
        }
        const auto slope = [&](double t) {
            double sum = base + t * bend;
            for (std::size_t i = 0; i < list_.size(); ++i) {
                const Index j = list_[i];
                next_[i] = attained(penalty, i, c_[j] + t * dc_[j]);
                sum += dc_[j] * (next_[i] - start_[i]);
            }
            return sum;
        };
        const double steep = slope(0.0);
        if (!(steep < 0)) return false;
        double t = 1.0, low = 0.0, high = 1.0;
        for (int half = 0; half < 40; ++half) {
            const double now = slope(t);
            if (now <= -0.1 * steep && (t == 1.0 || now >= 0.1 * steep)) break;
            (now > 0 ? high : low) = t;
            t = 0.5 * (low + high);
        }
        for (Index i = 0; i < columns_.X.n; ++i) r_[i] += t * step_[i];
        for (Index j : list_) c_[j] += t * dc_[j];
        move(next_);
        return true;
    }

    bool good(const Penalty& penalty, const Target& target) {
        Progress progress(penalty, target);
        for (std::size_t i = 0; i < list_.size(); ++i) progress.visit(list_[i], now_[i], c_[list_[i]], columns_.norm2[list_[i]]);
        double open = 0;
        for (Index i = 0; i < columns_.X.n; ++i) open += columns_.p[i] * (rest_[i] - r_[i]) * (rest_[i] - r_[i]);
        return progress.value() + (target.energy < 0 ? 0.0 : 0.5 * open) <= target.tolerance;
    }

    bool finish(const Penalty& penalty, double* w, double* u, double& shift) {
        double change = 0;
        for (Index i = 0; i < columns_.X.n; ++i) change += 0.5 * columns_.p[i] * (rest_[i] - first_[i]) * (rest_[i] + first_[i]);
        for (std::size_t i = 0; i < list_.size(); ++i) change += penalty.value(list_[i], now_[i]) - penalty.value(list_[i], start_[i]);
        factor_.forget();
        if (!(change <= 0)) return false;
        for (std::size_t i = 0; i < list_.size(); ++i) w[list_[i]] = now_[i];
        for (Index i = 0; i < columns_.X.n; ++i) u[i] = columns_.p[i] * rest_[i];
        shift = 0;
        return true;
    }

    const Columns<M>& columns_;
    Gram& gram_;
    Factor& factor_;
    SignalPoll& signals_;
    double share_ = kFirst;
    std::vector<Index> list_, free_, order_, moved_;
    std::vector<double> first_, rest_, r_, step_, weighted_;
    std::vector<double> start_, now_, centre_, next_, c_, dc_, change_, diagonal_;
};

}  // namespace certifit
