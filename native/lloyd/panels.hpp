// Rows in panels of single precision, and what is computed of 64 of them at a time: the two nearest of k centers, and distances.
//
//     rows are shifted by their mean and scaled by a power of two to entries near 1, and lie column by column: [panel][j][64]
//     centers lie in groups of four, times −2:                                                                [group][j][4]
//
// A row's lane then holds  ‖c‖² − 2 x·c  = ‖x − c‖² − ‖x‖²,  so that the nearest, the second and the number of the nearest are
// found by comparisons between registers; no distance is stored. Sums of d products in single precision are off by at most
//
//     γ (‖x‖² + ‖c‖²),     γ = 2.02 (d + 16) 2⁻²⁴
//
// (entries rounded, products, sums, squares): a row whose two nearest differ by more than twice that has its nearest center for
// certain.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "core/index.hpp"
#include "core/team.hpp"
#include "core/tile.hpp"

namespace certifit::lloyd {

constexpr Index kWide = 64;  // rows in a panel
constexpr Index kGroup = 4;  // centers in a group
constexpr float kInfinity = std::numeric_limits<float>::infinity();

inline double gamma_of(Index d) { return 2.02 * static_cast<double>(d + 16) * std::ldexp(1.0, -24); }

// Centers as the tiles read them.
struct Packed {
    std::vector<float> entries, lift;
    Index d = 0, groups = 0;
    double longest = 0.0;  // max ‖c‖²
};

// The two least values of lift − 2 x·c and the number of the least, of 64 rows.
struct Two {
    alignas(64) float best[kWide];
    alignas(64) float second[kWide];
    alignas(64) std::int32_t index[kWide];
};

struct TwoNearest {
    template <class Set>
    [[gnu::always_inline]] static void run(const float* x, const Packed& centers, Two& out) {
        using Part = tile::Tile<Set, float, static_cast<int>(kGroup), Set::bytes == 64 ? 4 : 2>;
        using V = typename Part::V;
        using I = tile::Vector<Set, std::int32_t>;
        constexpr int vectors = Part::wide / Part::lanes;
        for (Index c0 = 0; c0 < kWide; c0 += Part::wide) {
            V best[vectors], second[vectors];
            I index[vectors];
            for (int v = 0; v < vectors; ++v) best[v] = second[v] = V{} + kInfinity, index[v] = I{};
            for (Index g = 0; g < centers.groups; ++g) {
                Part sums;
#pragma GCC unroll 4
                for (int r = 0; r < kGroup; ++r) sums.start(r, centers.lift[static_cast<std::size_t>(g * kGroup + r)]);
                sums.template add<kGroup, 1, kWide>(centers.entries.data() + g * kGroup * centers.d, x + c0, centers.d);
#pragma GCC unroll 4
                for (int r = 0; r < kGroup; ++r) {
                    const auto number = static_cast<std::int32_t>(g * kGroup + r);
#pragma GCC unroll 4
                    for (int v = 0; v < vectors; ++v) {
                        const V value = sums.sum[r][v];
                        const I nearer = value < best[v];
                        const V other = value < second[v] ? value : second[v];
                        second[v] = nearer ? best[v] : other;
                        best[v] = nearer ? value : best[v];
                        index[v] = nearer ? I{} + number : index[v];
                    }
                }
            }
            for (int v = 0; v < vectors; ++v) {
                const Index at = c0 + v * Part::lanes;
                std::memcpy(out.best + at, &best[v], sizeof(V));
                std::memcpy(out.second + at, &second[v], sizeof(V));
                std::memcpy(out.index + at, &index[v], sizeof(I));
            }
        }
    }
};
using Nearest = tile::Versions<TwoNearest, void(const float*, const Packed&, Two&)>;

namespace detail {

inline float above(double x) { return std::nextafter(static_cast<float>(x), kInfinity); }

}  // namespace detail

// Squared distances of 64 rows from one point, without cancellation: equal rows are at distance zero.
CERTIFIT_CLONES [[maybe_unused]] static void squared_from(const float* x, const float* point, Index d, float* out) {
    float sum[kWide] = {};
    for (Index j = 0; j < d; ++j)
        for (Index c = 0; c < kWide; ++c) {
            const float delta = x[j * kWide + c] - point[j];
            sum[c] += delta * delta;
        }
    std::memcpy(out, sum, sizeof(sum));
}

// The rows of X in panels. Rows beyond the last are zeros of weight zero.
template <class T>
class Panels {
  public:
    const T* rows;
    Index n, d, count;          // count of panels
    std::vector<double> mean;   // one for each column
    double scale = 1.0;         // a power of two
    std::vector<float> square;  // ‖x‖² of the shifted and scaled rows

