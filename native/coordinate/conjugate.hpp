// A Newton step on the coefficients in use, by conjugate gradients: for sparse columns, whose products cost as little as a sweep.
//
//   min over d   −g·d + ½ Σ_i p_i (X̃d)_i² + ½ Σ_j l2_j d_j²,     g_j = x̃_j'u − l1_j sign(w_j) − l2_j w_j
//
// A few products after as many sweeps: they see along which combinations of columns the sweeps are slow (Hestenes & Stiefel 1952, with the diagonal
// of the matrix as preconditioner). Coefficients that would change their sign stop at zero; the step is taken if the objective falls.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "coordinate/matrix.hpp"
#include "coordinate/penalty.hpp"

namespace certifit {

template <class M>
class ConjugateStep {
  public:
    explicit ConjugateStep(const Columns<M>& columns) : columns_(columns) {}

    // w, u and shift as in Descent; false if nothing was moved.
    bool take(std::span<const Index> support, const Penalty& penalty, int products, double* w, double* u, double& shift) {
        for (Index j : support)
            if (!(w[j] > penalty.lower[j] && w[j] < penalty.upper[j] && columns_.norm2[j] > 0 && columns_.norm2[j] < kInfinity)) return false;
        direct(support, penalty, products, w, u, shift);
        const std::size_t m = support.size();
        for (double t = 1.0; t > kShortest; t *= 0.5) {
            for (std::size_t k = 0; k < m; ++k) {
                const Index j = support[k];
                const double to = w[j] + t * step_[k];
                moved_[k] = w[j] - penalty.clip(j, penalty.l1[j] > 0 && to * w[j] < 0 ? 0.0 : to);
            }
            const double along = image(support);
            double change = 0;  // of the objective
            for (std::size_t k = 0; k < m; ++k) {
                const Index j = support[k];
                const double half = 0.5 * columns_.correlation(j, image_.data(), along);
                change += penalty.value(j, w[j] - moved_[k]) - penalty.value(j, w[j]) - (half - pull_[k]) * moved_[k];
            }
            if (!(change < 0)) continue;
            for (std::size_t k = 0; k < m; ++k) w[support[k]] -= moved_[k];
            for (Index i = 0; i < columns_.X.n; ++i) u[i] -= image_[i];
            shift -= along;
            return true;
        }
        return false;
    }

  private:
    static constexpr double kShortest = 0.2;    // step that is tried
    static constexpr double kSolved = 1e-6;     // of the first residual, squared: the equations have their digits

    // p ∘ X̃(−moved) in two parts, as Columns keeps it.
    double image(std::span<const Index> support) {
        double along = 0;
        image_.assign(static_cast<std::size_t>(columns_.X.n), 0.0);
        columns_.steps(support, moved_.data(), true, image_.data(), along);
        return along;
    }

    void direct(std::span<const Index> support, const Penalty& penalty, int products, const double* w, const double* u, double shift) {
        const std::size_t m = support.size();
        for (auto* part : {&step_, &left_, &ahead_, &bent_, &inverse_, &moved_, &pull_}) part->assign(m, 0.0);
        double size = 0;
        for (std::size_t k = 0; k < m; ++k) {
            const Index j = support[k];
            inverse_[k] = 1.0 / (columns_.norm2[j] + penalty.l2[j]);
            pull_[k] = columns_.correlation(j, u, shift);
            left_[k] = pull_[k] - std::copysign(penalty.l1[j], w[j]) - penalty.l2[j] * w[j];
            ahead_[k] = inverse_[k] * left_[k], size += left_[k] * ahead_[k];
        }
        const double enough = kSolved * size;
        for (int product = 0; product < products && size > enough; ++product) {
            for (std::size_t k = 0; k < m; ++k) moved_[k] = -ahead_[k];
            const double along = image(support);
            double bend = 0, next = 0;
            for (std::size_t k = 0; k < m; ++k) {
                bent_[k] = columns_.correlation(support[k], image_.data(), along) + penalty.l2[support[k]] * ahead_[k];
                bend += ahead_[k] * bent_[k];
            }
            if (!(bend > 0)) return;
            for (std::size_t k = 0; k < m; ++k) {
                step_[k] += size / bend * ahead_[k], left_[k] -= size / bend * bent_[k];
                next += inverse_[k] * left_[k] * left_[k];
            }
            for (std::size_t k = 0; k < m; ++k) ahead_[k] = inverse_[k] * left_[k] + next / size * ahead_[k];
            size = next;
        }
    }

    const Columns<M>& columns_;
    std::vector<double> step_, left_, ahead_, bent_, inverse_, moved_, pull_, image_;
};

}  // namespace certifit
