// Predictions of many trees on raw numbers.
//
// Rows are binned in blocks with the edges of the fit, so that a node compares bytes. A tree with at most 256 leaves is not
// walked: all its nodes are evaluated for a slice of rows at once, with one byte of mask a row. Leaves are numbered from left to
// right; a row that goes right at a node adds the number of leaves on the left, and ends with the number of its leaf. No branch
// depends on the data (in the spirit of QuickScorer, Lucchese et al. 2015). Larger trees are walked row by row.
#pragma once

#include <array>
#include <memory>

#include "binning/binning.hpp"
#include "boosting/gradients.hpp"

namespace certifit::boosting {

struct Forest {
    std::span<const std::int64_t> start;  // first node of each tree, and the end
    std::span<const std::int32_t> feature, left, right, category;  // feature < 0: leaf; category: row of `sets` or −1
    std::span<const std::uint8_t> bin, missing_left;
    std::span<const double> value;
    std::span<const std::uint64_t> sets;  // four words for each categorical node
    std::span<const std::uint8_t> missing;  // bin of missing values of each feature
    Index outputs = 1;                      // tree t adds to output t mod outputs

    Index trees() const { return static_cast<Index>(start.size()) - 1; }
    bool goes_left(Index v, int b) const {
        if (category[v] >= 0) return (sets[4 * category[v] + (b >> 6)] >> (b & 63)) & 1;
        return b == missing[feature[v]] ? missing_left[v] != 0 : b <= bin[v];
    }
    template <class BinOf>
    Index leaf(Index tree, BinOf&& bin_of) const {
        const Index base = start[tree];
        Index v = base;
        while (feature[v] >= 0) v = base + (goes_left(v, bin_of(feature[v])) ? left[v] : right[v]);
        return v;
    }
};

constexpr int kSlice = 128;  // rows evaluated together; divides binning::kBlock

struct Step {
    std::int32_t feature;
    std::int16_t slot, right_slot;  // of the mask of rows at this node, and at its right child
    std::uint8_t turn, limit;       // go right if bin + turn > limit (mod 256): the turn brings missing values to the front
    std::uint8_t leaves;            // on the left
    std::int32_t table;             // categorical: which table of 256 masks
};

struct Sliced {
    std::vector<Step> steps;
    std::vector<double> values;
    int slots = 1;
    bool walked = false;  // too large
};

namespace detail {

[[gnu::always_inline]] inline void slice_body(const Step* steps, std::size_t n, const std::uint8_t* bins,
                                              const std::uint8_t* tables, std::uint8_t* __restrict masks,
                                              std::uint8_t* __restrict leaf) {
    for (int r = 0; r < kSlice; ++r) masks[r] = 0xFF, leaf[r] = 0;
    for (std::size_t s = 0; s < n; ++s) {
        const Step step = steps[s];
        const std::uint8_t* __restrict column = bins + static_cast<Index>(step.feature) * binning::kBlock;
        std::uint8_t* __restrict here = masks + step.slot * kSlice;
        std::uint8_t* __restrict there = masks + step.right_slot * kSlice;
        if (step.table < 0) {
            for (int r = 0; r < kSlice; ++r) {
                const auto turned = static_cast<std::uint8_t>(column[r] + step.turn);
                const std::uint8_t goes = turned > step.limit ? here[r] : 0;
                leaf[r] = static_cast<std::uint8_t>(leaf[r] + (goes & step.leaves));
                there[r] = goes;
                here[r] = here[r] ^ goes;
            }
        } else {
            const std::uint8_t* __restrict table = tables + step.table * 256;
            for (int r = 0; r < kSlice; ++r) {
                const std::uint8_t goes = here[r] & table[column[r]];
                leaf[r] = static_cast<std::uint8_t>(leaf[r] + (goes & step.leaves));
                there[r] = goes;
                here[r] = here[r] ^ goes;
            }
        }
    }
}

CERTIFIT_CLONES inline void slice(const Step* steps, std::size_t n, const std::uint8_t* bins, const std::uint8_t* tables,
                                  std::uint8_t* masks, std::uint8_t* leaf) {
    slice_body(steps, n, bins, tables, masks, leaf);
}

}  // namespace detail

class Predictor {
  public:
    explicit Predictor(const Forest& forest) : forest_(forest), trees_(forest.trees()) {
        for (Index t = 0; t < forest.trees(); ++t) compile(t);
    }

