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
#include "softmax/surface.hpp"

namespace certifit::softmax {

// Approximates (H + L)⁻¹ on arrays of classes × D: an inverse for each of the `vectors` of the classes, or for each number; or
// a factor for all of them.
struct Inverse {
    const double* vectors = nullptr;      // classes × classes, orthonormal columns
    const std::int64_t* which = nullptr;  // the matrix of each vector
    const double* matrices = nullptr;     // D × D each, symmetric
    const double* diagonal = nullptr;     // classes × D, instead
    const double* factor = nullptr;       // U of diag(1/unit)·UᵀU·diag(1/unit), classes·D × classes·D, instead
    const double* unit = nullptr;
};

// When gradients are given up.
struct Course {
    Index patience;  // slow steps
    double step;     // passes that a Newton step costs
    Index least;     // steps from which a rate is read
};

template <class T>
class Descent : Surface<T> {
    using Base = Surface<T>;
    using Numbers = typename Base::Numbers;
    using Point = typename Base::Point;
    using Base::d_, Base::K_, Base::D_, Base::size_, Base::options_;
    using Base::dot, Base::add, Base::centre, Base::evaluate, Base::provable, Base::bound;

  public:
    Descent(const T* X, Index d, const Rows& rows, const double* l2, const Inverse& inverse, const Options& options, const Course& course)
        : Base(X, d, rows, l2, options), inverse_(inverse), course_(course), turned_(size_), solved_(size_) {}

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

    struct Pair {
        Numbers s, y, z;  // a step, the change of the gradient, and what the inverse makes of it
        double curvature;
    };

    Numbers precondition(const Numbers& g) {
        Numbers out(size_);
        if (inverse_.factor) {
            for (Index i = 0; i < size_; ++i) out[i] = inverse_.unit[i] * g[i];
            for (Index i = 0; i < size_; ++i) {
                const double* row = inverse_.factor + i * size_;
                out[i] /= row[i];
                vec::subtract(out[i], row + i + 1, 0.0, out.data() + i + 1, size_ - i - 1);
            }
            for (Index i = size_; i-- > 0;) {
                const double* row = inverse_.factor + i * size_;
                out[i] = (out[i] - vec::dot(row + i + 1, out.data() + i + 1, size_ - i - 1)) / row[i];
            }
            for (Index i = 0; i < size_; ++i) out[i] *= inverse_.unit[i];
        } else if (inverse_.diagonal) {
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

    Inverse inverse_;
    Course course_;
    Numbers turned_, solved_;
};

}  // namespace certifit::softmax
