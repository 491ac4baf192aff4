// Histogram trees for gradient boosting, grown leaf by leaf, best gain first.
//
//   f ← f + learning_rate · tree,    tree ≈ argmin Σ_i g_i t(x_i) + ½ h_i t(x_i)² + ½ l2 Σ_leaves v²
//
// Friedman 2001 (gradient boosting); Chen and Guestrin 2016 (second order gain); Ke et al. 2017 (leaf-wise growth, histogram
// subtraction: only the smaller child is counted, the other is the difference). Sums are integers (gradients.hpp), so neither the
// threads nor the order of rows can change a tree, nor whether a node is searched by its histogram or, where there are few rows,
// by a list of them for each column (ordered.hpp).
#pragma once

#include <numeric>
#include <queue>
#include <vector>

#include "boosting/split.hpp"
#include "core/interrupt.hpp"

namespace certifit::boosting {

struct Node {
    Split split;  // feature < 0: a leaf
    std::int32_t left = -1, right = -1, depth = 0;
    Index begin = 0, end = 0;  // its rows
    Pair sums{};
    Bounds bounds;
    Pair* histogram = nullptr;
    std::vector<std::uint8_t> sets;  // interaction sets that still contain the whole path
    double value = 0;
};

class Grower {
  public:
    Bins bins;
    Options options;
    std::vector<std::int8_t> monotone;                   // empty: no constraint
    std::vector<std::vector<std::uint8_t>> interactions;  // masks over the features; empty: all may meet
    std::unique_ptr<Team> team;
    Gradients gradients;
    Weights weights;
    std::vector<Node> nodes;

    Grower(Bins bins_, std::span<const double> weight, int threads)
        : bins(std::move(bins_)), team(std::make_unique<Team>(threads)), gradients(bins.rows, *team), weights(weight, bins.rows) {
        bins.offset.assign(bins.features + 1, 0);
        for (Index j = 0; j < bins.features; ++j) bins.offset[j + 1] = bins.offset[j] + bins.values[j] + 1;
        local_.resize(threads);
    }

    const std::vector<std::uint32_t>& rows() const { return rows_; }
    bool by_lists() const { return by_lists_; }  // how the last tree was found

    // A tree on the given rows (null: all) and features.
    void grow(const std::uint32_t* rows, Index n, const std::vector<std::uint8_t>& active) {
        SignalPoll signals;
        active_ = active;
        rows_.resize(n);
        if (rows)
            std::copy(rows, rows + n, rows_.begin());
        else
            std::iota(rows_.begin(), rows_.end(), 0u);
        identity_ = rows == nullptr;
        nodes.assign(1, Node{});
        nodes.reserve(2 * std::min<Index>(options.max_leaves, n + 1));
        nodes[0].end = n;
        nodes[0].sets.assign(interactions.size(), 1);
        by_lists_ = lists_pay(n) && ordered_.begin(bins, rows, n, *team);
        const FeatureSearch search(bins, gradients.units, options, monotone.empty() ? nullptr : monotone.data());
        grow_from_root(search, signals);
        for (Node& node : nodes) {
            release(node.histogram), node.histogram = nullptr;
            node.value =
                node.bounds.clip(leaf_value(gradients.units.g(node.sums[0]), gradients.units.h(node.sums[1]), options.l2));
        }
    }

    // score[row] += step · value of the leaf of the row, for the rows the tree was grown on.
    template <class T>
    void add_to(T* score, double step) const {
        for_leaf_rows([&](const Node& node, Index from, Index to) {
            const double value = step * node.value;
            for (Index k = from; k < to; ++k) score[rows_[k]] = static_cast<T>(score[rows_[k]] + value);
        });
    }

    // Leaf (its node) of any row of the table.
    std::int32_t route(Index row) const {
        std::int32_t at = 0;
        while (nodes[at].left >= 0) {
            const Split& split = nodes[at].split;
            at = split.goes_left(bins.bin(row, split.feature), bins.values[split.feature]) ? nodes[at].left : nodes[at].right;
        }
        return at;
    }

