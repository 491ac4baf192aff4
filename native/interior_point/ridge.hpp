// A piecewise linear loss with an L2 penalty on every coefficient, for few columns: support vector machines and tubes.
//
//   min over w, b   Σ p_i ℓ_i(x_i·w + b) + ½ Σ_j l2_j w_j²,     ℓ_i(f) = high_i·max(f − upper_i, 0) + low_i·max(lower_i − f, 0)
//
// Predictor-corrector steps (Mehrotra 1992) as in optimization/interior_point/core.py, until the point shows which rows lie on a kink. Their
// multipliers then solve a system of equations, X_S diag(l2)⁻¹ X_S' t = …: where these stay between their limits the optimum is exact. The
// matrix does not depend on how weak the penalty is. Both sides are evaluated at the point that is returned, whatever led to it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "coordinate/factor.hpp"
#include "core/interrupt.hpp"
#include "core/options.hpp"
#include "dual/hinge.hpp"
#include "interior_point/atoms.hpp"
#include "products/products.hpp"

namespace certifit::interior {

struct Found {
    std::vector<double> w, theta;
    double intercept = 0, objective = dual::kInfinity, bound = -dual::kInfinity;
    Index iterations = 0;
    bool exact = false;  // whether the rows on kinks were found, and the point lies on them
};

inline double power_of_two(double x) {
    if (!(x > 0) || !std::isfinite(x)) return 1.0;
    int exponent;
    std::frexp(x, &exponent);
    return std::ldexp(1.0, exponent);
}

inline double median(std::vector<double>& x) {
    const auto middle = x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2);
    std::nth_element(x.begin(), middle, x.end());
    return *middle;
}

class Ridge {
  public:
    // `fill` writes the columns of X, one after the other.
    template <class F>
    Ridge(F&& fill, Index n, Index d, const dual::Terms& terms, const double* l2, const Options& options)
        : n_(n), d_(d), m_(d + options.intercept), terms_(terms), options_(options), table_(u(n * m_)), centre_(u(d)), column_(u(d)), Q_(u(m_)), z_(u(m_)),
          rows_(u(n)), weight_(u(n)), matrix_(u(m_ * m_)), scaling_(u(m_)) {
        fill(table_.data());
        if (options.intercept) std::fill_n(table_.begin() + n * d, n, 1.0);
        scale_columns();
        scale_kinks();
        for (Index j = 0; j < d; ++j) Q_[u(j)] = l2[j] / column_[u(j)] * (target_ / column_[u(j)]) / height_;
        make_atoms();
    }

    // Whether every row has a kink, and all numbers are ordinary.
    bool suited() const {
        for (Index k = 0; k < atoms_.count; ++k)
            if (!(atoms_.h[u(k)] > 1e-100) || !(atoms_.h[u(k)] < 1e100) || !(std::abs(atoms_.r[u(k)]) < 1e100)) return false;
        for (Index j = 0; j < d_; ++j)
            if (!(Q_[u(j)] > 1e-100) || !(Q_[u(j)] < 1e100)) return false;
        return n_ > 0 && d_ > 0;
    }

    Found solve() {
        Found best;
        SignalPoll signals;
        const double unit = target_ * height_, tol = options_.tolerance / unit, scale = options_.scale / unit;
        if (!start()) return best;
        double previous = dual::kInfinity;
        Index stalled = 0;
        for (Index iteration = 1; iteration <= options_.max_iter; ++iteration) {
            signals.poll();
            const double total = atoms_.complementarity();
            best.iterations = iteration - 1;
            if (!std::isfinite(total)) break;
            if (total <= kEarly * scale && crossed(best, total <= kLate * scale)) break;
            if (total <= 2.0 * tol) {
                consider(best, z_, atoms_.a, false);
                if (best.objective - best.bound <= options_.tolerance) break;
            }
            stalled = total > 0.98 * previous ? stalled + 1 : 0;
            if (stalled >= 4 || total <= 1e-17 * static_cast<double>(2 * atoms_.count)) break;
            previous = total;
            if (!advance(total)) break;
        }
        return best;
    }

