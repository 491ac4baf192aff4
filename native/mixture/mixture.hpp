// One step of expectation and maximization for a mixture of Gaussians, in one pass over the rows.
//
//     ln p_k(x) = c_k − ½‖A_k(x − m_k)‖²        r_k(x) = p_k(x)/Σp(x)        A_k lower triangular, or a diagonal
//     N_k = Σ s r_k        D_k = Σ s r_k (x − m_k)        S_k = Σ s r_k (x − m_k)(x − m_k)ᵀ        and Σ s ln Σp(x)
//
// 64 rows are worked on at a time, a column of them after the other, so that every loop runs along 64 numbers; sums are kept in
// eight lanes and added up once a block. Differences are from the means so far: no digits cancel in S. Blocks are fixed and their
// sums are added in order: threads change nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "core/exponential.hpp"
#include "core/index.hpp"
#include "core/simd.hpp"
#include "core/team.hpp"

namespace certifit::mixture {

constexpr Index kWide = 64;

// K Gaussians in d columns; A has d × d numbers for each (the lower triangle is read), or d where `diagonal`.
struct Gaussians {
    const double* mean;
    const double* A;
    const double* constant;
    Index K, d;
    bool diagonal;
    Index shape() const { return diagonal ? d : d * d; }
    Index pairs() const { return diagonal ? d : d * (d + 1) / 2; }
    Index sums() const { return K * (1 + d + pairs()); }
};

// out[c] = constant − ½‖A z_c‖² for 64 columns z.
CERTIFIT_CLONES [[maybe_unused]] static void log_density(const double* z, const double* A, Index d, bool diagonal,
                                                         double constant, double* out) {
    double square[kWide] = {};
    for (Index i = 0; i < d; ++i) {
        double y[kWide] = {};
        for (Index j = diagonal ? i : 0; j <= i; ++j) {
            const double a = diagonal ? A[i] : A[i * d + j];
            for (Index c = 0; c < kWide; ++c) y[c] += a * z[j * kWide + c];
        }
        for (Index c = 0; c < kWide; ++c) square[c] += y[c] * y[c];
    }
    for (Index c = 0; c < kWide; ++c) out[c] = constant - 0.5 * square[c];
}

// logs (K × 64) become shares that sum to one; total[c] = ln Σ exp.
CERTIFIT_CLONES [[maybe_unused]] static void normalize(double* logs, Index K, double* total) {
    for (Index c = 0; c < kWide; c += 8) {
        Lanes most, value;
        std::memcpy(&most, logs + c, sizeof(Lanes));
        for (Index k = 1; k < K; ++k) {
            std::memcpy(&value, logs + k * kWide + c, sizeof(Lanes));
            most = value > most ? value : most;
        }
        Lanes sum = {};
        for (Index k = 0; k < K; ++k) {
            std::memcpy(&value, logs + k * kWide + c, sizeof(Lanes));
            value -= most;
            value = exponential(value > -700.0 ? value : Lanes{} - 700.0);
            sum += value;
            std::memcpy(logs + k * kWide + c, &value, sizeof(Lanes));
        }
        for (Index k = 0; k < K; ++k) {
            std::memcpy(&value, logs + k * kWide + c, sizeof(Lanes));
            value /= sum;
            std::memcpy(logs + k * kWide + c, &value, sizeof(Lanes));
        }
        value = most + logarithm(sum);
        std::memcpy(total + c, &value, sizeof(Lanes));
    }
}

// What 64 rows z with shares r add to N, D and S of one Gaussian, each sum in eight lanes.
CERTIFIT_CLONES [[maybe_unused]] static void accumulate(const double* z, const double* share, Index d, bool diagonal,
                                                        double* sums) {
    const auto add = [](double* to, const double* a, const double* b) {
        Lanes even, odd = {}, x, y;
        std::memcpy(&even, to, sizeof(Lanes));
        for (Index c = 0; c < kWide; c += 16) {
            std::memcpy(&x, a + c, sizeof(Lanes)), std::memcpy(&y, b + c, sizeof(Lanes)), even += x * y;
            std::memcpy(&x, a + c + 8, sizeof(Lanes)), std::memcpy(&y, b + c + 8, sizeof(Lanes)), odd += x * y;
        }
        even += odd;
        std::memcpy(to, &even, sizeof(Lanes));
    };
    static constexpr auto ones = [] {
        struct { double at[kWide]; } out{};
        for (double& one : out.at) one = 1.0;
        return out;
    }();
    add(sums, share, ones.at);
    sums += 8;
    double* pairs = sums + 8 * d;
    for (Index i = 0; i < d; ++i, sums += 8) {
        double weighted[kWide];
        for (Index c = 0; c < kWide; ++c) weighted[c] = share[c] * z[i * kWide + c];
        add(sums, weighted, ones.at);
        for (Index j = diagonal ? i : 0; j <= i; ++j, pairs += 8) add(pairs, weighted, z + j * kWide);
    }
}

class Step {
  public:
    Step(const double* X, const double* weight, Index n, const Gaussians& model, Team& team)
        : X_(X), weight_(weight), n_(n), model_(model), team_(team) {}

