// Newton's method for a smooth loss of one score with an elastic-net penalty, for columns that are compressed.
//
//   min over w, b   P = Σ p_i ℓ(y_i, x_i·w + b) + Σ_j [l1_j |w_j| + ½ l2_j w_j²],     l1_j + l2_j > 0
//
// Each step is coordinate descent on the quadratic model, over the columns that are used or pulled: nothing as large as a Hessian is formed unless
// sweeps prove slow. A new model costs about three sweeps over the entries, so that far from the optimum a few sweeps are all that one deserves; how
// exactly it is solved follows from how many it took (Yuan, Ho & Lin 2012), and near the optimum it is solved well, since it then proves the gap.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "coordinate/descent.hpp"
#include "newton/newton.hpp"

namespace certifit::newton {

template <class Loss, class M>
class ColumnNewton : Steps<Loss> {
    using Base = Steps<Loss>;
    using Base::d_, Base::penalty_, Base::options_, Base::rows_, Base::step_, Base::gradient_, Base::u;

  public:
    ColumnNewton(const M& X, const double* y, const double* p, const Penalty& penalty, const Options& options)
        : Base(X.n, X.d, y, p, penalty, options), X_(X), team_(options.threads), lower_(u(X.d), -kInfinity), upper_(u(X.d), kInfinity), all_(u(X.d)) {
        std::iota(all_.begin(), all_.end(), Index{0});
    }

    Found solve(const double* start, double centre) {
        Found at;
        at.w.assign(start, start + d_), at.intercept = centre;
        std::fill_n(rows_.f.begin(), X_.n, centre);
        for (Index j = 0; j < d_; ++j)
            if (at.w[u(j)] != 0.0) X_.subtract(j, -at.w[u(j)], 0.0, rows_.f.data());
        at.objective = risk(Loss{}, rows_, rows_.f) + penalty_.value(at.w);
        for (at.iterations = 1; at.iterations <= std::min(options_.max_iter, kSteps) && std::isfinite(at.objective); ++at.iterations) {
            signals_.poll();
            if (!descend(at)) break;
            if (at.objective - at.bound <= options_.tolerance) break;
        }
        return at;
    }

  private:
    static constexpr Index kSteps = 100;        // what takes more is left to the general method
    static constexpr Index kFew = 10;           // sweeps for a model far from the optimum
    static constexpr Index kMany = 1000;        // and near it
    static constexpr double kAlmost = 0.9;      // share of l1 from which a column may be woken by the step
    static constexpr double kRough = 0.5, kFine = 1e-3;  // precision of a model, as a share of the present violation
    static constexpr double kLast = 1e-4;       // promise, as a share of the scale, after which the next step is likely to be the last

    // One step; false where there is none that descends.
    bool descend(Found& at) {
        const Sums sums = slopes(Loss{}, rows_);
        if (!(sums.bend > 0)) return false;
        const certifit::Penalty penalty{penalty_.l1, penalty_.l2, lower_.data(), upper_.data()};
        Columns<M> columns(X_, rows_.bent.data(), options_.intercept, team_);
        columns.correlate(all_, rows_.q.data(), 0.0, gradient_.data(), signals_);
        const double start = options_.intercept ? -sums.level / sums.bend : 0.0;
        std::vector<double> r(u(X_.n)), ahead = at.w, c(u(d_));
        for (Index i = 0; i < X_.n; ++i) r[u(i)] = -rows_.q[u(i)] - start * rows_.bent[u(i)];
        chosen_.clear();
        double violation = 0;
        for (Index j = 0; j < d_; ++j) {
            violation = std::max(violation, penalty.violation(j, at.w[u(j)], -gradient_[u(j)]));
            if (at.w[u(j)] != 0.0 || std::abs(gradient_[u(j)]) >= kAlmost * penalty_.l1[j]) chosen_.push_back(j);
        }
        columns.measure(chosen_, r.data(), c.data(), signals_);
        Descent<M> descent(columns, ahead.data(), r.data(), signals_);
        const Index sweeps = descent.solve(chosen_, penalty, Target{(near_ ? kFine : precision_) * violation}, near_ ? kMany : kFew, c.data());
        if (sweeps <= 2) precision_ = std::max(0.25 * precision_, kFine);
        return follow(at, ahead, sums, columns, start);
    }

    // Along the step from the point to `ahead`.
    bool follow(Found& at, std::vector<double>& ahead, const Sums& sums, const Columns<M>& columns, double start) {
        double shift = start, promised = 0;
        std::fill_n(rows_.moved.begin(), X_.n, 0.0);
        for (Index j : chosen_) {
            step_[u(j)] = ahead[u(j)] - at.w[u(j)];
            if (step_[u(j)] == 0.0) continue;
            X_.subtract(j, -step_[u(j)], 0.0, rows_.moved.data());
            shift -= columns.mean[u(j)] * step_[u(j)];
            promised += gradient_[u(j)] * step_[u(j)];
        }
        for (Index i = 0; i < X_.n; ++i) rows_.moved[u(i)] += shift;
        promised += sums.level * shift + penalty_.value(ahead) - penalty_.value(at.w);
        if (near_ || this->proves(promised)) {
            const auto pull = [&](const double* q, double* v) { columns.correlate(all_, q, 0.0, v, signals_); };
            at.bound = std::max(at.bound, this->bound(sums, at.intercept + shift, pull));
        }
        near_ = -promised < kLast * options_.scale;
        const bool found = this->search(at, ahead, shift, promised);
        for (Index j : chosen_) step_[u(j)] = 0.0;
        return found;
    }

    const M X_;
    Team team_;
    mutable SignalPoll signals_;
    double precision_ = kRough;
    bool near_ = false;
    std::vector<double> lower_, upper_;
    std::vector<Index> all_, chosen_;
};

}  // namespace certifit::newton
