// The problem of ridge.hpp for many more rows than columns: nearly all rows end beyond their kinks, and there they are as good as their mean.
//
// A fit to a sample says on which linear piece of its loss each row will end. Rows near a kink keep their own loss; those on a piece of slope
// zero leave, and those on one side become one row, their weighted mean, with the sum of their weights: there the mean of the losses is the
// loss of the mean, and never above it elsewhere (Jensen). So a bound of the small problem is one of the whole problem whether the guess was
// right or not; a wrong guess shows as a gap, and its rows come back. Portnoy and Koenker (1997), The Gaussian hare and the Laplacian tortoise.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/interrupt.hpp"
#include "interior_point/ridge.hpp"

namespace certifit::interior {

// Some rows with their losses, as the arrays that Ridge takes.
template <class Rows>
struct Chosen {
    const Rows& X;
    std::vector<Index> rows;
    std::vector<double> lower, upper, low, high, p, means;  // `means`: rows that are none of X, which follow the others

    void keep(const dual::Terms& terms, Index i) {
        rows.push_back(i);
        put(terms.lower[i], terms.upper[i], terms.slope_low[i], terms.slope_high[i], terms.p[i]);
    }
    void put(double lower_, double upper_, double low_, double high_, double weight) {
        lower.push_back(lower_), upper.push_back(upper_), low.push_back(low_), high.push_back(high_), p.push_back(weight);
    }
    dual::Terms terms() const { return {lower.data(), upper.data(), low.data(), high.data(), p.data(), 0.0}; }
    void add(Index k, double a, double* w) const {
        const Index kept = static_cast<Index>(rows.size());
        if (k < kept) X.add(rows[static_cast<std::size_t>(k)], a, w);
        else for (Index j = 0; j < X.d; ++j) w[j] += a * means[static_cast<std::size_t>((k - kept) * X.d + j)];
    }

    // With slopes that balance, and their own bound.
    Found solve(const double* l2, const Options& options) const {
        const Index n = static_cast<Index>(p.size()), d = X.d;
        const auto fill = [&](double* out) {
            std::vector<double> row(static_cast<std::size_t>(d));
            for (Index k = 0; k < n; ++k) {
                std::fill(row.begin(), row.end(), 0.0);
                add(k, 1.0, row.data());
                for (Index j = 0; j < d; ++j) out[j * n + k] = row[static_cast<std::size_t>(j)];
            }
        };
        Ridge solver(fill, n, d, terms(), l2, options);
        Found found = solver.suited() ? solver.solve() : Found();
        if (found.w.empty()) return found;
        if (options.intercept) dual::balance(terms(), found.theta);
        std::vector<double> pull(static_cast<std::size_t>(d), 0.0);
        double conjugate = 0, energy = 0;
        for (Index k = 0; k < n; ++k) {
            const double theta = found.theta[static_cast<std::size_t>(k)], weight = p[static_cast<std::size_t>(k)];
            conjugate += weight * terms().conjugate(k, theta);
            add(k, weight * theta, pull.data());
        }
        for (Index j = 0; j < d; ++j) energy += pull[static_cast<std::size_t>(j)] * pull[static_cast<std::size_t>(j)] / l2[j];
        found.bound = -conjugate - 0.5 * energy;
        return found;
    }
};

template <class Rows>
class Tall {
  public:
    Tall(const Rows& X, const dual::Terms& terms, const double* l2, const Options& options)
        : X_(X), terms_(terms), l2_(l2), options_(options), far_(u(X.n)), side_(u(X.n)), near_(u(X.n)) {}

    // No coefficients where the gap stays above the tolerance.
    Found solve() {
        SignalPoll signals;
        Found at = sampled();
        const double rows = static_cast<double>(X_.n);
        double share = kNear * std::sqrt(static_cast<double>(X_.d) / static_cast<double>(sample_of(X_.n, X_.d)));
        Index used = at.iterations;
        if (!at.w.empty()) look(at, false);
        for (Index round = 0; round < kRounds && !at.w.empty() && share < kMost; ++round, share *= kWider) {
            signals.poll();
            widen(static_cast<Index>(share * rows));
            at = merged();
            if (at.w.empty()) break;
            at.objective = look(at, true);
            at.iterations = used += at.iterations;
            if (at.objective - at.bound <= options_.tolerance) return at;
        }
        return Found();
    }

  private:
    static constexpr Index kSmallest = 2000, kRowsPerColumn = 40;  // of the sample: fewer are nearly separable
    static constexpr double kNear = 2.5;   // share of the rows near a kink at first, in units of √(columns / rows of the sample)
    static constexpr double kWider = 1.6;  // by which that share grows
    static constexpr double kMost = 0.5;   // the largest: beyond it, little is saved
    static constexpr Index kRounds = 6, kLooked = 1 << 13;  // `kLooked`: distances that tell how far the rows near a kink reach
    static constexpr double kRough = 0.2;  // of columns / rows of the sample, beside the scale: what a sample knows of the optimum
    static constexpr double kPart = 0.7;   // of the tolerance, for the small problem
    static std::size_t u(Index i) { return static_cast<std::size_t>(i); }