    // Σ s ln Σp(x), and for each Gaussian N, D and the lower triangle of S, row by row, in `sums`.
    double run(double* sums) {
        const Index panels = (n_ + kWide - 1) / kWide;
        const Index room = std::clamp<Index>((Index{1} << 22) / std::max<Index>(1, 8 * model_.sums()), 4, 128);
        const Index block = std::max<Index>(4, (panels + room - 1) / room), blocks = (panels + block - 1) / block;
        std::vector<double> parts(static_cast<std::size_t>(blocks * model_.sums())), logs(static_cast<std::size_t>(blocks));
        team_.run(blocks, n_ * model_.sums() > 20000, [&](Index b, int worker) {
            std::vector<double> lanes(static_cast<std::size_t>(8 * model_.sums()));
            for (Index p = b * block; p < std::min(panels, (b + 1) * block); ++p) {
                if (p % 16 == 0) team_.check(worker);
                logs[static_cast<std::size_t>(b)] += panel(p, lanes.data());
            }
            for (Index e = 0; e < model_.sums(); ++e) {
                const double* at = lanes.data() + 8 * e;
                parts[static_cast<std::size_t>(b * model_.sums() + e)] =
                    ((at[0] + at[4]) + (at[2] + at[6])) + ((at[1] + at[5]) + (at[3] + at[7]));
            }
        });
        std::fill_n(sums, model_.sums(), 0.0);
        double total = 0.0;
        for (Index b = 0; b < blocks; ++b) {
            for (Index e = 0; e < model_.sums(); ++e) sums[e] += parts[static_cast<std::size_t>(b * model_.sums() + e)];
            total += logs[static_cast<std::size_t>(b)];
        }
        return total;
    }

    // ln p_k(x) of every row, n × K.
    void densities(double* out) {
        team_.blocks((n_ + kWide - 1) / kWide, 8, true, [&](Index from, Index to, int) {
            std::vector<double> x(static_cast<std::size_t>(model_.d * kWide)), z(x.size()),
                logs(static_cast<std::size_t>(model_.K * kWide));
            for (Index p = from; p < to; ++p) {
                const Index rows = evaluate(p, x.data(), z.data(), logs.data());
                for (Index c = 0; c < rows; ++c)
                    for (Index k = 0; k < model_.K; ++k)
                        out[(p * kWide + c) * model_.K + k] = logs[static_cast<std::size_t>(k * kWide + c)];
            }
        });
    }

  private:
    const double* X_;
    const double* weight_;
    const Index n_;
    const Gaussians& model_;
    Team& team_;

    void away(const double* x, Index k, double* z) const {
        for (Index j = 0; j < model_.d; ++j)
            for (Index c = 0; c < kWide; ++c) z[j * kWide + c] = x[j * kWide + c] - model_.mean[k * model_.d + j];
    }

    // The rows of a panel column by column (beyond the last row: zeros), and their log densities. Returns how many rows there
    // are.
    Index evaluate(Index p, double* x, double* z, double* logs) const {
        const Index first = p * kWide, rows = std::min(kWide, n_ - first);
        for (Index c = 0; c < rows; ++c)
            for (Index j = 0; j < model_.d; ++j) x[j * kWide + c] = X_[(first + c) * model_.d + j];
        for (Index c = rows; c < kWide; ++c)
            for (Index j = 0; j < model_.d; ++j) x[j * kWide + c] = 0.0;
        for (Index k = 0; k < model_.K; ++k) {
            away(x, k, z);
            log_density(z, model_.A + k * model_.shape(), model_.d, model_.diagonal, model_.constant[k], logs + k * kWide);
        }
        return rows;
    }

    double panel(Index p, double* lanes) const {
        std::vector<double> x(static_cast<std::size_t>(model_.d * kWide)), z(x.size()),
            shares(static_cast<std::size_t>(model_.K * kWide));
        double total[kWide], sum = 0.0;
        const Index rows = evaluate(p, x.data(), z.data(), shares.data());
        normalize(shares.data(), model_.K, total);
        double weight[kWide] = {};
        std::copy_n(weight_ + p * kWide, rows, weight);
        for (Index c = 0; c < rows; ++c) sum += weight[c] * total[c];
        for (Index k = 0; k < model_.K; ++k) {
            double* share = shares.data() + k * kWide;
            for (Index c = 0; c < kWide; ++c) share[c] *= weight[c];
            away(x.data(), k, z.data());
            accumulate(z.data(), share, model_.d, model_.diagonal, lanes + 8 * k * (1 + model_.d + model_.pairs()));
        }
        return sum;
    }
};

}  // namespace certifit::mixture
