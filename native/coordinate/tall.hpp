// Penalized least squares of few columns and many rows: dense, stored one row or one column after the other, or the numbers of sparse rows.
// One pass over X gives
//
//   [1 X y]' diag(p) [1 X y]
//
// and the problem on it is small. Another pass takes residual and correlations at its solution from X itself: they are the proof, and
// where rounding of the sums has left too much of the gap, the small problem is solved again from there. X is never copied, and
// nothing as long as its columns is held.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "coordinate/gram.hpp"
#include "coordinate/proof.hpp"
#include "products/products.hpp"
#include "products/sparse.hpp"
#include "products/sums.hpp"

namespace certifit {

template <class Matrix>
class TallLeastSquares {
  public:
    // Of weights that are `even` only the first is read.
    TallLeastSquares(const Matrix& X, const double* y, const double* p, bool even, bool intercept, int threads, std::vector<double> start)
        : coef(std::move(start)), X_(X), y_(y), p_(p), even_(even), intercept_(intercept), threads_(threads) {}

    std::vector<double> coef;

    // The solution; a gap beyond the tolerance says that the sums have lost too much, and coordinate descent on X is needed.
    Certified solve(const Penalty& penalty, double tolerance, SignalPoll& signals) {
        Certified best;
        const Index d = X_.d;
        for (Index j = 0; j < d; ++j) coef[j] = penalty.clip(j, coef[j]);
        if (penalty.power() || !sum_up()) return best;
        signals.poll();
        Factor factor;
        std::vector<Index> active, terms;
        for (Index j = 0; j < d; ++j)
            if (norm2_[j] > 0) active.push_back(j);
        double bound = -kInfinity;
        for (Index round = 0; round < kRounds; ++round) {
            const double unit = 64 * std::numeric_limits<double>::epsilon() * (y_norm_ + std::sqrt(energy_));
            // Every round asks for more than the last one: the sums may be right, and the estimate of the gap too small.
            const Target target{tolerance * std::pow(0.1, 2 + round), energy_, unit};
            std::vector<double> c = c_;
            GramSolver(gram_.data(), d, d, penalty, factor).solve(active, coef.data(), c.data(), target, 1000, signals);
            look();
            const Evidence evidence{d, energy_, unit, std::sqrt(total_), coef.data(), c_.data(), norm2_.data(), mean_.data()};
            const Proof proof = prove(penalty, evidence, terms, [](Index) { return 0.0; });
            bound = std::max(bound, proof.objective - proof.gap);
            const double floor = std::numeric_limits<double>::epsilon() * proof.objective;
            best = {b_, proof.objective, std::max(proof.objective - bound, floor), round + 1};
            if (best.gap <= tolerance || !std::isfinite(best.gap)) break;
        }
        return best;
    }

  private:
    static constexpr Index kRounds = 4;
    static constexpr double kLost = 1e-6;  // the share of a column's square that its deviation must have, for its digits to be left

    // Gram matrix of the centered columns, correlations and energy at `coef`; false where the sums are no good.
    bool sum_up() {
        const Index d = X_.d, m = d + 2;
        const std::vector<double> sums = products::sums_of(X_, y_, p_, threads_, even_, 0.0);
        const auto at = [&](Index j, Index k) { return sums[j * m + k]; };
        total_ = at(0, 0);
        if (!(total_ > 0) || !std::isfinite(at(m - 1, m - 1))) return false;
        mean_.assign(d, 0.0), norm2_.resize(d), c_.resize(d), gram_.resize(d * d);
        y_mean_ = intercept_ ? at(m - 1, 0) / total_ : 0.0;
        if (intercept_)
            for (Index j = 0; j < d; ++j) mean_[j] = at(j + 1, 0) / total_;
        for (Index j = 0; j < d; ++j) {
            for (Index k = 0; k <= j; ++k)
                gram_[j * d + k] = gram_[k * d + j] = at(j + 1, k + 1) - total_ * mean_[j] * mean_[k];
            norm2_[j] = gram_[j * d + j];
            if (!std::isfinite(at(j + 1, j + 1)) || !(norm2_[j] >= kLost * at(j + 1, j + 1))) return false;
            c_[j] = at(m - 1, j + 1) - total_ * mean_[j] * y_mean_;
        }
        energy_ = std::max(at(m - 1, m - 1) - total_ * y_mean_ * y_mean_, 0.0);
        if (!(energy_ >= kLost * at(m - 1, m - 1))) return false;
        y_norm_ = std::sqrt(energy_);
        for (Index j = 0; j < d; ++j) {
            if (coef[j] == 0.0) continue;
            energy_ -= 2 * coef[j] * c_[j] - coef[j] * coef[j] * norm2_[j];
            vec::subtract(coef[j], gram_.data() + j * d, 0.0, c_.data(), d);
        }
        energy_ = std::max(energy_, 0.0);
        return true;
    }

    // Intercept, energy and correlations at `coef`, from X.
    void look() {
        const Index d = X_.d;
        b_ = y_mean_;
        for (Index j = 0; j < d; ++j) b_ -= mean_[j] * coef[j];
        std::vector<double> sums(d + 2);
        products::residual(X_, y_, p_, coef.data(), b_, sums.data(), threads_, even_);
        const double level = intercept_ ? sums[d] / total_ : 0.0;
        b_ += level;
        energy_ = std::max(sums[d + 1] - total_ * level * level, 0.0);
        for (Index j = 0; j < d; ++j) c_[j] = norm2_[j] > 0 ? sums[j] - total_ * level * mean_[j] : 0.0;
    }

    const Matrix X_;
    const double *y_, *p_;
    const bool even_, intercept_;
    const int threads_;
    double total_ = 0, y_mean_ = 0, y_norm_ = 0, b_ = 0, energy_ = 0;
    std::vector<double> mean_, norm2_, c_, gram_;
};

}  // namespace certifit
