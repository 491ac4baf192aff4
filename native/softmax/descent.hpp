// Softmax regression with an L2 penalty on every column, from a start to a proven gap, by gradients alone:
//
//   min over W, b   P = Σ p_i (log Σ_k e^{f_ik} − f_{i,y_i}) + ½ Σ_kj l2_j W_kj²,     f_i = W x_i + b
//
// L-BFGS on top of an approximate inverse of the Hessian (Nocedal & Wright, algorithm 7.4). A pass over X keeps nothing of its rows: value and
// gradient are all that a step wants, and the proof makes its probabilities again. Where steps are slow, the end is left to Newton's method.
#pragma once

#include <cmath>
#include <deque>
#include <limits>

#include "core/interrupt.hpp"
#include "core/options.hpp"
#include "softmax/softmax.hpp"

namespace certifit::softmax {

// Approximates (H + L)⁻¹ on arrays of classes × D: an inverse for each of the `vectors` of the classes, or for each number.
struct Inverse {
    const double* vectors = nullptr;      // classes × classes, orthonormal columns
    const std::int64_t* which = nullptr;  // the matrix of each vector
    const double* matrices = nullptr;     // D × D each, symmetric
    const double* diagonal = nullptr;     // classes × D, instead
};

// When gradients are given up.
struct Course {
    Index patience;  // slow steps
    double step;     // passes that a Newton step costs
    Index least;     // steps from which a rate is read
};

struct Found {
    std::vector<double> x;  // classes × D, intercepts first
    double objective = std::numeric_limits<double>::infinity(), bound = -std::numeric_limits<double>::infinity();
    Index iterations = 0;
};

template <class T>
class Descent {
  public:
    Descent(const T* X, Index d, const Rows& rows, const double* l2, const Inverse& inverse, const Options& options, const Course& course)
        : X_(X), d_(d), K_(rows.classes), ones_(options.intercept), D_(d + ones_), size_(K_ * D_), rows_(rows), l2_(l2), inverse_(inverse),
          options_(options), course_(course), turned_(size_), solved_(size_) {}

    // What a gradient proves is proven after a step of the intercept, which the coefficients feel: where that leaves too much, the descent goes
    // on to a smaller gap.
    Found solve(const double* start) {
        Found at;
        at.x.assign(start, start + size_);
        double wanted = options_.tolerance;
        Point here = evaluate(at.x);
        for (int attempt = 0; attempt < kAttempts; ++attempt) {
            const Index before = at.iterations;
            descend(at, here, wanted);
            at.objective = here.value;
            if (!(provable(here.g) <= wanted)) break;
            at.bound = bound(at.x);
            const double gap = at.objective - at.bound;
            if (!(gap > options_.tolerance) || at.iterations >= options_.max_iter || at.iterations == before) break;
            wanted *= std::max(0.1, 0.3 * options_.tolerance / gap);
        }
        return at;
    }

  private:
    static constexpr int kAttempts = 3;
    static constexpr std::size_t kPairs = 10;
    static constexpr double kProving = 4.0;  // passes around a Newton step

    using Numbers = std::vector<double>;
    struct Point {
        double value = 0.0;
        Numbers g;
    };
    struct Pair {
        Numbers s, y, z;  // a step, the change of the gradient, and what the inverse makes of it
        double curvature;
    };

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

    Numbers precondition(const Numbers& g) {
        Numbers out(size_);
        if (inverse_.diagonal) {
            for (Index i = 0; i < size_; ++i) out[i] = inverse_.diagonal[i] * g[i];
        } else {
            std::fill(turned_.begin(), turned_.end(), 0.0);
            for (Index v = 0; v < K_; ++v)
                for (Index k = 0; k < K_; ++k) vec::subtract(-inverse_.vectors[k * K_ + v], g.data() + k * D_, 0.0, turned_.data() + v * D_, D_);
            for (Index v = 0; v < K_; ++v) {
                const double* matrix = inverse_.matrices + inverse_.which[v] * D_ * D_;
                for (Index j = 0; j < D_; ++j) solved_[v * D_ + j] = vec::dot(matrix + j * D_, turned_.data() + v * D_, D_);
            }
            for (Index k = 0; k < K_; ++k)
                for (Index v = 0; v < K_; ++v) vec::subtract(-inverse_.vectors[k * K_ + v], solved_.data() + v * D_, 0.0, out.data() + k * D_, D_);
        }
        centre(out);
        return out;
    }

