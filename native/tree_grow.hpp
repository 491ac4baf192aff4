// Greedy growth of one tree (CART).
//
// Every node looks for the split of largest worth (tree_statistics.hpp) over its features and thresholds; near ties go to the lowest
// feature (or, if only some are tried, to the one drawn first), then to the lowest threshold. How a feature is put in order depends
// on its codes and on the node:
//   few codes      a histogram over the codes, O(rows + codes)
//   many codes     rows sorted once at the root and partitioned stably at every split, O(rows); or, when only a few of the
//                  features are tried at each node, sorted anew in the node
//   categories     ordered by their mean response, then as above: optimal for two classes and for real targets with the squared or
//                  Poisson criterion (Breiman et al. 1984, 4.2.2; Fisher 1958); for more classes each class orders them once.
// Missing values are sent to both sides in turn, and stay on the better one.
// The features tried at a node are drawn from a hash of the path to it, so the result does not depend on the order of growth.
#pragma once

#include <atomic>
#include <cstdint>
#include <numeric>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "interrupt.hpp"
#include "tree_codes.hpp"
#include "tree_statistics.hpp"

namespace certifit::tree {

// Another thread failed or was interrupted: leave quietly.
struct Stopped {};

inline std::uint64_t mixed(std::uint64_t z) {  // splitmix64
    z += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(mixed(seed)) {}
    std::uint64_t next() { return mixed(state_ += 0x9e3779b97f4a7c15ULL); }
    // Uniform on 0 … n−1; the bias is below n / 2^64.
    std::uint64_t below(std::uint64_t n) {
        return static_cast<std::uint64_t>((static_cast<unsigned __int128>(next()) * n) >> 64);
    }
    double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

  private:
    std::uint64_t state_;
};

// Rows × columns of codes, each column contiguous; `sorted` (if any) holds for each column the rows in the order of their codes.
template <class CodeType>
struct CodedTable {
    using Code = CodeType;
    // An entry carries a code in its upper and a row in its lower half: sorting entries sorts rows by code.
    using Entry = std::conditional_t<sizeof(Code) == 2, std::uint32_t, std::uint64_t>;
    static constexpr int kHalf = 4 * sizeof(Entry);
    static Entry entry(std::uint32_t code, Row row) { return (static_cast<Entry>(code) << kHalf) | row; }
    static std::uint32_t code_of(Entry e) { return static_cast<std::uint32_t>(e >> kHalf); }
    static Row row_of(Entry e) { return static_cast<Row>(e & ((Entry{1} << kHalf) - 1)); }

    Row n = 0;
    int d = 0;
    std::vector<Code> code;
    std::vector<Column> columns;
    std::vector<std::vector<Entry>> sorted;  // empty for columns that use histograms

    const Code* column(int f) const { return code.data() + static_cast<std::size_t>(f) * n; }
};

struct Growth {
    int max_depth = 1 << 30;
    double min_split = 2, min_leaf = 1;  // rows, counted by weight; 2 and 1 never bind
    double min_fraction = 0;             // least share of the weight of the root in a leaf
    std::int64_t max_leaves = 0;         // 0: depth first, without limit
    double min_decrease = 0;             // least decrease of the mean impurity of the whole tree
    double worth_unit = 1;               // worth in the units of the target = worth here · worth_unit
    int max_features = 0;
    std::uint64_t seed = 0;
    const std::int8_t* monotone = nullptr;
    int threads = 1;
};

struct Node {
    std::int32_t feature = -1, left = -1;  // the right child is left + 1
    double threshold = 0;                  // x <= threshold goes left
    std::int32_t bits = -1;                // first word of the set of categories that go left
    bool missing_left = false;
    double weight = 0, loss = 0, value = 0;
};

template <class Cell>
struct Tree {
    std::vector<Node> nodes;
    std::vector<Cell> cells;            // statistics of each node
    std::vector<std::uint64_t> bits;    // categories
    int depth = 0;
};

template <class Code, class Statistics>
class Grower {
  public:
    using Table = CodedTable<Code>;
    using Entry = typename Table::Entry;
    using Cell = typename Statistics::Cell;
    static constexpr std::uint32_t kFewCodes = 256;

    // `target` and `mass` are the real targets and the fixed-point weights of a regression; null for classes.
    Grower(const Table& table, const Statistics& statistics, const Growth& growth, const double* target, const double* mass,
           std::vector<Row> rows, const std::atomic<bool>* stop, SignalPoll* signals)
        : table_(table), stat_(statistics), growth_(growth), target_(target), mass_(mass), rows_(std::move(rows)), stop_(stop),
          signals_(signals), width_(statistics.width()) {
        const bool all = growth_.max_features >= table_.d;
        presorted_ = all && std::any_of(table_.sorted.begin(), table_.sorted.end(), [](const auto& e) { return !e.empty(); });
        if (presorted_) order_ = table_.sorted;
        if (presorted_ && rows_.size() < table_.n) {
            std::vector<bool> used(table_.n, false);
            for (Row i : rows_) used[i] = true;
            for (auto& entries : order_) std::erase_if(entries, [&](Entry e) { return !used[Table::row_of(e)]; });
        }
        // Where histograms do the work, what a row adds lies beside its number: one gather less for each feature.
        if constexpr (!Statistics::kByRow) {
            if (!presorted_) {
                loads_.reserve(rows_.size());
                for (Row i : rows_) loads_.push_back(stat_.load(i));
            }
        }
        goes_left_.resize(table_.n);
        if constexpr (Statistics::kByRow) rank_.resize(table_.n);
        scratch_.resize(static_cast<std::size_t>(std::max(1, growth_.threads)));
        std::size_t most = 0;
        for (const Column& c : table_.columns)
            most = std::max<std::size_t>(most, c.categorical || c.codes() < kFewCodes ? c.codes() + 1 : 0);
        for (Scratch& s : scratch_) {
            s.histogram.assign(most * width_, Cell{0});
            s.buffer.assign(4 * static_cast<std::size_t>(width_), Cell{0});
            s.order.resize(table_.d);
            std::iota(s.order.begin(), s.order.end(), 0);
        }
    }