  private:
    // A mean beside the largest entry, from which a column is centered. Columns of few entries would all be the same in rows without any:
    // where such a row lies on a kink, its weight hides what tells them apart.
    static constexpr double kOff = 0.05;
    static constexpr double kEarly = 1e-2;  // products, beside the scale, at which the rows on kinks may show
    static constexpr double kLate = 1e-6;   // and at which they should
    static constexpr double kLight = 1e-6;  // height, beside the mean, below which there is no more room around a kink
    static constexpr double kOutside = 1e-9;  // what multipliers may exceed their limits by
    static std::size_t u(Index i) { return static_cast<std::size_t>(i); }

    void scale_columns() {
        for (Index j = 0; j < d_; ++j) {
            double *x = table_.data() + j * n_, sum = 0, peak = 0;
            for (Index i = 0; i < n_; ++i) sum += x[i], peak = std::max(peak, std::abs(x[i]));
            const double mean = sum / static_cast<double>(n_);
            if (options_.intercept && std::isfinite(mean) && std::abs(mean) > kOff * peak) {
                centre_[u(j)] = mean, peak = 0;
                for (Index i = 0; i < n_; ++i) x[i] -= mean, peak = std::max(peak, std::abs(x[i]));
            }
            column_[u(j)] = power_of_two(peak);
            const double inverse = 1.0 / column_[u(j)];
            for (Index i = 0; i < n_; ++i) x[i] *= inverse;
        }
    }

    // Sizes of the kinks and of the weighted slopes, safe against outliers.
    void scale_kinks() {
        std::vector<double> kinks;
        double peak = 0;
        for (Index i = 0; i < n_; ++i) {
            const double low = terms_.p[i] * terms_.slope_low[i], high = terms_.p[i] * terms_.slope_high[i];
            if (low > 0 && std::isfinite(terms_.lower[i])) kinks.push_back(terms_.lower[i]), peak = std::max(peak, low);
            if (high > 0 && std::isfinite(terms_.upper[i])) kinks.push_back(terms_.upper[i]), peak = std::max(peak, high);
        }
        height_ = power_of_two(peak);
        if (kinks.empty()) return;
        std::vector<double> sizes = kinks;
        const double middle = options_.intercept ? median(sizes) : 0.0;
        for (double& size : sizes) size = std::abs(size - middle);
        const double spread = median(sizes);
        if (std::abs(middle) > 8.0 * spread) shift_ = middle;
        for (std::size_t k = 0; k < kinks.size(); ++k) sizes[k] = std::abs(kinks[k] - shift_);
        const double typical = median(sizes);
        target_ = power_of_two(typical > 0 ? typical : *std::max_element(sizes.begin(), sizes.end()));
    }

    // One atom a row, and a second one where two kinks are apart; a kink that has slopes on both sides is one atom and a linear term.
    void make_atoms() {
        sign_.assign(u(n_), 1.0), base_.assign(u(n_), 0.0);
        std::vector<double> h(u(n_)), r(u(n_)), h2, r2;
        for (Index i = 0; i < n_; ++i) {
            const double low = terms_.p[i] * terms_.slope_low[i] / height_, high = terms_.p[i] * terms_.slope_high[i] / height_;
            const double left = (terms_.lower[i] - shift_) / target_, right = (terms_.upper[i] - shift_) / target_;
            const bool above = high > 0 && std::isfinite(right), below = low > 0 && std::isfinite(left);
            if (above && below && left == right) {
                h[u(i)] = low + high, r[u(i)] = right, base_[u(i)] = -low, constant_ += low * right;
            } else if (below && !above) {
                sign_[u(i)] = -1.0, h[u(i)] = low, r[u(i)] = -left;
            } else {
                h[u(i)] = above ? high : 0.0, r[u(i)] = right;
                if (below) second_.push_back(i), h2.push_back(low), r2.push_back(-left);
            }
        }
        atoms_.resize(n_ + static_cast<Index>(second_.size()));
        std::copy(h.begin(), h.end(), atoms_.h.begin()), std::copy(h2.begin(), h2.end(), atoms_.h.begin() + n_);
        std::copy(r.begin(), r.end(), atoms_.r.begin()), std::copy(r2.begin(), r2.end(), atoms_.r.begin() + n_);
        share_products();
        linear_ = pulled(base_);
    }