    // Calls work(node, from, to) for pieces of the rows of every leaf.
    template <class Work>
    void for_leaf_rows(Work&& work) const {
        std::vector<std::array<Index, 3>> pieces;
        constexpr Index kPiece = 16384;
        for (std::size_t v = 0; v < nodes.size(); ++v)
            if (nodes[v].left < 0)
                for (Index k = nodes[v].begin; k < nodes[v].end; k += kPiece)
                    pieces.push_back({static_cast<Index>(v), k, std::min(k + kPiece, nodes[v].end)});
        const Index count = static_cast<Index>(pieces.size());
        team->run(count, rows_.size() > 8192, [&](Index p, int) { work(nodes[pieces[p][0]], pieces[p][1], pieces[p][2]); });
    }

  private:
    std::vector<std::uint32_t> rows_, spare_;
    std::vector<std::uint8_t> active_;
    bool identity_ = false, by_lists_ = false;
    Ordered ordered_;
    std::vector<GroupHistogram> local_;
    std::vector<std::unique_ptr<Pair[]>> pool_, part_;
    std::vector<Pair*> free_;

    Pair* acquire() {
        if (free_.empty()) {
            pool_.push_back(std::make_unique_for_overwrite<Pair[]>(bins.total()));
            free_.push_back(pool_.back().get());
        }
        Pair* got = free_.back();
        free_.pop_back();
        return got;
    }
    void release(Pair* histogram) {
        if (histogram) free_.push_back(histogram);
    }

    // Whether lists of rows cost less than histograms: the rows on every level of a tree, or the bins for every leaf of it
    // (nanoseconds of a column, measured: docs/decisions/0013-cost-model.md).
    bool lists_pay(Index n) const {
        if (gradients.narrow || bins.rows > static_cast<Index>(kRowMask)) return false;
        const double mean = weights.unit * static_cast<double>(weights.total) / static_cast<double>(bins.rows);
        const double weight = weights.count_rows ? 1.0 : mean;
        const double rows = static_cast<double>(n),
                     values = static_cast<double>(bins.total()) / static_cast<double>(bins.features);
        double leaves =
            std::min({static_cast<double>(options.max_leaves), rows, std::exp2(static_cast<double>(options.max_depth))});
        if (options.min_samples_leaf > 0) leaves = std::clamp(rows * weight / (2 * options.min_samples_leaf), 1.0, leaves);
        return 3.0 * rows * (std::log2(leaves) + 1) <= leaves * (300.0 + 3.5 * values);
    }

    bool may_split(const Node& node) const {
        return node.depth < options.max_depth && node.end - node.begin > 1 &&
               gradients.units.c(node.sums[1]) >= 2 * options.min_samples_leaf * (1 - 1e-12);
    }

    void grow_from_root(const FeatureSearch& search, SignalPoll& signals) {
        sum_root();
        auto worse = [&](std::int32_t a, std::int32_t b) {
            return nodes[a].split.gain != nodes[b].split.gain ? nodes[a].split.gain < nodes[b].split.gain : a > b;
        };
        std::priority_queue<std::int32_t, std::vector<std::int32_t>, decltype(worse)> heap(worse);
        Index leaves = 1;
        if (leaves < options.max_leaves && may_split(nodes[0])) {
            if (!by_lists_) nodes[0].histogram = acquire();
            examine(search, nodes[0], nullptr);
            if (nodes[0].split.found()) heap.push(0);
        }
        while (!heap.empty() && leaves < options.max_leaves) {
            signals.poll();
            const std::int32_t v = heap.top();
            heap.pop();
            divide(v);
            ++leaves;
            const std::int32_t l = nodes[v].left, r = nodes[v].right;
            Node &left = nodes[l], &right = nodes[r];
            const bool small_left = left.end - left.begin <= right.end - right.begin;
            Node &small = small_left ? left : right, &large = small_left ? right : left;
            const bool wanted = leaves < options.max_leaves && (may_split(small) || may_split(large));
            if (wanted) {
                // The parent's histogram becomes that of the larger child.
                large.histogram = nodes[v].histogram, nodes[v].histogram = nullptr;
                if (!by_lists_) small.histogram = acquire();
                examine(search, small, &large);
            } else {
                release(nodes[v].histogram), nodes[v].histogram = nullptr;
            }
            for (const std::int32_t child : {l, r}) {
                if (nodes[child].split.found())
                    heap.push(child);
                else
                    release(nodes[child].histogram), nodes[child].histogram = nullptr;
            }
        }
        // What is left in the heap are leaves.
        for (; !heap.empty(); heap.pop()) nodes[heap.top()].split = Split{};
    }

