// The k nearest of dense rows in many columns: a filter in single precision at the speed of a matrix product, and the exact distance in
// double precision of the few rows that pass.
//
//     ‖x − q‖²  =  ‖x‖² − 2 x·q + ‖q‖²        with x, q shifted by the mean of the rows and scaled by a power of two to entries near 1
//
// Products of d terms in single precision are off by at most γ‖x‖‖q‖ ≤ ½γ(‖x‖² + ‖q‖²) with γ ≈ d·2⁻²⁴. So a row can be nearer than the
// k-th found so far, at distance T, only if
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
#include "neighbors/norm.hpp"
#include "neighbors/sinks.hpp"

namespace certifit::neighbors {

constexpr Index kWide = 32;          // rows in a panel
constexpr Index kTall = 12;          // queries in a tile
constexpr Index kTiles = 8;          // tiles of a task
constexpr Index kPanelBytes = 1 << 22;  // of packed rows at a time: what a processor keeps near

// hits[r] has bit c set where lift[c] − 2 Σ_j q[j][r]·x[j][c] ≤ limit[r].
using Tile = void (*)(const float* q, const float* x, Index d, const float* lift, const float* limit, std::uint32_t* hits);

namespace detail {

// values[r][c] = lift[c] − 2 Σ_j q[j][r]·x[j][c], with Rows × (Vectors·lanes) sums at a time in registers.
template <int Rows, int Vectors, class V>
[[gnu::always_inline]] inline void products(const float* q, const float* x, Index d, const float* lift, float* values) {
    constexpr int lanes = sizeof(V) / sizeof(float), step = Vectors * lanes;
    for (int r0 = 0; r0 < kTall; r0 += Rows)
        for (int c0 = 0; c0 < kWide; c0 += step) {
            V sum[Rows][Vectors] = {};
            const float* xs = x + c0;
            const float* qs = q + r0;
            for (Index j = 0; j < d; ++j, xs += kWide, qs += kTall) {
                V a[Vectors];
#pragma GCC unroll 4
                for (int v = 0; v < Vectors; ++v) std::memcpy(&a[v], xs + v * lanes, sizeof(V));
#pragma GCC unroll 12
                for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
                    for (int v = 0; v < Vectors; ++v) sum[r][v] += a[v] * qs[r];
            }
#pragma GCC unroll 4
            for (int v = 0; v < Vectors; ++v) {
                V up;
                std::memcpy(&up, lift + c0 + v * lanes, sizeof(V));
#pragma GCC unroll 12
                for (int r = 0; r < Rows; ++r) {
                    const V value = up - 2.0f * sum[r][v];
                    std::memcpy(values + (r0 + r) * kWide + c0 + v * lanes, &value, sizeof(V));
                }
            }
        }
}

typedef float Four __attribute__((vector_size(16)));
inline void tile_plain(const float* q, const float* x, Index d, const float* lift, const float* limit, std::uint32_t* hits) {
    alignas(64) float values[kTall * kWide];
    products<4, 2, Four>(q, x, d, lift, values);
    for (int r = 0; r < kTall; ++r) {
        hits[r] = 0;
        for (int c = 0; c < kWide; ++c) hits[r] |= static_cast<std::uint32_t>(values[r * kWide + c] <= limit[r]) << c;
    }
}

#if defined(__x86_64__) && !defined(CERTIFIT_SANITIZE)
#pragma GCC diagnostic ignored "-Wpsabi"
typedef float Eight __attribute__((vector_size(32)));
typedef float Sixteen __attribute__((vector_size(64)));

__attribute__((target("arch=x86-64-v3"))) inline void tile_v3(const float* q, const float* x, Index d, const float* lift, const float* limit,
                                                              std::uint32_t* hits) {
    alignas(64) float values[kTall * kWide];
    products<6, 2, Eight>(q, x, d, lift, values);
    for (int r = 0; r < kTall; ++r) {
        hits[r] = 0;
        for (int c = 0; c < kWide; c += 8)
            hits[r] |= static_cast<std::uint32_t>(_mm256_movemask_ps(
                           _mm256_cmp_ps(_mm256_load_ps(values + r * kWide + c), _mm256_set1_ps(limit[r]), _CMP_LE_OQ)))
                       << c;
    }
}

__attribute__((target("arch=x86-64-v4"))) inline void tile_v4(const float* q, const float* x, Index d, const float* lift, const float* limit,
                                                              std::uint32_t* hits) {
    alignas(64) float values[kTall * kWide];
    products<12, 2, Sixteen>(q, x, d, lift, values);
    for (int r = 0; r < kTall; ++r) {
        const __m512 top = _mm512_set1_ps(limit[r]);
        const std::uint32_t low = _mm512_cmp_ps_mask(_mm512_load_ps(values + r * kWide), top, _CMP_LE_OQ);
        const std::uint32_t high = _mm512_cmp_ps_mask(_mm512_load_ps(values + r * kWide + 16), top, _CMP_LE_OQ);
        hits[r] = low | high << 16;
    }
}
#endif

inline Tile best_tile() {
#if defined(__x86_64__) && !defined(CERTIFIT_SANITIZE)
    if (__builtin_cpu_supports("x86-64-v4")) return tile_v4;
    if (__builtin_cpu_supports("x86-64-v3")) return tile_v3;
#endif
    return tile_plain;
}

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
        const Tile tile = detail::best_tile();
        const Index held = std::max<Index>(kWide, kPanelBytes / (static_cast<Index>(sizeof(float)) * std::max<Index>(1, d_)) / kWide * kWide);
        const Index room = std::min(held, (n_ + kWide - 1) / kWide * kWide);
        std::vector<float> packed(static_cast<std::size_t>(room * d_)), lift(static_cast<std::size_t>(room));
        for (Index q = 0; q < m; ++q) answer.of(q).clear();
        for (Index first = 0; first < n_; first += held) {
            const Index count = std::min(held, n_ - first);
            team.blocks((count + kWide - 1) / kWide, 16, true, [&](Index from, Index to, int) {
                for (Index p = from; p < to; ++p) pack(first + p * kWide, packed.data() + p * kWide * d_, lift.data() + p * kWide);
            });
            team.blocks(m, kTall * kTiles, true, [&](Index from, Index to, int worker) {
                search(queries, from, to, first, count, packed.data(), lift.data(), answer, tile, team, worker);
            });
        }
        for (Index q = 0; q < m; ++q) answer.of(q).finish();
    }

