// Random forests.
//
// Tree t is grown on a bootstrap sample of the rows, and each of its nodes tries a random subset of the features. The sample is drawn
// with probabilities proportional to the weights of the rows and enters the tree as counts. Both draws follow from the seed of
// the tree alone, so the forest does not depend on the number of threads.
//
// Breiman: Random forests. Machine Learning 45, 2001.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "core/team.hpp"
#include "tree/grow/grow.hpp"
#include "tree/predict.hpp"

namespace certifit::tree {

// Draws rows with probabilities proportional to their weights: a uniform point falls into the stretch of one row.
class Urn {
  public:
    Urn(std::span<const Row> order, const double* weight) : order_(order) {
        const std::size_t n = order.size();
        bool whole = true;
        for (std::size_t k = 0; k < n; ++k) {
            const double w = weight ? weight[order[k]] : 1.0;
            whole = whole && w == std::floor(w);
            total_ += w;
        }
        if (!weight) return;
        if (whole && total_ <= 16.0 * static_cast<double>(n)) {
            table_.reserve(static_cast<std::size_t>(total_));
            for (std::size_t k = 0; k < n; ++k)
                table_.insert(table_.end(), static_cast<std::size_t>(weight[order[k]]), order[k]);
            return;
        }
        ends_.reserve(n);
        double end = 0;
        for (std::size_t k = 0; k < n; ++k) ends_.push_back(end += weight[order[k]]);
    }
    Row draw(Random& random) const {
        if (!table_.empty()) return table_[random.below(table_.size())];
        if (ends_.empty()) return order_[random.below(order_.size())];
        const double at = random.uniform() * total_;
        const auto found = std::upper_bound(ends_.begin(), ends_.end(), at) - ends_.begin();
        return order_[std::min<std::size_t>(static_cast<std::size_t>(found), order_.size() - 1)];
    }

  private:
    std::span<const Row> order_;
    std::vector<Row> table_;
    std::vector<double> ends_;
    double total_ = 0;
};

// How often each row is drawn.
inline void bootstrap(std::uint64_t seed, std::int64_t draws, const Urn& urn, std::vector<std::int32_t>& counts) {
    std::fill(counts.begin(), counts.end(), 0);
    Random random(seed ^ 0xb0075712a9ULL);
    for (std::int64_t k = 0; k < draws; ++k) ++counts[urn.draw(random)];
}

// A fitted forest, as views of arrays.
struct ForestView {
    const PackedNode* nodes;
    const std::uint64_t* bits;
    const std::int64_t *start, *bits_start;  // first node and first word of each tree, and the ends
    const std::uint32_t* categories;
    std::int64_t trees;
    bool numeric;  // no feature is categorical

    // Walks that take longer than to start a thread.
    bool worth_threads(std::int64_t rows) const { return rows * trees > 20000; }

    PackedTree tree(std::int64_t t) const { return {nodes + start[t], bits + bits_start[t], categories}; }
};

inline bool drawn(const std::uint8_t* bag, std::int64_t i) { return (bag[i >> 3] >> (i & 7)) & 1; }

inline constexpr std::int64_t kRowBlock = 512;

// out[i] = mean over trees of the value of the leaf of row i; `width` values a node.
template <class T>
void predict(const ForestView& forest, const double* values, int width, const T* X, std::int64_t n, std::int64_t d, Team& team,
             double* out) {
    const double share = 1.0 / static_cast<double>(forest.trees);
    team.blocks(n, kRowBlock, forest.worth_threads(n), [&](std::int64_t from, std::int64_t to, int) {
        const std::int64_t count = to - from;
        std::int32_t leaf[kRowBlock];
        double* sums = out + from * width;
        std::fill_n(sums, count * width, 0.0);
        for (std::int64_t t = 0; t < forest.trees; ++t) {
            leaves_of(forest.tree(t), forest.numeric, X + from * d, count, d, leaf);
            const double* value = values + forest.start[t] * width;
            if (width == 1)
                for (std::int64_t r = 0; r < count; ++r) sums[r] += value[leaf[r]];
            else
                for (std::int64_t r = 0; r < count; ++r)
                    for (int c = 0; c < width; ++c) sums[r * width + c] += value[static_cast<std::int64_t>(leaf[r]) * width + c];
        }
        if (forest.trees > 1)
            for (std::int64_t k = 0; k < count * width; ++k) sums[k] *= share;
    });
}

// out[i, t] = leaf of row i in tree t.
template <class T>
void apply(const ForestView& forest, const T* X, std::int64_t n, std::int64_t d, Team& team, std::int32_t* out) {
    team.blocks(n, kRowBlock, forest.worth_threads(n), [&](std::int64_t from, std::int64_t to, int) {
        const std::int64_t count = to - from;
        std::int32_t leaf[kRowBlock];
        for (std::int64_t t = 0; t < forest.trees; ++t) {
            leaves_of(forest.tree(t), forest.numeric, X + from * d, count, d, leaf);
            for (std::int64_t r = 0; r < count; ++r) out[(from + r) * forest.trees + t] = leaf[r];
        }
    });
}

// The targets of rows, and what a prediction misses of them: 1 where the class of any target is wrong, or the mean squared distance.
struct Truth {
    const double* y;                       // targets of a row side by side
    int targets;
    std::span<const std::int32_t> counts;  // classes of each target; empty: numbers
    const double* weight;