    void sum_root() {
        const Index n = static_cast<Index>(rows_.size());
        constexpr Index kPiece = 32768;
        const Index pieces = (n + kPiece - 1) / kPiece;
        std::vector<Pair> sums(pieces);
        const Gradients& source = gradients;
        team->run(pieces, true, [&](Index p, int) {
            std::int64_t g = 0, h = 0;
            for (Index k = p * kPiece; k < std::min((p + 1) * kPiece, n); ++k) {
                const Index row = rows_[k];
                if (source.narrow) {
                    const std::int32_t s = source.packed()[row];
                    g += s >> source.bits_h;
                    h += (s & ((1 << source.bits_h) - 1)) + (std::int64_t{1} << source.units.shift);
                } else {
                    g += source.pairs()[row][0], h += source.pairs()[row][1];
                }
            }
            sums[p] = Pair{g, h};
        });
        nodes[0].sums = Pair{};
        for (const Pair& sum : sums) nodes[0].sums += sum;
    }

    std::vector<std::uint8_t> allowed(const Node& node) const {
        if (interactions.empty()) return active_;
        std::vector<std::uint8_t> mask(bins.features, 0);
        for (std::size_t s = 0; s < interactions.size(); ++s)
            if (node.sets[s])
                for (Index j = 0; j < bins.features; ++j) mask[j] |= interactions[s][j] & active_[j];
        return mask;
    }

    // Counts the rows of `node`, subtracts them from the histogram of its sibling, and finds the best split of both.
    void examine(const FeatureSearch& search, Node& node, Node* sibling) {
        if (by_lists_) return examine_lists(search, node, sibling);
        const Index groups = bins.groups(), n = node.end - node.begin;
        const std::vector<std::uint8_t> mine = allowed(node), theirs = sibling ? allowed(*sibling) : mine;
        const bool search_node = may_split(node), search_sibling = sibling && may_split(*sibling);
        const Index work = n * bins.features;
        const int threads = team->size();
        const bool parallel = threads > 1 && work + 4 * bins.total() > 20000;
        Index parts = 1;
        if (parallel && groups < threads) parts = std::clamp<Index>((threads + groups - 1) / groups, 1, 1 + n / 4096);
        while (static_cast<Index>(part_.size()) < parts - 1)
            part_.push_back(std::make_unique_for_overwrite<Pair[]>(bins.total()));
        const std::uint32_t* rows = identity_ && node.depth == 0 ? nullptr : rows_.data();
        std::vector<Split> best_node(groups), best_sibling(groups);

        auto count = [&](Index group, Index part, int worker) {
            Pair* hist = part == 0 ? node.histogram : part_[part - 1].get();
            const Index j0 = group * bins.group, j1 = std::min(j0 + bins.group, bins.features);
            if (std::none_of(active_.begin() + j0, active_.begin() + j1, [](std::uint8_t a) { return a; })) return;
            std::memset(static_cast<void*>(hist + bins.offset[j0]), 0, (bins.offset[j1] - bins.offset[j0]) * sizeof(Pair));
            const Index from = node.begin + n * part / parts, to = node.begin + n * (part + 1) / parts;
            group_histogram(bins, gradients, rows, from, to, group, local_[worker], hist);
        };
        auto finish = [&](Index group) {
            const Index j0 = group * bins.group, j1 = std::min(j0 + bins.group, bins.features);
            for (Index j = j0; j < j1; ++j) {
                if (!active_[j]) continue;
                const Index from = bins.offset[j], size = 2 * (bins.offset[j + 1] - from);
                auto* own = reinterpret_cast<std::int64_t*>(node.histogram + from);
                for (Index part = 1; part < parts; ++part)
                    detail::add(own, reinterpret_cast<const std::int64_t*>(part_[part - 1].get() + from), size);
                if (sibling) detail::subtract(reinterpret_cast<std::int64_t*>(sibling->histogram + from), own, size);
                if (search_node && mine[j]) search.search(j, node.histogram, node.sums, node.bounds, best_node[group]);
                if (search_sibling && theirs[j])
                    search.search(j, sibling->histogram, sibling->sums, sibling->bounds, best_sibling[group]);
            }
        };
        if (parts == 1) {
            team->run(groups, parallel, [&](Index group, int worker) { count(group, 0, worker), finish(group); });
        } else {
            team->run(groups * parts, parallel, [&](Index task, int worker) { count(task / parts, task % parts, worker); });
            team->run(groups, parallel, [&](Index group, int) { finish(group); });
        }
        keep_best(best_node, node, best_sibling, sibling);
    }