    Tree<Cell> grow() {
        tree_.nodes.emplace_back();
        tree_.cells.assign(width_, Cell{0});
        for (Row i : rows_) stat_.add(tree_.cells.data(), i);
        Job root{0, 0, static_cast<Row>(rows_.size()), 0, -kInf, kInf, mixed(growth_.seed)};
        root_weight_ = stat_.total(tree_.cells.data());
        const bool open = finish(tree_, root, scratch_[0]);
        if (open && growth_.max_leaves > 0)
            best_first(root);
        else if (open)
            depth_first(root);
        return canonical();
    }

  private:
    struct Job {
        std::int32_t node;
        Row begin, end;
        int depth;
        double low, high;  // bounds of the response, from monotone constraints
        std::uint64_t path;
        Row size() const { return end - begin; }
    };
    struct Split {
        double score = -kInf;
        int feature = -1;
        std::uint32_t last_left = 0, first_right = 0;  // codes; first_right = codes() when only missing values go right
        bool missing_left = false, any_missing = false;
        double left_weight = 0, right_weight = 0, left_response = 0, right_response = 0;
        std::vector<std::uint32_t> left_categories, right_categories;
        bool found() const { return feature >= 0; }
    };
    struct Scratch {
        std::vector<Cell> histogram, buffer;
        std::vector<Entry> entries, spare;
        std::vector<Row> rows;
        std::vector<typename Statistics::Load> loads;
        std::vector<std::uint8_t> side;
        std::vector<int> order, drawn;
        std::vector<double> left_cost, right_cost, left_median, right_median;
        MedianCost median;
        std::vector<std::uint32_t> present, place;
        std::vector<std::pair<double, std::uint32_t>> ranking;
        std::vector<double> sums;
    };

    // ---- order of growth ------------------------------------------------------------------------------------------------

    void depth_first(const Job& root) {
        std::vector<Job> stack{root}, pending;
        // Large nodes use all threads at once; the subtrees below them are grown one by a thread.
        const Row small = growth_.threads > 1 ? static_cast<Row>(rows_.size() / (4 * growth_.threads)) : 0;
        while (!stack.empty()) {
            const Job job = stack.back();
            stack.pop_back();
            if (job.size() <= small) {
                pending.push_back(job);
                continue;
            }
            poll(true);
            expand(tree_, job, scratch_[0], growth_.threads, stack);
        }
        if (pending.empty()) return;
        std::vector<Tree<Cell>> grown(pending.size());
        std::exception_ptr failure = nullptr;
        std::atomic<bool> failed{false};
#pragma omp parallel for schedule(dynamic, 1) num_threads(growth_.threads)
        for (std::size_t k = 0; k < pending.size(); ++k) {
            try {
                if (failed.load(std::memory_order_relaxed)) continue;
                grown[k] = subtree(pending[k], failed);
            } catch (...) {
#pragma omp critical(certifit_tree_failure)
                if (!failure) failure = std::current_exception();
                failed = true;
            }
        }
        if (failure) std::rethrow_exception(failure);
        for (std::size_t k = 0; k < pending.size(); ++k) graft(pending[k].node, grown[k]);
    }

    Tree<Cell> subtree(Job job, const std::atomic<bool>& failed) {
        Tree<Cell> tree;
        const std::size_t from = static_cast<std::size_t>(job.node) * width_;
        tree.nodes.push_back(tree_.nodes[job.node]);
        tree.cells.assign(tree_.cells.begin() + from, tree_.cells.begin() + from + width_);
        job.node = 0;
        std::vector<Job> stack{job};
        Scratch& scratch = scratch_[thread()];
        while (!stack.empty() && !failed.load(std::memory_order_relaxed)) {
            const Job next = stack.back();
            stack.pop_back();
            poll(thread() == 0);
            expand(tree, next, scratch, 1, stack);
        }
        return tree;
    }

    void graft(std::int32_t at, const Tree<Cell>& branch) {
        const auto offset = static_cast<std::int32_t>(tree_.nodes.size()) - 1;
        const auto words = static_cast<std::int32_t>(tree_.bits.size());
        for (std::size_t k = 0; k < branch.nodes.size(); ++k) {
            Node node = branch.nodes[k];
            if (node.left >= 0) node.left += offset;
            if (node.bits >= 0) node.bits += words;
            if (k == 0)
                tree_.nodes[at] = node;
            else
                tree_.nodes.push_back(node);
        }
        tree_.cells.insert(tree_.cells.end(), branch.cells.begin() + width_, branch.cells.end());
        tree_.bits.insert(tree_.bits.end(), branch.bits.begin(), branch.bits.end());
    }