    // `sums` over so many trees.
    double error(std::int64_t i, const double* sums, double trees) const {
        const double* own = y + i * targets;
        if (counts.empty()) {
            double miss = 0;
            for (int k = 0; k < targets; ++k) miss += (sums[k] / trees - own[k]) * (sums[k] / trees - own[k]);
            return miss / targets;
        }
        for (int k = 0; k < targets; sums += counts[k++])
            if (std::max_element(sums, sums + counts[k]) - sums != static_cast<std::ptrdiff_t>(own[k])) return 1.0;
        return 0.0;
    }
};

// Predictions by the trees that did not see a row: sums and number of trees for each row, and the weighted mean error over the rows seen
// so far after each tree. `bags` holds a bit for each row, `stride` bytes a tree.
template <class T>
void out_of_bag(const ForestView& forest, const double* values, int width, const T* X, std::int64_t n, std::int64_t d,
                const std::uint8_t* bags, std::int64_t stride, const Truth& truth, Team& team, double* sums, std::int64_t* counts,
                double* curve) {
    const std::int64_t blocks = (n + kRowBlock - 1) / kRowBlock, trees = forest.trees;
    std::vector<double> wrong(blocks * trees, 0.0), seen(blocks * trees, 0.0);
    team.blocks(n, kRowBlock, true, [&](std::int64_t from, std::int64_t to, int) {
        const std::int64_t block = from / kRowBlock;
        std::vector<double> error(to - from, 0.0);
        for (std::int64_t t = 0; t < trees; ++t) {
            const PackedTree tree = forest.tree(t);
            double bad = 0, all = 0;
            for (std::int64_t i = from; i < to; ++i) {
                if (!drawn(bags + t * stride, i)) {
                    const T* x = X + i * d;
                    const std::int32_t leaf = leaf_of(tree, [&](std::uint32_t f) { return x[f]; });
                    const double* value = values + (forest.start[t] + leaf) * width;
                    double* sum = sums + i * width;
                    for (int c = 0; c < width; ++c) sum[c] += value[c];
                    ++counts[i];
                    error[i - from] = truth.error(i, sum, static_cast<double>(counts[i]));
                }
                if (counts[i] > 0) bad += truth.weight[i] * error[i - from], all += truth.weight[i];
            }
            wrong[block * trees + t] = bad;
            seen[block * trees + t] = all;
        }
    });
    for (std::int64_t t = 0; t < trees; ++t) {
        double bad = 0, all = 0;
        for (std::int64_t b = 0; b < blocks; ++b) bad += wrong[b * trees + t], all += seen[b * trees + t];
        curve[t] = all > 0 ? bad / all : std::nan("");
    }
}

// out[t, f]: how much the out-of-bag error of tree t rises when the values of feature f are permuted among its out-of-bag rows.
template <class T>
void permutation_importance(const ForestView& forest, const double* values, int width, const T* X, std::int64_t n, std::int64_t d,
                            const std::uint8_t* bags, std::int64_t stride, const Truth& truth, std::uint64_t seed, Team& team,
                            double* out) {
    team.run(forest.trees, true, [&](std::int64_t t, int worker) {
        const PackedTree tree = forest.tree(t);
        const double* value = values + forest.start[t] * width;
        std::vector<std::int64_t> rows;
        double total = 0, base = 0;
        for (std::int64_t i = 0; i < n; ++i) {
            if (drawn(bags + t * stride, i)) continue;
            rows.push_back(i);
            const std::int32_t leaf = leaf_of(tree, [&](std::uint32_t f) { return X[i * d + f]; });
            total += truth.weight[i];
            base += truth.weight[i] * truth.error(i, value + static_cast<std::int64_t>(leaf) * width, 1.0);
        }
        std::vector<bool> used(d, false);
        const std::int64_t nodes = forest.start[t + 1] - forest.start[t];
        for (std::int32_t k = 0; k < nodes; ++k)
            if (tree.nodes[k].left != k) used[tree.nodes[k].feature & kFeatureMask] = true;
        std::vector<std::int64_t> donor;
        for (std::int64_t f = 0; f < d; ++f) {
            out[t * d + f] = 0;
            if (!used[f] || !(total > 0)) continue;
            team.check(worker);
            donor = rows;
            Random random(mixed(seed + static_cast<std::uint64_t>(t)) + static_cast<std::uint64_t>(f));
            for (std::size_t k = donor.size(); k > 1; --k) std::swap(donor[k - 1], donor[random.below(k)]);
            double worse = 0;
            for (std::size_t k = 0; k < rows.size(); ++k) {
                const T* x = X + rows[k] * d;
                const T other = X[donor[k] * d + f];
                const std::int32_t leaf =
                    leaf_of(tree, [&](std::uint32_t j) { return static_cast<std::int64_t>(j) == f ? other : x[j]; });
                worse += truth.weight[rows[k]] * truth.error(rows[k], value + static_cast<std::int64_t>(leaf) * width, 1.0);
            }
            out[t * d + f] = (worse - base) / total;
        }
    });
}

}  // namespace certifit::tree