    Panels(const T* rows_, Index n_, Index d_, const double* weight, Team& team)
        : rows(rows_), n(n_), d(d_), count((n_ + kWide - 1) / kWide), mean(static_cast<std::size_t>(d_)),
          square(static_cast<std::size_t>(count * kWide)), entries_(static_cast<std::size_t>(count * kWide * d_)) {
        place(weight, team);
        team.blocks(count, 16, true, [&](Index from, Index to, int) {
            for (Index p = from; p < to; ++p) pack(p);
        });
    }

    const float* panel(Index p) const { return entries_.data() + p * kWide * d; }
    float placed(double value, Index j) const { return static_cast<float>((value - mean[static_cast<std::size_t>(j)]) * scale); }

    // Centers given as k rows of d numbers.
    Packed packed(const double* centers, Index k) const {
        Packed out;
        out.d = d, out.groups = (k + kGroup - 1) / kGroup;
        out.entries.assign(static_cast<std::size_t>(out.groups * kGroup * d), 0.0f);
        out.lift.assign(static_cast<std::size_t>(out.groups * kGroup), kInfinity);
        for (Index g = 0; g < out.groups; ++g) {
            float* to = out.entries.data() + g * kGroup * d;
            tile::pack<kGroup>(
                g * kGroup, k, d, to, [&](Index c, Index j) { return placed(centers[c * d + j], j); },
                [&](Index c, double length) {
                    if (g * kGroup + c >= k) return;
                    out.lift[static_cast<std::size_t>(g * kGroup + c)] = static_cast<float>(length);
                    out.longest = std::max(out.longest, length);
                });
            for (Index e = 0; e < kGroup * d; ++e) to[e] *= -2.0f;
        }
        return out;
    }

  private:
    std::vector<float> entries_;

    // Weighted means and the largest distance of an entry from its mean, by blocks in order.
    void place(const double* weight, Team& team) {
        constexpr Index size = 4096;
        const Index blocks = (n + size - 1) / size;
        std::vector<double> sums(static_cast<std::size_t>(blocks * (d + 1)));
        team.blocks(n, size, true, [&](Index from, Index to, int) {
            double* sum = sums.data() + from / size * (d + 1);
            for (Index i = from; i < to; ++i) {
                for (Index j = 0; j < d; ++j) sum[j] += weight[i] * static_cast<double>(rows[i * d + j]);
                sum[d] += weight[i];
            }
        });
        double total = 0.0;
        for (Index b = 0; b < blocks; ++b) {
            for (Index j = 0; j < d; ++j) mean[static_cast<std::size_t>(j)] += sums[static_cast<std::size_t>(b * (d + 1) + j)];
            total += sums[static_cast<std::size_t>(b * (d + 1) + d)];
        }
        for (double& m : mean) m /= total;
        std::vector<double> largest(static_cast<std::size_t>(blocks));
        team.blocks(n, size, true, [&](Index from, Index to, int) {
            double most = 0.0;
            for (Index i = from; i < to; ++i)
                for (Index j = 0; j < d; ++j)
                    most = std::max(most, std::fabs(static_cast<double>(rows[i * d + j]) - mean[static_cast<std::size_t>(j)]));
            largest[static_cast<std::size_t>(from / size)] = most;
        });
        const double most = *std::max_element(largest.begin(), largest.end());
        if (most > 0.0) scale = std::ldexp(1.0, -std::clamp(std::ilogb(most), -1000, 1000));
    }

    void pack(Index p) {
        tile::pack<kWide>(
            p * kWide, n, d, entries_.data() + p * kWide * d,
            [&](Index i, Index j) { return placed(static_cast<double>(rows[i * d + j]), j); },
            [&](Index c, double length) { square[static_cast<std::size_t>(p * kWide + c)] = static_cast<float>(length); });
    }
};

}  // namespace certifit::lloyd