    // Between equal products and products in proportion to the heights; optimization/interior_point/atoms.py says why.
    void share_products() {
        double mean = 0;
        for (Index k = 0; k < atoms_.count; ++k) mean += atoms_.h[u(k)] / static_cast<double>(atoms_.count);
        double level = 0;
        for (Index k = 0; k < atoms_.count; ++k) {
            const double size = atoms_.h[u(k)] / mean, room = 1.0 / std::sqrt(std::max(size, kLight));
            atoms_.room[u(k)] = room, atoms_.share[u(k)] = size * room, level += size * room / static_cast<double>(atoms_.count);
        }
        for (Index k = 0; k < atoms_.count; ++k) atoms_.room[u(k)] /= level, atoms_.share[u(k)] /= level;
    }

    products::Table<double> table() const { return {table_.data(), n_, m_, false}; }

    std::vector<double> pulled(const std::vector<double>& q) const {
        std::vector<double> out(u(m_));
        products::pullback(table(), q.data(), 1, out.data(), options_.threads);
        return out;
    }

    // G z of all atoms
    void forward(const std::vector<double>& z, std::vector<double>& image) {
        products::scores(table(), z.data(), 0.0, rows_.data(), options_.threads);
        for (Index i = 0; i < n_; ++i) image[u(i)] = sign_[u(i)] * rows_[u(i)];
        for (std::size_t k = 0; k < second_.size(); ++k) image[u(n_) + k] = -rows_[u(second_[k])];
    }

    // The signed sum of the atoms of each row
    void fold(const std::vector<double>& a) {
        for (Index i = 0; i < n_; ++i) rows_[u(i)] = sign_[u(i)] * a[u(i)];
        for (std::size_t k = 0; k < second_.size(); ++k) rows_[u(second_[k])] -= a[u(n_) + k];
    }

    // −(c + Qz + Gᵀq)
    std::vector<double> downhill(const std::vector<double>& q) {
        fold(q);
        std::vector<double> out = pulled(rows_);
        for (Index j = 0; j < m_; ++j) out[u(j)] = -out[u(j)] - linear_[u(j)] - Q_[u(j)] * z_[u(j)];
        return out;
    }

    // The Newton matrix GᵀDG + Q + ridge of the weights D, in units of its diagonal.
    bool factor(const std::vector<double>& D, double ridge) {
        for (Index i = 0; i < n_; ++i) weight_[u(i)] = D[u(i)];
        for (std::size_t k = 0; k < second_.size(); ++k) weight_[u(second_[k])] += D[u(n_) + k];
        products::WeightedGram(table(), weight_.data(), false).run(matrix_.data(), options_.threads);
        for (Index j = 0; j < m_; ++j) matrix_[u(j * m_ + j)] += Q_[u(j)] + (j < d_ ? ridge : 0.0);
        scaled_ = matrix_;
        for (Index j = 0; j < m_; ++j) {
            const double diagonal = matrix_[u(j * m_ + j)];
            if (!std::isfinite(diagonal) || !(diagonal > 0)) return false;
            scaling_[u(j)] = 1.0 / std::sqrt(diagonal);
        }
        for (Index j = 0; j < m_; ++j)
            for (Index k = 0; k < m_; ++k) scaled_[u(j * m_ + k)] *= scaling_[u(j)] * scaling_[u(k)];
        for (Index j = 0; j < m_; ++j) scaled_[u(j * m_ + j)] = 1.0 + 1e-14 * std::max(1.0, 0.1 * static_cast<double>(m_));
        return factored(scaled_, m_, factor_);
    }

