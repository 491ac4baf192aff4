// Coordinate descent on a set of columns, ended by Newton steps on the Gram matrix of the support (where columns are sparse, helped by a few products of
// conjugate gradients), or by proximal points where neither gets far:
//
//   min over w_W of   ½ Σ_i p_i z_i² − Σ_i u_i z_i + Σ_{j∈W} h_j(w_j),   z = X̃ (w − w₀)
//
// u is kept current (u −= p ∘ X̃ δ), so X̃'u is the negative gradient. The same code serves least squares (u = p ∘
// residual) and prox-Newton (u = −p ∘ loss', p = curvature).
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "coordinate/conjugate.hpp"
#include "coordinate/gram.hpp"
#include "coordinate/proximal_point.hpp"

namespace certifit {

template <class M>
class Descent {
  public:
    Descent(const Columns<M>& columns, double* w, double* u, SignalPoll& signals)
        : gram(columns.X.d, gram_limit(columns.X)), factor(&columns.team), columns_(columns), along_(columns), signals_(signals), w_(w), u_(u) {}

    double shift = 0;  // u_true = u + shift · p, see Columns
    Gram gram;
    Factor factor;
    bool crowded = false;  // whether sweeps and Newton steps were seen to take longer than proximal points: too many columns for the rows
    bool slow = false;  // whether sweeps were seen to take longer than the Gram matrix: columns know too much of each other

    // Sweeps over W until the target is reached; returns the number of sweeps. `c` holds, when given, X̃'u for W. A trusted
    // target reached without sweeps leaves u as it was.
    Index solve(std::span<const Index> W, const Penalty& penalty, const Target& target, Index max_sweeps,
                const double* c = nullptr) {
        const double cost = columns_.X.size() / std::max<Index>(columns_.X.d, 1);
        const double wanted = std::min(target.tolerance, target.last);
        const bool tall = !M::sparse && static_cast<Index>(W.size()) <= columns_.X.n / 8;
        bool all = true, newton_failed = penalty.power(), stepped = false;
        double before = kInfinity;  // the estimate of the sweep before, where that was one of the support too
        bool alone = penalty.power();  // whether proximal points are out of the question
        spent_on_all_ = 0;
        Index sweeps_alone = 0;
        if (crowded && !alone) {
            if (closer(W, penalty, target)) return 1;
            alone = true;
        }
        if (c && prefers_gram(W, target.trusted) && !penalty.power()) {
            stepped = newton(W, penalty, target, c);
            if (stepped && target.trusted) return 0;
        }
        for (Index sweep = 0; sweep < max_sweeps; ++sweep) {
            Progress progress(penalty, target);
            std::span<const Index> list = all ? W : std::span<const Index>(support_);
            Index visited = 0;
            bool moved = false;
            for (Index j : list) {
                if ((++visited & 63) == 0) signals_.poll();
                const double H = columns_.norm2[j];
                if (!(H < kInfinity)) continue;
                const double gradient = columns_.correlation(j, u_, shift);
                progress.visit(j, w_[j], gradient, H);
                const double next = penalty.minimizer(j, gradient + H * w_[j], H, w_[j]);
                if (next == w_[j]) continue;
                moved |= std::abs(next - w_[j]) > kStill * std::abs(next);
                columns_.step(j, next - w_[j], u_, shift);
                w_[j] = next;
            }
            signals_.poll();
            if (all && !moved) return sweep + 1;
            spent_ += static_cast<double>(list.size()) * cost;
            spent_on_all_ += 2 * static_cast<double>(list.size()) * cost;
            const double value = progress.value(), sweeps = all ? 0.0 : sweeps_left(before, value, wanted);
            const double visits = static_cast<double>(list.size()) * cost;
            before = all ? kInfinity : value;
            collect_support(W);
            const bool possible = !newton_failed && !support_.empty();
            bool due = possible && spent_ >= newton_cost(cost);
            // Slow columns make the estimate of a sweep too small, too: the caller may find that hardly anything was won. What a
            // Newton step has reached is true.
            if (progress.reached() && (stepped || !tall || !slow || !due)) {
                if (all) return sweep + 1;
                all = true;  // the support is solved: look at the others
                continue;
            }
            if (!alone && worth_points(W, cost)) {
                crowded = closer(W, penalty, target);
                if (crowded) return sweep + 1;
                alone = true;
            }
            all = sweep % 6 == 5;
            if (possible_by_products(penalty, cost) && ++sweeps_alone >= kPatience) {
                sweeps_alone = 0;
                all |= along_.take(support_, penalty, kProducts, w_, u_, shift);
                spent_on_all_ += 2 * (kProducts + 2) * static_cast<double>(support_.size()) * cost;
            }
            if (tall && possible && sweeps * visits > newton_cost(cost)) slow = due = true;
            if (!due) continue;
            stepped = newton(support_, penalty, target, nullptr);
            newton_failed = !stepped;
            spent_ = 0;
            all = true;
        }
        return max_sweeps;
    }

