// Softmax regression with an L2 penalty on every column, as all ways to its optimum see it: value, gradient and bound.
//
//   P(W, b) = Σ p_i (log Σ_k e^{f_ik} − f_{i,y_i}) + ½ Σ_kj l2_j W_kj²,     f_i = W x_i + b
//
// A point is an array of classes × D, D = d + 1 with an intercept, which comes first.
#pragma once

#include <cmath>
#include <limits>

#include "core/options.hpp"
#include "softmax/softmax.hpp"

namespace certifit::softmax {

struct Found {
    std::vector<double> x;  // classes × D, intercepts first
    double objective = std::numeric_limits<double>::infinity(), bound = -std::numeric_limits<double>::infinity();
    Index iterations = 0;
};

template <class T>
class Surface {
  protected:
    using Numbers = std::vector<double>;
    struct Point {
        double value = 0.0;
        Numbers g;
    };

    Surface(const T* X, Index d, const Rows& rows, const double* l2, const Options& options)
        : X_(X), d_(d), K_(rows.classes), ones_(options.intercept), D_(d + ones_), size_(K_ * D_), rows_(rows), l2_(l2), options_(options) {}

    double dot(const Numbers& a, const Numbers& b) const { return vec::dot(a.data(), b.data(), size_); }
    void add(double a, const Numbers& from, Numbers& to) const { vec::subtract(-a, from.data(), 0.0, to.data(), size_); }

    // Without what all classes share: the optimum is there, and so are all gradients.
    void centre(Numbers& x) const {
        for (Index j = 0; j < D_; ++j) {
            double sum = 0.0;
            for (Index k = 0; k < K_; ++k) sum += x[k * D_ + j];
            for (Index k = 0; k < K_; ++k) x[k * D_ + j] -= sum / static_cast<double>(K_);
        }
    }

    Planes planes(const Numbers& x) const { return Planes(x.data() + ones_, D_, ones_ ? x.data() : nullptr, D_, d_, K_); }

    double penalty(const Numbers& x) const {
        double sum = 0.0;
        for (Index k = 0; k < K_; ++k)
            for (Index j = 0; j < d_; ++j) sum += l2_[j] * x[k * D_ + ones_ + j] * x[k * D_ + ones_ + j];
        return 0.5 * sum;
    }

    Point evaluate(const Numbers& x) const {
        const Planes at = planes(x);
        const Index width = static_cast<Index>(at.b.size());
        const auto all = walk(d_, rows_, 2 + (d_ + 1) * width, options_.threads, [&](double* part, Index i, const Block& block) {
            at.scores(X_ + i * d_, d_, block);
            part[0] += soften(block);
            pull(X_ + i * d_, d_, block, part);
        });
        Point found{all[0] + penalty(x), Numbers(size_)};
        for (Index k = 0; k < K_; ++k) {
            if (ones_) found.g[k * D_] = all[2 + k];
            for (Index j = 0; j < d_; ++j) found.g[k * D_ + ones_ + j] = all[2 + (j + 1) * width + k] + l2_[j] * x[k * D_ + ones_ + j];
        }
        centre(found.g);
        return found;
    }

    // The gap that a gradient proves once the intercept is refitted.
    double provable(const Numbers& g) const {
        double sum = 0.0;
        for (Index k = 0; k < K_; ++k)
            for (Index j = 0; j < d_; ++j) sum += g[k * D_ + ones_ + j] * g[k * D_ + ones_ + j] / l2_[j];
        return 0.5 * sum;
    }

    // D at the slopes of the loss, moved to be orthogonal to the intercepts; −∞ where they cannot be.
    double bound(const Numbers& x) const {
        const Planes at = planes(x);
        const Index width = static_cast<Index>(at.b.size()), pairs = 8 * (K_ * (K_ + 1) / 2);
        Numbers shift(width, 0.0);
        if (ones_) {
            const auto all = walk(d_, rows_, 2 + width + pairs, options_.threads, [&](double* part, Index i, const Block& block) {
                at.scores(X_ + i * d_, d_, block);
                soften(block);
                squares(block, part + 2 + width);
                turn_out(block);
                backward(X_ + i * d_, block.rows, 0, block.z, block.width, part + 2, part + 2);
            });
            if (!balanced(all.data() + 2, all.data() + 2 + width, shift)) return -std::numeric_limits<double>::infinity();
        }
        const auto all = walk(d_, rows_, 2 + (d_ + 1) * width, options_.threads, [&](double* part, Index i, const Block& block) {
            at.scores(X_ + i * d_, d_, block);
            soften(block);
            bool outside = false;
            part[0] += balance(block, shift.data(), outside), part[1] += outside;
            pull(X_ + i * d_, d_, block, part);
        });
        double energy = 0.0, slack = 0.0;
        for (Index k = 0; k < K_; ++k) {
            if (ones_) slack += std::abs(all[2 + k]) * (std::abs(x[k * D_]) + 1.0);  // what rounding left, times what it may cost
            for (Index j = 0; j < d_; ++j) energy += all[2 + (j + 1) * width + k] * all[2 + (j + 1) * width + k] / l2_[j];
        }
        const double found = -all[0] - 0.5 * energy - slack;
        return all[1] == 0.0 && std::isfinite(found) ? found : -std::numeric_limits<double>::infinity();
    }

    // shift with bend·shift = −level, for bend = Σ p (diag(π) − ππᵀ), whose null space are equal shifts of all classes.
    bool balanced(const double* level, const double* squares, Numbers& shift) const {
        Numbers bend(K_ * K_), factor;
        for (Index k = 0, at = 0; k < K_; ++k)
            for (Index l = k; l < K_; ++l, at += 8) {
                double sum = 0.0;
                for (Index r = 0; r < 8; ++r) sum += squares[at + r];
                bend[k * K_ + l] = bend[l * K_ + k] = -sum;
            }
        for (Index k = 0; k < K_; ++k) {  // the rows of the bend sum to zero
            double rest = 0.0;
            for (Index l = 0; l < K_; ++l) rest += l == k ? 0.0 : bend[k * K_ + l];
            bend[k * K_ + k] = -rest;
        }
        factor = bend;
        for (double& value : factor) value += 1.0 / static_cast<double>(K_ * K_);
        for (Index k = 0; k < K_; ++k)
            for (Index l = 0; l <= k; ++l) {
                const double left = factor[k * K_ + l] - vec::dot(factor.data() + k * K_, factor.data() + l * K_, l);
                if (l < k) factor[k * K_ + l] = left / factor[l * K_ + l];
                else if (!(left > 1e-14)) return false;
                else factor[k * K_ + k] = std::sqrt(left);
            }
        Numbers right(K_);
        for (int round = 0; round < 2; ++round) {  // the second removes what rounding left of the first
            for (Index k = 0; k < K_; ++k) right[k] = level[k] + vec::dot(bend.data() + k * K_, shift.data(), K_);
            for (Index k = 0; k < K_; ++k) right[k] = (right[k] - vec::dot(factor.data() + k * K_, right.data(), k)) / factor[k * K_ + k];
            for (Index k = K_; k-- > 0;) {
                right[k] /= factor[k * K_ + k];
                vec::subtract(right[k], factor.data() + k * K_, 0.0, right.data(), k);
            }
            for (Index k = 0; k < K_; ++k) shift[k] -= right[k];
        }
        return true;
    }

    const T* X_;
    Index d_, K_, ones_, D_, size_;
    Rows rows_;
    const double* l2_;
    Options options_;
};

}  // namespace certifit::softmax
