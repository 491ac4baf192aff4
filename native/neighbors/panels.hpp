// The k nearest of dense rows in many columns: a filter in single precision at the speed of a matrix product, and the exact
// distance in double precision of the few rows that pass.
//
//     ‖x − q‖²  =  ‖x‖² − 2 x·q + ‖q‖²    with x, q shifted by the mean of the rows and scaled by a power of two to be near 1
//
// Products of d terms in single precision are off by at most γ‖x‖‖q‖ ≤ ½γ(‖x‖² + ‖q‖²) with γ ≈ d·2⁻²⁴. So a row can be nearer
// than the k-th found so far, at distance T, only if
//
//     (1 − γ)‖x‖² − 2 fl(x·q)  ≤  T − (1 − γ)‖q‖²
//
// and all others are passed over without leaving the registers. Nothing of size rows × queries is stored.
#pragma once

#include <array>
#include <cmath>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "core/team.hpp"
#include "core/tile.hpp"
#include "neighbors/norm.hpp"
#include "neighbors/sinks.hpp"

namespace certifit::neighbors {

constexpr Index kWide = 32;          // rows in a panel
constexpr Index kTall = 12;          // queries in a tile
constexpr Index kTiles = 8;          // tiles of a task
constexpr Index kPanelBytes = 1 << 22;  // of packed rows at a time: what a processor keeps near

// Which of 32 values are at most `limit`, as bits.
inline std::uint32_t at_most(tile::Plain, const float* values, float limit) {
    std::uint32_t bits = 0;
    for (Index c = 0; c < kWide; ++c) bits |= static_cast<std::uint32_t>(values[c] <= limit) << c;
    return bits;
}
#if defined(__x86_64__) && !defined(CERTIFIT_SANITIZE)
__attribute__((target("arch=x86-64-v3"))) inline std::uint32_t at_most(tile::V3, const float* values, float limit) {
    std::uint32_t bits = 0;
    for (Index c = 0; c < kWide; c += 8)
        bits |= static_cast<std::uint32_t>(
                    _mm256_movemask_ps(_mm256_cmp_ps(_mm256_load_ps(values + c), _mm256_set1_ps(limit), _CMP_LE_OQ)))
                << c;
    return bits;
}
__attribute__((target("arch=x86-64-v4"))) inline std::uint32_t at_most(tile::V4, const float* values, float limit) {
    const __m512 top = _mm512_set1_ps(limit);
    const std::uint32_t low = _mm512_cmp_ps_mask(_mm512_load_ps(values), top, _CMP_LE_OQ);
    const std::uint32_t high = _mm512_cmp_ps_mask(_mm512_load_ps(values + 16), top, _CMP_LE_OQ);
    return low | high << 16;
}
#endif

// hits[r] has bit c set where lift[c] − 2 Σ_j q[j][r]·x[j][c] ≤ limit[r].
struct Near {
    template <class Set>
    [[gnu::always_inline]] static void run(const float* q, const float* x, Index d, const float* lift, const float* limit,
                                           std::uint32_t* hits) {
        alignas(64) float values[kTall * kWide];
        tile::multiply<Set, kTall, kTall, kWide>(q, x, d, kWide, values);
        for (Index r = 0; r < kTall; ++r) {
            for (Index c = 0; c < kWide; ++c) values[r * kWide + c] = lift[c] - 2.0f * values[r * kWide + c];
            hits[r] = at_most(Set{}, values + r * kWide, limit[r]);
        }
    }
};
using Filter = tile::Versions<Near, void(const float*, const float*, Index, const float*, const float*, std::uint32_t*)>;

namespace detail {

inline float above(double x) { return std::nextafter(static_cast<float>(x), std::numeric_limits<float>::infinity()); }
inline float below(double x) { return std::nextafter(static_cast<float>(x), -std::numeric_limits<float>::infinity()); }

}  // namespace detail

// Where rows are shifted and scaled to before they are rounded.
struct Frame {
    const double* center;  // one for each column
    double scale;          // a power of two
};

// The answer: k distances and rows for each query, and the row that a query leaves out (−1 for none).
struct Answer {
    double* distance;
    std::int64_t* row;
    const std::int64_t* except;
    Index k;
    Nearest of(Index q) const { return {distance + q * k, row + q * k, k, except ? except[q] : -1}; }
};

template <class T>
class Panels {
  public:
    Panels(const T* rows, Index n, Index d, const Frame& frame) : rows_(rows), n_(n), d_(d), frame_(frame) {
        // Rounding of entries, of products, of sums of d, of squares and of the comparison.
        gamma_ = 1.01 * static_cast<double>(d + 16) * std::ldexp(1.0, -24);
    }

