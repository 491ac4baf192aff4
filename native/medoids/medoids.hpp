// k medoids of a matrix of dissimilarities: rows from which the others are least far.
//
//     minimize over sets M of k rows    Σ_i s_i min_{m ∈ M} D[m][i]
//
// swap     exchanges one medoid for one row as long as that lowers the cost (FasterPAM: Schubert and Rousseeuw 2021). With the
// nearest and
//          the second medoid of every row, one pass over D[x] gives the change for x in place of each of the k medoids.
//          Candidates are
//          looked at in blocks of fixed size and the best of a block is taken: threads change nothing.
// bound    of every set M, by the Lagrangian dual of the p-median problem: for any λ
//
//     Σ_i λ_i + (the k least of  ρ_j = Σ_i min(0, s_i D[j][i] − λ_i))   ≤   the cost of every M
//
//          and λ climbs by subgradient steps.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "core/index.hpp"
#include "core/simd.hpp"
#include "core/team.hpp"

namespace certifit::medoids {

constexpr Index kBlock = 32;  // candidates of a block
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Of every row: the nearest medoid, its distance, and that of the second.
struct Nearest {
    std::vector<std::int32_t> first;
    std::vector<double> near, second;
    explicit Nearest(Index n)
        : first(static_cast<std::size_t>(n)), near(static_cast<std::size_t>(n)), second(static_cast<std::size_t>(n)) {}
};

// Σ_i min(0, s_i d_i − λ_i) in a fixed order.
CERTIFIT_CLONES [[maybe_unused]] static double shortfall(const double* d, const double* weight, const double* multiplier,
                                                         Index n) {
    double sums[16] = {};
    Index i = 0;
    for (; i + 16 <= n; i += 16)
        for (Index l = 0; l < 16; ++l) {
            const double part = weight[i + l] * d[i + l] - multiplier[i + l];
            sums[l] += part < 0.0 ? part : 0.0;
        }
    double total = 0.0;
    for (const double sum : sums) total += sum;
    for (; i < n; ++i) total += std::min(0.0, weight[i] * d[i] - multiplier[i]);
    return total;
}

class Medoids {
  public:
    // D: n × n, D[m][i] the dissimilarity of row i from a medoid m.
    Medoids(const double* D, const double* weight, Index n, Team& team) : D_(D), weight_(weight), n_(n), team_(team) {}

    // Exchanges until none helps, at most `most`; returns how many were made, and whether none is left.
    std::pair<Index, bool> swap(std::int64_t* medoid, Index k, Index most) {
        Nearest state(n_);
        assign(medoid, k, state);
        std::vector<Candidate> found(static_cast<std::size_t>(kBlock));
        Index swaps = 0, quiet = 0, start = 0;
        const double unit = cost(state);
        while (quiet < n_) {
            const Index count = std::min(kBlock, n_ - start);
            const std::vector<double> leaving = losses(state, k);
            team_.run(count, n_ * count > 20000,
                      [&](Index c, int) { found[static_cast<std::size_t>(c)] = change(start + c, state, leaving, k); });
            const auto best = std::min_element(found.begin(), found.begin() + count,
                                               [](const Candidate& a, const Candidate& b) { return a.change < b.change; });
            if (best->change < -1e-12 * unit) {
                if (swaps == most) return {swaps, false};
                medoid[best->out] = start + (best - found.begin());
                assign(medoid, k, state);
                ++swaps, quiet = 0;
            } else {
                quiet += count;
            }
            start = start + count == n_ ? 0 : start + count;
        }
        return {swaps, true};
    }

    double cost(const std::int64_t* medoid, Index k, std::int32_t* label) {
        Nearest state(n_);
        assign(medoid, k, state);
        std::copy(state.first.begin(), state.first.end(), label);
        return cost(state);
    }

    // The row from which all others are least far, and its cost.
    std::pair<Index, double> center() {
        std::vector<double> sums(static_cast<std::size_t>(n_));
        team_.blocks(n_, 16, true, [&](Index from, Index to, int) {
            for (Index j = from; j < to; ++j) {
                double sum = 0.0;
                for (Index i = 0; i < n_; ++i) sum += weight_[i] * D_[j * n_ + i];
                sums[static_cast<std::size_t>(j)] = sum;
            }
        });
        const auto best = std::min_element(sums.begin(), sums.end());
        return {best - sums.begin(), *best};
    }

