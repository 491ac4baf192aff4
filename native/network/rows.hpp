// The rows that a network reads: copied to panels one by one, or, where most entries are zero, as those that are not.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/team.hpp"
#include "network/panels.hpp"

namespace certifit::network {

// Copies row `row` of X to panels that lie `stride` apart; with a stride of one panel the row lies in one piece.
using Gather = std::function<void(Index row, float* to, Index stride)>;

// Entries that are not zero, row after row, their columns rising.
struct Compact {
    std::vector<float> value;
    std::vector<std::uint32_t> column;
    std::vector<std::size_t> start;

    Index count(Index i) const {
        return static_cast<Index>(start[static_cast<std::size_t>(i) + 1] - start[static_cast<std::size_t>(i)]);
    }
    const float* values(Index i) const { return value.data() + start[static_cast<std::size_t>(i)]; }
    const std::uint32_t* columns(Index i) const { return column.data() + start[static_cast<std::size_t>(i)]; }
};

// to = (x − center)·factor, within ±1e12.
#define CERTIFIT_SEEN(T)                                                                                                \
    CERTIFIT_CLONES [[maybe_unused]] static void seen(const T* __restrict x, const double* __restrict center,           \
                                                      const double* __restrict factor, float* __restrict to, Index n) { \
        for (Index j = 0; j < n; ++j) {                                                                                 \
            const double z = (static_cast<double>(x[j]) - center[j]) * factor[j], low = z > 1e12 ? 1e12 : z;            \
            to[j] = static_cast<float>(low < -1e12 ? -1e12 : low);                                                      \
        }                                                                                                               \
    }
CERTIFIT_SEEN(float)
CERTIFIT_SEEN(double)
#undef CERTIFIT_SEEN

struct Source {
    Gather gather;
    const Compact* compact = nullptr;
};

// Rows in single precision, made once for many passes: compact where that is the shorter way through a product, otherwise as they
// are.
struct Kept {
    static constexpr double kFull = 1.0 / 3;  // share of entries from which on tiles of registers are faster than single rows
    std::vector<float> dense;
    Compact compact;
    bool sparse = false;

    Kept(const Gather& gather, Index n, Index d, Team& team) {
        constexpr Index block = 256;
        std::vector<std::vector<float>> rooms(static_cast<std::size_t>(team.size()),
                                              std::vector<float>(static_cast<std::size_t>(d)));
        compact.start.assign(static_cast<std::size_t>(n) + 1, 0);
        const auto each = [&](auto&& visit) {
            team.blocks(n, block, true, [&](Index from, Index to, int worker) {
                float* row = rooms[static_cast<std::size_t>(worker)].data();
                for (Index i = from; i < to; ++i) gather(i, row, kWide), visit(i, row);
            });
        };
        each([&](Index i, const float* row) {
            compact.start[static_cast<std::size_t>(i) + 1] = static_cast<std::size_t>(filled(row, d));
        });
        for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) compact.start[i + 1] += compact.start[i];
        const std::size_t total = compact.start.back();
        sparse = static_cast<double>(total) < kFull * static_cast<double>(n) * static_cast<double>(d);
        if (!sparse) {
            compact = {};
            dense.resize(static_cast<std::size_t>(n) * static_cast<std::size_t>(d));
            team.blocks(n, block, true, [&](Index from, Index to, int) {
                for (Index i = from; i < to; ++i) gather(i, dense.data() + i * d, kWide);
            });
            return;
        }
        compact.value.resize(total), compact.column.resize(total);
        each([&](Index i, const float* row) {
            std::size_t e = compact.start[static_cast<std::size_t>(i)];
            for (Index j = 0; j < d; ++j)
                if (row[j] != 0.0f) compact.value[e] = row[j], compact.column[e++] = static_cast<std::uint32_t>(j);
        });
    }

    Source source(Index d) const {
        if (!sparse)
            return {[this, d](Index i, float* to, Index stride) {
                const float* row = dense.data() + i * d;
                for (Index j = 0; j < d; j += kWide, to += stride) std::copy_n(row + j, std::min(kWide, d - j), to);
            }};
        return {[this, d](Index i, float* to, Index stride) {
                    for (Index j = 0; j < d; j += kWide) std::fill_n(to + j / kWide * stride, std::min(kWide, d - j), 0.0f);
                    const float* value = compact.values(i);
                    const std::uint32_t* column = compact.columns(i);
                    for (Index e = 0; e < compact.count(i); ++e) to[column[e] / kWide * stride + column[e] % kWide] = value[e];
                },
                &compact};
    }

  private:
    CERTIFIT_CLONES static Index filled(const float* row, Index d) {
        Index count = 0;
        for (Index j = 0; j < d; ++j) count += row[j] != 0.0f;
        return count;
    }
};

// The entries of one panel of columns of a batch, column after column: what the gradient of their weights sums over.
class Lists {
  public:
    void reserve(Index rows) {
        if (rows <= room_) return;
        room_ = rows, value_.resize(static_cast<std::size_t>(rows * kWide)), row_.resize(value_.size());
    }
    void clear() { std::fill_n(count_, kWide, 0); }
    void add(Index j, Index row, float value) {
        const Index at = j * room_ + count_[j]++;
        value_[static_cast<std::size_t>(at)] = value, row_[static_cast<std::size_t>(at)] = static_cast<std::uint32_t>(row);
    }
    Index count(Index j) const { return count_[j]; }
    const float* values(Index j) const { return value_.data() + j * room_; }
    const std::uint32_t* rows(Index j) const { return row_.data() + j * room_; }

  private:
    Index room_ = 0, count_[kWide] = {};
    std::vector<float> value_;
    std::vector<std::uint32_t> row_;
};

}  // namespace certifit::network