    void best_first(const Job& root) {
        struct Waiting {
            double worth;
            std::uint64_t turn;
            Job job;
            Split split;
            bool operator<(const Waiting& other) const {
                return worth < other.worth || (worth == other.worth && turn > other.turn);
            }
        };
        std::priority_queue<Waiting> queue;
        std::uint64_t turn = 0;
        auto push = [&](const Job& job) {
            Split split = find(tree_, job, scratch_[0], growth_.threads);
            if (split.found()) {
                const double worth = split.score - own(tree_, job.node);
                queue.push({worth, turn++, job, std::move(split)});
            }
        };
        push(root);
        std::vector<Job> children;
        for (std::int64_t leaves = 1; leaves < growth_.max_leaves && !queue.empty(); ++leaves) {
            poll(true);
            const Waiting best = queue.top();
            queue.pop();
            children.clear();
            apply(tree_, best.job, best.split, scratch_[0], growth_.threads, children);
            for (auto child = children.rbegin(); child != children.rend(); ++child) push(*child);
        }
    }

    void expand(Tree<Cell>& tree, const Job& job, Scratch& scratch, int threads, std::vector<Job>& stack) {
        const Split split = find(tree, job, scratch, threads);
        if (split.found()) apply(tree, job, split, scratch, threads, stack);
    }

    // Nodes in preorder, siblings side by side, so that neither threads nor the order of growth show.
    Tree<Cell> canonical() {
        Tree<Cell> out;
        const std::size_t count = tree_.nodes.size();
        out.nodes.resize(count);
        out.cells.resize(count * width_);
        std::vector<std::array<std::int32_t, 3>> stack{{0, 0, 0}};  // old, new, depth
        std::int32_t next = 1;
        while (!stack.empty()) {
            const auto [old, now, depth] = stack.back();
            stack.pop_back();
            Node node = tree_.nodes[old];
            out.depth = std::max(out.depth, depth);
            std::copy_n(tree_.cells.begin() + static_cast<std::size_t>(old) * width_, width_,
                        out.cells.begin() + static_cast<std::size_t>(now) * width_);
            if (node.left >= 0) {
                stack.push_back({node.left + 1, next + 1, depth + 1});
                stack.push_back({node.left, next, depth + 1});
                node.left = next;
                next += 2;
            }
            if (node.bits >= 0) {
                const std::size_t words = table_.columns[node.feature].codes() / 64 + 1;
                const auto from = tree_.bits.begin() + node.bits;
                node.bits = static_cast<std::int32_t>(out.bits.size());
                out.bits.insert(out.bits.end(), from, from + words);
            }
            out.nodes[now] = node;
        }
        return out;
    }

    // ---- one node -------------------------------------------------------------------------------------------------------

    double own(const Tree<Cell>& tree, std::int32_t node) const {
        if constexpr (Statistics::kByRow) return -tree.nodes[node].loss / growth_.worth_unit;
        return stat_.own(tree.cells.data() + static_cast<std::size_t>(node) * width_);
    }

    // Value and loss of a node whose cells are known; whether it may be split.
    bool finish(Tree<Cell>& tree, const Job& job, Scratch& scratch) {
        Node& node = tree.nodes[job.node];
        const Cell* cell = tree.cells.data() + static_cast<std::size_t>(job.node) * width_;
        node.weight = stat_.total(cell);
        bool pure;
        if constexpr (requires { stat_.loss(cell); }) {
            node.loss = stat_.loss(cell);
            pure = stat_.pure(cell);
        } else {
            pure = finish_regression(node, job, scratch);
        }
        return !pure && job.depth < growth_.max_depth && job.size() > 1 &&
               (growth_.min_split <= 2 || stat_.size(cell) >= growth_.min_split * (1 - 1e-12));
    }

    bool finish_regression(Node& node, const Job& job, Scratch& scratch) {
        const std::span<const Row> rows(rows_.data() + job.begin, job.size());
        double least = kInf, most = -kInf;
        for (Row i : rows) least = std::min(least, target_[i]), most = std::max(most, target_[i]);
        node.loss = 0;
        node.value = least;
        if (least == most) return true;
        if constexpr (Statistics::kByRow) {
            auto& y = scratch.sums;
            y.clear();
            for (Row i : rows) y.push_back(stat_.target[i]);
            std::sort(y.begin(), y.end());
            y.erase(std::unique(y.begin(), y.end()), y.end());
            scratch.median.reset(y);
            for (Row i : rows)
                scratch.median.add(std::lower_bound(y.begin(), y.end(), stat_.target[i]) - y.begin(), stat_.weight[i]);
            node.loss = scratch.median.cost() * growth_.worth_unit;
            node.value = real_median(rows, scratch);
        } else {
            double excess = 0;
            for (Row i : rows) excess += mass_[i] * (target_[i] - least);
            node.value = least + excess / node.weight;
            double loss = 0;
            if (poisson()) {
                for (Row i : rows) loss += target_[i] > 0 ? mass_[i] * target_[i] * std::log(target_[i] / node.value) : 0.0;
            } else {
                for (Row i : rows) loss += mass_[i] * (target_[i] - node.value) * (target_[i] - node.value);
            }
            node.loss = std::max(0.0, loss);
        }
        return false;
    }
    static constexpr bool poisson() { return std::is_same_v<Statistics, MomentStatistics<Criterion::poisson>>; }