    // One Newton step on the given coefficients, all strictly inside their bounds and without penalty.
    bool balance(std::span<const Index> list, const Penalty& penalty) {
        const int generation = gram.generation;
        if (!gram.extend(columns_, list, signals_)) return false;
        if (generation != gram.generation) factor.forget();
        std::vector<Index> order;
        for (Index j : list) order.push_back(gram.slot(j));
        l2_.assign(gram.size(), 0.0);
        Factor own;
        own.update(gram.data(), gram.stride(), l2_.data(), order, gram.size());
        change_.clear(), moved_.clear();
        for (Index s : order) {
            moved_.push_back(gram.columns[s]);
            change_.push_back(columns_.correlation(gram.columns[s], u_, shift));
        }
        own.solve(change_.data());
        for (std::size_t i = 0; i < moved_.size(); ++i) {
            const double next = w_[moved_[i]] + change_[i];
            if (!(next > penalty.lower[moved_[i]] && next < penalty.upper[moved_[i]])) return false;
        }
        for (std::size_t i = 0; i < moved_.size(); ++i) w_[moved_[i]] += change_[i];
        columns_.steps(moved_, change_.data(), true, u_, shift);
        return true;
    }

  private:
    static constexpr double kFew = 8;        // columns
    static constexpr Index kPatience = 8;    // sweeps before products are tried, and between two tries
    static constexpr int kProducts = 8;      // which cost about as much as those sweeps
    static constexpr Index kFactored = 64;   // columns up to which they are not needed

    // Whether products with the columns in use cost less than their passes over the rows. Of few columns the Gram matrix costs nothing either, and its
    // Newton steps have all digits.
    bool possible_by_products(const Penalty& penalty, double cost) const {
        const Index used = static_cast<Index>(support_.size());
        return M::sparse && used > kFactored && !penalty.power() && 2 * static_cast<double>(used) * cost > static_cast<double>(columns_.X.n);
    }

    static Index gram_limit(const M& X) {
        return static_cast<Index>(std::clamp(std::sqrt(2 * X.size()), 1024.0, 4096.0));
    }

    // Sweeps from an estimate of the gap to the wanted one, at the rate of the last sweep.
    static double sweeps_left(double before, double value, double wanted) {
        if (!(before < kInfinity) || !(value > wanted)) return 0.0;
        return value < before ? std::log(value / wanted) / std::log(before / value) : kInfinity;
    }

    // Few columns against many rows: what is missing of the Gram matrix costs less than the sweeps it replaces, of which there
    // are always some (64 multiplications a column and row, at the rate of `newton_cost`: 8 sweeps). Columns that hardly know of
    // each other need no more; of others it is formed as soon as the rate of the sweeps has shown it. Along a path the matrix is
    // there already but for a few columns.
    bool prefers_gram(std::span<const Index> W, bool along) const {
        const Index n = columns_.X.n, k = static_cast<Index>(W.size());
        if (M::sparse || k > gram.limit()) return false;
        if (k <= 64) return true;
        const Index fresh = gram.missing(W), work = fresh * (gram.size() + fresh / 2);
        if (k <= n / 8 && (slow || work <= 64 * k)) return true;
        return along && gram.size() + fresh <= 4 * n && work <= 256 * k;
    }

