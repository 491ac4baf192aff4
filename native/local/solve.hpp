// Symmetric systems of a few unknowns: a Cholesky factor with pivots, that leaves out directions without information.
#pragma once

#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#include "core/index.hpp"

namespace certifit::local {

// G = D P' R'R P D with D the roots of the diagonal. Pivots below `tolerance` of the scaled matrix are left out: their unknowns
// are zero. The first unknown, the intercept, is never left out.
class Factor {
  public:
    explicit Factor(Index n)
        : n_(n), R_(static_cast<std::size_t>(n * n)), scale_(static_cast<std::size_t>(n)), order_(static_cast<std::size_t>(n)),
          work_(static_cast<std::size_t>(n)) {}

    // From the upper triangle; false where the intercept has no weight.
    bool of(const double* gram, double tolerance) {
        for (Index a = 0; a < n_; ++a) scale_[u(a)] = gram[a * n_ + a] > 0.0 ? std::sqrt(gram[a * n_ + a]) : 0.0;
        if (!(gram[0] > 1e-280) || !std::isfinite(gram[0])) return false;
        for (Index a = 0; a < n_; ++a)
            for (Index b = a; b < n_; ++b) {
                const double unit = scale_[u(a)] * scale_[u(b)];
                at(a, b) = at(b, a) = unit > 0.0 ? gram[a * n_ + b] / scale_[u(a)] / scale_[u(b)] : 0.0;
            }
        std::iota(order_.begin(), order_.end(), Index{0});
        rank_ = 0;
        for (Index k = 0; k < n_; ++k) {
            Index best = k;
            for (Index a = k + 1; a < n_ && k > 0; ++a)
                if (at(a, a) > at(best, best)) best = a;
            if (k > 0 && !(at(best, best) > tolerance)) break;
            exchange(k, best);
            const double root = std::sqrt(at(k, k));
            at(k, k) = root;
            for (Index b = k + 1; b < n_; ++b) at(k, b) /= root;
            for (Index a = k + 1; a < n_; ++a)
                for (Index b = a; b < n_; ++b) at(a, b) = at(b, a) = at(a, b) - at(k, a) * at(k, b);
            ++rank_;
        }
        return true;
    }

    // x = G⁻¹ right
    void solve(const double* right, double* x) {
        for (Index k = 0; k < rank_; ++k) {
            double sum = right[order_[u(k)]] / scale_[u(order_[u(k)])];
            for (Index a = 0; a < k; ++a) sum -= at(a, k) * work_[u(a)];
            work_[u(k)] = sum / at(k, k);
        }
        for (Index a = 0; a < n_; ++a) x[a] = 0.0;
        for (Index k = rank_ - 1; k >= 0; --k) {
            double sum = work_[u(k)];
            for (Index b = k + 1; b < rank_; ++b) sum -= at(k, b) * work_[u(b)];
            work_[u(k)] = sum / at(k, k);
            x[order_[u(k)]] = work_[u(k)] / scale_[u(order_[u(k)])];
        }
    }

  private:
    Index n_, rank_ = 0;
    std::vector<double> R_, scale_;
    std::vector<Index> order_;
    std::vector<double> work_;

    static std::size_t u(Index a) { return static_cast<std::size_t>(a); }
    double& at(Index a, Index b) { return R_[u(a * n_ + b)]; }

    // Rows and columns of what is left, and rows of the factor above it.
    void exchange(Index k, Index best) {
        if (k == best) return;
        std::swap(order_[u(k)], order_[u(best)]);
        for (Index a = 0; a < n_; ++a) std::swap(at(a, k), at(a, best));
        for (Index b = k; b < n_; ++b) std::swap(at(k, b), at(best, b));
    }
};

}  // namespace certifit::local