    // The weighted median of the targets as given, not in fixed point.
    double real_median(std::span<const Row> rows, Scratch& scratch) const {
        auto& order = scratch.rows;
        order.assign(rows.begin(), rows.end());
        std::sort(order.begin(), order.end(), [&](Row a, Row b) { return target_[a] < target_[b]; });
        double total = 0, held = 0;
        for (Row i : order) total += mass_[i];
        for (std::size_t k = 0; k < order.size(); ++k) {
            held += mass_[order[k]];
            if (2 * held > total || k + 1 == order.size()) return target_[order[k]];
            if (2 * held == total) return 0.5 * target_[order[k]] + 0.5 * target_[order[k + 1]];
        }
        return 0.0;
    }

    Split find(const Tree<Cell>& tree, const Job& job, Scratch& scratch, int threads) {
        const Cell* total = tree.cells.data() + static_cast<std::size_t>(job.node) * width_;
        Context context{job, total, 0, {}};
        context.tolerance = tolerance(tree, job, total);
        if constexpr (Statistics::kByRow) rank_targets(job, context);
        Split best;
        const int wanted = std::min(growth_.max_features, table_.d);
        if (wanted >= table_.d) {
            if (threads > 1 && static_cast<std::size_t>(job.size()) * table_.d > 20000) {
                std::vector<Split> found(table_.d);
                in_parallel(table_.d, threads, [&](int f, Scratch& own_scratch) { found[f] = search(context, f, own_scratch); });
                for (Split& split : found) keep(best, split, context.tolerance);
            } else {
                for (int f = 0; f < table_.d; ++f) {
                    Split split = search(context, f, scratch);
                    keep(best, split, context.tolerance);
                }
            }
        } else {
            Random random(job.path);
            auto& order = scratch.order;
            auto& drawn = scratch.drawn;
            drawn.clear();
            int done = 0;
            // After the wanted number, one more at a time until some split is found. A tie goes to the feature drawn first: the
            // lowest one would win the many ties of small nodes in all trees alike, and the trees would differ less.
            while (done < table_.d && (done < wanted || !best.found())) {
                const int batch = done == 0 ? wanted : 1;
                for (int k = 0; k < batch; ++k) {
                    const int at = done + k;
                    std::swap(order[at], order[at + static_cast<int>(random.below(table_.d - at))]);
                    drawn.push_back(order[at]);
                }
                for (int k = done; k < done + batch; ++k) {
                    Split split = search(context, drawn[k], scratch);
                    keep(best, split, context.tolerance);
                }
                done += batch;
            }
            std::iota(order.begin(), order.end(), 0);
        }
        if (best.found()) {
            const double worth = std::max(0.0, best.score - own(tree, job.node)) * growth_.worth_unit;
            if (worth < growth_.min_decrease * root_weight_ * (1 - 1e-12)) return {};
        }
        return best;
    }

    // Splits whose worths differ by less are ties: rounding, and for numbers the half unit by which each target was rounded.
    double tolerance(const Tree<Cell>& tree, const Job& job, const Cell* total) const {
        const double loss = tree.nodes[job.node].loss / growth_.worth_unit, W = stat_.total(total);
        const double rounding = 1e-12 * loss + 1e-15 * std::abs(own(tree, job.node));
        if constexpr (requires_classes()) {
            return rounding;
        } else {
            const double error = 0.5 * (stat_.size_unit == 1.0 ? W : static_cast<double>(job.size()));
            constexpr bool squared = std::is_same_v<Statistics, MomentStatistics<Criterion::squared>>;
            return rounding + 2 * error * (squared ? std::sqrt(loss / W) : 1.0);
        }
    }

    struct Context {
        const Job& job;
        const Cell* total;
        double tolerance;
        std::vector<double> sorted_targets;
    };

    static void keep(Split& best, Split& split, double tolerance) {
        if (!split.found()) return;
        if (!best.found() || split.score > best.score + tolerance) best = std::move(split);
    }

    void rank_targets(const Job& job, Context& context) {
        auto& y = context.sorted_targets;
        for (Row k = job.begin; k < job.end; ++k) y.push_back(stat_.target[rows_[k]]);
        std::sort(y.begin(), y.end());
        y.erase(std::unique(y.begin(), y.end()), y.end());
        for (Row k = job.begin; k < job.end; ++k)
            rank_[rows_[k]] = static_cast<Row>(std::lower_bound(y.begin(), y.end(), stat_.target[rows_[k]]) - y.begin());
    }

