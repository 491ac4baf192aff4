// The Gram matrix of the columns that matter, and the small problem on it:
//
//   min_w  −g'(w − w₀) + ½ (w − w₀)' G (w − w₀) + Σ_j h_j(w_j)
//
// Coordinate descent finds which coefficients are zero or at a bound, a Newton step with the Cholesky factor of the
// others ends the slow tail that correlated columns cause.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "coordinate/factor.hpp"
#include "coordinate/matrix.hpp"
#include "coordinate/penalty.hpp"
#include "core/interrupt.hpp"
#include "core/vector.hpp"

namespace certifit {

// G = X̃'PX̃ on a growing list of columns; row s of the square array belongs to column `columns[s]`.
class Gram {
  public:
    explicit Gram(Index d, Index limit) : slot_(d, -1), limit_(limit) {}

    Index size() const { return static_cast<Index>(columns.size()); }
    Index stride() const { return capacity_; }
    Index limit() const { return limit_; }
    const double* row(Index s) const { return values_.get() + s * capacity_; }
    const double* data() const { return values_.get(); }
    Index slot(Index j) const { return slot_[j]; }
    std::vector<Index> columns;
    int generation = 0;  // changes when slots are renumbered

    Index missing(std::span<const Index> wanted) const {
        return std::count_if(wanted.begin(), wanted.end(), [&](Index j) { return slot_[j] < 0; });
    }

    // Adds the wanted columns; forgets the others first when the limit would be passed. False: too many are wanted.
    template <class M>
    bool extend(const Columns<M>& C, std::span<const Index> wanted, SignalPoll& signals) {
        if (static_cast<Index>(wanted.size()) > limit_) return false;
        if (size() + missing(wanted) > limit_) {
            for (Index j : columns) slot_[j] = -1;
            columns.clear();
            ++generation;
        }
        const Index old = size();
        for (Index j : wanted) {
            if (slot_[j] >= 0) continue;
            slot_[j] = size();
            columns.push_back(j);
        }
        if (size() == old) return true;
        reserve(size(), old);
        try {
            fill(C, old, signals);
        } catch (...) {
            for (Index s = old; s < size(); ++s) slot_[columns[s]] = -1;
            columns.resize(old);
            throw;
        }
        return true;
    }

  private:
    void reserve(Index wanted, Index old) {
        if (wanted <= capacity_) return;
        // Room to grow, and no zeroing: fresh pages cost as much as the products that will fill them.
        const Index capacity = std::max(wanted, std::min((wanted * 5 / 4 + 39) / 8 * 8, limit_));
        auto grown = std::make_unique_for_overwrite<double[]>(capacity * capacity);
        for (Index s = 0; s < old; ++s) std::copy_n(row(s), old, grown.get() + s * capacity);
        values_.swap(grown);
        capacity_ = capacity;
    }

