// Local logistic regression: at each query and for each class, the log odds as a polynomial around the query.
//
//     minimize over β   (1/Σw) Σ_i w_i log(1 + exp(−t_i f_i)) + alpha·½‖β‖²,   f_i = f₀ + β·φ(z_i),   t_i = ±1
//
// f₀ are the log odds of the class among all rows, so that where the neighbors say nothing the answer is the share of the class.
// The objective is strongly convex: Newton's method with steps halved until they descend ends at its minimum, and
// ‖gradient‖²/(2·alpha) bounds what is missing.
#pragma once

#include <cstdint>

#include "core/team.hpp"
#include "local/rows.hpp"
#include "local/solve.hpp"

namespace certifit::local {

constexpr int kNewton = 50;

// Rows with a weight, copied together: [row][term], with w/Σw and, for one class at a time, 1 in the class and 0 elsewhere.
struct Gathered {
    std::vector<double> phi, weight, target;
    std::vector<Index> place;
    Index count = 0;
};

// For each query: the log odds of each class, [query][class], and the most that an objective of it lies above its minimum.
struct Odds {
    double* value;
    double* missing;
};

// Which row a query is itself, by its place in the blocks (−1 for none): one copy of it is left out.
struct Left {
    const std::int64_t* place;
    double copy;  // the weight of one copy
};

class Newton {
  public:
    Newton(Index terms, double alpha, double tolerance)
        : terms_(terms), alpha_(alpha), tolerance_(tolerance), factor_(terms), beta_(u(terms)), step_(u(terms)), trial_(u(terms)),
          at_(terms), next_(terms) {}

    // The log odds at the query; poll() may throw.
    template <class Poll>
    double solve(const Gathered& rows, double base, Poll&& poll) {
        std::fill(beta_.begin(), beta_.end(), 0.0);
        evaluate(rows, base, beta_, at_);
        for (int iteration = 0; iteration < kNewton && missing() > tolerance_; ++iteration) {
            poll();
            if (!factor_.of(at_.hessian.data(), 0.0)) break;
            factor_.solve(at_.gradient.data(), step_.data());
            double slope = 0.0, size = 1.0;
            for (Index a = 0; a < terms_; ++a) slope += step_[u(a)] * at_.gradient[u(a)];
            bool descended = false;
            for (int half = 0; half < 40 && !descended; ++half, size *= 0.5) {
                for (Index a = 0; a < terms_; ++a) trial_[u(a)] = beta_[u(a)] - size * step_[u(a)];
                evaluate(rows, base, trial_, next_);
                descended = next_.value <= at_.value - 1e-4 * size * slope;
            }
            if (!descended) break;  // as near as rounding lets it come
            std::swap(beta_, trial_), std::swap(at_, next_);
        }
        return base + beta_[0];
    }

    // The objective is at most this far above its minimum, by strong convexity.
    double missing() const {
        double square = 0.0;
        for (const double g : at_.gradient) square += g * g;
        return 0.5 * square / alpha_;
    }

  private:
    struct Point {
        explicit Point(Index terms) : gradient(u(terms)), hessian(u(terms * terms)) {}
        double value = 0.0;
        std::vector<double> gradient, hessian;
    };

    Index terms_;
    double alpha_, tolerance_;
    Factor factor_;
    std::vector<double> beta_, step_, trial_;
    Point at_, next_;

    static std::size_t u(Index a) { return static_cast<std::size_t>(a); }

    void evaluate(const Gathered& rows, double base, const std::vector<double>& beta, Point& out) const {
        std::fill(out.gradient.begin(), out.gradient.end(), 0.0), std::fill(out.hessian.begin(), out.hessian.end(), 0.0);
        out.value = 0.0;
        double *gradient = out.gradient.data(), *hessian = out.hessian.data();
        for (Index i = 0; i < rows.count; ++i) {
            const double* x = rows.phi.data() + i * terms_;
            double f = base;
            for (Index a = 0; a < terms_; ++a) f += beta[u(a)] * x[a];
            const double w = rows.weight[u(i)], t = rows.target[u(i)], e = std::exp(-std::fabs(f)),
                         p = (f > 0.0 ? 1.0 : e) / (1.0 + e);
            const double margin = t > 0.0 ? -f : f, h = w * e / ((1.0 + e) * (1.0 + e));
            out.value += w * ((margin > 0.0 ? margin : 0.0) + std::log1p(e));
            for (Index a = 0; a < terms_; ++a) {
                gradient[a] += w * (p - t) * x[a];
                const double hx = h * x[a];
                for (Index b = a; b < terms_; ++b) hessian[a * terms_ + b] += hx * x[b];
            }
        }
        for (Index a = 0; a < terms_; ++a) {
            out.value += 0.5 * alpha_ * beta[u(a)] * beta[u(a)];
            gradient[a] += alpha_ * beta[u(a)], hessian[a * terms_ + a] += alpha_;
        }
    }
};

// Copies the rows of a neighborhood; false where none has a weight.
inline bool gather(Neighborhood& near, const Rows& rows, Index left, double copy, Gathered& all) {
    const Index terms = near.terms();
    double total = 0.0;
    all.phi.clear(), all.weight.clear(), all.place.clear();
    near.each([&](Index b) {
        for (Index i = 0; i < kRows; ++i) {
            const Index place = b * kRows + i;
            const double s = rows.s[place],
                         w = place == left ? near.weight()[i] * std::max(0.0, s - copy * (1 + 1e-12)) / s : near.weight()[i];
            if (!(w > 0.0)) continue;
            all.weight.push_back(w), all.place.push_back(place), total += w;
            for (Index a = 0; a < terms; ++a) all.phi.push_back(near.phi()[a * kRows + i]);
        }
    });
    all.count = static_cast<Index>(all.weight.size());
    for (double& w : all.weight) w /= total;
    return total > 1e-280;
}

// `rows.y` holds one column of ones and zeros for each class; of two classes, one column for the second.
inline void classify(const Rows& rows, const Lens& lens, const double* base, Newton newton, const double* queries, Index m,
                     const Left& left, const Odds& odds, Team& team) {
    const Index classes = rows.targets;
    team.blocks(m, 4, true, [&](Index from, Index to, int worker) {
        Neighborhood near(rows, lens);
        Newton solver = newton;
        Gathered all;
        for (Index q = from; q < to; ++q) {
            team.check(worker);
            near.settle(queries + q * rows.d);
            const Index itself = left.place ? static_cast<Index>(left.place[q]) : -1;
            if (!gather(near, rows, itself, left.copy, all)) near.widen(), gather(near, rows, itself, left.copy, all);
            all.target.resize(all.place.size());
            odds.missing[q] = 0.0;
            for (Index c = 0; c < classes; ++c) {
                for (std::size_t i = 0; i < all.place.size(); ++i)
                    all.target[i] = rows.y[(all.place[i] / kRows * classes + c) * kRows + all.place[i] % kRows];
                odds.value[q * classes + c] =
                    all.weight.empty() ? base[c] : solver.solve(all, base[c], [&] { team.check(worker); });
                odds.missing[q] = std::max(odds.missing[q], all.weight.empty() ? 0.0 : solver.missing());
            }
        }
    });
}

}  // namespace certifit::local
