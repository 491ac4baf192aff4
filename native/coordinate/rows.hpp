// Several targets that share the columns they use:
//
//   min_W  −⟨C₀, W − W₀⟩ + ½ ⟨W − W₀, G (W − W₀)⟩ + Σ_j ( l1_j ‖w_j‖ + ½ l2_j ‖w_j‖² )
//
// w_j being the coefficients of column j for all K targets. Descent goes from one w_j to the next: the best one beside the
// others is a multiple of c_j + G_jj w_j, c_j being the negative slope.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "coordinate/matrix.hpp"
#include "core/interrupt.hpp"
#include "core/vector.hpp"

namespace certifit {

class RowDescent {
  public:
    // W and C are K × m, one target after the other.
    RowDescent(const double* G, Index m, Index K, const double* l1, const double* l2, double* W, double* C)
        : G_(G), m_(m), K_(K), l1_(l1), l2_(l2), W_(W), C_(C), target_(K) {}

    // Sweeps until an estimate of the duality gap is at most the tolerance; `energy` is Σ p residual².
    Index solve(double energy, double tolerance, Index max_sweeps, SignalPoll& signals) {
        for (Index sweep = 0; sweep < max_sweeps; ++sweep) {
            signals.poll();
            if (gap(energy) <= tolerance) return sweep;
            bool moved = false;
            for (Index j = 0; j < m_; ++j) moved |= visit(j);
            if (!moved) return sweep + 1;
        }
        return max_sweeps;
    }

  private:
    static constexpr double kRounding = 4e-16;

    bool visit(Index j) {
        const double H = G_[j * m_ + j];
        double square = 0;
        for (Index k = 0; k < K_; ++k) {
            target_[k] = C_[k * m_ + j] + H * W_[k * m_ + j];
            square += target_[k] * target_[k];
        }
        const double size = std::sqrt(square);
        const double shrunk = size > l1_[j] && H + l2_[j] > 0 ? (1.0 - l1_[j] / size) / (H + l2_[j]) : 0.0;
        bool moved = false;
        for (Index k = 0; k < K_; ++k) {
            const double next = target_[k] * shrunk, delta = next - W_[k * m_ + j];
            if (delta == 0.0 || !std::isfinite(next)) continue;
            vec::subtract(delta, G_ + j * m_, 0.0, C_ + k * m_, m_);
            moved |= std::abs(delta) > kRounding * std::abs(next);
            W_[k * m_ + j] = next;
        }
        return moved;
    }

    // ½(1 − s)² energy + Σ_j [Ω_j(w_j) + Ω_j*(s c_j) − s c_j·w_j], s scaling c into the domain of the conjugate.
    double gap(double energy) const {
        double scale = 1;
        for (Index j = 0; j < m_; ++j)
            if (l2_[j] == 0.0) {
                const double slope = norm(C_, j);
                if (slope > l1_[j]) scale = std::min(scale, l1_[j] / slope);
            }
        double sum = 0.5 * (1 - scale) * (1 - scale) * energy;
        for (Index j = 0; j < m_; ++j) {
            const double size = norm(W_, j), excess = scale * norm(C_, j) - l1_[j];
            double product = 0;
            for (Index k = 0; k < K_; ++k) product += W_[k * m_ + j] * C_[k * m_ + j];
            if (excess > 0 && l2_[j] > 0) sum += 0.5 * excess * excess / l2_[j];
            sum += l1_[j] * size + 0.5 * l2_[j] * size * size - scale * product;
        }
        return sum;
    }

    double norm(const double* A, Index j) const {
        double square = 0;
        for (Index k = 0; k < K_; ++k) square += A[k * m_ + j] * A[k * m_ + j];
        return std::sqrt(square);
    }

    const double* G_;
    Index m_, K_;
    const double *l1_, *l2_;
    double *W_, *C_;
    std::vector<double> target_;
};

}  // namespace certifit