    template <class M>
    void fill(const Columns<M>& C, Index old, SignalPoll& signals) {
        const Index k = size(), added = k - old;
        if constexpr (M::sparse) {
            std::vector<double> spread(C.X.n, 0.0);
            for (Index s = old; s < k; ++s) {
                signals.poll();
                const Index j = columns[s];
                C.X.subtract(j, -1.0, C.p, 0.0, spread.data());
                for (Index t = 0; t <= s; ++t) {
                    double value = C.X.dot(columns[t], spread.data());
                    if (C.centered) value -= C.total * C.mean[j] * C.mean[columns[t]];
                    at(s, t) = at(t, s) = value;
                }
                for (Index i = C.X.indptr[j]; i < static_cast<Index>(C.X.indptr[j + 1]); ++i)
                    spread[C.X.indices[i]] = 0.0;
            }
        } else {
            for (Index s = old; s < k; ++s) std::fill_n(&at(s, 0), s + 1, 0.0);
            // Rows in chunks that keep 4 packed columns in the first cache and a block of raw ones in the second.
            constexpr Index chunk = 512, group = 16, block = 64;
            std::vector<double> packed(added * std::min(chunk, C.X.n));
            const Index groups = (added + group - 1) / group, blocks = (k + block - 1) / block;
            // On a busy machine a second thread may come milliseconds late: only for work that is worth the risk.
            const bool together = static_cast<double>(added) * k * C.X.n > 2e7;
            for (Index from = 0; from < C.X.n; from += chunk) {
                signals.poll();
                const Index rows = std::min(chunk, C.X.n - from);
                C.team.blocks(added, group, together, [&](Index first, Index last, int) {
                    for (Index s = first; s < last; ++s) {
                        const Index j = columns[old + s];
                        vec::pack(C.X.column(j) + from, C.mean[j], C.p + from, packed.data() + s * rows, rows);
                    }
                });
                C.team.run(groups * blocks, together, [&](Index task, int) {
                    const Index b = task / groups, a = task % groups;
                    tile(C, old, a * group, std::min(added, (a + 1) * group), b * block, std::min(k, (b + 1) * block),
                         packed.data(), from, rows);
                });
            }
            for (Index s = old; s < k; ++s)
                for (Index t = 0; t < s; ++t) at(t, s) = at(s, t);
        }
    }

    template <class M>
    void tile(const Columns<M>& C, Index old, Index s0, Index s1, Index t0, Index t1, const double* packed, Index from,
              Index rows) {
        double sums[16];
        for (Index s = s0; s < s1; s += 4) {
            const double* a[4];
            for (Index r = 0; r < 4; ++r) a[r] = packed + std::min(s + r, s1 - 1) * rows;
            const Index last = std::min(s1 - 1, s + 3) + old;  // the lower triangle is enough
            for (Index t = t0; t < std::min(t1, last + 1); t += 4) {
                decltype(C.X.column(0)) b[4];
                for (Index c = 0; c < 4; ++c) b[c] = C.X.column(columns[std::min(t + c, t1 - 1)]) + from;
                vec::dot16(a, b, rows, sums);
                for (Index r = 0; r < std::min<Index>(4, s1 - s); ++r)
                    for (Index c = 0; c < std::min<Index>(4, t1 - t); ++c)
                        if (t + c <= old + s + r) at(old + s + r, t + c) += sums[4 * r + c];
            }
        }
    }

    double& at(Index s, Index t) { return values_[s * capacity_ + t]; }

    std::vector<Index> slot_;
    Index limit_, capacity_ = 0;
    std::unique_ptr<double[]> values_;
};

// When a problem counts as solved. With `energy` (Σ p residual²) the tolerance is an estimate of the duality gap,
// without it the largest violation of the optimality conditions.
struct Target {
    double tolerance;
    double energy = -1.0;
    double rounding = 0.0;  // of a correlation, per unit of the column's norm
    // The caller takes new residuals from the coefficients: a solution on the Gram matrix needs no sweep over X after it.
    bool trusted = false;
    double last = std::numeric_limits<double>::infinity();  // the least tolerance that will be asked for, if less than this one
};

// Changes below this, relative to the coefficient, are rounding.
inline constexpr double kStill = 4e-16;

// Adds up an estimate of the gap (or the violation) while a sweep visits the coordinates.
class Progress {
  public:
    Progress(const Penalty& penalty, const Target& target) : penalty_(penalty), target_(target) {}

    void visit(Index j, double w, double c, double norm2) {
        if (target_.energy < 0) {
            worst_ = std::max(worst_, penalty_.violation(j, w, c));
            return;
        }
        double v = c;
        const double above = penalty_.domain_above(j), below = penalty_.domain_below(j);
        if (c > above) limit(c, above, norm2), v = above;
        if (-c > below) limit(-c, below, norm2), v = -below;
        if (w == 0.0 && std::abs(v) <= penalty_.l1[j] && penalty_.zero_allowed(j) && !penalty_.power()) return;
        sum_ += penalty_.value(j, w) + penalty_.conjugate(j, v) - v * w;
        product_ += std::abs(v * w);
    }
    double value() const {
        if (target_.energy < 0) return worst_;
        return sum_ + 0.5 * (1 - scale_) * (1 - scale_) * target_.energy + (1 - scale_) * product_;
    }
    bool reached() const { return value() <= target_.tolerance; }

