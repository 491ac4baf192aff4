// The nearest-neighbor chain: a hierarchy in O(n²) for every linkage in which a merge brings nothing nearer.
//
// Follow nearest neighbors until two clusters are each other's: these merge, and the chain before them stays as it is (Benzécri
// 1982, Murtagh 1983). Clusters live in slots; a dead slot has a penalty of infinity, and when half of the slots are dead the
// living move together.
//
//   complete   D(A ∪ B, C) = max(D(A, C), D(B, C))
//   average    D(A ∪ B, C) = (|A| D(A, C) + |B| D(B, C)) / (|A| + |B|)
//   Ward       D(A, B)²    = 2 |A||B| / (|A| + |B|) ‖mean(A) − mean(B)‖², from the means alone: memory is linear
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/simd.hpp"
#include "core/team.hpp"
#include "linkage/merges.hpp"

namespace certifit::linkage {

inline constexpr double kFar = std::numeric_limits<double>::infinity();

struct Nearest {
    double distance = kFar;
    Index slot = -1;
};

// The least of value[k] + penalty[k].
CERTIFIT_CLONES inline double least_of(const double* value, const double* penalty, Index n) {
    constexpr Index kLanes = 32;  // as many minima side by side as registers can hold: one alone waits for itself
    double lane[kLanes];
    for (double& least : lane) least = kFar;
    Index k = 0;
    for (; k + kLanes <= n; k += kLanes)
        for (Index l = 0; l < kLanes; ++l) {
            const double here = value[k + l] + penalty[k + l];
            lane[l] = here < lane[l] ? here : lane[l];
        }
    for (; k < n; ++k) lane[0] = std::min(lane[0], value[k] + penalty[k]);
    return *std::min_element(lane, lane + kLanes);
}

// What both kinds of distances share: the slots, and who lives in them.
struct Slots {
    explicit Slots(Index n)
        : count(n), alive(n), penalty(static_cast<std::size_t>(n), 0.0), size(static_cast<std::size_t>(n), 1.0),
          point(static_cast<std::size_t>(n)) {
        std::iota(point.begin(), point.end(), std::int64_t{0});
    }
    Index count, alive;
    std::vector<double> penalty, size;
    std::vector<std::int64_t> point;

    void kill(Index slot) { penalty[static_cast<std::size_t>(slot)] = kFar, --alive; }
    bool sparse() const { return count > 64 && 2 * alive < count; }

    // The living slots in order, which then are 0, 1, …; `renamed[old]` is the new number.
    std::vector<Index> gather(std::vector<Index>& renamed) {
        std::vector<Index> living;
        renamed.assign(static_cast<std::size_t>(count), -1);
        for (Index k = 0; k < count; ++k) {
            const auto old = static_cast<std::size_t>(k), now = living.size();
            if (penalty[old] == kFar) continue;
            renamed[old] = static_cast<Index>(now);
            size[now] = size[old], point[now] = point[old];
            living.push_back(k);
        }
        count = alive;
        std::fill(penalty.begin(), penalty.begin() + count, 0.0);
        return living;
    }
};

// Distances between all clusters in a square matrix, which is overwritten.
//
// A merge writes its row alone. Its column would cost a line of the cache for each number, most of them overwritten or dead
// before anyone reads them: a row takes from the rows merged since it was last read what it lacks, when it is read.
class Square {
  public:
    Square(double* D, Index n, bool average)
        : slots(n), D_(D), stride_(n), average_(average), merged_(static_cast<std::size_t>(n), 0),
          read_(static_cast<std::size_t>(n), 0) {}
    Slots slots;

    Nearest nearest(Index slot, Index preferred, Team&) {
        const double* row = refreshed(slot);
        double& own = slots.penalty[static_cast<std::size_t>(slot)];
        own = kFar;
        const double least = least_of(row, slots.penalty.data(), slots.count);
        Nearest found{least, preferred};
        if (preferred < 0 || row[preferred] > least) {
            found.slot = 0;
            while (row[found.slot] + slots.penalty[static_cast<std::size_t>(found.slot)] != least) ++found.slot;
        }
        own = 0.0;
        return found;
    }