    // The same from the rows of every column in the order of their bins.
    void examine_lists(const FeatureSearch& search, Node& node, Node* sibling) {
        const Index groups = bins.groups(), n = node.end - node.begin;
        const std::vector<std::uint8_t> mine = allowed(node);  // the same for both: they have the same path
        const bool search_node = may_split(node), search_sibling = sibling && may_split(*sibling);
        const Index begin = sibling ? std::min(node.begin, sibling->begin) : node.begin;
        const Index end = sibling ? std::max(node.end, sibling->end) : node.end,
                    middle = std::max(node.begin, sibling ? sibling->begin : 0);
        if (sibling) ordered_.mark(rows_.data(), begin, middle, end);
        std::vector<Split> best_node(groups), best_sibling(groups);
        team->run(groups, team->size() > 1 && (end - begin) * bins.features > 5000, [&](Index group, int worker) {
            const Index j0 = group * bins.group, j1 = std::min(j0 + bins.group, bins.features);
            for (Index j = j0; j < j1; ++j) {
                if (!mine[j]) continue;
                if (sibling) ordered_.deal(j, begin, middle, end, worker);
                const std::uint32_t* list = ordered_.list(j);
                if (search_node)
                    search.search(j, list + node.begin, n, gradients.pairs(), node.sums, node.bounds, best_node[group]);
                if (search_sibling)
                    search.search(j, list + sibling->begin, sibling->end - sibling->begin, gradients.pairs(), sibling->sums,
                                  sibling->bounds, best_sibling[group]);
            }
        });
        keep_best(best_node, node, best_sibling, sibling);
    }

    static void keep_best(const std::vector<Split>& best_node, Node& node, const std::vector<Split>& best_sibling,
                          Node* sibling) {
        for (std::size_t group = 0; group < best_node.size(); ++group) {
            if (best_node[group].gain > node.split.gain) node.split = best_node[group];
            if (sibling && best_sibling[group].gain > sibling->split.gain) sibling->split = best_sibling[group];
        }
    }