  private:
    void limit(double c, double allowed, double norm2) {
        if (allowed > 0.0 || c > target_.rounding * std::sqrt(norm2)) scale_ = std::min(scale_, allowed / c);
    }

    const Penalty& penalty_;
    const Target& target_;
    double worst_ = 0, scale_ = 1, sum_ = 0, product_ = 0;
};

// The problem above on the slots `active` of a k × k matrix. `c` is the negative gradient at w, kept up to date for
// all k slots. Returns the number of sweeps.
class GramSolver {
  public:
    GramSolver(const double* G, Index stride, Index k, const Penalty& penalty, Factor& factor)
        : G_(G), stride_(stride), k_(k), penalty_(penalty), factor_(factor) {}

    Index solve(std::span<const Index> active, double* w, double* c, const Target& target, Index max_sweeps,
                SignalPoll& signals) {
        // Elsewhere Newton steps are few and between whole sweeps: where G is nearly singular, step upon step would run away
        // along what it does not see.
        const bool along = target.trusted;
        double spent = 0;
        settled_.assign(k_, 0);
        bool partial = false;  // whether the next sweep may pass over what a Newton step has just settled
        for (Index sweep = 0; sweep < max_sweeps; ++sweep) {
            signals.poll();
            if (reached(active, w, c, target)) return sweep;
            // Along a path the support hardly changes: the factor of the last problem nearly solves the next one.
            if (along && sweep == 0 && factor_.size() > 0 && !penalty_.power() && collect(active, w) &&
                factor_.cost(free_, k_) < kCheap * static_cast<double>(free_.size()) * k_) {
                partial = newton(w, c, true);
                if (partial && reached(active, w, c, target)) return sweep + 1;
            }
            bool moved = false;
            for (Index s : active) {
                if (partial && settled_[s]) continue;
                const double H = G_[s * stride_ + s];
                if (!(H < kInfinity)) continue;
                const double next = penalty_.minimizer(s, c[s] + H * w[s], H, w[s]);
                const double delta = next - w[s];
                if (delta == 0.0) continue;
                vec::subtract(delta, G_ + s * stride_, 0.0, c, k_);
                moved |= std::abs(delta) > kStill * std::abs(next);
                w[s] = next;
                spent += static_cast<double>(k_);
            }
            if (!moved && !partial) return sweep + 1;
            const bool again = partial && moved;
            partial = false;
            if (penalty_.power() || !collect(active, w)) continue;
            if (along) {
                if (again || sweep % 3 == 1 || spent >= factor_.cost(free_, k_)) partial = newton(w, c, true), spent = 0;
            } else if (sweep >= 1) {
                const double m = static_cast<double>(active.size());
                if (spent * 4 >= m * m * m / 6 || sweep % 3 == 1) newton(w, c, false), spent = 0;
            }
        }
        return max_sweeps;
    }

  private:
    // Sweeps that a Newton step may cost before any were made.
    static constexpr double kCheap = 4;