    static bool factored(const std::vector<double>& matrix, Index size, Factor& factor) {
        std::vector<Index> all(u(size));
        for (Index j = 0; j < size; ++j) all[u(j)] = j;
        const std::vector<double> none(u(size), 0.0);
        factor.forget();
        factor.update(matrix.data(), size, none.data(), all, size);
        return factor.regular();
    }

    void solve_once(std::vector<double>& x) const {
        for (Index j = 0; j < m_; ++j) x[u(j)] *= scaling_[u(j)];
        factor_.solve(x.data());
        for (Index j = 0; j < m_; ++j) x[u(j)] *= scaling_[u(j)];
    }

    // Refined once against the matrix itself
    std::vector<double> solved(const std::vector<double>& right) const {
        std::vector<double> x = right, left = right;
        solve_once(x);
        for (Index j = 0; j < m_; ++j) left[u(j)] -= vec::dot(matrix_.data() + j * m_, x.data(), m_);
        solve_once(left);
        for (Index j = 0; j < m_; ++j) x[u(j)] += left[u(j)];
        return x;
    }

    // Least squares through the kinks: close in scale to the solution.
    bool start() {
        Atoms& x = atoms_;
        double typical = 0;
        for (Index k = 0; k < x.count; ++k) typical += x.h[u(k)];
        typical /= static_cast<double>(x.count);
        double mean = 0;
        for (Index k = 0; k < x.count; ++k) x.D[u(k)] = std::min(x.h[u(k)], 4.0 * typical) / typical, mean += x.D[u(k)];
        if (!factor(x.D, 1e-8 * mean / static_cast<double>(x.count))) return false;
        for (Index k = 0; k < x.count; ++k) x.q[u(k)] = x.D[u(k)] * x.r[u(k)];
        fold(x.q);
        z_ = solved(pulled(rows_));
        settle(z_, x.e);
        double spread = 0;
        for (Index k = 0; k < x.count; ++k) spread += std::abs(x.e[u(k)]);
        spread = std::max(spread / static_cast<double>(x.count), 0.1);
        for (Index k = 0; k < x.count; ++k) {
            const double room = spread * x.room[u(k)];  // so that the products are those of the centre
            x.s[u(k)] = std::max(-x.e[u(k)], 0.0) + room, x.v[u(k)] = std::max(x.e[u(k)], 0.0) + room;
            x.a[u(k)] = x.h[u(k)] * (x.v[u(k)] / (x.s[u(k)] + x.v[u(k)])), x.b[u(k)] = x.h[u(k)] - x.a[u(k)];
        }
        return std::isfinite(spread);
    }

    // e = G z − r
    void settle(const std::vector<double>& z, std::vector<double>& e) {
        forward(z, e);
        for (Index k = 0; k < atoms_.count; ++k) e[u(k)] -= atoms_.r[u(k)];
    }

    // One predictor-corrector step.
    bool advance(double sum) {
        const View x = view(atoms_);
        const double mu = sum / static_cast<double>(2 * x.count);
        weigh(x);
        if (!factor(atoms_.D, 0.0)) return false;
        forward(solved(downhill(atoms_.q)), atoms_.image);
        const Reach reach = predict(x);
        const double hope = (1.0 - reach.step) * sum + reach.step * reach.step * reach.cross;
        const double sigma = std::pow(std::clamp(hope / sum, 0.0, 1.0), 3);
        correct(x, std::max(sigma, 1e-8) * mu);
        const std::vector<double> dz = solved(downhill(atoms_.q));
        forward(dz, atoms_.image);
        double step = direct(x);
        step = std::min(1.0, (step > 0.9 ? 0.9995 : 0.99) * step);
        if (!std::isfinite(step) || step < 1e-5) return false;
        for (Index j = 0; j < m_; ++j) z_[u(j)] += step * dz[u(j)];
        move(x, step);
        return true;
    }