    // A lower bound on the cost of every k medoids, from `steps` subgradient steps; stops when it reaches `wanted`.
    double bound(const std::int64_t* medoid, Index k, Index steps, double wanted) {
        if (steps < 1) return 0.0;
        Nearest state(n_);
        assign(medoid, k, state);
        const double upper = cost(state);
        std::vector<double> mass(static_cast<std::size_t>(k));
        for (Index i = 0; i < n_; ++i) mass[static_cast<std::size_t>(state.first[static_cast<std::size_t>(i)])] += weight_[i];
        // Prices to begin with: half way to the second medoid, or the cost of a row and its share of what every cluster pays
        // alike.
        std::vector<double> multiplier(static_cast<std::size_t>(n_)), rho(static_cast<std::size_t>(n_)), first(multiplier);
        const auto begin = [&](double factor) {
            for (Index i = 0; i < n_; ++i) {
                const auto s = static_cast<std::size_t>(i);
                const double alike = factor * upper / static_cast<double>(k) / mass[static_cast<std::size_t>(state.first[s])];
                const double half = k > 1 ? 0.5 * (state.second[s] - state.near[s]) : 0.0;
                multiplier[s] = weight_[i] * (state.near[s] + (factor > 0.0 ? alike : half));
            }
        };
        double top = -kInfinity;
        for (const double factor : {0.0, 0.25, 1.0, 4.0, 16.0}) {
            begin(factor);
            team_.blocks(n_, 16, true, [&](Index from, Index to, int) {
                for (Index j = from; j < to; ++j)
                    rho[static_cast<std::size_t>(j)] = shortfall(D_ + j * n_, weight_, multiplier.data(), n_);
            });
            std::nth_element(rho.begin(), rho.begin() + (k - 1), rho.end());
            const double value =
                std::accumulate(multiplier.begin(), multiplier.end(), 0.0) + std::accumulate(rho.begin(), rho.begin() + k, 0.0);
            if (value > top) top = value, first = multiplier;
        }
        multiplier = first;
        std::vector<Index> order(static_cast<std::size_t>(n_));
        double best = 0.0, pace = 1.0;
        Index since = 0;
        for (Index step = 0; step < steps && best < wanted; ++step) {
            team_.blocks(n_, 16, true, [&](Index from, Index to, int) {
                for (Index j = from; j < to; ++j)
                    rho[static_cast<std::size_t>(j)] = shortfall(D_ + j * n_, weight_, multiplier.data(), n_);
            });
            std::iota(order.begin(), order.end(), Index{0});
            std::nth_element(order.begin(), order.begin() + (k - 1), order.end(), [&](Index a, Index b) {
                return rho[static_cast<std::size_t>(a)] != rho[static_cast<std::size_t>(b)]
                           ? rho[static_cast<std::size_t>(a)] < rho[static_cast<std::size_t>(b)]
                           : a < b;
            });
            double value = 0.0, magnitude = 0.0;
            for (const double m : multiplier) value += m, magnitude += m;
            for (Index c = 0; c < k; ++c) {
                const double r = rho[static_cast<std::size_t>(order[static_cast<std::size_t>(c)])];
                value += r, magnitude -= r;
            }
            value -= 1e-14 * static_cast<double>(n_) * magnitude;  // what the sums may be off by
            if (value > best) best = value, since = 0;
            else if (++since == 3) pace *= 0.5, since = 0;
            std::vector<double> slope(static_cast<std::size_t>(n_), 1.0);
            for (Index c = 0; c < k; ++c) {
                const double* row = D_ + order[static_cast<std::size_t>(c)] * n_;
                for (Index i = 0; i < n_; ++i)
                    if (weight_[i] * row[i] < multiplier[static_cast<std::size_t>(i)]) slope[static_cast<std::size_t>(i)] -= 1.0;
            }
            double length = 0.0;
            for (const double g : slope) length += g * g;
            if (!(length > 0.0) || !(upper > value)) break;
            const double size = pace * (upper - value) / length;
            for (Index i = 0; i < n_; ++i) {
                double& m = multiplier[static_cast<std::size_t>(i)];
                m = std::max(0.0, m + size * slope[static_cast<std::size_t>(i)]);
            }
        }
        return best;
    }

  private:
    struct Candidate {
        double change = kInfinity;
        Index out = 0;
    };
    const double* D_;
    const double* weight_;
    const Index n_;
    Team& team_;

    void assign(const std::int64_t* medoid, Index k, Nearest& state) {
        team_.blocks(n_, 2048, n_ * k > 50000, [&](Index from, Index to, int) {
            for (Index i = from; i < to; ++i) {
                double near = kInfinity, second = kInfinity;
                std::int32_t first = 0;
                for (Index m = 0; m < k; ++m) {
                    const double d = D_[medoid[m] * n_ + i];
                    if (d < near) second = near, near = d, first = static_cast<std::int32_t>(m);
                    else if (d < second) second = d;
                }
                const auto s = static_cast<std::size_t>(i);
                state.first[s] = first, state.near[s] = near, state.second[s] = second;
            }
        });
    }

    double cost(const Nearest& state) const {
        double sum = 0.0;
        for (Index i = 0; i < n_; ++i) sum += weight_[i] * state.near[static_cast<std::size_t>(i)];
        return sum;
    }

    // What it costs to lose each medoid.
    std::vector<double> losses(const Nearest& state, Index k) const {
        std::vector<double> out(static_cast<std::size_t>(k));
        if (k == 1) return out;  // `change` compares whole costs then
        for (Index i = 0; i < n_; ++i) {
            const auto s = static_cast<std::size_t>(i);
            out[static_cast<std::size_t>(state.first[s])] += weight_[i] * (state.second[s] - state.near[s]);
        }
        return out;
    }

    Candidate change(Index x, const Nearest& state, const std::vector<double>& leaving, Index k) const {
        const double* d = D_ + x * n_;
        double gain = 0.0;
        if (k == 1) {
            for (Index i = 0; i < n_; ++i) gain += weight_[i] * (d[i] - state.near[static_cast<std::size_t>(i)]);
            return {gain, 0};
        }
        std::vector<double> total(leaving);
        for (Index i = 0; i < n_; ++i) {
            const auto s = static_cast<std::size_t>(i);
            if (!(d[i] < state.second[s])) continue;
            double& own = total[static_cast<std::size_t>(state.first[s])];
            if (d[i] < state.near[s]) {
                gain += weight_[i] * (d[i] - state.near[s]);
                own += weight_[i] * (state.near[s] - state.second[s]);
            } else {
                own += weight_[i] * (d[i] - state.second[s]);
            }
        }
        const auto least = std::min_element(total.begin(), total.end());
        return {gain + *least, least - total.begin()};
    }
};

}  // namespace certifit::medoids
