// Penalized weighted least squares with a certificate:
//
//   min_{w,b}  P(w,b) = ½ Σ_i p_i (y_i − x_i·w − b)² + Σ_j h_j(w_j)          h_j: see coordinate_penalty.hpp
//   max_θ      D(θ)   = −Σ_i p_i (½ θ_i² + θ_i y_i) − Σ_j h_j*(−x_j'(pθ))    Σ p_i θ_i = 0 with an intercept
//
// Working sets: Massias, Gramfort, Salmon 2018 (Celer); Johnson, Guestrin 2015 (Blitz). Spheres that contain a dual
// point and spare columns: Ndiaye, Fercoq, Gramfort, Salmon 2017 (gap safe).
//
// Two things differ from the papers. The gap is a sum of terms ≥ 0 (see proof.hpp). And a column is read again only if it might matter: with c_j known at
// an earlier residual r', |x̃_j'(pr)| ≤ |c_j| + ‖x̃_j‖ ‖r − r'‖ often proves it harmless without touching X.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "coordinate/descent.hpp"
#include "coordinate/proof.hpp"

namespace certifit {

template <class M>
class LeastSquares {
  public:
    LeastSquares(const M& X, const double* y, const double* p, bool intercept, int threads, std::vector<double> start)
        : coef(std::move(start)),
          theta(X.n, 0.0),
          y_(y),
          team_(threads),
          columns_(X, p, intercept, team_),
          u_(X.n, 0.0),
          r_(X.n, 0.0),
          c_(X.d, 0.0),
          reference_(X.d, 0),
          fresh_(X.d, 0),
          descent_(columns_, coef.data(), u_.data(), signals_) {
        // Past residuals are few where X has few columns, so that they never weigh more than X itself.
        const Index kept = std::clamp<Index>(static_cast<Index>(X.size() / (8.0 * std::max<Index>(X.n, 1))), 1, 12);
        past_.assign(kept, std::vector<double>());
        all_.resize(X.d);
        std::iota(all_.begin(), all_.end(), Index{0});
        const double total = columns_.total;
        y_mean_ = 0;
        if (columns_.centered) y_mean_ = vec::dot(y, p, X.n) / total;
        y_norm_ = std::sqrt(vec::spread(y, y_mean_, p, X.n));
        for (Index i = 0; i < X.n; ++i) u_[i] = p[i] * (y[i] - y_mean_);
        columns_.measure(all_, u_.data(), c_.data(), signals_);
        residual();
        if (std::any_of(coef.begin(), coef.end(), [](double w) { return w != 0.0; }))
            columns_.correlate(all_, u_.data(), 0.0, c_.data(), signals_);
        if (kept > 1) past_[0] = r_;
        std::fill(fresh_.begin(), fresh_.end(), 1);
    }

    std::vector<double> coef, theta;