    // Exact minimization over the collected coefficients, clipped where one would cross zero or a bound, and shortened
    // until the objective decreases. True if the whole step was taken, by every column: it settles what was not clipped.
    bool newton(double* w, double* c, bool along) {
        std::fill(settled_.begin(), settled_.end(), 0);
        factor_.update(G_, stride_, penalty_.l2, free_, k_);
        const Index m = static_cast<Index>(free_.size());
        slope_.resize(m), clipped_.resize(m), moved_.resize(m), image_.resize(k_);
        for (Index i = 0; i < m; ++i) {
            const Index s = free_[i];
            const double sign = w[s] > 0 ? 1.0 : w[s] < 0 ? -1.0 : 0.0;
            slope_[i] = c[s] - penalty_.l1[s] * sign - penalty_.l2[s] * w[s];
        }
        direction_ = slope_;
        factor_.solve(direction_.data());
        for (double t = 1.0; t > 1e-3; t *= 0.5) {
            Index clipped = 0;
            for (Index i = 0; i < m; ++i) {
                const Index s = free_[i];
                const double wanted = w[s] + t * direction_[i];
                const double next = penalty_.clip(s, penalty_.l1[s] > 0 && wanted * w[s] < 0 ? 0.0 : wanted);
                moved_[i] = next - w[s];
                clipped += clipped_[i] = next != wanted;
                if (!std::isfinite(moved_[i])) return false;
            }
            if (along && t == 1.0 && 2 * m > k_ && 4 * clipped < m && factor_.regular()) {
                image_of_solution();
            } else {
                image_of_step();
            }
            double change = 0;  // of the objective
            for (Index i = 0; i < m; ++i) {
                const Index s = free_[i];
                const double step = penalty_.value(s, w[s] + moved_[i]) - penalty_.value(s, w[s]);
                change += step + (0.5 * image_[s] - c[s]) * moved_[i];
            }
            if (!(change <= 0)) continue;
            for (Index i = 0; i < m; ++i) {
                const Index s = free_[i];
                // Exactly zero where the step was clipped there, whatever w + (0 − w) rounds to.
                w[s] = moved_[i] == -w[s] ? 0.0 : penalty_.clip(s, w[s] + moved_[i]);
                settled_[s] = w[s] != 0.0 && w[s] > penalty_.lower[s] && w[s] < penalty_.upper[s];
            }
            for (Index s = 0; s < k_; ++s) c[s] -= image_[s];
            return t == 1.0 && factor_.regular();
        }
        return false;
    }

    // G times the step.
    void image_of_step() {
        std::fill(image_.begin(), image_.end(), 0.0);
        for (std::size_t i = 0; i < free_.size(); ++i)
            vec::subtract(-moved_[i], G_ + free_[i] * stride_, 0.0, image_.data(), k_);
    }

    // The same after a whole step on most slots: on the free ones (G + diag(l2)) direction = slope was just solved, and few
    // of them were clipped. Only the rows of the others are read.
    void image_of_solution() {
        std::fill(image_.begin(), image_.end(), 0.0);
        step_.assign(k_, 0.0), taken_.assign(k_, 0);
        for (std::size_t i = 0; i < free_.size(); ++i) {
            const Index s = free_[i];
            step_[s] = moved_[i], taken_[s] = 1;
            if (clipped_[i]) vec::subtract(direction_[i] - moved_[i], G_ + s * stride_, 0.0, image_.data(), k_);
        }
        for (Index s = 0; s < k_; ++s)
            if (!taken_[s]) image_[s] = vec::dot(G_ + s * stride_, step_.data(), k_);
        for (std::size_t i = 0; i < free_.size(); ++i)
            image_[free_[i]] += slope_[i] - penalty_.l2[free_[i]] * direction_[i];
    }

    // The coefficients that are neither zero nor at a bound.
    bool collect(std::span<const Index> active, const double* w) {
        free_.clear();
        for (Index s : active) {
            const bool inside = w[s] > penalty_.lower[s] && w[s] < penalty_.upper[s];
            if (inside && (w[s] != 0.0 || penalty_.l1[s] == 0.0) && G_[s * stride_ + s] > 0) free_.push_back(s);
        }
        return !free_.empty();
    }

    bool reached(std::span<const Index> active, const double* w, const double* c, const Target& target) const {
        Progress progress(penalty_, target);
        for (Index s : active) progress.visit(s, w[s], c[s], G_[s * stride_ + s]);
        return progress.reached();
    }

    const double* G_;
    Index stride_, k_;
    const Penalty& penalty_;
    Factor& factor_;
    std::vector<Index> free_;
    std::vector<char> settled_, clipped_, taken_;
    std::vector<double> slope_, step_, direction_, moved_, image_;
};

}  // namespace certifit