    // From the rows that seem to lie on kinks to the point that has them there; whether that is the optimum.
    bool crossed(Found& best, bool late) {
        Atoms& x = atoms_;
        std::vector<Index> on;
        std::vector<double> a(u(x.padded)), e(u(x.padded)), z = z_;
        for (Index k = 0; k < x.count; ++k) {
            const double h = x.h[u(k)];
            if (x.a[u(k)] > x.s[u(k)] * h && x.b[u(k)] > x.v[u(k)] * h) on.push_back(k), a[u(k)] = x.a[u(k)];
            else a[u(k)] = x.e[u(k)] > 0 ? h : 0.0;
        }
        const Index count = static_cast<Index>(on.size());
        // More rows than unknowns lie on kinks only where rows depend on each other; most often it is too early.
        if (count > (late ? 2 * m_ + 16 : m_) || (count == 0 && options_.intercept)) return false;
        equations(on);
        std::copy(x.e.begin(), x.e.end(), e.begin());
        for (int round = 0; round < 3; ++round) {
            if (round > 0) settle(z, e);
            if (!put_on(on, a, z, e)) return false;
            for (const Index k : on)
                if (!(std::abs(a[u(k)] - std::clamp(a[u(k)], 0.0, x.h[u(k)])) <= kOutside * x.h[u(k)])) return false;
        }
        for (const Index k : on) a[u(k)] = std::clamp(a[u(k)], 0.0, x.h[u(k)]);
        // A row strictly inside its limits holds the intercept; without one, an interval of them may be as good.
        const bool held = !options_.intercept || std::any_of(on.begin(), on.end(), [&](Index k) {
            return a[u(k)] > 1e-9 * x.h[u(k)] && a[u(k)] < (1.0 - 1e-9) * x.h[u(k)];
        });
        if (!held) return false;
        consider(best, z, a, true);
        return best.exact && best.objective - best.bound <= options_.tolerance;
    }

    // B B' + lift·11' with B the rows on kinks over the roots of Q. Σ t is prescribed, so that the lift changes nothing but the rank.
    void equations(const std::vector<Index>& on) {
        const Index count = static_cast<Index>(on.size());
        rows_on_.assign(u(count * d_), 0.0), kernel_.assign(u(count * count), 0.0), ones_.assign(u(count), 1.0);
        if (count == 0) return;
        for (Index k = 0; k < count; ++k)
            for (Index j = 0; j < d_; ++j) rows_on_[u(k * d_ + j)] = table_[u(j * n_ + sample(on[u(k)]))];
        std::vector<double> inverse(u(d_));
        for (Index j = 0; j < d_; ++j) inverse[u(j)] = 1.0 / Q_[u(j)];
        products::WeightedGram(products::Table<double>{rows_on_.data(), d_, count, false}, inverse.data(), false).run(kernel_.data(), options_.threads);
        lift_ = 0;
        for (Index k = 0; k < count && options_.intercept; ++k) lift_ += kernel_[u(k * count + k)] / static_cast<double>(count * count);
        for (double& entry : kernel_) entry += lift_;
        factored(kernel_, count, on_factor_);  // a row that depends on others keeps the multiplier it has
        if (options_.intercept) on_factor_.solve(ones_.data());
    }

    Index sample(Index atom) const { return atom < n_ ? atom : second_[u(atom - n_)]; }
    double side(Index atom) const { return atom < n_ ? sign_[u(atom)] : -1.0; }