    void collect_support(std::span<const Index> W) {
        support_.clear();
        for (Index j : W)
            if (w_[j] != 0.0) support_.push_back(j);
    }

    // In multiplications of a sweep; those of a blocked product or factor run several times faster, those of sparse columns do not.
    double newton_cost(double cost) const {
        const double m = static_cast<double>(support_.size()), fresh = static_cast<double>(gram.missing(support_));
        return fresh * (gram.size() + 0.5 * fresh) * cost / (M::sparse ? 1 : 8) + m * m * m / 24 + 2 * m * cost;
    }

    // Whether this set has cost as much as proximal points would: a dozen Newton steps and more, each with a pass over W and three over the
    // support, the Gram matrix and a few factors. Sweeps over a few columns are so cheap that a hundred may go by before.
    bool worth_points(std::span<const Index> W, double cost) const {
        const double m = static_cast<double>(support_.size()), k = static_cast<double>(W.size());
        if (m < 1 || m > static_cast<double>(gram.limit())) return false;
        if (m < kFew && spent_on_all_ < 200 * k * cost) return false;
        return spent_on_all_ >= 12 * (k + 3 * m) * cost + newton_cost(cost) + m * m * m / (M::sparse ? 24 : 8);
    }

    bool closer(std::span<const Index> W, const Penalty& penalty, const Target& target) {
        return ProximalPoint<M>(columns_, gram, factor, signals_).solve(W, penalty, target, w_, u_, shift);
    }

    // Solves on the Gram matrix of `list` and carries the change over to u.
    bool newton(std::span<const Index> given, const Penalty& penalty, const Target& target, const double* c) {
        list_.clear();
        for (Index j : given)
            if (columns_.norm2[j] > 0 && columns_.norm2[j] < kInfinity) list_.push_back(j);
        const std::span<const Index> list(list_);
        const int generation = gram.generation;
        if (!gram.extend(columns_, list, signals_)) return false;
        if (generation != gram.generation) factor.forget();
        const Index k = gram.size();
        l1_.assign(k, 0), l2_.assign(k, 0), lower_.assign(k, 0), upper_.assign(k, 0), w0_.resize(k), slots_.clear();
        gradient_.assign(k, 0.0);
        for (Index j : list) {
            const Index s = gram.slot(j);
            slots_.push_back(s);
            l1_[s] = penalty.l1[j], l2_[s] = penalty.l2[j], lower_[s] = penalty.lower[j], upper_[s] = penalty.upper[j];
            w0_[s] = w_[j];
            if (c) gradient_[s] = c[j];
        }
        if (!c) {
            columns_.over(list, signals_,
                          [&](Index j) { gradient_[gram.slot(j)] = columns_.correlation(j, u_, shift); });
        }
        local_ = w0_;
        const Penalty small{l1_.data(), l2_.data(), lower_.data(), upper_.data(), penalty.q};
        GramSolver solver(gram.data(), gram.stride(), k, small, factor);
        const Target inner{0.1 * target.tolerance, target.energy, target.rounding, target.trusted};
        const Index sweeps = solver.solve(slots_, local_.data(), gradient_.data(), inner, 200, signals_);
        spent_on_all_ += static_cast<double>(sweeps * static_cast<Index>(slots_.size()) * k) / (M::sparse ? 8 : 1);
        moved_.clear(), change_.clear();
        for (Index j : list) {
            const Index s = gram.slot(j);
            if (local_[s] == w0_[s]) continue;
            moved_.push_back(j), change_.push_back(local_[s] - w_[j]);
            w_[j] = local_[s];
        }
        if (!c || !target.trusted) columns_.steps(moved_, change_.data(), true, u_, shift);
        return true;
    }

    const Columns<M>& columns_;
    ConjugateStep<M> along_;
    SignalPoll& signals_;
    double *w_, *u_;
    double spent_ = 0;  // multiplications in sweeps since the last Newton step
    double spent_on_all_ = 0;  // and in all that was done for this set
    std::vector<Index> support_, list_, slots_, moved_;
    std::vector<double> l1_, l2_, lower_, upper_, w0_, local_, gradient_, change_;
};

}  // namespace certifit
