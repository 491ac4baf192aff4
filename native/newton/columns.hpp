// Newton's method for a smooth loss of one score with an elastic-net penalty, for many columns, compressed or dense.
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
#include "products/products.hpp"

namespace certifit::newton {

// Compressed columns are swept where they lie.
template <class M>
class Compressed {
  public:
    using View = M;
    Compressed(const M& X, int threads) : n(X.n), d(X.d), X_(X), team_(threads), all_(static_cast<std::size_t>(X.d)) {
        std::iota(all_.begin(), all_.end(), Index{0});
    }

    const Index n, d;
    const M& view() const { return X_; }
    void hold(const std::vector<Index>&) {}
    Index slot(Index j) const { return j; }

    // f = X w + b
    void scores(const double* w, double b, double* f, int) const {
        std::fill_n(f, n, b);
        for (Index j = 0; j < d; ++j)
            if (w[j] != 0.0) X_.subtract(j, -w[j], 0.0, f);
    }
    // v = X'q
    void pull(const double* q, double* v, int, SignalPoll& signals) { Columns<M>(X_, q, false, team_).correlate(all_, q, 0.0, v, signals); }

  private:
    const M X_;
    Team team_;
    std::vector<Index> all_;
};

// Of a dense matrix the columns that are used are held beside it, one after the other; all are read where they lie.
class Packed {
  public:
    using View = certifit::Dense<double>;
    Packed(const products::Table<double>& X, int) : n(X.n), d(X.d), X_(X), slot_(static_cast<std::size_t>(X.d), -1) {
        held_.reserve(static_cast<std::size_t>(X.n * X.d));  // a place that is never copied; what is not used of it takes no memory
    }

    const Index n, d;
    View view() const { return {held_.data(), n, static_cast<Index>(columns_.size())}; }
    Index slot(Index j) const { return slot_[static_cast<std::size_t>(j)]; }

    void hold(const std::vector<Index>& wanted) {
        const std::size_t before = columns_.size();
        for (Index j : wanted)
            if (slot(j) < 0) slot_[static_cast<std::size_t>(j)] = static_cast<Index>(columns_.size()), columns_.push_back(j);
        if (columns_.size() == before) return;
        held_.resize(columns_.size() * static_cast<std::size_t>(n));
        constexpr Index rows = 64;  // whose cache lines serve all columns
        for (Index from = 0; from < n; from += rows)
            for (std::size_t k = before; k < columns_.size(); ++k)
                for (Index i = from; i < std::min(n, from + rows); ++i)
                    held_[k * static_cast<std::size_t>(n) + static_cast<std::size_t>(i)] = X_.data[X_.by_row ? i * d + columns_[k] : columns_[k] * n + i];
    }

    void scores(const double* w, double b, double* f, int threads) const { products::scores(X_, w, b, f, threads); }
    void pull(const double* q, double* v, int threads, SignalPoll&) { products::pullback(X_, q, 1, v, threads); }

  private:
    const products::Table<double> X_;
    std::vector<Index> slot_, columns_;
    std::vector<double> held_;
};

template <class Loss, class Store>
class ColumnNewton : Steps<Loss> {
    using Base = Steps<Loss>;
    using Base::d_, Base::penalty_, Base::options_, Base::rows_, Base::step_, Base::gradient_, Base::u;
    using View = typename Store::View;

  public:
    std::vector<double> dual;  // the slopes that prove the bound, up to their scale, for those who want them

    template <class Matrix>
    ColumnNewton(const Matrix& X, const double* y, Weights p, const Penalty& penalty, const Options& options, bool keeps = false)
        : Base(X.n, X.d, y, p, penalty, options), store_(X, options.threads), team_(options.threads), keeps_(keeps) {}