    void nearest(const T* queries, Index m, const Answer& answer, Team& team) const {
        const Filter::Call filter = Filter::best();
        const Index held =
            std::max<Index>(kWide, kPanelBytes / (static_cast<Index>(sizeof(float)) * std::max<Index>(1, d_)) / kWide * kWide);
        const Index room = std::min(held, (n_ + kWide - 1) / kWide * kWide);
        std::vector<float> packed(static_cast<std::size_t>(room * d_)), lift(static_cast<std::size_t>(room));
        for (Index q = 0; q < m; ++q) answer.of(q).clear();
        for (Index first = 0; first < n_; first += held) {
            const Index count = std::min(held, n_ - first);
            team.blocks((count + kWide - 1) / kWide, 16, true, [&](Index from, Index to, int) {
                for (Index p = from; p < to; ++p)
                    pack(first + p * kWide, packed.data() + p * kWide * d_, lift.data() + p * kWide);
            });
            team.blocks(m, kTall * kTiles, true, [&](Index from, Index to, int worker) {
                search(queries, from, to, first, count, packed.data(), lift.data(), answer, filter, team, worker);
            });
        }
        for (Index q = 0; q < m; ++q) answer.of(q).finish();
    }

  private:
    const T* rows_;
    Index n_, d_;
    Frame frame_;
    double gamma_;

    float placed(T value, Index j) const {
        return static_cast<float>((static_cast<double>(value) - frame_.center[j]) * frame_.scale);
    }

    void pack(Index first, float* panel, float* lift) const {
        tile::pack<kWide>(
            first, n_, d_, panel, [&](Index i, Index j) { return placed(rows_[i * d_ + j], j); },
            [&](Index c, double square) {
                lift[c] = first + c < n_ ? detail::below((1.0 - gamma_) * square) : std::numeric_limits<float>::infinity();
            });
    }

    void search(const T* queries, Index from, Index to, Index first, Index count, const float* packed, const float* lift,
                const Answer& answer, Filter::Call filter, Team& team, int worker) const {
        const Index tiles = (to - from + kTall - 1) / kTall;
        std::vector<float> q(static_cast<std::size_t>(tiles * kTall * d_));
        std::vector<float> limit(static_cast<std::size_t>(tiles * kTall), -std::numeric_limits<float>::infinity());
        std::vector<double> lowered(limit.size());
        for (Index t = 0; t < tiles; ++t)
            tile::pack<kTall>(
                from + t * kTall, to, d_, q.data() + t * kTall * d_,
                [&](Index i, Index j) { return placed(queries[i * d_ + j], j); },
                [&](Index c, double square) {
                    const Index r = t * kTall + c;
                    if (r >= to - from) return;
                    lowered[static_cast<std::size_t>(r)] = (1.0 - gamma_) * square;
                    limit[static_cast<std::size_t>(r)] =
                        limit_of(answer.of(from + r).bound(), lowered[static_cast<std::size_t>(r)]);
                });
        std::array<std::uint32_t, kTall> hits;
        for (Index p = 0; p * kWide < count; ++p) {
            if (p % 64 == 0) team.check(worker);
            for (Index t = 0; t < tiles; ++t) {
                filter(q.data() + t * kTall * d_, packed + p * kWide * d_, d_, lift + p * kWide, limit.data() + t * kTall,
                       hits.data());
                for (Index r = 0; r < kTall; ++r)
                    if (hits[static_cast<std::size_t>(r)] && t * kTall + r < to - from)
                        meet(queries, from + t * kTall + r, first + p * kWide, hits[static_cast<std::size_t>(r)], answer,
                             limit[static_cast<std::size_t>(t * kTall + r)], lowered[static_cast<std::size_t>(t * kTall + r)]);
            }
        }
    }

    // The last term is above what products lose that are too small for a normal number.
    float limit_of(double bound, double lowered) const {
        return detail::above(bound * frame_.scale * frame_.scale - lowered + 1e-37);
    }

    // The exact distances of the rows that passed.
    void meet(const T* queries, Index query, Index first, std::uint32_t hits, const Answer& answer, float& limit,
              double lowered) const {
        Nearest nearest = answer.of(query);
        for (; hits; hits &= hits - 1) {
            const Index i = first + __builtin_ctz(hits);
            if (i < n_) nearest.offer(squared_distance(rows_ + i * d_, queries + query * d_, d_), i);
        }
        limit = limit_of(nearest.bound(), lowered);
    }
};

}  // namespace certifit::neighbors