    // As many rows for the sample as it leaves near a kink.
    static Index sample_of(Index n, Index d) {
        const double even = std::cbrt(std::pow(kNear * static_cast<double>(n), 2.0) * static_cast<double>(d));
        return std::max({kSmallest, kRowsPerColumn * d, static_cast<Index>(even)});
    }

    // The optimum of a sample, no better than that tells of the optimum of all.
    Found sampled() const {
        const Index n = X_.n, size = std::min(n, sample_of(n, X_.d));
        dual::Random random(0);
        Chosen<Rows> some{X_};
        double total = 0;
        for (Index k = 0; k < size; ++k) {  // one of each stretch of rows: whatever their order, all parts of it are there
            const Index first = k * n / size, next = (k + 1) * n / size, i = first + random.below(next - first);
            some.keep(terms_, i), total += terms_.p[i];
        }
        for (double& weight : some.p) weight /= total;
        Options options = options_;
        options.tolerance = std::max(options.tolerance, kRough * options.scale * static_cast<double>(X_.d) / static_cast<double>(size));
        return some.solve(l2_, options);
    }

    // The objective at a point, and where each row is beside its kinks; a row that was merged on another side keeps its loss from now on.
    double look(const Found& at, bool merged) {
        double loss = 0, penalty = 0;
        for (Index i = 0; i < X_.n; ++i) {
            const double f = X_.dot(i, at.w.data()) + at.intercept, above = f - terms_.upper[i], below = terms_.lower[i] - f;
            const double up = terms_.slope_high[i], down = terms_.slope_low[i];
            const std::int8_t side = above > 0 && up > 0 ? 1 : below > 0 && down > 0 ? -1 : 0;
            loss += terms_.p[i] * (side > 0 ? up * above : side < 0 ? down * below : 0.0);
            far_[u(i)] = std::min(up > 0 ? std::abs(above) : dual::kInfinity, down > 0 ? std::abs(below) : dual::kInfinity);
            near_[u(i)] |= static_cast<std::int8_t>(merged && side != side_[u(i)]);
            side_[u(i)] = side;
        }
        for (Index j = 0; j < X_.d; ++j) penalty += l2_[j] * at.w[u(j)] * at.w[u(j)];
        return loss + 0.5 * penalty;
    }

    // About so many rows that are nearest to a kink keep their loss too.
    void widen(Index count) {
        std::vector<double> order;
        const Index step = std::max<Index>(1, X_.n / kLooked);
        for (Index i = 0; i < X_.n; i += step) order.push_back(far_[u(i)]);
        const auto last = order.begin() + count / step;
        std::nth_element(order.begin(), last, order.end());
        const double reach = *last;
        for (Index i = 0; i < X_.n; ++i) near_[u(i)] |= static_cast<std::int8_t>(far_[u(i)] < reach);
    }

    // The optimum of the rows near a kink and the means of the others, with the slopes of all rows.
    Found merged() const {
        struct Mean {
            std::vector<double> row;
            double mass = 0, kink = 0;
        } up{std::vector<double>(u(X_.d), 0.0)}, down{std::vector<double>(u(X_.d), 0.0)};
        Chosen<Rows> few{X_};
        for (Index i = 0; i < X_.n; ++i) {
            if (near_[u(i)]) {
                few.keep(terms_, i);
            } else if (side_[u(i)] != 0) {
                Mean& mean = side_[u(i)] > 0 ? up : down;
                const double weight = terms_.p[i] * (side_[u(i)] > 0 ? terms_.slope_high[i] : terms_.slope_low[i]);
                X_.add(i, weight, mean.row.data());
                mean.mass += weight, mean.kink += weight * (side_[u(i)] > 0 ? terms_.upper[i] : terms_.lower[i]);
            }
        }
        for (Mean* mean : {&up, &down}) {
            if (!(mean->mass > 0)) continue;
            const double kink = mean->kink / mean->mass;
            for (double& entry : mean->row) entry /= mean->mass;
            few.means.insert(few.means.end(), mean->row.begin(), mean->row.end());
            if (mean == &up) few.put(-dual::kInfinity, kink, 0.0, 1.0, mean->mass);
            else few.put(kink, dual::kInfinity, 1.0, 0.0, mean->mass);
        }
        Options options = options_;
        options.tolerance *= kPart;
        Found found = few.solve(l2_, options);
        if (found.w.empty()) return found;
        const std::size_t kept = few.rows.size();
        const double high = up.mass > 0 ? found.theta[kept] : 0.0, low = down.mass > 0 ? -found.theta[kept + (up.mass > 0)] : 0.0;
        std::vector<double> theta(u(X_.n));
        for (Index i = 0; i < X_.n; ++i) theta[u(i)] = side_[u(i)] > 0 ? high * terms_.slope_high[i] : side_[u(i)] < 0 ? -low * terms_.slope_low[i] : 0.0;
        for (std::size_t k = 0; k < kept; ++k) theta[u(few.rows[k])] = found.theta[k];
        found.theta = std::move(theta);
        found.exact = false;
        return found;
    }

    const Rows& X_;
    dual::Terms terms_;
    const double* l2_;
    Options options_;
    std::vector<double> far_;            // from each row's score to its nearest kink
    std::vector<std::int8_t> side_, near_;  // the sign of its slope there; whether it keeps its loss
};

}  // namespace certifit::interior