    // a takes in b.
    void merge(Index a, Index b) {
        const double na = slots.size[static_cast<std::size_t>(a)], nb = slots.size[static_cast<std::size_t>(b)];
        combine(refreshed(a), refreshed(b), na / (na + nb), nb / (na + nb), slots.count, average_);
        slots.size[static_cast<std::size_t>(a)] = na + nb;
        slots.kill(b);
        merged_[static_cast<std::size_t>(a)] = read_[static_cast<std::size_t>(a)] = ++now_;
        std::erase_if(latest_, [&](Index slot) { return slot == a || slot == b; });
        latest_.push_back(a);
    }

    void gather(std::vector<Index>& renamed) {
        for (Index k = 0; k < slots.count; ++k)
            if (slots.penalty[static_cast<std::size_t>(k)] != kFar)
                refreshed(k);  // neighbors find what they lack in the same lines of the cache
        const std::vector<Index> living = slots.gather(renamed);
        for (Index i = 0; i < slots.count; ++i) {
            const double* row = D_ + living[static_cast<std::size_t>(i)] * stride_;
            double* into = D_ + i * slots.count;  // never behind what is still to be read
            for (Index k = 0; k < slots.count; ++k) into[k] = row[living[static_cast<std::size_t>(k)]];
        }
        stride_ = slots.count;
        now_ = 0;
        latest_.clear();
        std::fill(merged_.begin(), merged_.end(), 0), std::fill(read_.begin(), read_.end(), 0);
    }

  private:
    double* D_;
    Index stride_;
    bool average_;
    Index now_ = 0;                    // merges since the living moved together
    std::vector<Index> merged_, read_;  // when a slot last took in another, and up to when its row is right
    std::vector<Index> latest_;        // living slots that have merged, by when they last did

    double* refreshed(Index slot) {
        double* row = D_ + slot * stride_;
        Index& read = read_[static_cast<std::size_t>(slot)];
        for (auto late = latest_.rbegin(); late != latest_.rend() && merged_[static_cast<std::size_t>(*late)] > read; ++late)
            row[*late] = D_[*late * stride_ + slot];
        read = now_;
        return row;
    }

    CERTIFIT_CLONES static void combine(double* into, const double* from, double pa, double pb, Index n, bool average) {
        if (average)
            for (Index k = 0; k < n; ++k) into[k] = pa * into[k] + pb * from[k];
        else
            for (Index k = 0; k < n; ++k) into[k] = into[k] < from[k] ? from[k] : into[k];
    }
};

// Ward: the means of the clusters, a column after the other.
class Means {
  public:
    Means(const double* X, Index n, Index d)
        : slots(n), stride_(n), d_(d), mean_(static_cast<std::size_t>(n * d)), square_(static_cast<std::size_t>(n)) {
        for (Index i = 0; i < n; ++i)
            for (Index j = 0; j < d; ++j) mean_[static_cast<std::size_t>(j * n + i)] = X[i * d + j];
    }
    Slots slots;

    Nearest nearest(Index slot, Index preferred, Team& team) {
        double& own = slots.penalty[static_cast<std::size_t>(slot)];
        own = kFar;
        const Index blocks = (slots.count + kBlock - 1) / kBlock;
        least_.assign(static_cast<std::size_t>(blocks), kFar);
        team.run(blocks, slots.count * d_ > 200'000, [&](Index block, int) {
            const Index from = block * kBlock, size = std::min(kBlock, slots.count - from);
            distances(from, size, slot);
            least_[static_cast<std::size_t>(block)] = least_of(square_.data() + from, slots.penalty.data() + from, size);
        });
        const auto block = std::min_element(least_.begin(), least_.end()) - least_.begin();
        const double least = least_[static_cast<std::size_t>(block)];
        Nearest found{std::sqrt(least), preferred};
        if (preferred < 0 || square_[static_cast<std::size_t>(preferred)] > least) {
            found.slot = block * kBlock;
            while (square_[static_cast<std::size_t>(found.slot)] + slots.penalty[static_cast<std::size_t>(found.slot)] != least)
                ++found.slot;
        }
        own = 0.0;
        return found;
    }

    void merge(Index a, Index b) {
        double &na = slots.size[static_cast<std::size_t>(a)], nb = slots.size[static_cast<std::size_t>(b)];
        for (Index j = 0; j < d_; ++j) {
            double* column = mean_.data() + j * stride_;
            column[a] = (na * column[a] + nb * column[b]) / (na + nb);
        }
        na += nb;
        slots.kill(b);
    }