    // Continues from `coef`; `previous_l1` (or null) is the penalty `coef` is optimal for: the sequential strong rule.
    Certified solve(const Penalty& penalty, double tolerance, Index max_iter, const double* previous_l1 = nullptr) {
        Certified best;
        bound_ = -kInfinity;
        bool clipped = false;
        for (Index j = 0; j < columns_.X.d; ++j) {
            const double w = penalty.clip(j, coef[j]);
            clipped |= w != coef[j];
            coef[j] = w;
        }
        if (clipped) {
            residual();
            refresh(penalty);
        } else if (previous_l1) {
            revisit(penalty);
        }
        // Without curvature of the penalty the factor of the last support carries over to the next alpha, where a few Newton
        // steps are as exact as wanted: if each alpha is solved, though the solution of the last might do for it.
        const double* curvature_end = penalty.l2 + columns_.X.d;
        const bool follows =
            previous_l1 && std::all_of(penalty.l2, curvature_end, [](double v) { return v == 0.0; });
        Index stalled = 0;
        double before = kInfinity, objective = kInfinity, earlier = kInfinity, former = kInfinity;
        for (Index it = 0;; ++it) {
            const double gap = certify(penalty, best);
            best.iterations = it;
            if (best.gap <= (follows && it == 0 ? 0.01 : 1.0) * tolerance || it >= max_iter) break;
            // Neither the gap nor the objective moves: rounding is the limit.
            const bool still = !(best.gap < 0.9 * before) && !(best.objective < objective * (1 - 1e-13));
            stalled = still ? stalled + 1 : 0;
            if (stalled >= 3) break;
            // Ten working sets that close a twentieth of the gap: the columns are too far apart in size for the digits of a double.
            // The same where there is no finite gap to close, and the objective hardly falls.
            if (it % 10 == 0) {
                const bool falls = best.gap == kInfinity && best.objective < former * (1 - 1e-6);
                if (it > 0 && !(best.gap < 0.95 * earlier) && !falls) break;
                earlier = best.gap, former = best.objective;
            }
            select(penalty, it == 0, follows || it == 0 ? previous_l1 : nullptr);
            if (!M::sparse && it > 0 && !(best.gap < 0.7 * before)) descent_.slow = true;
            before = best.gap, objective = best.objective;
            const bool along = follows && it < 2;
            const double coarse = along ? 0.0 : 0.1 * std::min(gap, best.gap);
            const Target target{std::max(0.3 * tolerance, coarse), energy_, rounding(), along, 0.3 * tolerance};
            descent_.solve(working_, penalty, target, 1000, c_.data());
            residual();
            polish(penalty);
            refresh(penalty);
        }
        best.intercept = intercept_;
        return best;
    }

    void forget_factor() { descent_.factor.forget(); }
    SignalPoll& signals() { return signals_; }

  private:
    // What is left of a zero inner product x'u after rounding, per unit of the column's norm.
    double rounding() const {
        return 64 * std::numeric_limits<double>::epsilon() * (y_norm_ + std::sqrt(energy_));
    }

    // A coefficient with neither penalty nor bound nearby has a finite conjugate only where its correlation is zero:
    // minimize exactly over all such coefficients, which makes the residual orthogonal to their columns.
    void polish(const Penalty& penalty) {
        if (penalty.power()) return;
        free_.clear();
        for (Index j = 0; j < columns_.X.d; ++j) {
            const double w = coef[j];
            const bool unpenalized = penalty.l1[j] == 0.0 && penalty.l2[j] == 0.0;
            const bool one_sided = penalty.lower[j] == -kInfinity || penalty.upper[j] == kInfinity;
            if (unpenalized && one_sided && w > penalty.lower[j] && w < penalty.upper[j] && columns_.norm2[j] > 0)
                free_.push_back(j);
        }
        if (free_.empty() || free_.size() > 500) return;
        for (int round = 0; round < 2; ++round) {
            if (!descent_.balance(free_, penalty)) return;
            residual();
        }
    }

    // r and u from the coefficients, without the drift of many updates.
    void residual() {
        const Index n = columns_.X.n;
        support_.clear(), values_.clear();
        double dense_offset = 0;  // a sparse residual is not centered column by column
        for (Index j = 0; j < columns_.X.d; ++j) {
            if (coef[j] == 0.0) continue;
            support_.push_back(j), values_.push_back(coef[j]);
            if (!M::sparse) dense_offset += columns_.mean[j] * coef[j];
        }
        for (Index i = 0; i < n; ++i) r_[i] = y_[i] - y_mean_;
        double shift = 0;
        columns_.hold(support_);
        columns_.steps(support_, values_.data(), false, r_.data(), shift);
        const double centre = columns_.centered ? vec::dot(columns_.p, r_.data(), n) / columns_.total : 0.0;
        for (Index i = 0; i < n; ++i) r_[i] -= centre;
        intercept_ = columns_.centered ? y_mean_ - dense_offset + centre : 0.0;
        for (Index i = 0; i < n; ++i) u_[i] = columns_.p[i] * r_[i];
        descent_.shift = 0;
        energy_ = vec::dot(r_.data(), u_.data(), n);
    }