    // Makes the children of v and deals its rows.
    void divide(std::int32_t v) {
        const auto l = static_cast<std::int32_t>(nodes.size()), r = l + 1;
        nodes.emplace_back(), nodes.emplace_back();
        Node &node = nodes[v], &left = nodes[l], &right = nodes[r];
        node.left = l, node.right = r;
        left.depth = right.depth = node.depth + 1;
        left.sums = node.split.left, right.sums = node.sums - node.split.left;
        left.bounds = right.bounds = node.bounds;
        const int direction = monotone.empty() ? 0 : monotone[node.split.feature];
        if (direction != 0) {
            const double low =
                node.bounds.clip(leaf_value(gradients.units.g(left.sums[0]), gradients.units.h(left.sums[1]), options.l2));
            const double high =
                node.bounds.clip(leaf_value(gradients.units.g(right.sums[0]), gradients.units.h(right.sums[1]), options.l2));
            const double middle = 0.5 * (low + high);
            (direction > 0 ? left.bounds.high : left.bounds.low) = middle;
            (direction > 0 ? right.bounds.low : right.bounds.high) = middle;
        }
        left.sets = right.sets = node.sets;
        for (std::size_t s = 0; s < interactions.size(); ++s)
            if (!interactions[s][node.split.feature]) left.sets[s] = right.sets[s] = 0;
        const Index middle = partition(node);
        left.begin = node.begin, left.end = right.begin = middle, right.end = node.end;
    }

    // Rows of the left child first, both in their old order; returns where the right child begins. A large node is dealt
    // a quarter of the table at a time: the rows set aside then need one byte a row.
    Index partition(const Node& node) {
        std::array<std::uint8_t, kSlots> left{};
        const int missing = bins.values[node.split.feature];
        for (int b = 0; b < kSlots; ++b) left[b] = node.split.goes_left(b, missing);
        const std::uint8_t* data = bins.data + bins.column[node.split.feature];
        const Index most = std::max<Index>(static_cast<Index>(rows_.size()) / 4, 1024);
        if (static_cast<Index>(spare_.size()) < most) spare_.resize(most);
        Index middle = node.begin;
        for (Index from = node.begin; from < node.end; from += most) {
            const Index to = std::min(from + most, node.end), lefts = deal(data, left, from, to);
            if (middle < from) {  // the left rows pass those that went right before
                std::uint32_t* rows = rows_.data();
                std::memcpy(spare_.data(), rows + from, lefts * sizeof(std::uint32_t));
                std::memmove(rows + middle + lefts, rows + middle, (from - middle) * sizeof(std::uint32_t));
                std::memcpy(rows + middle, spare_.data(), lefts * sizeof(std::uint32_t));
            }
            middle += lefts;
        }
        return middle;
    }

    // The same for the rows at from … to; returns how many go left.
    Index deal(const std::uint8_t* data, const std::array<std::uint8_t, kSlots>& left, Index first, Index last) {
        const Index n = last - first;
        const int chunks = team->size() > 1 && n > 4096 ? team->size() : 1;
        std::vector<Index> lefts(chunks);
        auto begin_of = [&](int c) { return first + n * c / chunks; };
        team->run(chunks, true, [&](Index c, int) {
            const Index from = begin_of(static_cast<int>(c)), to = begin_of(static_cast<int>(c) + 1);
            std::uint32_t *low = rows_.data() + from, *high = spare_.data() + (from - first);
            const std::uint32_t* rows = rows_.data();
            constexpr Index kAhead = 24;
            for (Index k = from; k < to; ++k) {
                if (k + kAhead < to) __builtin_prefetch(data + static_cast<Index>(rows[k + kAhead]) * bins.stride);
                const std::uint32_t row = rows[k];
                const std::uint8_t goes = left[data[static_cast<Index>(row) * bins.stride]];
                *low = row, *high = row;  // one of the two is overwritten by the next row
                low += goes, high += 1 - goes;
            }
            lefts[c] = low - (rows_.data() + from);
        });
        Index at = first;
        for (int c = 0; c < chunks; ++c) {
            if (at != begin_of(c)) std::memmove(rows_.data() + at, rows_.data() + begin_of(c), lefts[c] * sizeof(std::uint32_t));
            at += lefts[c];
        }
        const Index middle = at;
        for (int c = 0; c < chunks; ++c) {
            const Index size = begin_of(c + 1) - begin_of(c) - lefts[c];
            std::memcpy(rows_.data() + at, spare_.data() + (begin_of(c) - first), size * sizeof(std::uint32_t));
            at += size;
        }
        return middle - first;
    }
};

}  // namespace certifit::boosting