    void gather(std::vector<Index>& renamed) {
        const std::vector<Index> living = slots.gather(renamed);
        for (Index j = 0; j < d_; ++j)
            for (Index k = 0; k < slots.count; ++k)
                mean_[static_cast<std::size_t>(j * slots.count + k)] =
                    mean_[static_cast<std::size_t>(j * stride_ + living[static_cast<std::size_t>(k)])];
        stride_ = slots.count;
    }

  private:
    static constexpr Index kBlock = 4096;
    Index stride_, d_;
    std::vector<double> mean_, square_, least_;

    void distances(Index from, Index size, Index slot) {
        of_block(mean_.data() + from, stride_, mean_.data() + slot, d_, slots.size.data() + from,
                 slots.size[static_cast<std::size_t>(slot)], size, square_.data() + from);
    }
    CERTIFIT_CLONES static void of_block(const double* mean, Index stride, const double* own, Index d, const double* sizes,
                                         double size, Index n, double* out) {
        for (Index k = 0; k < n; ++k) out[k] = 0.0;
        for (Index j = 0; j < d; ++j) {
            const double* column = mean + j * stride;
            const double here = own[j * stride];
            for (Index k = 0; k < n; ++k) {
                const double apart = column[k] - here;
                out[k] += apart * apart;
            }
        }
        for (Index k = 0; k < n; ++k) out[k] *= 2.0 * size * sizes[k] / (size + sizes[k]);
    }
};

template <class Distances>
std::vector<Merge> chain(Distances& clusters, Team& team, SignalPoll* signals) {
    Slots& slots = clusters.slots;
    std::vector<Index> path, renamed;
    std::vector<Merge> merges;
    merges.reserve(static_cast<std::size_t>(slots.count));
    while (slots.alive > 1) {
        if (signals && merges.size() % 64 == 0) signals->poll();
        if (path.empty()) {
            Index first = 0;
            while (slots.penalty[static_cast<std::size_t>(first)] == kFar) ++first;
            path.push_back(first);
        }
        for (;;) {
            const Index tip = path.back(), before = path.size() > 1 ? path[path.size() - 2] : -1;
            const Nearest next = clusters.nearest(tip, before, team);
            if (next.slot != before) {
                path.push_back(next.slot);
                continue;
            }
            path.resize(path.size() - 2);
            const Index a = std::min(tip, before), b = std::max(tip, before);
            merges.push_back({slots.point[static_cast<std::size_t>(a)], slots.point[static_cast<std::size_t>(b)], next.distance});
            clusters.merge(a, b);
            break;
        }
        if (slots.sparse()) {
            clusters.gather(renamed);
            for (Index& slot : path) slot = renamed[static_cast<std::size_t>(slot)];
        }
    }
    return merges;
}

// Euclidean distances of the rows from … from + size − 1 to those from `from` on, and their mirror images; tiles stay in the
// cache.
inline constexpr Index kStrip = 32;

CERTIFIT_CLONES inline void strip_of_distances(const double* columns, Index n, Index d, Index from, Index size, double* D) {
    constexpr Index kTile = 256;
    double tile[kStrip][kTile];
    for (Index start = from; start < n; start += kTile) {
        const Index wide = std::min(kTile, n - start);
        for (Index i = 0; i < size; ++i) {
            double* out = tile[i];
            for (Index k = 0; k < wide; ++k) out[k] = 0.0;
            for (Index j = 0; j < d; ++j) {
                const double* column = columns + j * n + start;
                const double here = columns[j * n + from + i];
                for (Index k = 0; k < wide; ++k) {
                    const double apart = column[k] - here;
                    out[k] += apart * apart;
                }
            }
            double* row = D + (from + i) * n + start;
            for (Index k = 0; k < wide; ++k) row[k] = out[k] = std::sqrt(out[k]);
        }
        for (Index k = 0; k < wide; ++k) {
            double* mirror = D + (start + k) * n + from;
            for (Index i = 0; i < size; ++i) mirror[i] = tile[i][k];
        }
    }
}

}  // namespace certifit::linkage
