// Ridge regression by conjugate gradients, to a gap that the gradient proves.
//
//   P(w, b) = Σ p_i ½(y_i − x_i·w − b)² + ½ Σ_j l2_j w_j²,   Σ p = 1, l2 > 0
//
// b is the best for w, so that H w = Σ p (y − ȳ)(x − m) with H = Σ p (x − m)(x − m)' + diag(l2), m = Σ p x. A product with H
// reads X once: a block of rows is pulled back while it is in the cache. The residuals r of any w are a dual point,
//
//   P(w, b) − D(p r) = ½ Σ_j g_j²/l2_j ≥ ½ Σ_j l2_j (w_j − w*_j)²,   g = Σ p r (x − m) − l2 w,
//
// and g is what conjugate gradients know anyhow. Directions are scaled by the diagonal of H (Hestenes & Stiefel 1952). Where
// there are fewer rows than columns they may be scaled by the penalty instead: then w = L⁻¹Σ a (x − m) with L = diag(l2), and a,
// which follows from the same numbers, is a dual point too. No penalty, however weak, divides its gap:
//
//   P(w, b) − D(a) = ½ Σ_i (p_i r_i − a_i)²/p_i + ½ Σ_j (l2_j w_j − Σ a (x − m))_j²/l2_j,   where the second sum is rounding
//
// They are given up where their rate says that `most` products are not enough.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/interrupt.hpp"
#include "core/team.hpp"
#include "products/blocks.hpp"

namespace certifit::ridge {

using products::Table;

struct Asked {
    bool intercept;
    double tol;       // the gap that is wanted
    double share;     // and as a share of the penalty's part of the objective: the coefficients are off by its root at most
    double most;      // products with H that are worth it
    Index max_iter;   // that there may be in any case
};

struct Found {
    std::vector<double> coef;
    double intercept = 0, objective = 0, gap = 0;
    Index products = 0;
    bool given_up = false;
};

// What belongs to a row: the residual, its dual number, and how both change along a direction.
struct Duals {
    std::vector<double> r, a, moved, along;

    bool any() const { return !r.empty(); }
    double gap(const double* p) const {
        double sum = 0;
        for (std::size_t i = 0; i < r.size(); ++i) sum += (p[i] * r[i] - a[i]) * (p[i] * r[i] - a[i]) / p[i];
        return 0.5 * sum;
    }
    void turn(const double* p, double share) {
        for (std::size_t i = 0; i < r.size(); ++i) along[i] = p[i] * r[i] - a[i] + share * along[i];
    }
    void step(double size) {
        for (std::size_t i = 0; i < r.size(); ++i) r[i] -= size * moved[i], a[i] += size * along[i];
    }
};

template <class Rows>
class Conjugate {
  public:
    Conjugate(const Rows& X, const double* y, const double* p, const double* l2, const Asked& asked, Team& team)
        : X_(X), y_(y), p_(p), l2_(l2), asked_(asked), d_(X.d), fold_(X, team) {}

    Found run() {
        measure();
        std::vector<double> g = moment_, z(d_), direction(d_), image(d_);
        found_.coef.assign(d_, 0.0);
        std::vector<double> proven{proof(g)};  // after so many products
        while (true) {
            double before = 0;
            bool fresh = true;
            while (proven.back() > wanted()) {
                if (found_.products >= asked_.max_iter || hopeless(proven)) return given_up();
                double rho = 0;
                for (Index j = 0; j < d_; ++j) z[j] = g[j] * inverse_[j], rho += z[j] * g[j];
                const double share = fresh ? 0.0 : rho / before;
                for (Index j = 0; j < d_; ++j) direction[j] = z[j] + share * direction[j];
                duals_.turn(p_, share);
                product(direction.data(), image.data());
                const double bend = vec::dot(direction.data(), image.data(), d_), step = rho / bend;
                if (!(bend > 0.0 && std::isfinite(step))) return given_up();
                for (Index j = 0; j < d_; ++j) found_.coef[j] += step * direction[j], g[j] -= step * image[j];
                duals_.step(step);
                before = rho, fresh = false;
                proven.push_back(proof(g));
            }
            finish(g);
            // Rounding leaves more in the gradient than its recurrence says: on from there, as long as that helps.
            if (found_.gap <= wanted() || !(found_.gap < 0.5 * first_after_) || !std::isfinite(found_.gap)) break;
            first_after_ = found_.gap;
            proven.assign(1, found_.gap);
        }
        found_.given_up = !(found_.gap <= wanted());
        return std::move(found_);
    }