    // Two children; those that may be split further go on the stack, the left one on top.
    void apply(Tree<Cell>& tree, const Job& job, const Split& split, Scratch& scratch, int threads, std::vector<Job>& stack) {
        const Column& column = table_.columns[split.feature];
        const auto left = static_cast<std::int32_t>(tree.nodes.size());
        tree.nodes.emplace_back();
        tree.nodes.emplace_back();
        tree.cells.resize(tree.cells.size() + 2 * static_cast<std::size_t>(width_), Cell{0});
        Cell* left_cell = tree.cells.data() + static_cast<std::size_t>(left) * width_;
        Cell* right_cell = left_cell + width_;
        const Cell* own_cell = tree.cells.data() + static_cast<std::size_t>(job.node) * width_;

        Node& node = tree.nodes[job.node];
        node.feature = split.feature;
        node.left = left;
        const bool larger_left = split.left_weight >= split.right_weight;
        node.missing_left = split.any_missing && !column.categorical ? split.missing_left : larger_left;
        const Code* code = table_.column(split.feature);
        std::uint8_t* goes = goes_left_.data();
        Row* rows = rows_.data() + job.begin;
        const Row m = job.size();
        if (column.categorical) {
            const std::size_t words = column.codes() / 64 + 1;
            node.bits = static_cast<std::int32_t>(tree.bits.size());
            tree.bits.resize(tree.bits.size() + words, larger_left ? ~std::uint64_t{0} : 0);
            std::uint64_t* bits = tree.bits.data() + node.bits;
            for (std::uint32_t c : split.left_categories) bits[c / 64] |= std::uint64_t{1} << (c % 64);
            for (std::uint32_t c : split.right_categories) bits[c / 64] &= ~(std::uint64_t{1} << (c % 64));
            for (Row k = 0; k < m; ++k) {
                const std::uint32_t c = code[rows[k]];
                goes[rows[k]] = (bits[c / 64] >> (c % 64)) & 1;
            }
        } else {
            node.threshold =
                split.first_right < column.codes() ? middle(column.high[split.last_left], column.low[split.first_right]) : kInf;
            const std::uint32_t last = split.last_left;
            // Without missing values in the node no code equals `absent`.
            const std::uint32_t absent = split.any_missing && split.missing_left ? column.missing_code() : ~std::uint32_t{0};
            for (Row k = 0; k < m; ++k) {
                const std::uint32_t c = code[rows[k]];
                goes[rows[k]] = (c <= last) | (c == absent);
            }
        }
        auto& spare = scratch.rows;
        if (spare.size() < m + 1) spare.resize(m + 1);
        auto& side = scratch.side;
        if (side.size() < m) side.resize(m);
        Row lefts = 0, rights = 0;
        for (Row k = 0; k < m; ++k) {
            const Row i = rows[k];
            const bool l = goes[i];
            side[k] = l;
            rows[lefts] = i;
            spare[rights] = i;
            lefts += l;
            rights += !l;
        }
        if (!loads_.empty()) {
            auto& loads_aside = scratch.loads;
            if (loads_aside.size() < m + 1) loads_aside.resize(m + 1);
            auto* loads = loads_.data() + job.begin;
            Row to_left = 0, to_right = 0;
            for (Row k = 0; k < m; ++k) {
                const auto load = loads[k];
                const bool l = side[k];
                loads[to_left] = load;
                loads_aside[to_right] = load;
                to_left += l;
                to_right += !l;
            }
            std::copy_n(loads_aside.begin(), rights, loads + lefts);
        }
        std::copy_n(spare.begin(), rights, rows + lefts);
        for (Row k = 0; k < lefts; ++k) stat_.add(left_cell, rows[k]);
        for (int c = 0; c < width_; ++c) right_cell[c] = own_cell[c] - left_cell[c];

        Job first{left, job.begin, job.begin + lefts, job.depth + 1, job.low, job.high, mixed(job.path ^ 0x517cc1b727220a95ULL)};
        Job second{left + 1, job.begin + lefts, job.end, job.depth + 1, job.low, job.high, mixed(job.path + 0x2545f4914f6cdd1dULL)};
        if (growth_.monotone && growth_.monotone[split.feature] != 0) {
            const double between = 0.5 * split.left_response + 0.5 * split.right_response;
            (growth_.monotone[split.feature] > 0 ? first.high : first.low) = between;
            (growth_.monotone[split.feature] > 0 ? second.low : second.high) = between;
        }
        const bool open_first = finish(tree, first, scratch), open_second = finish(tree, second, scratch);
        if (open_second) stack.push_back(second);
        if (open_first) stack.push_back(first);
        if (presorted_ && (open_first || open_second)) {
            if (threads > 1 && static_cast<std::size_t>(m) * table_.d > 20000)
                in_parallel(table_.d, threads, [&](int f, Scratch& own_scratch) { divide(job, f, own_scratch); });
            else
                for (int f = 0; f < table_.d; ++f) divide(job, f, scratch);
        }
    }

    void divide(const Job& job, int f, Scratch& scratch) {
        if (order_[f].empty()) return;
        Entry* entries = order_[f].data() + job.begin;
        const Row m = job.size();
        auto& spare = scratch.spare;
        if (spare.size() < m + 1) spare.resize(m + 1);
        const std::uint8_t* goes = goes_left_.data();
        Entry* aside = spare.data();
        Row lefts = 0, rights = 0;
        for (Row k = 0; k < m; ++k) {
            const Entry e = entries[k];
            const bool l = goes[Table::row_of(e)];
            entries[lefts] = e;
            aside[rights] = e;
            lefts += l;
            rights += !l;
        }
        std::copy_n(aside, rights, entries + lefts);
    }