    // Brings c up to date for every column that could matter at the current residual.
    void refresh(const Penalty& penalty) {
        const Index kept = static_cast<Index>(past_.size());
        // This residual replaces the oldest one; columns that still refer to it are read again.
        newest_ = (newest_ + 1) % kept;
        if (kept > 1) past_[newest_] = r_;  // one alone is never compared with another
        distance_.assign(kept, kInfinity);
        for (Index k = 0; k < kept; ++k) {
            if (k == newest_ || past_[k].empty()) continue;
            double sum = 0;
            for (Index i = 0; i < columns_.X.n; ++i) {
                const double t = r_[i] - past_[k][i];
                sum += columns_.p[i] * t * t;
            }
            distance_[k] = std::sqrt(sum) * (1 + 1e-9);
        }
        stale_.clear();
        for (Index j = 0; j < columns_.X.d; ++j) {
            fresh_[j] = !harmless(penalty, j);
            if (fresh_[j]) reference_[j] = newest_, stale_.push_back(j);
        }
        columns_.correlate(stale_, u_.data(), 0.0, c_.data(), signals_);
    }

    // The same at the same residual, after the penalty has changed: columns that were read are current.
    void revisit(const Penalty& penalty) {
        stale_.clear();
        for (Index j = 0; j < columns_.X.d; ++j)
            if (!fresh_[j] && !harmless(penalty, j)) fresh_[j] = 1, reference_[j] = newest_, stale_.push_back(j);
        columns_.correlate(stale_, u_.data(), 0.0, c_.data(), signals_);
    }

    double radius(Index j) const { return std::sqrt(columns_.norm2[j]) * distance_[reference_[j]]; }

    // Proof that w_j = 0 and h_j*(x̃_j'u) = 0 without reading the column.
    bool harmless(const Penalty& penalty, Index j) const {
        if (coef[j] != 0.0 || penalty.power() || reference_[j] == newest_ || !penalty.zero_allowed(j)) return false;
        const double reach = radius(j);
        return (c_[j] + reach < penalty.l1[j] || penalty.upper[j] == 0.0) &&
               (-c_[j] + reach < penalty.l1[j] || penalty.lower[j] == 0.0);
    }

    // The gap at the current point with the best scale s of the residual; keeps the best bound seen.
    double certify(const Penalty& penalty, Certified& best) {
        const Evidence evidence{columns_.X.d, energy_, rounding(), std::sqrt(columns_.total), coef.data(), c_.data(),
                                columns_.norm2.data(), columns_.mean.data(), fresh_.data()};
        const Proof proof = prove(penalty, evidence, terms_, [&](Index j) { return radius(j); });
        if (proof.objective - proof.gap >= bound_) {
            bound_ = proof.objective - proof.gap;
            for (Index i = 0; i < columns_.X.n; ++i) theta[i] = -proof.scale * r_[i];
        }
        best.objective = proof.objective;
        const double floor = std::numeric_limits<double>::epsilon() * proof.objective;
        best.gap = std::max(std::min(proof.gap, proof.objective - bound_), floor);
        if (!(best.gap >= 0)) best.gap = kInfinity;
        return proof.gap;
    }

    // The support and the columns that violate most, or come closest to it.
    void select(const Penalty& penalty, bool first, const double* previous_l1) {
        const Index n = columns_.X.n, d = columns_.X.d;
        working_.clear(), candidates_.clear();
        score_.resize(d);
        for (Index j = 0; j < d; ++j) {
            if (coef[j] != 0.0 || penalty.power()) {
                working_.push_back(j);
                continue;
            }
            const double norm = std::sqrt(columns_.norm2[j]);
            if (!(norm > 0) || !(norm < kInfinity)) continue;
            const double c = penalty.upper[j] <= 0.0   ? -c_[j]
                             : penalty.lower[j] >= 0.0 ? c_[j]
                                                       : std::abs(c_[j]);
            score_[j] = (c - penalty.l1[j]) / norm;
            if (previous_l1 && c >= (first ? 2 * penalty.l1[j] - previous_l1[j] : penalty.l1[j])) {
                working_.push_back(j);
                continue;
            }
            candidates_.push_back(j);
        }
        const Index support = static_cast<Index>(working_.size());
        // The Gram matrix of the first columns costs as much as a few passes over all of them.
        const Index few = static_cast<Index>(8.0 * std::sqrt(static_cast<double>(d)));
        Index room = std::max<Index>(support, first ? std::clamp<Index>(std::min<Index>(n / 2, few), 64, 1024) : 64);
        if (previous_l1) room = first ? 0 : 64;
        if (descent_.crowded) room = std::max(room, 2 * support);
        if (d <= 256 || support + room >= d) room = d;
        room = std::min(room, static_cast<Index>(candidates_.size()));
        const auto better = [&](Index a, Index b) {
            return score_[a] > score_[b] || (score_[a] == score_[b] && a < b);
        };
        if (room < static_cast<Index>(candidates_.size()))
            std::nth_element(candidates_.begin(), candidates_.begin() + room, candidates_.end(), better);
        working_.insert(working_.end(), candidates_.begin(), candidates_.begin() + room);
        std::sort(working_.begin(), working_.end());
        columns_.hold(working_);
        // The solver expects current correlations for the whole working set.
        stale_.clear();
        for (Index j : working_)
            if (!fresh_[j]) fresh_[j] = 1, reference_[j] = newest_, stale_.push_back(j);
        columns_.correlate(stale_, u_.data(), 0.0, c_.data(), signals_);
    }

