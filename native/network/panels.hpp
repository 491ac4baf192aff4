// The products of a network, in single precision.
//
// Every matrix lies in panels of 32 columns, one row of a panel after the other: entry (r, c) of a matrix with room for R rows is
// at (c / 32)·32R + 32r + c % 32. So whatever a product reads or writes is contiguous, a batch and a weight matrix alike, and
// eight rows of a panel are what the registers hold. A last panel of at most 16 columns is computed at half width; what pads a
// panel is zero.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/index.hpp"
#include "core/tile.hpp"

namespace certifit::network {

constexpr Index kWide = 32;  // columns of a panel
constexpr Index kTall = 8;   // rows of a tile

constexpr Index panels(Index columns) { return (columns + kWide - 1) / kWide; }
constexpr Index padded(Index rows) { return (rows + kTall - 1) / kTall * kTall; }
// How many columns of panel p are computed.
constexpr Index width(Index columns, Index p) { return columns - p * kWide <= kWide / 2 ? kWide / 2 : kWide; }

// c = bias + a·b for `rows` rows (a multiple of 8) of a: a's panels lie a_stride apart and hold `inner` columns in all; b is one
// panel with a row for each of them. The bias, a row, may be null.
struct Product {
    template <class Set>
    [[gnu::always_inline]] static void run(const float* a, Index a_stride, Index inner, const float* b, const float* bias,
                                           float* c, Index rows, Index columns) {
        if (Set::bytes == 64 && columns <= kWide / 2)
            wide<Set, 1>(a, a_stride, inner, b, bias, c, rows, columns);
        else
            wide<Set, 2>(a, a_stride, inner, b, bias, c, rows, columns);
    }
    template <class Set, int Vectors>
    [[gnu::always_inline]] static void wide(const float* a, Index a_stride, Index inner, const float* b, const float* bias,
                                            float* c, Index rows, Index columns) {
        constexpr int tall = Set::template rows<kTall>;
        using Part = tile::Tile<Set, float, tall, Vectors>;
        for (Index r = 0; r < rows; r += tall)
            for (Index c0 = 0; c0 < columns; c0 += Part::wide) {
                Part part;
                bias ? part.start(bias + c0) : part.clear();
                for (Index k = 0; k < inner; k += kWide)
                    part.template add<1, kWide, kWide>(a + k / kWide * a_stride + r * kWide, b + k * kWide + c0,
                                                       std::min(kWide, inner - k));
                part.store(c + r * kWide + c0, kWide);
            }
    }
};

// g = Σ_r aᵣ dᵣᵀ: eight columns of a panel of a against a panel of d, an 8 × 32 tile of a gradient.
struct Outer {
    template <class Set>
    [[gnu::always_inline]] static void run(const float* a, const float* d, Index rows, Index columns, float* g) {
        if (Set::bytes == 64 && columns <= kWide / 2)
            tile::multiply<Set, kTall, kWide, kWide, 1>(a, d, rows, columns, g);
        else
            tile::multiply<Set, kTall, kWide, kWide>(a, d, rows, columns, g);
    }
};

// The same two sums for rows of which only the entries that are not zero are kept: `count` terms, entry e at place[e] of panels
// that lie `stride` apart, to `panels` rows of 32 sums that lie `to_stride` apart. They begin with the rows at `start`,
// start_stride apart, or with zeros if it is null. Leaving out a product with zero changes no bit of a sum.
struct Gathered {
    template <class Set>
    [[gnu::always_inline]] static void run(const float* value, const std::uint32_t* place, Index count, const float* from,
                                           Index stride, const float* start, Index start_stride, float* to, Index to_stride,
                                           Index panels) {
        constexpr int vectors = static_cast<int>(kWide) / tile::kLanes<Set, float>;
        constexpr Index together = vectors > 4 ? 1 : vectors > 2 ? 2 : 4;  // panels whose sums the registers hold
        Index p = 0;
        for (; p + together <= panels; p += together)
            some<Set, vectors, together>(value, place, count, from + p * stride, stride,
                                         start ? start + p * start_stride : nullptr, start_stride, to + p * to_stride, to_stride);
        for (; p < panels; ++p)
            some<Set, vectors, 1>(value, place, count, from + p * stride, stride, start ? start + p * start_stride : nullptr,
                                  start_stride, to + p * to_stride, to_stride);
    }
    template <class Set, int Vectors, Index Together>
    [[gnu::always_inline]] static void some(const float* value, const std::uint32_t* place, Index count, const float* from,
                                            Index stride, const float* start, Index start_stride, float* to, Index to_stride) {
        tile::Tile<Set, float, 1, Vectors> sums[Together];
#pragma GCC unroll 4
        for (Index p = 0; p < Together; ++p) start ? sums[p].start(start + p * start_stride) : sums[p].clear();
        for (Index e = 0; e < count; ++e) {
            const float* row = from + static_cast<Index>(place[e]) * kWide;
#pragma GCC unroll 4
            for (Index p = 0; p < Together; ++p) sums[p].template add_one<1>(value + e, row + p * stride);
        }
#pragma GCC unroll 4
        for (Index p = 0; p < Together; ++p) sums[p].store(to + p * to_stride, kWide);
    }
};

struct Products {
    using OfRows = tile::Versions<Product, void(const float*, Index, Index, const float*, const float*, float*, Index, Index)>;
    using OfColumns = tile::Versions<Outer, void(const float*, const float*, Index, Index, float*)>;
    using OfEntries = tile::Versions<Gathered, void(const float*, const std::uint32_t*, Index, const float*, Index, const float*,
                                                    Index, float*, Index, Index)>;
    OfRows::Call product = OfRows::best();
    OfColumns::Call outer = OfColumns::best();
    OfEntries::Call gathered = OfEntries::best();
};

// to[c][r] = from[r][c] for an 8 × 32 tile whose rows, and those of the result, are 32 apart.
CERTIFIT_CLONES [[maybe_unused]] static void transpose(const float* from, float* to, Index columns) {
    typedef float Part __attribute__((vector_size(32), aligned(4), may_alias));
    for (Index c = 0; c < columns; c += 8) {
        Part r[8], s[8], t[8];
        for (int i = 0; i < 8; ++i) r[i] = *reinterpret_cast<const Part*>(from + i * kWide + c);
        for (int i = 0; i < 8; i += 2) {
            s[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
            s[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
        }
        for (int i = 0; i < 8; i += 4)
            for (int j = 0; j < 2; ++j) {
                t[i + j] = __builtin_shufflevector(s[i + j], s[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
                t[i + j + 2] = __builtin_shufflevector(s[i + j], s[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
            }
        for (int i = 0; i < 4; ++i) {
            *reinterpret_cast<Part*>(to + (c + i) * kWide) = __builtin_shufflevector(t[i], t[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
            *reinterpret_cast<Part*>(to + (c + i + 4) * kWide) =
                __builtin_shufflevector(t[i], t[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
        }
    }
}

}  // namespace certifit::network