    // A Newton step on the equations from z with e = G z − r: z and the multipliers of the rows on kinks.
    bool put_on(const std::vector<Index>& on, std::vector<double>& a, std::vector<double>& z, const std::vector<double>& e) {
        const Index count = static_cast<Index>(on.size());
        fold(a);
        std::vector<double> rho = pulled(rows_), t(u(count));
        for (Index j = 0; j < m_; ++j) rho[u(j)] += linear_[u(j)] + Q_[u(j)] * z[u(j)];
        std::vector<double> dw(u(d_));
        for (Index j = 0; j < d_; ++j) dw[u(j)] = rho[u(j)] / Q_[u(j)];
        const double level = options_.intercept ? rho[u(d_)] : 0.0;
        for (Index k = 0; k < count; ++k)
            t[u(k)] = side(on[u(k)]) * e[u(on[u(k)])] - vec::dot(rows_on_.data() + k * d_, dw.data(), d_) - lift_ * level;
        double db = 0;
        if (count > 0) on_factor_.solve(t.data());
        if (options_.intercept) {
            double sum = 0, slope = 0;
            for (Index k = 0; k < count; ++k) sum += t[u(k)], slope += ones_[u(k)];
            db = (-level - sum) / slope;
            for (Index k = 0; k < count; ++k) t[u(k)] += db * ones_[u(k)];
            z[u(d_)] += db;
        }
        for (Index j = 0; j < d_; ++j) {
            double pull = rho[u(j)];
            for (Index k = 0; k < count; ++k) pull += rows_on_[u(k * d_ + j)] * t[u(k)];
            z[u(j)] -= pull / Q_[u(j)];
        }
        for (Index k = 0; k < count; ++k) a[u(on[u(k)])] += side(on[u(k)]) * t[u(k)];
        return std::isfinite(db) && std::isfinite(z[0]);
    }

    // Keeps a point if it is better than the best: its value, and the bound of multipliers between their limits.
    void consider(Found& best, const std::vector<double>& z, const std::vector<double>& a, bool exact) {
        Atoms& x = atoms_;
        std::vector<double> e(u(x.padded));
        settle(z, e);
        double loss = constant_, conjugate = -constant_, quadratic = 0, energy = 0;
        for (Index k = 0; k < x.count; ++k) {
            if (e[u(k)] > 0) loss += x.h[u(k)] * e[u(k)];
            conjugate += a[u(k)] * x.r[u(k)];
        }
        fold(a);
        for (Index i = 0; i < n_; ++i) rows_[u(i)] += base_[u(i)];
        const std::vector<double> v = pulled(rows_);
        for (Index j = 0; j < m_; ++j) loss += linear_[u(j)] * z[u(j)];
        for (Index j = 0; j < d_; ++j) quadratic += Q_[u(j)] * z[u(j)] * z[u(j)], energy += v[u(j)] * v[u(j)] / Q_[u(j)];
        const double slack = options_.intercept ? std::abs(v[u(d_)]) * (2.0 * std::abs(z[u(d_)]) + 1.0) : 0.0;
        const double unit = target_ * height_, objective = (loss + 0.5 * quadratic) * unit, bound = (-conjugate - 0.5 * energy - slack) * unit;
        if (!(objective - bound < best.objective - best.bound)) return;
        best.objective = objective, best.bound = bound, best.exact = exact;
        best.theta.resize(u(n_)), best.w.resize(u(d_));
        for (Index i = 0; i < n_; ++i)
            best.theta[u(i)] = std::clamp(rows_[u(i)] * height_ / terms_.p[i], -terms_.slope_low[i], terms_.slope_high[i]);
        best.intercept = options_.intercept ? z[u(d_)] * target_ + shift_ : 0.0;
        for (Index j = 0; j < d_; ++j) {
            best.w[u(j)] = z[u(j)] / column_[u(j)] * target_;
            best.intercept -= centre_[u(j)] * best.w[u(j)];
        }
    }

    Index n_, d_, m_;
    dual::Terms terms_;
    Options options_;
    std::vector<double> table_, centre_, column_, Q_, z_, rows_, weight_, matrix_, scaling_, scaled_, sign_, base_, linear_;
    std::vector<double> rows_on_, kernel_, ones_;
    std::vector<Index> second_;
    Atoms atoms_;
    Factor factor_, on_factor_;
    double shift_ = 0, target_ = 1, height_ = 1, constant_ = 0, lift_ = 0;
};

}  // namespace certifit::interior