  private:
    Found given_up() {
        found_.given_up = true;
        return std::move(found_);
    }

    double by_gradient(const std::vector<double>& g) const {
        double sum = 0;
        for (Index j = 0; j < d_; ++j) sum += g[j] * g[j] / l2_[j];
        return 0.5 * sum;
    }

    double proof(const std::vector<double>& g) const {
        return duals_.any() ? std::min(by_gradient(g), duals_.gap(p_)) : by_gradient(g);
    }

    double wanted() const {
        if (!std::isfinite(asked_.share)) return asked_.tol;
        double penalty = 0;
        for (Index j = 0; j < d_; ++j) penalty += l2_[j] * found_.coef[j] * found_.coef[j];
        return std::min(asked_.tol, asked_.share * 0.5 * penalty);
    }

    // The rate of the later half of the products so far, which is better than that of all: few directions stand out, and go
    // first.
    bool hopeless(const std::vector<double>& proven) const {
        constexpr Index kLook = 6;
        const Index k = static_cast<Index>(proven.size()) - 1;
        if (!std::isfinite(asked_.most) || k < kLook) return false;
        if (static_cast<double>(k) > asked_.most) return true;
        // The least so far: a direction that stands out comes back with rounding, is seen in one gradient, and goes again.
        const double before = *std::min_element(proven.begin(), proven.begin() + k / 2 + 1),
                     now = *std::min_element(proven.begin(), proven.end());
        const double rate = std::log(before / now) / static_cast<double>(k - k / 2), left = std::log(now / wanted());
        return !(rate * (kSlack * asked_.most - static_cast<double>(k)) >= left);
    }

    // Whether directions are scaled by the penalty alone. They then stay in the span of the rows, where H has no small
    // eigenvalues if rows are nearly orthogonal: there are many columns for each row, or so many that count as much as each other
    // (Marchenko & Pastur 1967); any other scaling lets in what is orthogonal to the rows, and its curvature is that of the
    // penalty.
    bool stay_with_rows(const std::vector<double>& energies) const {
        if (X_.n > d_ || !std::all_of(p_, p_ + X_.n, [](double weight) { return weight > 0.0; })) return false;
        double sum = 0, squares = 0;
        for (Index j = 0; j < d_; ++j) {
            const double energy = energies[j] / l2_[j];
            sum += energy, squares += energy * energy;
        }
        return d_ >= 2 * X_.n || sum * sum >= kColumns * static_cast<double>(X_.n) * squares;
    }

    void measure() {
        const Index n = X_.n;
        double y_mean = 0;
        if (asked_.intercept)
            for (Index i = 0; i < n; ++i) y_mean += p_[i] * y_[i];
        y_mean_ = y_mean;
        std::vector<double> sums(3 * d_ + 1);
        fold_(3 * d_ + 1, sums.data(), [&](Index i, Index rows, double* q, double* part) {
            for (Index t = 0; t < rows; ++t) q[t] = p_[i + t] * (y_[i + t] - y_mean), part[3 * d_] += q[t];
            products::block_pull(X_, i, rows, q, part);
            products::block_squares(X_, i, rows, p_ + i, part + d_);
            if (asked_.intercept) products::block_pull(X_, i, rows, p_ + i, part + 2 * d_);
        });
        ++found_.products;
        mean_.assign(sums.begin() + 2 * d_, sums.begin() + 3 * d_);
        moment_.resize(d_), inverse_.resize(d_);
        for (Index j = 0; j < d_; ++j) {
            moment_[j] = sums[j] - mean_[j] * sums[3 * d_];
            inverse_[j] = std::max(sums[d_ + j] - mean_[j] * mean_[j], 0.0);
        }
        const bool rows = stay_with_rows(inverse_);
        for (Index j = 0; j < d_; ++j) inverse_[j] = 1.0 / (rows ? l2_[j] : inverse_[j] + l2_[j]);
        if (!rows) return;
        for (auto* part : {&duals_.r, &duals_.a, &duals_.moved, &duals_.along}) part->assign(n, 0.0);
        for (Index i = 0; i < n; ++i) duals_.r[i] = y_[i] - y_mean;
    }

