// The order in which rows are visited.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/index.hpp"

namespace certifit::sgd {

// xoshiro256++ (Blackman and Vigna 2019): the order of the rows must not depend on a library's generator.
struct Random {
    std::uint64_t s[4];

    static std::uint64_t rotate(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
    std::uint64_t next() {
        const std::uint64_t result = rotate(s[0] + s[3], 23) + s[0], t = s[1] << 17;
        s[2] ^= s[0], s[3] ^= s[1], s[1] ^= s[2], s[0] ^= s[3], s[2] ^= t;
        s[3] = rotate(s[3], 45);
        return result;
    }
    // Uniform on 0 … n−1 by multiplication (Lemire 2019); the bias of 2^-32·n per draw is left in.
    std::uint64_t below(std::uint64_t n) {
        return static_cast<std::uint64_t>((static_cast<unsigned __int128>(next()) * n) >> 64);
    }
};

inline void shuffle(std::uint32_t* order, Index n, Random& random) {
    for (Index i = n - 1; i > 0; --i) std::swap(order[i], order[random.below(static_cast<std::uint64_t>(i) + 1)]);
}

// The same for rows too many for the cache: blocks of neighbors are dealt at random into groups, and each group is shuffled
// as a whole. Neighbors then share pages and memory bursts, and a group is still a random sample of blocks.
inline void shuffle_blocks(std::uint32_t* order, Index n, Index block, Index group, Random& random) {
    const Index blocks = n / block;
    std::vector<std::uint32_t> dealt(static_cast<std::size_t>(blocks)), kept(order, order + n);
    for (Index k = 0; k < blocks; ++k) dealt[static_cast<std::size_t>(k)] = static_cast<std::uint32_t>(k);
    shuffle(dealt.data(), blocks, random);
    for (Index k = 0; k < blocks; ++k)
        std::copy_n(kept.data() + static_cast<Index>(dealt[static_cast<std::size_t>(k)]) * block, block, order + k * block);
    const Index size = block * group;
    for (Index start = 0; start < n; start += size) shuffle(order + start, std::min(size, n - start), random);
}

}  // namespace certifit::sgd
