// Sorting by numbers in linear time: keys that keep the order of floating point numbers, and a radix sort.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace certifit {

// Unsigned integers in the order of the numbers; zeros of both signs are one number.
inline std::uint32_t key_of(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x + 0.0f);  // −0 becomes 0
    return bits ^ ((bits >> 31) ? 0xFFFFFFFFu : 0x80000000u);
}
inline std::uint64_t key_of(double x) {
    const auto bits = std::bit_cast<std::uint64_t>(x + 0.0);
    return bits ^ ((bits >> 63) ? ~std::uint64_t{0} : std::uint64_t{1} << 63);
}
inline double number_of(std::uint32_t key) {
    return std::bit_cast<float>(key ^ ((key >> 31) ? 0x80000000u : 0xFFFFFFFFu));
}
inline double number_of(std::uint64_t key) {
    return std::bit_cast<double>(key ^ ((key >> 63) ? std::uint64_t{1} << 63 : ~std::uint64_t{0}));
}

// Stable sort of `items` by key(item), an unsigned integer, least significant digit first; `spare` has the same length.
template <class Item, class KeyIn>
void radix_sort(std::vector<Item>& items, std::vector<Item>& spare, KeyIn key) {
    using Key = decltype(key(items[0]));
    constexpr int kDigit = 11, kPasses = (static_cast<int>(sizeof(Key)) * 8 + kDigit - 1) / kDigit;
    constexpr std::size_t kSize = std::size_t{1} << kDigit;
    const std::size_t n = items.size();
    if (n < 1024) {
        std::stable_sort(items.begin(), items.end(), [&](const Item& a, const Item& b) { return key(a) < key(b); });
        return;
    }
    std::vector<std::uint32_t> counts(kPasses * kSize, 0);
    for (const Item& item : items)
        for (int p = 0; p < kPasses; ++p) ++counts[p * kSize + ((key(item) >> (p * kDigit)) & (kSize - 1))];
    for (int p = 0; p < kPasses; ++p) {
        std::uint32_t* count = counts.data() + p * kSize;
        if (count[(key(items[0]) >> (p * kDigit)) & (kSize - 1)] == n) continue;  // all keys agree on this digit
        std::uint32_t sum = 0;
        for (std::size_t k = 0; k < kSize; ++k) {
            const std::uint32_t here = count[k];
            count[k] = sum;
            sum += here;
        }
        for (const Item& item : items) spare[count[(key(item) >> (p * kDigit)) & (kSize - 1)]++] = item;
        items.swap(spare);
    }
}

}  // namespace certifit