    const double* y_;
    SignalPoll signals_;
    Team team_;
    Columns<M> columns_;
    std::vector<double> u_, r_, c_;
    std::vector<Index> reference_;
    std::vector<char> fresh_;
    Descent<M> descent_;
    double y_mean_ = 0, y_norm_ = 0, intercept_ = 0, energy_ = 0, bound_ = -kInfinity;
    Index newest_ = 0;
    std::vector<std::vector<double>> past_;
    std::vector<double> distance_ = {0.0}, values_, score_;
    std::vector<Index> all_, support_, stale_, terms_, working_, candidates_, free_;
};

// The prox-Newton subproblem  min_{d,b}  −r'z + ½ Σ h_i z_i² + Σ_j h_j(w_j + d_j),  z = X d + b,  over some columns.
struct NewtonStep {
    double intercept = 0, violation = kInfinity;
    Index iterations = 0;
};

template <class M>
NewtonStep quadratic(const M& X, std::span<double> r, const double* h, const Penalty& penalty,
                     std::span<const Index> columns, bool intercept, double tolerance, Index max_iter, int threads,
                     std::span<double> coef, std::span<double> scores) {
    SignalPoll signals;
    Team team(threads);
    Columns<M> view(X, h, intercept, team);
    NewtonStep result;
    double start = 0;
    if (view.centered) {
        start = Columns<M>::sum(r.data(), X.n) / view.total;
        for (Index i = 0; i < X.n; ++i) r[i] -= start * h[i];
    }
    std::vector<double> c(X.d, 0.0), before(coef.begin(), coef.end());
    view.measure(columns, r.data(), c.data(), signals);
    Descent<M> descent(view, coef.data(), r.data(), signals);
    for (Index j : columns) {
        const double w = penalty.clip(j, coef[j]);
        if (w == coef[j]) continue;
        view.step(j, w - coef[j], r.data(), descent.shift);
        coef[j] = w;
    }
    const auto worst = [&] {
        view.correlate(columns, r.data(), descent.shift, c.data(), signals);
        double value = 0;
        for (Index j : columns) value = std::max(value, penalty.violation(j, coef[j], c[j]));
        return value;
    };
    result.violation = worst();
    double target = tolerance;
    for (int round = 0; round < 5 && result.violation > tolerance && result.iterations < max_iter; ++round) {
        result.iterations +=
            descent.solve(columns, penalty, Target{target}, max_iter - result.iterations, c.data());
        result.violation = worst();
        target *= 0.3;
    }
    std::vector<Index> moved;
    std::vector<double> change;
    result.intercept = start;
    for (Index j : columns) {
        if (coef[j] == before[j]) continue;
        moved.push_back(j), change.push_back(before[j] - coef[j]);
        result.intercept -= view.mean[j] * (coef[j] - before[j]);
    }
    // scores = X d + b
    double shift = 0;
    std::fill(scores.begin(), scores.end(), 0.0);
    view.steps(moved, change.data(), false, scores.data(), shift);
    for (Index i = 0; i < X.n; ++i) scores[i] += M::sparse ? result.intercept : start;
    return result;
}

}  // namespace certifit