    // Whether the gradient proves the gap, or a Newton step would in fewer passes than the rate of the last steps says.
    bool ends(double proven, double wanted, std::vector<double>& seen) const {
        seen.push_back(proven);
        if (!(proven > 0.3 * wanted)) return true;
        const auto least = static_cast<std::size_t>(course_.least);
        if (seen.size() <= least) return false;
        const double before = seen[seen.size() - 1 - least];
        if (!(before > 0.0) || !std::isfinite(before)) return false;
        const double rate = std::clamp(proven / before, 1e-3, 0.99), left = std::log(proven / (0.3 * std::max(wanted, 1e-300)));
        return left > -std::log(rate) / static_cast<double>(course_.least) * (course_.step + kProving);
    }

    // A step is accepted when it lowers the value enough, or shrinks the gradient in the norm of the preconditioner, which near the minimum is
    // the distance to it and has more digits than the value.
    void descend(Found& at, Point& here, double wanted) {
        SignalPoll signals;
        std::deque<Pair> pairs;
        std::vector<double> seen;
        double gamma = 1.0;
        Numbers z = precondition(here.g);
        double size = dot(here.g, z);
        for (Index slow = 0; at.iterations < options_.max_iter && size > 0.0 && slow <= course_.patience && !ends(provable(here.g), wanted, seen);) {
            signals.poll();
            Numbers step = direction(pairs, here.g, z, gamma);
            double promised = -dot(step, here.g), share = -1.0;
            Point there;
            Numbers x, ahead;
            double measured = 0.0;
            bool accepted = false;
            for (int attempt = 0; attempt < 4 && !accepted && at.iterations < options_.max_iter; ++attempt, share *= 0.25, promised *= 0.25) {
                x = at.x;
                add(share, step, x);
                there = evaluate(x), ++at.iterations;
                ahead = precondition(there.g), measured = dot(there.g, ahead);
                accepted = measured < size || there.value <= here.value + 1e-4 * promised;
            }
            if (!accepted) break;
            Pair pair{x, there.g, ahead, 0.0};
            add(-1.0, at.x, pair.s), add(-1.0, here.g, pair.y), add(-1.0, z, pair.z);
            pair.curvature = dot(pair.s, pair.y);
            const double told = dot(pair.y, pair.z);
            slow += measured >= 0.7 * size;
            if (pair.curvature > 0.0 && told > 0.0) {  // changes below all numbers have neither
                gamma = pair.curvature / told;         // what the inverse says of the last change, beside what was seen
                pairs.push_back(std::move(pair));
                if (pairs.size() > kPairs) pairs.pop_front();
            }
            at.x = std::move(x), here = std::move(there), z = std::move(ahead), size = measured;
        }
    }

    // The L-BFGS inverse Hessian times g, whose image under the first inverse is z.
    Numbers direction(const std::deque<Pair>& pairs, const Numbers& g, const Numbers& z, double gamma) const {
        Numbers q = g, r = z;
        std::vector<double> used(pairs.size());
        for (std::size_t i = pairs.size(); i-- > 0;) {
            used[i] = dot(pairs[i].s, q) / pairs[i].curvature;
            add(-used[i], pairs[i].y, q), add(-used[i], pairs[i].z, r);
        }
        for (double& value : r) value *= gamma;
        for (std::size_t i = 0; i < pairs.size(); ++i) add(used[i] - dot(pairs[i].y, r) / pairs[i].curvature, pairs[i].s, r);
        return r;
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
    Inverse inverse_;
    Options options_;
    Course course_;
    Numbers turned_, solved_;
};

}  // namespace certifit::softmax