    // ---- one feature ----------------------------------------------------------------------------------------------------

    Split search(const Context& context, int f, Scratch& scratch) {
        const Column& column = table_.columns[f];
        if (column.categorical) return search_categories(context, f, scratch);
        const Row m = context.job.size();
        if constexpr (!Statistics::kByRow)
            if (column.codes() < kFewCodes) return search_histogram(context, f, scratch);
        if (presorted_ && !order_[f].empty()) return scan(context, f, order_[f].data() + context.job.begin, scratch);
        gather(context.job, f, scratch);
        sort_entries(scratch, m, column.codes());
        return scan(context, f, scratch.entries.data(), scratch);
    }

    void gather(const Job& job, int f, Scratch& scratch) {
        const Row m = job.size();
        auto& entries = scratch.entries;
        if (entries.size() < m) entries.resize(m);
        const Code* code = table_.column(f);
        for (Row k = 0; k < m; ++k) {
            const Row i = rows_[job.begin + k];
            entries[k] = Table::entry(code[i], i);
        }
    }

    static void sort_entries(Scratch& scratch, Row m, std::uint32_t codes) {
        auto& entries = scratch.entries;
        if (m < 400) {
            std::sort(entries.begin(), entries.begin() + m);
            return;
        }
        auto& spare = scratch.spare;
        if (spare.size() < m) spare.resize(m);
        for (std::uint32_t shift = 0; shift == 0 || (codes >> shift) > 0; shift += 8) {
            std::array<Row, 257> start{};
            for (Row k = 0; k < m; ++k) ++start[((Table::code_of(entries[k]) >> shift) & 255) + 1];
            for (int b = 0; b < 256; ++b) start[b + 1] += start[b];
            for (Row k = 0; k < m; ++k) spare[start[(Table::code_of(entries[k]) >> shift) & 255]++] = entries[k];
            std::swap(entries, spare);
            if (shift == 24) break;
        }
        if (entries.size() < m) entries.resize(m);
    }

    template <class Scan>
    bool admissible(const Job& job, int f, const Scan& scan) const {
        if (growth_.min_leaf > 1) {
            const double least = growth_.min_leaf * (1 - 1e-12);
            if (scan.left_size() < least || scan.right_size() < least) return false;
        }
        if (growth_.min_fraction > 0) {
            const double least = growth_.min_fraction * root_weight_ * (1 - 1e-12);
            if (scan.left_weight() < least || scan.right_weight() < least) return false;
        }
        if (growth_.monotone) {
            const double l = scan.left_response(), r = scan.right_response();
            const int sign = growth_.monotone[f];
            if ((sign > 0 && l > r) || (sign < 0 && l < r)) return false;
            if (std::min(l, r) < job.low || std::max(l, r) > job.high) return false;
        }
        return true;
    }

    template <class Scan>
    void consider(const Context& context, int f, Scan& scan, std::uint32_t last, std::uint32_t next, bool missing_left,
                  Split& best, double& bar) const {
        double score;
        if (!scan.above(bar, score) || !admissible(context.job, f, scan)) return;
        bar = score + context.tolerance;
        best.score = score;
        best.feature = f;
        best.last_left = last;
        best.first_right = next;
        best.missing_left = missing_left;
        best.left_weight = scan.left_weight();
        best.right_weight = scan.right_weight();
        if (growth_.monotone) best.left_response = scan.left_response(), best.right_response = scan.right_response();
    }

    // Rows in the order of their codes, missing ones last.
    Split scan(const Context& context, int f, const Entry* e, Scratch& scratch) {
        const Row m = context.job.size();
        const std::uint32_t absent = table_.columns[f].missing_code();
        Row known = m;
        if (!table_.columns[f].categorical)
            while (known > 0 && Table::code_of(e[known - 1]) == absent) --known;
        Split best;
        best.any_missing = known < m;
        if (known == 0 || (known == m && Table::code_of(e[0]) == Table::code_of(e[m - 1]))) return best;
        if constexpr (Statistics::kByRow) {
            scan_medians(context, f, e, known, scratch, best);
            return best;
        } else {
            double bar = -kInf;
            using Scan = typename Statistics::Scan;
            Scan right(stat_, context.total, scratch.buffer.data());  // missing values on the right
            if (known == m) {
                std::uint32_t code = Table::code_of(e[0]);
                for (Row k = 0; k + 1 < m; ++k) {
                    right.move(Table::row_of(e[k]));
                    const std::uint32_t next = Table::code_of(e[k + 1]);
                    if (next != code) {
                        consider(context, f, right, code, next, false, best, bar);
                        code = next;
                    }
                }
                return best;
            }
            Scan left(stat_, context.total, scratch.buffer.data() + 2 * width_);
            for (Row k = known; k < m; ++k) left.move(Table::row_of(e[k]));
            for (Row k = 0; k < known; ++k) {
                const Row i = Table::row_of(e[k]);
                right.move(i);
                left.move(i);
                const std::uint32_t code = Table::code_of(e[k]), next = Table::code_of(e[std::min<Row>(k + 1, m - 1)]);
                if (next == code) continue;
                consider(context, f, right, code, next, false, best, bar);
                if (k + 1 < known) consider(context, f, left, code, next, true, best, bar);
            }
            return best;
        }
    }