    Found solve(const double* start, double centre) {
        Found at;
        at.w.assign(start, start + d_), at.intercept = centre;
        store_.scores(start, centre, rows_.f.data(), options_.threads);
        at.objective = risk(Loss{}, rows_, 0.0) + penalty_.value(at.w);
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
    static constexpr double kForcing = 0.1;     // precision of a model near the optimum, as a share of what the last step left
    static constexpr double kEnough = 0.4;      // of the gap that is wanted: what a model may cost the bound
    static constexpr double kLast = 1e-4;       // promise, as a share of the scale, after which the next step is likely to be the last

    // One step; false where there is none that descends.
    bool descend(Found& at) {
        const Sums sums = slopes(Loss{}, rows_);
        if (!(sums.bend > 0)) return false;
        store_.pull(rows_.q.data(), gradient_.data(), options_.threads, signals_);
        fit_local(u(d_));
        const certifit::Penalty penalty{penalty_.l1, penalty_.l2, lower_.data(), upper_.data()};
        chosen_.clear();
        double violation = 0;
        for (Index j = 0; j < d_; ++j) {
            violation = std::max(violation, penalty.violation(j, at.w[u(j)], -gradient_[u(j)]));
            if (at.w[u(j)] != 0.0 || std::abs(gradient_[u(j)]) >= kAlmost * penalty_.l1[j]) chosen_.push_back(j);
        }
        store_.hold(chosen_);
        const View X = store_.view();
        Columns<View> columns(X, rows_.bent.data(), options_.intercept, team_);
        // Coefficients and penalties where the view has their columns.
        slots_.clear(), l1_.resize(u(X.d)), l2_.resize(u(X.d)), there_.assign(u(X.d), 0.0), c_.resize(u(X.d));
        for (Index j : chosen_) {
            const Index s = store_.slot(j);
            slots_.push_back(s), l1_[u(s)] = penalty_.l1[j], l2_[u(s)] = penalty_.l2[j], there_[u(s)] = at.w[u(j)];
        }
        const double start = options_.intercept ? -sums.level / sums.bend : 0.0;
        std::vector<double> ahead = at.w;
        std::vector<double>& r = rows_.q;  // the slopes have been pulled: the residuals of the model take their place
        for (Index i = 0; i < X.n; ++i) r[u(i)] = -r[u(i)] - start * rows_.bent[u(i)];
        columns.measure(slots_, r.data(), c_.data(), signals_);
        Descent<View> descent(columns, there_.data(), r.data(), signals_);
        descent.crowded = crowded_;
        const certifit::Penalty local{l1_.data(), l2_.data(), lower_.data(), upper_.data()};
        const Index sweeps = descent.solve(slots_, local, Target{wanted(at.w, violation)}, near_ ? kMany : kFew, c_.data());
        crowded_ = descent.crowded;
        if (sweeps <= 2) precision_ = std::max(0.25 * precision_, kFine);
        for (Index j : chosen_) ahead[u(j)] = there_[u(store_.slot(j))];
        return follow(at, ahead, sums, columns, start);
    }

    // The violation of the model to reach. Near the optimum it follows from what the last step has made of its own, since a model is worth
    // no more digits than it is right in; and the bound loses no more than ‖w‖₁ times what is left of it.
    double wanted(const std::vector<double>& w, double violation) {
        const double left = std::clamp(kForcing * violation / std::exchange(before_, violation), kFine, kForcing);
        double reach = 0;
        for (double v : w) reach += std::abs(v);
        const double enough = reach > 0 ? kEnough * options_.tolerance / reach : 0.0;
        return std::max((near_ ? left : precision_) * violation, enough);
    }

    // Bounds of every coefficient: none.
    void fit_local(std::size_t size) {
        if (lower_.size() < size) lower_.assign(size, -kInfinity), upper_.assign(size, kInfinity);
    }

    // Along the step from the point to `ahead`.
    bool follow(Found& at, std::vector<double>& ahead, const Sums& sums, const Columns<View>& columns, double start) {
        double shift = start, promised = 0;
        std::fill_n(rows_.moved.begin(), store_.n, 0.0);
        for (Index j : chosen_) {
            step_[u(j)] = ahead[u(j)] - at.w[u(j)];
            if (step_[u(j)] == 0.0) continue;
            columns.X.subtract(store_.slot(j), -step_[u(j)], 0.0, rows_.moved.data());
            shift -= columns.mean[u(store_.slot(j))] * step_[u(j)];
            promised += gradient_[u(j)] * step_[u(j)];
        }
        for (Index i = 0; i < store_.n; ++i) rows_.moved[u(i)] += shift;
        promised += sums.level * shift + penalty_.value(ahead) - penalty_.value(at.w);
        if (near_ || this->proves(promised)) {
            const auto pull = [&](const double* q, double* v) { store_.pull(q, v, options_.threads, signals_); };
            const double found = this->bound(sums, at.intercept + shift, pull);
            if (found > at.bound) {
                at.bound = found;
                if (keeps_) keep(sums);
            }
        }
        near_ = -promised < kLast * options_.scale;
        const bool found = this->search(at, ahead, shift, promised);
        for (Index j : chosen_) step_[u(j)] = 0.0;
        return found;
    }

    // The slopes behind the bound: those that the model predicts, balanced.
    void keep(const Sums& sums) {
        double shift = 0;
        if (options_.intercept) shift = -predicted(rows_, shift) / sums.bend;
        dual.resize(u(store_.n));
        for (Index i = 0; i < store_.n; ++i) {
            const double p = rows_.p[i], h = p > 0.0 ? rows_.bent[u(i)] / p : 0.0;
            dual[u(i)] = rows_.theta[u(i)] + h * (rows_.moved[u(i)] + shift);
        }
    }

    Store store_;
    Team team_;
    SignalPoll signals_;
    double precision_ = kRough, before_ = kInfinity;
    bool near_ = false, crowded_ = false, keeps_;
    std::vector<double> lower_, upper_, l1_, l2_, there_, c_;
    std::vector<Index> chosen_, slots_;
};

}  // namespace certifit::newton
