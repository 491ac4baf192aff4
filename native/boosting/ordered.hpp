// Few rows: for every column the rows in the order of their bins, dealt to the children of a node like the rows themselves.
//
// A histogram costs its bins, however few rows a node has; a list costs its rows, in the node and again in each of its children.
#pragma once

#include <array>
#include <cstring>
#include <vector>

#include "boosting/histogram.hpp"

namespace certifit::boosting {

// An entry of a list is bin · 2^24 + row.
constexpr int kRowBits = 24;
constexpr std::uint32_t kRowMask = (std::uint32_t{1} << kRowBits) - 1;

class Ordered {
  public:
    // The lists of the rows of a tree, n of them; false if one is there twice, which lists do not know.
    bool begin(const Bins& bins, const std::uint32_t* rows, Index n, Team& team) {
        prepare(bins, team);
        n_ = n;
        left_.assign(bins.rows, 0);
        spare_.resize(team.size() * n);
        if (!rows) {
            lists_ = all_;
            return true;
        }
        for (Index k = 0; k < n; ++k)
            if (left_[rows[k]]++) return false;
        lists_.resize(n * bins.features + 1);
        std::uint32_t* to = lists_.data();
        for (Index j = 0; j < bins.features; ++j, to = lists_.data() + j * n)
            for (Index k = 0; k < bins.rows; ++k) *to = all_[j * bins.rows + k], to += left_[*to & kRowMask];
        return true;
    }

    std::uint32_t* list(Index j) { return lists_.data() + j * n_; }

    // What the rows of a node are about to be dealt by.
    void mark(const std::uint32_t* rows, Index begin, Index middle, Index end) {
        for (Index k = begin; k < middle; ++k) left_[rows[k]] = 1;
        for (Index k = middle; k < end; ++k) left_[rows[k]] = 0;
    }

    // Deals the rows of a node in column j.
    void deal(Index j, Index begin, Index middle, Index end, int worker) {
        std::uint32_t *low = list(j) + begin, *spare = spare_.data() + worker * n_, *high = spare;
        for (const std::uint32_t* from = low; from != list(j) + end; ++from) {
            const std::uint32_t entry = *from;
            const std::uint8_t goes = left_[entry & kRowMask];
            *low = entry, *high = entry;  // one of the two is overwritten by the next entry
            low += goes, high += 1 - goes;
        }
        std::memcpy(list(j) + middle, spare, (end - middle) * sizeof(std::uint32_t));
    }

  private:
    // The lists of all rows of the table, once a fit.
    void prepare(const Bins& bins, Team& team) {
        if (!all_.empty()) return;
        const Index n = bins.rows;
        all_.resize(n * bins.features);
        team.run(bins.features, n * bins.features > 20000, [&](Index j, int) {
            std::array<Index, kSlots + 1> at{};
            for (Index i = 0; i < n; ++i) ++at[bins.bin(i, j) + 1];
            for (int b = 0; b < kSlots; ++b) at[b + 1] += at[b];
            for (Index i = 0; i < n; ++i) {
                const std::uint32_t bin = bins.bin(i, j);
                all_[j * n + at[bin]++] = bin << kRowBits | static_cast<std::uint32_t>(i);
            }
        });
    }

    Index n_ = 0;
    std::vector<std::uint32_t> all_, lists_, spare_;
    std::vector<std::uint8_t> left_;
};

}  // namespace certifit::boosting