    struct Sides {  // what `admissible` asks of a split by medians
        double wl, wr, unit, l, r;
        double value;
        bool above(double bar, double& score) const {
            if (!(value > bar) || !(wl > 0) || !(wr > 0)) return false;
            score = value;
            return true;
        }
        double left_weight() const { return wl; }
        double right_weight() const { return wr; }
        double left_size() const { return wl * unit; }
        double right_size() const { return wr * unit; }
        double left_response() const { return l; }
        double right_response() const { return r; }
    };

    void scan_medians(const Context& context, int f, const Entry* e, Row known, Scratch& scratch, Split& best) requires(Statistics::kByRow) {
        const Row m = context.job.size();
        const bool middles = growth_.monotone != nullptr;
        // cost[k]: of the first (from the right: the last) known rows, at the k-th boundary; with missing ones if `with`.
        auto pass = [&](bool from_left, bool with, std::vector<double>& cost, std::vector<double>& median) {
            cost.assign(known + 1, 0.0);
            if (middles) median.assign(known + 1, 0.0);
            scratch.median.reset(context.sorted_targets);
            auto add = [&](Row k) { scratch.median.add(rank_[Table::row_of(e[k])], stat_.weight[Table::row_of(e[k])]); };
            if (with)
                for (Row k = known; k < m; ++k) add(k);
            for (Row step = 0; step <= known; ++step) {
                const Row at = from_left ? step : known - step;
                const bool boundary = at == 0 || at == known || Table::code_of(e[at - 1]) != Table::code_of(e[at]);
                if (boundary && scratch.median.weight() > 0) {
                    cost[at] = scratch.median.cost();
                    if (middles) median[at] = scratch.median.median();
                }
                if (step < known) add(from_left ? at : at - 1);
            }
        };
        double missing_weight = 0, known_weight = 0;
        for (Row k = 0; k < known; ++k) known_weight += stat_.weight[Table::row_of(e[k])];
        for (Row k = known; k < m; ++k) missing_weight += stat_.weight[Table::row_of(e[k])];
        const int variants = known < m ? 2 : 1;
        std::vector<double> costs[4], medians[4];
        for (int v = 0; v < variants; ++v) {
            pass(true, v == 1, costs[2 * v], medians[2 * v]);
            pass(false, v == 0, costs[2 * v + 1], medians[2 * v + 1]);
        }
        double bar = -kInf, wl = 0;
        for (Row at = 1; at <= known; ++at) {
            wl += stat_.weight[Table::row_of(e[at - 1])];
            if (at == known && known == m) break;
            const std::uint32_t code = Table::code_of(e[at - 1]), next = Table::code_of(e[std::min<Row>(at, m - 1)]);
            if (code == next) continue;
            for (int v = 0; v < variants; ++v) {
                if (v == 1 && at == known) break;
                const double left = wl + (v == 1 ? missing_weight : 0.0);
                Sides sides{left, known_weight + missing_weight - left, stat_.size_unit, 0, 0,
                            -(costs[2 * v][at] + costs[2 * v + 1][at])};
                if (middles) sides.l = medians[2 * v][at], sides.r = medians[2 * v + 1][at];
                consider(context, f, sides, code, next, v == 1, best, bar);
            }
        }
    }

    // Sums of each code, and which codes occur.
    template <class Add>
    void fill_histogram(Row m, std::uint32_t codes, const Code* code, const Row* rows, Cell* histogram,
                        std::array<std::uint64_t, 4>& seen, Add&& add) const {
        const auto width = static_cast<std::uint32_t>(stat_.width());
        if (m < 4 * kFewCodes) {
            for (Row k = 0; k < m; ++k) {
                const std::uint32_t c = code[rows[k]];
                add(histogram + c * width, k);
                seen[c >> 6] |= std::uint64_t{1} << (c & 63);
            }
            return;
        }
        // Marking codes one by one would be a chain of dependent steps: many rows are cheaper to look up afterwards.
        for (Row k = 0; k < m; ++k) add(histogram + code[rows[k]] * width, k);
        for (std::uint32_t c = 0; c <= codes; ++c) {
            bool any = false;
            for (std::uint32_t j = 0; j < width; ++j) any |= histogram[c * width + j] != Cell{0};
            if (any) seen[c >> 6] |= std::uint64_t{1} << (c & 63);
        }
    }

