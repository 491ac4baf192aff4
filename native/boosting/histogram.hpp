// Histograms of gradients: for every feature and bin the sums of gradient, curvature and count over the rows of a node.
//
// Rows hold their bins in groups of up to eight features that lie side by side, so that one load brings the bins of a group,
// and the narrow histogram of a group (8 features × 256 bins × 8 bytes) stays in the first-level cache.
#pragma once

#include <cstring>
#include <span>
#include <vector>

#include "boosting/gradients.hpp"

namespace certifit::boosting {

constexpr int kSlots = 256, kGroup = 8;

// The table as bytes: bin of row i, feature j at data[i * stride + column[j]]; at least 8 readable bytes follow the last.
struct Bins {
    const std::uint8_t* data;
    Index rows, features, stride;
    std::span<const std::int64_t> column;
    std::vector<Index> offset;          // of a feature's histogram; features + 1 entries
    std::vector<int> values;            // bins for values; the bin of missing values follows
    std::vector<std::uint8_t> categorical;
    Index group = kGroup;               // features in a group

    Index groups() const { return (features + group - 1) / group; }
    Index total() const { return offset[features]; }
    std::uint8_t bin(Index row, Index j) const { return data[row * stride + column[j]]; }
};

namespace detail {

inline std::uint64_t eight(const std::uint8_t* p) {
    std::uint64_t word;
    std::memcpy(&word, p, 8);
    return word;
}

// Adds the rows [0, n) of `rows` (or first, first + 1, … when it is null) to `hist`; `entry` makes of what is stored for a row
// what is added.
template <int F, bool kIndexed, class Stored, class Entry, class Make>
void accumulate(const std::uint8_t* bins, Index stride, const std::uint32_t* rows, Index first, Index n, const Stored* gradient,
                Make entry, Entry* hist) {
    constexpr Index kAhead = 24;
    for (Index k = 0; k < n; ++k) {
        Index row = first + k;
        if constexpr (kIndexed) {
            row = rows[k];
            if (k + kAhead < n) {
                const Index later = rows[k + kAhead];
                __builtin_prefetch(bins + later * stride);
                __builtin_prefetch(gradient + later);
            }
        }
        const Entry g = entry(gradient[row]);
        const std::uint64_t word = eight(bins + row * stride);
        if constexpr (F > 0) hist[word & 255] += g;
        if constexpr (F > 1) hist[1 * kSlots + ((word >> 8) & 255)] += g;
        if constexpr (F > 2) hist[2 * kSlots + ((word >> 16) & 255)] += g;
        if constexpr (F > 3) hist[3 * kSlots + ((word >> 24) & 255)] += g;
        if constexpr (F > 4) hist[4 * kSlots + ((word >> 32) & 255)] += g;
        if constexpr (F > 5) hist[5 * kSlots + ((word >> 40) & 255)] += g;
        if constexpr (F > 6) hist[6 * kSlots + ((word >> 48) & 255)] += g;
        if constexpr (F > 7) hist[7 * kSlots + (word >> 56)] += g;
    }
}

template <bool kIndexed, class Stored, class Entry, class Make>
void accumulate_any(int features, const std::uint8_t* bins, Index stride, const std::uint32_t* rows, Index first, Index n,
                    const Stored* gradient, Make entry, Entry* hist) {
    switch (features) {
        case 1: return accumulate<1, kIndexed>(bins, stride, rows, first, n, gradient, entry, hist);
        case 2: return accumulate<2, kIndexed>(bins, stride, rows, first, n, gradient, entry, hist);
        case 3: return accumulate<3, kIndexed>(bins, stride, rows, first, n, gradient, entry, hist);
        case 4: return accumulate<4, kIndexed>(bins, stride, rows, first, n, gradient, entry, hist);
        case 5: return accumulate<5, kIndexed>(bins, stride, rows, first, n, gradient, entry, hist);
        case 6: return accumulate<6, kIndexed>(bins, stride, rows, first, n, gradient, entry, hist);
        case 7: return accumulate<7, kIndexed>(bins, stride, rows, first, n, gradient, entry, hist);
        default: return accumulate<8, kIndexed>(bins, stride, rows, first, n, gradient, entry, hist);
    }
}

// Narrow sums of one feature are carried over to wide ones.
CERTIFIT_CLONES inline void carry(const std::int64_t* __restrict from, std::int64_t* __restrict to, int n, int shift_g,
                                  int shift_h, int shift) {
    const std::int64_t count = (std::int64_t{1} << shift_h) - 1;
    const std::int64_t curvature = (std::int64_t{1} << (shift_g - shift_h)) - 1;
    for (int k = 0; k < n; ++k) {
        const std::int64_t s = from[k];
        to[2 * k] += s >> shift_g;
        to[2 * k + 1] += ((s >> shift_h) & curvature) + ((s & count) << shift);
    }
}

CERTIFIT_CLONES inline void subtract(std::int64_t* __restrict from, const std::int64_t* __restrict what, Index n) {
    for (Index k = 0; k < n; ++k) from[k] -= what[k];
}
CERTIFIT_CLONES inline void add(std::int64_t* __restrict to, const std::int64_t* __restrict what, Index n) {
    for (Index k = 0; k < n; ++k) to[k] += what[k];
}

}  // namespace detail

struct alignas(64) GroupHistogram {
    Pair wide[kGroup * kSlots];
    std::int64_t* narrow() { return reinterpret_cast<std::int64_t*>(wide); }
};

// Adds rows [begin, end) to the part of `hist` (one Pair a bin) that belongs to a group.
inline void group_histogram(const Bins& bins, const Gradients& gradients, const std::uint32_t* rows, Index begin, Index end,
                            Index group, GroupHistogram& local, Pair* hist) {
    const Index j0 = group * bins.group, j1 = std::min(j0 + bins.group, bins.features);
    const int features = static_cast<int>(j1 - j0);
    const std::uint8_t* data = bins.data + bins.column[j0];
    const Index step = gradients.narrow ? Index{1} << gradients.rows_log2 : end - begin;
    for (Index k = begin; k < end; k += step) {
        const Index n = std::min(step, end - k);
        const std::uint32_t* where = rows ? rows + k : nullptr;
        auto add = [&](const auto* stored, auto entry, auto* hist) {
            if (rows)
                detail::accumulate_any<true>(features, data, bins.stride, where, k, n, stored, entry, hist);
            else
                detail::accumulate_any<false>(features, data, bins.stride, where, k, n, stored, entry, hist);
        };
        if (gradients.narrow) {
            std::int64_t* narrow = local.narrow();
            std::memset(narrow, 0, features * kSlots * sizeof(std::int64_t));
            add(gradients.packed(), gradients.unpack(), narrow);
            for (Index j = j0; j < j1; ++j)
                detail::carry(narrow + (j - j0) * kSlots, reinterpret_cast<std::int64_t*>(hist + bins.offset[j]),
                              bins.values[j] + 1, gradients.shift_g, gradients.shift_h, gradients.units.shift);
        } else {
            std::memset(local.wide, 0, features * kSlots * sizeof(Pair));
            add(gradients.pairs(), [](const Pair& pair) { return pair; }, local.wide);
            for (Index j = j0; j < j1; ++j)
                for (int b = 0; b <= bins.values[j]; ++b) hist[bins.offset[j] + b] += local.wide[(j - j0) * kSlots + b];
        }
    }
}

}  // namespace certifit::boosting