    // Adds the trees [first, last) to out[row * outputs + k]; bins[j * kBlock + i] are those of `count` <= kBlock rows.
    void add(const std::uint8_t* bins, int count, Index first, Index last, double* out) const {
        const Index outputs = forest_.outputs;
        std::vector<std::uint8_t> masks(static_cast<std::size_t>(slots_ + 1) * kSlice);
        alignas(64) std::uint8_t leaf[kSlice];
        std::vector<double> sum(static_cast<std::size_t>(outputs) * kSlice);
        for (int from = 0; from < count; from += kSlice) {
            const int rows = std::min(kSlice, count - from);
            for (int r = 0; r < rows; ++r)
                for (Index k = 0; k < outputs; ++k) sum[k * kSlice + r] = out[(from + r) * outputs + k];
            for (Index t = first; t < last; ++t) {
                const Sliced& tree = trees_[t];
                double* total = sum.data() + (t % outputs) * kSlice;
                if (tree.walked) {
                    for (int r = 0; r < rows; ++r)
                        total[r] += forest_.value[forest_.leaf(
                            t, [&](Index j) { return bins[j * binning::kBlock + from + r]; })];
                    continue;
                }
                detail::slice(tree.steps.data(), tree.steps.size(), bins + from, tables_.data(), masks.data(), leaf);
                const double* value = tree.values.data();
                for (int r = 0; r < kSlice; ++r) total[r] += value[leaf[r]];
            }
            for (int r = 0; r < rows; ++r)
                for (Index k = 0; k < outputs; ++k) out[(from + r) * outputs + k] = sum[k * kSlice + r];
        }
    }

  private:
    const Forest& forest_;
    std::vector<Sliced> trees_;
    std::vector<std::uint8_t> tables_;
    int slots_ = 1;

    void compile(Index t) {
        Sliced& tree = trees_[t];
        const Index base = forest_.start[t], size = forest_.start[t + 1] - base;
        if ((size + 1) / 2 > 256) {
            tree.walked = true;
            return;
        }
        // Leaves below each node; children come after their parent.
        std::vector<int> leaves(size, 1);
        for (Index v = size - 1; v >= 0; --v)
            if (forest_.feature[base + v] >= 0) leaves[v] = leaves[forest_.left[base + v]] + leaves[forest_.right[base + v]];
        std::vector<std::pair<Index, int>> stack{{0, 0}};  // node, slot: left first
        while (!stack.empty()) {
            const auto [v, slot] = stack.back();
            stack.pop_back();
            const Index at = base + v;
            if (forest_.feature[at] < 0) {
                tree.values.push_back(forest_.value[at]);
                continue;
            }
            Step step{};
            step.feature = forest_.feature[at];
            step.slot = static_cast<std::int16_t>(slot);
            step.right_slot = static_cast<std::int16_t>(tree.slots++);
            step.leaves = static_cast<std::uint8_t>(leaves[forest_.left[at]]);
            step.table = -1;
            if (forest_.category[at] >= 0) {
                step.table = static_cast<std::int32_t>(tables_.size() / 256);
                for (int b = 0; b < 256; ++b) tables_.push_back(forest_.goes_left(at, b) ? 0 : 0xFF);
            } else {
                step.turn = static_cast<std::uint8_t>(forest_.missing_left[at] ? 256 - forest_.missing[step.feature] : 0);
                step.limit = static_cast<std::uint8_t>(forest_.bin[at] + step.turn);
            }
            tree.steps.push_back(step);
            stack.push_back({forest_.right[at], step.right_slot});
            stack.push_back({forest_.left[at], slot});
        }
        slots_ = std::max(slots_, tree.slots);
    }
};

// Adds the trees [first, last) block by block; bin(row, count, bins, worker) gives the bins of a block.
template <class Bin>
void add_blocks(Index rows, Index columns, const Forest& forest, Index first, Index last, double* out, int threads,
                const Predictor& predictor, Bin&& bin) {
    Team team(threads);
    std::vector<std::vector<std::uint8_t>> bins(team.size());
    // A thread is worth its start from some ten thousand walks on.
    team.blocks(rows, binning::kBlock, rows * (last - first) > 40000, [&](Index from, Index to, int worker) {
        bins[worker].resize(columns * binning::kBlock);
        bin(from, static_cast<int>(to - from), bins[worker].data(), worker);
        predictor.add(bins[worker].data(), static_cast<int>(to - from), first, last, out + from * forest.outputs);
    });
}

// out (rows × outputs, row-major, holding the start) += trees [first, last).
template <class T>
void predict(const binning::View<T>& X, const binning::Table& table, const Forest& forest, Index first, Index last, double* out,
             int threads) {
    const std::vector<binning::Rule<T>> rules = binning::rules_of<T>(table);
    const Predictor predictor(forest);
    std::vector<std::vector<T>> buffer(threads);
    add_blocks(X.rows, X.columns, forest, first, last, out, threads, predictor,
               [&](Index row, int count, std::uint8_t* bins, int worker) {
                   buffer[worker].resize(64 / sizeof(T) * binning::kBlock);
                   binning::bin_block(X, rules, row, count, bins, buffer[worker].data());
               });
}

// The same on bins already made, column-major.
inline void predict_bins(const std::uint8_t* data, Index rows, Index columns, const Forest& forest, Index first, Index last,
                         double* out, int threads) {
    const Predictor predictor(forest);
    add_blocks(rows, columns, forest, first, last, out, threads, predictor, [&](Index row, int count, std::uint8_t* bins, int) {
        for (Index j = 0; j < columns; ++j) std::memcpy(bins + j * binning::kBlock, data + j * rows + row, count);
    });
}

}  // namespace certifit::boosting
