// Terms and their numbers: 0, 1, 2, … in order of arrival.
//
// Terms are UTF-8, so that the order of their bytes is the order of their code points, which is Python's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace certifit::text {

using Id = std::int32_t;
using Bytes = std::string_view;

// Eight bytes at a time: most words are one or two multiplications.
inline std::uint64_t hashed(Bytes term) {
    constexpr std::uint64_t odd = 0x9E3779B97F4A7C15ull;
    std::uint64_t h = term.size() * odd;
    const char* at = term.data();
    std::size_t left = term.size();
    const auto mix = [&](std::uint64_t chunk) { h = (h ^ chunk) * odd, h ^= h >> 29; };
    for (; left >= 8; at += 8, left -= 8) {
        std::uint64_t chunk;
        std::memcpy(&chunk, at, 8);
        mix(chunk);
    }
    if (left) {  // by overlapping halves: a copy of unknown length would be a call
        std::uint64_t chunk = 0;
        if (left >= 4) {
            std::uint32_t low, high;
            std::memcpy(&low, at, 4), std::memcpy(&high, at + left - 4, 4);
            chunk = low | static_cast<std::uint64_t>(high) << 32;
        } else {
            const auto byte = [&](std::size_t i) { return static_cast<std::uint64_t>(static_cast<unsigned char>(at[i])); };
            chunk = byte(0) | byte(left / 2) << 8 | byte(left - 1) << 16;
        }
        mix(chunk);
    }
    return h ^ (h >> 32);
}

// Open addressing with linear steps, at most half full; the strings lie behind each other in one piece of memory.
class Terms {
  public:
    Terms() : slots_(64), ends_{0} {}

    std::size_t size() const { return ends_.size() - 1; }
    Bytes operator[](std::size_t id) const { return {bytes_.data() + ends_[id], ends_[id + 1] - ends_[id]}; }

    Id find(Bytes term) const { return slots_[place(term, hashed(term))].id; }

    Id intern(Bytes term) {
        const std::uint64_t hash = hashed(term);
        std::size_t at = place(term, hash);
        if (slots_[at].id >= 0) return slots_[at].id;
        if (size() >= static_cast<std::size_t>(std::numeric_limits<Id>::max())) throw std::length_error("too many terms");
        if (2 * (size() + 1) > slots_.size()) {
            grow();
            at = place(term, hash);
        }
        const Id id = static_cast<Id>(size());
        slots_[at] = {static_cast<std::uint32_t>(hash >> 32), id};
        bytes_.insert(bytes_.end(), term.begin(), term.end());
        ends_.push_back(bytes_.size());
        return id;
    }

    // Numbers of the terms in order of their code points.
    std::vector<Id> order() const {
        std::vector<Id> found(size());
        std::iota(found.begin(), found.end(), Id{0});
        std::sort(found.begin(), found.end(), [&](Id a, Id b) { return (*this)[a] < (*this)[b]; });
        return found;
    }

  private:
    struct Slot {
        std::uint32_t check = 0;  // the half of the hash that does not choose the slot: most other terms differ in it
        Id id = -1;
    };

    std::size_t place(Bytes term, std::uint64_t hash) const {
        const auto check = static_cast<std::uint32_t>(hash >> 32);
        const std::size_t mask = slots_.size() - 1;
        std::size_t at = hash & mask;
        while (slots_[at].id >= 0 && (slots_[at].check != check || (*this)[static_cast<std::size_t>(slots_[at].id)] != term))
            at = (at + 1) & mask;
        return at;
    }

    void grow() {
        slots_.assign(2 * slots_.size(), Slot{});
        for (std::size_t id = 0; id < size(); ++id) {
            const std::uint64_t hash = hashed((*this)[id]);
            std::size_t at = hash & (slots_.size() - 1);
            while (slots_[at].id >= 0) at = (at + 1) & (slots_.size() - 1);
            slots_[at] = {static_cast<std::uint32_t>(hash >> 32), static_cast<Id>(id)};
        }
    }

    std::vector<Slot> slots_;
    std::vector<char> bytes_;
    std::vector<std::size_t> ends_;
};

// The sign and the column of a hashed term: MurmurHash3 of 32 bits with seed 0 (Appleby), as scikit-learn's FeatureHasher.
inline std::int32_t murmur3(Bytes term) {
    const auto turned = [](std::uint32_t x, int by) { return (x << by) | (x >> (32 - by)); };
    const auto mixed = [&](std::uint32_t k) { return turned(k * 0xcc9e2d51u, 15) * 0x1b873593u; };
    std::uint32_t h = 0;
    std::size_t at = 0;
    for (; at + 4 <= term.size(); at += 4) {
        std::uint32_t k;
        std::memcpy(&k, term.data() + at, 4);
        h = turned(h ^ mixed(k), 13) * 5 + 0xe6546b64u;
    }
    if (at < term.size()) {
        std::uint32_t k = 0;
        for (std::size_t i = term.size(); i-- > at;) k = (k << 8) | static_cast<unsigned char>(term[i]);
        h ^= mixed(k);
    }
    h ^= static_cast<std::uint32_t>(term.size());
    h = (h ^ (h >> 16)) * 0x85ebca6bu;
    h = (h ^ (h >> 13)) * 0xc2b2ae35u;
    return static_cast<std::int32_t>(h ^ (h >> 16));
}

}  // namespace certifit::text