    Split search_histogram(const Context& context, int f, Scratch& scratch) requires(!Statistics::kByRow) {
        const Column& column = table_.columns[f];
        const Code* code = table_.column(f);
        const Row* rows = rows_.data() + context.job.begin;
        const Row m = context.job.size();
        Cell* histogram = scratch.histogram.data();
        std::array<std::uint64_t, 4> seen{};
        const std::uint32_t absent = column.missing_code();
        if (!loads_.empty()) {
            const auto* loads = loads_.data() + context.job.begin;
            fill_histogram(m, column.codes(), code, rows, histogram, seen, [&](Cell* cell, Row k) { stat_.add(cell, loads[k]); });
        } else {
            fill_histogram(m, column.codes(), code, rows, histogram, seen, [&](Cell* cell, Row k) { stat_.add(cell, rows[k]); });
        }
        Split best;
        best.any_missing = column.missing && ((seen[absent >> 6] >> (absent & 63)) & 1);
        double bar = -kInf;
        using Scan = typename Statistics::Scan;
        Scan right(stat_, context.total, scratch.buffer.data());
        Scan left(stat_, context.total, scratch.buffer.data() + 2 * width_);
        if (best.any_missing) left.move(histogram + absent * width_);
        std::uint32_t last = kFewCodes;
        for (int word = 0; word < 4; ++word) {
            for (std::uint64_t bits = seen[word]; bits; bits &= bits - 1) {
                const auto c = static_cast<std::uint32_t>(64 * word + std::countr_zero(bits));
                if (last < kFewCodes) {
                    consider(context, f, right, last, c, false, best, bar);
                    if (best.any_missing && c != absent) consider(context, f, left, last, c, true, best, bar);
                }
                Cell* cell = histogram + c * width_;
                right.move(cell);
                if (best.any_missing && c != absent) left.move(cell);
                std::fill_n(cell, width_, Cell{0});
                last = c;
            }
        }
        return best;
    }

    // Categories in the order of their mean response become codes 0, 1, …; the rest is as for numbers.
    Split search_categories(const Context& context, int f, Scratch& scratch) {
        const Column& column = table_.columns[f];
        const Job& job = context.job;
        const Code* code = table_.column(f);
        const Row m = job.size();
        auto& present = scratch.present;
        auto& place = scratch.place;
        present.clear();
        place.resize(column.codes() + 1);
        Cell* histogram = scratch.histogram.data();
        std::vector<bool> seen(column.codes() + 1, false);
        for (Row k = 0; k < m; ++k) {
            const Row i = rows_[job.begin + k];
            const std::uint32_t c = code[i];
            stat_.add(histogram + c * width_, i);
            if (!seen[c]) seen[c] = true, present.push_back(c);
        }
        std::sort(present.begin(), present.end());
        Split best;
        // Two classes need one order, more classes one each; numbers have one response.
        const int orders = std::is_same_v<Statistics, MedianStatistics> || !requires_classes() || width_ == 2 ? 1 : width_;
        auto& ranking = scratch.ranking;
        for (int o = 0; o < orders && present.size() > 1; ++o) {
            ranking.clear();
            for (std::uint32_t c : present)
                ranking.emplace_back(stat_.response(histogram + c * width_, orders == 1 ? width_ - 1 : o), c);
            std::sort(ranking.begin(), ranking.end());
            for (std::size_t r = 0; r < ranking.size(); ++r) place[ranking[r].second] = static_cast<std::uint32_t>(r);
            auto& entries = scratch.entries;
            if (entries.size() < m) entries.resize(m);
            for (Row k = 0; k < m; ++k) {
                const Row i = rows_[job.begin + k];
                entries[k] = Table::entry(place[code[i]], i);
            }
            sort_entries(scratch, m, static_cast<std::uint32_t>(present.size()));
            Split split = scan(context, f, scratch.entries.data(), scratch);
            if (!split.found()) continue;
            for (std::size_t r = 0; r < ranking.size(); ++r)
                (r <= split.last_left ? split.left_categories : split.right_categories).push_back(ranking[r].second);
            keep(best, split, context.tolerance);
        }
        for (std::uint32_t c : present) std::fill_n(histogram + c * width_, width_, Cell{0});
        return best;
    }
    static constexpr bool requires_classes() {
        return requires(const Statistics& s, const Cell* c) { s.pure(c); };
    }

    // ---- threads --------------------------------------------------------------------------------------------------------

    static int thread() {
#ifdef _OPENMP
        return omp_get_thread_num();
#else
        return 0;
#endif
    }

    template <class Work>
    void in_parallel(int count, int threads, Work&& work) {
        std::exception_ptr failure = nullptr;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
        for (int k = 0; k < count; ++k) {
            try {
                work(k, scratch_[thread()]);
            } catch (...) {
#pragma omp critical(certifit_tree_failure)
                if (!failure) failure = std::current_exception();
            }
        }
        if (failure) std::rethrow_exception(failure);
    }

    void poll(bool may_poll) {
        if (signals_ && may_poll) signals_->poll();
        if (stop_ && stop_->load(std::memory_order_relaxed)) throw Stopped();
    }

    const Table& table_;
    Statistics stat_;
    Growth growth_;
    const double *target_, *mass_;
    std::vector<Row> rows_;  // in the order of the nodes
    std::vector<typename Statistics::Load> loads_;  // of the same rows; empty if the rows are sorted once
    const std::atomic<bool>* stop_;
    SignalPoll* signals_;
    int width_;
    bool presorted_ = false;
    double root_weight_ = 0;
    std::vector<std::vector<Entry>> order_;
    std::vector<std::uint8_t> goes_left_;
    std::vector<Row> rank_;
    std::vector<Scratch> scratch_;
    Tree<Cell> tree_;
};

}  // namespace certifit::tree