  private:
    const T* rows_;
    Index n_, d_;
    Frame frame_;
    double gamma_;

    float placed(T value, Index j) const { return static_cast<float>((static_cast<double>(value) - frame_.center[j]) * frame_.scale); }

    void pack(Index first, float* panel, float* lift) const {
        for (Index c = 0; c < kWide; ++c) {
            const Index i = first + c;
            double square = 0.0;
            for (Index j = 0; j < d_; ++j) {
                const float x = i < n_ ? placed(rows_[i * d_ + j], j) : 0.0f;
                panel[j * kWide + c] = x;
                square += static_cast<double>(x) * x;
            }
            lift[c] = i < n_ ? detail::below((1.0 - gamma_) * square) : std::numeric_limits<float>::infinity();
        }
    }

    void search(const T* queries, Index from, Index to, Index first, Index count, const float* packed, const float* lift, const Answer& answer,
                Tile tile, Team& team, int worker) const {
        const Index tiles = (to - from + kTall - 1) / kTall;
        std::vector<float> q(static_cast<std::size_t>(tiles * kTall * d_));
        std::vector<float> limit(static_cast<std::size_t>(tiles * kTall), -std::numeric_limits<float>::infinity());
        std::vector<double> lowered(limit.size());
        for (Index r = 0; r < to - from; ++r) {
            double square = 0.0;
            for (Index j = 0; j < d_; ++j) {
                const float x = placed(queries[(from + r) * d_ + j], j);
                q[static_cast<std::size_t>((r / kTall * d_ + j) * kTall + r % kTall)] = x;
                square += static_cast<double>(x) * x;
            }
            lowered[static_cast<std::size_t>(r)] = (1.0 - gamma_) * square;
            limit[static_cast<std::size_t>(r)] = limit_of(answer.of(from + r).bound(), lowered[static_cast<std::size_t>(r)]);
        }
        std::array<std::uint32_t, kTall> hits;
        for (Index p = 0; p * kWide < count; ++p) {
            if (p % 64 == 0) team.check(worker);
            for (Index t = 0; t < tiles; ++t) {
                tile(q.data() + t * kTall * d_, packed + p * kWide * d_, d_, lift + p * kWide, limit.data() + t * kTall, hits.data());
                for (Index r = 0; r < kTall; ++r)
                    if (hits[static_cast<std::size_t>(r)] && t * kTall + r < to - from)
                        meet(queries, from + t * kTall + r, first + p * kWide, hits[static_cast<std::size_t>(r)], answer,
                             limit[static_cast<std::size_t>(t * kTall + r)], lowered[static_cast<std::size_t>(t * kTall + r)]);
            }
        }
    }

    // The last term is above what products lose that are too small for a normal number.
    float limit_of(double bound, double lowered) const { return detail::above(bound * frame_.scale * frame_.scale - lowered + 1e-37); }

    // The exact distances of the rows that passed.
    void meet(const T* queries, Index query, Index first, std::uint32_t hits, const Answer& answer, float& limit, double lowered) const {
        Nearest nearest = answer.of(query);
        for (; hits; hits &= hits - 1) {
            const Index i = first + __builtin_ctz(hits);
            if (i < n_) nearest.offer(squared_distance(rows_ + i * d_, queries + query * d_, d_), i);
        }
        limit = limit_of(nearest.bound(), lowered);
    }
};

}  // namespace certifit::neighbors