    void product(const double* v, double* out) {
        const double shift = vec::dot(mean_.data(), v, d_);
        sums_.resize(d_ + 1);
        fold_(d_ + 1, sums_.data(), [&](Index i, Index rows, double* q, double* part) {
            products::block_scores(X_, i, rows, v, -shift, q);
            if (duals_.any()) std::copy_n(q, rows, duals_.moved.data() + i);
            double level = 0;
            for (Index t = 0; t < rows; ++t) q[t] *= p_[i + t], level += q[t];
            part[d_] += level;
            products::block_pull(X_, i, rows, q, part);
        });
        ++found_.products;
        for (Index j = 0; j < d_; ++j) out[j] = sums_[j] - mean_[j] * sums_[d_] + l2_[j] * v[j];
    }

    // The gradient, objective and gap of the coefficients as they are.
    void finish(std::vector<double>& g) {
        std::vector<double>& w = found_.coef;
        const double b = asked_.intercept ? y_mean_ - vec::dot(mean_.data(), w.data(), d_) : 0.0;
        const Index width = duals_.any() ? 2 * d_ + 3 : d_ + 2;
        std::vector<double> sums(width);
        fold_(width, sums.data(), [&](Index i, Index rows, double* q, double* part) {
            products::block_scores(X_, i, rows, w.data(), b, q);
            double level = 0, energy = 0;
            for (Index t = 0; t < rows; ++t) {
                const double r = y_[i + t] - q[t];
                if (duals_.any()) duals_.r[i + t] = r;
                q[t] = p_[i + t] * r;
                level += q[t], energy += q[t] * r;
            }
            part[d_] += level, part[d_ + 1] += energy;
            products::block_pull(X_, i, rows, q, part);
            if (!duals_.any()) return;
            for (Index t = 0; t < rows; ++t) part[d_ + 2] += duals_.a[i + t];
            products::block_pull(X_, i, rows, duals_.a.data() + i, part + d_ + 3);
        });
        ++found_.products;
        const double level = asked_.intercept ? sums[d_] : 0.0;
        double penalty = 0;
        for (Index j = 0; j < d_; ++j) {
            g[j] = sums[j] - mean_[j] * level - l2_[j] * w[j];
            penalty += l2_[j] * w[j] * w[j];
        }
        found_.intercept = b + level;
        found_.objective = 0.5 * (std::max(sums[d_ + 1] - level * level, 0.0) + penalty);
        found_.gap = by_gradient(g);
        if (duals_.any()) found_.gap = std::min(found_.gap, balanced(level, sums[d_ + 2], sums.data() + d_ + 3));
    }

    // The gap of the dual numbers, with the intercept refitted and their sum taken off; `pulled` is Σ a x.
    double balanced(double level, double sum, const double* pulled) {
        if (!asked_.intercept) sum = 0;
        for (Index i = 0; i < X_.n; ++i) duals_.r[i] -= level, duals_.a[i] -= p_[i] * sum;
        double off = 0;
        for (Index j = 0; j < d_; ++j) {
            const double left = l2_[j] * found_.coef[j] - (pulled[j] - mean_[j] * sum);
            off += left * left / l2_[j];
        }
        return duals_.gap(p_) + 0.5 * off;
    }

    static constexpr double kColumns = 1.5;  // for each row, counted by what they share of the energy
    static constexpr double kSlack = 1.3;  // conjugate gradients become faster on their way

    const Rows X_;
    const double *y_, *p_, *l2_;
    const Asked asked_;
    Index d_;
    products::Fold<Rows> fold_;
    double y_mean_ = 0, first_after_ = std::numeric_limits<double>::infinity();
    std::vector<double> mean_, moment_, inverse_, sums_;
    Duals duals_;  // none where directions leave the span of the rows
    Found found_;
};

}  // namespace certifit::ridge
