// Rows through fitted trees.
//
// A node is two words: the threshold (or the place of its set of categories), and child, flags and feature. Siblings lie side by side, a
// leaf points to itself, so a step is `at = left + !(x <= threshold)` without a branch; several rows walk at once to hide the
// latency of memory.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <span>

namespace certifit::tree {

inline constexpr std::uint32_t kMissingLeft = 1u << 31, kCategorical = 1u << 30, kFeatureMask = (1u << 30) - 1;

struct PackedNode {
    std::uint64_t first;   // bits of the threshold, or first word of the categories
    std::uint32_t feature;  // with flags
    std::int32_t left;      // itself for a leaf
};
static_assert(sizeof(PackedNode) == 16);

struct PackedTree {
    const PackedNode* nodes;
    const std::uint64_t* bits;
    const std::uint32_t* categories;  // number of categories of each feature, or null
};

// Which way missing values go is as good as random from node to node, so it must not become a branch.
template <class T>
inline std::int32_t numeric_step(const PackedNode& node, T x) {
    const double value = static_cast<double>(x), threshold = std::bit_cast<double>(node.first);
    const auto known_left = static_cast<std::uint32_t>(value <= threshold);
    const auto missing_left = static_cast<std::uint32_t>(value != value) & (node.feature >> 31);
    return node.left + static_cast<std::int32_t>(1 - (known_left | missing_left));
}

template <class T>
inline std::int32_t step(const PackedTree& tree, std::int32_t at, T x) {
    const PackedNode& node = tree.nodes[at];
    if (node.feature & kCategorical) [[unlikely]] {
        const bool missing_left = node.feature & kMissingLeft;
        const std::uint32_t count = tree.categories[node.feature & kFeatureMask];
        bool left = missing_left;
        // Codes of known categories, `count` for a missing value that was seen in training, −1 for anything else.
        if (x >= T{0} && x <= static_cast<T>(count)) {
            const auto c = static_cast<std::uint32_t>(x);
            left = (tree.bits[node.first + c / 64] >> (c % 64)) & 1;
        }
        return node.left + !left;
    }
    return numeric_step(node, x);
}

// The leaf of a row; `at(feature)` gives its values.
template <class Values>
inline std::int32_t leaf_of(const PackedTree& tree, Values&& at) {
    std::int32_t node = 0;
    for (;;) {
        const PackedNode& here = tree.nodes[node];
        if (here.left == node) return node;
        node = step(tree, node, at(here.feature & kFeatureMask));
    }
}

// Leaves of `count` rows, stored one after the other with `d` values each. kNumeric: no feature is categorical.
template <bool kNumeric, class T>
void leaves_of(const PackedTree& tree, const T* rows, std::size_t count, std::size_t d, std::int32_t* out) {
    constexpr std::size_t kTogether = 8;
    std::size_t r = 0;
    for (; r + kTogether <= count; r += kTogether) {
        const T* x = rows + r * d;
        std::int32_t at[kTogether] = {};
        bool moving = true;
        while (moving) {
            std::int32_t moved = 0;
#pragma GCC unroll 8
            for (std::size_t k = 0; k < kTogether; ++k) {
                const PackedNode& node = tree.nodes[at[k]];
                const T value = x[k * d + (node.feature & kFeatureMask)];
                const std::int32_t next = kNumeric ? numeric_step(node, value) : step(tree, at[k], value);
                moved |= next ^ at[k];
                at[k] = next;
            }
            moving = moved != 0;
        }
        for (std::size_t k = 0; k < kTogether; ++k) out[r + k] = at[k];
    }
    for (; r < count; ++r) out[r] = leaf_of(tree, [&](std::uint32_t f) { return rows[r * d + f]; });
}

template <class T>
void leaves_of(const PackedTree& tree, bool numeric, const T* rows, std::size_t count, std::size_t d, std::int32_t* out) {
    if (numeric)
        leaves_of<true>(tree, rows, count, d, out);
    else
        leaves_of<false>(tree, rows, count, d, out);
}

}  // namespace certifit::tree
