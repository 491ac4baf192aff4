// Greedy growth of one tree (CART).
//
// Every node looks for the split of largest worth (statistics.hpp) over its features and thresholds (search.hpp); near ties
// go to the lowest feature (or, if only some are tried, to the one drawn first), then to the lowest threshold.
// The features tried at a node are drawn from a hash of the path to it, so the result does not depend on the order of growth.
#pragma once

#include <cstdint>
#include <numeric>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "core/team.hpp"
#include "tree/grow/nodes.hpp"
#include "tree/grow/search.hpp"

namespace certifit::tree {

// Who grows a tree: the team for loops inside of it, which has one member when another team grows several trees at once, and
// the worker of that other team who grows this one.
struct Crew {
    Team& team;
    Team& outer;
    int place = 0;

    void check(int worker) const { outer.check(place + worker); }
};

template <class Code, class Statistics>
class Grower : private FeatureSearch<Code, Statistics> {
    using Search = FeatureSearch<Code, Statistics>;
    using typename Search::Context, typename Search::Scratch;
    using Search::growth_, Search::keep, Search::kFewCodes, Search::kLoads, Search::loads_, Search::order_, Search::rank_;
    using Search::requires_classes, Search::root_weight_, Search::rows_, Search::search, Search::stat_, Search::table_, Search::width_;

  public:
    using typename Search::Cell, typename Search::Table;

    // `target` are the real targets of a regression, one after the other; null for classes.
    Grower(const Table& table, const Statistics& statistics, const Growth& growth, const double* target, std::vector<Row> rows,
           std::vector<std::vector<Place>> order, const Crew& crew)
        : Search(table, statistics, growth, std::move(rows), std::move(order)),
          target_(target),
          outputs_(statistics.outputs()),
          crew_(crew) {
        presorted_ = std::any_of(table_.columns.begin(), table_.columns.end(), [](const Column& column) { return column.sorted; });
        // Where histograms do the work, what a row adds lies beside its number: one gather less for each feature.
        if constexpr (kLoads) {
            if (!presorted_) {
                loads_.reserve(rows_.size());
                for (Row i : rows_) loads_.push_back(stat_.load(i));
            }
        }
        goes_left_.resize(table_.n);
        if constexpr (Statistics::kByRow) rank_.resize(static_cast<std::size_t>(table_.n) * outputs_);
        scratch_.resize(static_cast<std::size_t>(crew_.team.size()));
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
        tree_.values.resize(outputs_);
        for (Row i : rows_) stat_.add(tree_.cells.data(), i);
        Job root{0, 0, static_cast<Row>(rows_.size()), 0, -kInf, kInf, mixed(growth_.seed)};
        root_weight_ = stat_.total(tree_.cells.data());
        const bool open = finish(tree_, root, scratch_[0]);
        if (open && growth_.max_leaves > 0)
            best_first(root);
        else if (open)
            depth_first(root);
        return tree_.in_preorder(table_.columns, width_, outputs_);
    }

  private:
    static constexpr std::size_t kAlone = 20000;  // entries of a node that one thread reads faster than a team

    // ---- order of growth ------------------------------------------------------------------------------------------------

    void depth_first(const Job& root) {
        std::vector<Job> stack{root}, pending;
        // Large nodes use all threads at once; the subtrees below them are grown one by a thread.
        const Row small = crew_.team.size() > 1 ? static_cast<Row>(rows_.size() / (4 * crew_.team.size())) : 0;
        while (!stack.empty()) {
            const Job job = stack.back();
            stack.pop_back();
            if (job.size() <= small) {
                pending.push_back(job);
                continue;
            }
            crew_.check(0);
            expand(tree_, job, scratch_[0], true, stack);
        }
        std::vector<Tree<Cell>> grown(pending.size());
        crew_.team.run(static_cast<std::ptrdiff_t>(pending.size()), true,
                       [&](std::ptrdiff_t k, int worker) { grown[k] = subtree(pending[k], worker); });
        for (std::size_t k = 0; k < pending.size(); ++k) tree_.graft(pending[k].node, grown[k], width_, outputs_);
    }

    Tree<Cell> subtree(Job job, int worker) {
        Tree<Cell> tree;
        const std::size_t from = static_cast<std::size_t>(job.node) * width_;
        tree.nodes.push_back(tree_.nodes[job.node]);
        tree.cells.assign(tree_.cells.begin() + from, tree_.cells.begin() + from + width_);
        const auto value = tree_.values.begin() + static_cast<std::size_t>(job.node) * outputs_;
        tree.values.assign(value, value + outputs_);
        job.node = 0;
        std::vector<Job> stack{job};
        while (!stack.empty()) {
            const Job next = stack.back();
            stack.pop_back();
            crew_.check(worker);
            expand(tree, next, scratch_[worker], false, stack);
        }
        return tree;
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
            Split split = find(tree_, job, scratch_[0], true);
            if (split.found()) {
                const double worth = split.score - own(tree_, job.node);
                queue.push({worth, turn++, job, std::move(split)});
            }
        };
        push(root);
        std::vector<Job> children;
        for (std::int64_t leaves = 1; leaves < growth_.max_leaves && !queue.empty(); ++leaves) {
            crew_.check(0);
            const Waiting best = queue.top();
            queue.pop();
            children.clear();
            apply(tree_, best.job, best.split, scratch_[0], true, children);
            for (auto child = children.rbegin(); child != children.rend(); ++child) push(*child);
        }
    }

    void expand(Tree<Cell>& tree, const Job& job, Scratch& scratch, bool together, std::vector<Job>& stack) {
        const Split split = find(tree, job, scratch, together);
        if (split.found()) apply(tree, job, split, scratch, together, stack);
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
            pure = finish_regression(node, tree.values.data() + static_cast<std::size_t>(job.node) * outputs_, job, scratch);
        }
        return !pure && job.depth < growth_.max_depth && job.size() > 1 &&
               (growth_.min_split <= 2 || stat_.size(cell) >= growth_.min_split * (1 - 1e-12));
    }

    // The mean over the targets of their losses, and a value for each; pure if no target varies.
    bool finish_regression(Node& node, double* value, const Job& job, Scratch& scratch) {
        const std::span<const Row> rows(rows_.data() + job.begin, job.size());
        bool pure = true;
        double total = 0;
        for (int k = 0; k < outputs_; ++k) {
            const double* y = target_ + static_cast<std::size_t>(k) * table_.n;
            double least = kInf, most = -kInf;
            for (Row i : rows) least = std::min(least, y[i]), most = std::max(most, y[i]);
            value[k] = least;
            if (least == most) continue;
            pure = false;
            if constexpr (Statistics::kByRow)
                total += outputs_ * growth_.worth_unit * stat_.scale[k] * median_loss(rows, k, scratch), value[k] = real_median(rows, y, scratch);
            else
                total += mean_loss(rows, y, least, node.weight, value[k]);
        }
        node.loss = total / outputs_;
        return pure;
    }

    double mean_loss(std::span<const Row> rows, const double* y, double least, double weight, double& mean) const {
        double excess = 0, loss = 0;
        for (Row i : rows) excess += stat_.mass(i) * (y[i] - least);
        mean = least + excess / weight;
        if (Statistics::kCriterion == Criterion::poisson) {
            for (Row i : rows) loss += y[i] > 0 ? stat_.mass(i) * y[i] * std::log(y[i] / mean) : 0.0;
        } else {
            for (Row i : rows) loss += stat_.mass(i) * (y[i] - mean) * (y[i] - mean);
        }
        return std::max(0.0, loss);
    }

    // In fixed point.
    double median_loss(std::span<const Row> rows, int k, Scratch& scratch) const
        requires(Statistics::kByRow)
    {
        auto& y = scratch.sums;
        y.clear();
        for (Row i : rows) y.push_back(stat_.at(k, i));
        std::sort(y.begin(), y.end());
        y.erase(std::unique(y.begin(), y.end()), y.end());
        scratch.median.reset(y);
        for (Row i : rows) scratch.median.add(std::lower_bound(y.begin(), y.end(), stat_.at(k, i)) - y.begin(), stat_.weight[i]);
        return scratch.median.cost();
    }

    // The weighted median of a target as given, not in fixed point.
    double real_median(std::span<const Row> rows, const double* y, Scratch& scratch) const {
        auto& order = scratch.rows;
        order.assign(rows.begin(), rows.end());
        std::sort(order.begin(), order.end(), [&](Row a, Row b) { return y[a] < y[b]; });
        double total = 0, held = 0;
        for (Row i : order) total += stat_.mass(i);
        for (std::size_t k = 0; k < order.size(); ++k) {
            held += stat_.mass(order[k]);
            if (2 * held > total || k + 1 == order.size()) return y[order[k]];
            if (2 * held == total) return 0.5 * y[order[k]] + 0.5 * y[order[k + 1]];
        }
        return 0.0;
    }

    // `together`: the caller is the thread that grows the tree, and its team may help.
    Split find(const Tree<Cell>& tree, const Job& job, Scratch& scratch, bool together) {
        const Cell* total = tree.cells.data() + static_cast<std::size_t>(job.node) * width_;
        Context context{job, total, 0, {}};
        context.tolerance = tolerance(tree, job, total);
        if constexpr (Statistics::kByRow) rank_targets(job, context);
        Split best;
        const int wanted = std::min(growth_.max_features, table_.d);
        if (wanted >= table_.d) {
            if (together && static_cast<std::size_t>(job.size()) * table_.d > kAlone) {
                std::vector<Split> found(table_.d);
                crew_.team.run(table_.d, true, [&](std::ptrdiff_t f, int worker) {
                    found[f] = search(context, static_cast<int>(f), scratch_[worker]);
                });
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
            constexpr bool squared = Statistics::kCriterion == Criterion::squared;
            return rounding + 2 * error * (squared ? std::sqrt(outputs_ * loss / W) : outputs_);
        }
    }

    void rank_targets(const Job& job, Context& context) {
        context.sorted_targets.resize(outputs_);
        for (int t = 0; t < outputs_; ++t) {
            auto& y = context.sorted_targets[t];
            for (Row k = job.begin; k < job.end; ++k) y.push_back(stat_.at(t, rows_[k]));
            std::sort(y.begin(), y.end());
            y.erase(std::unique(y.begin(), y.end()), y.end());
            Row* rank = rank_.data() + static_cast<std::size_t>(t) * table_.n;
            for (Row k = job.begin; k < job.end; ++k)
                rank[rows_[k]] = static_cast<Row>(std::lower_bound(y.begin(), y.end(), stat_.at(t, rows_[k])) - y.begin());
        }
    }

    // Two children; those that may be split further go on the stack, the left one on top.
    void apply(Tree<Cell>& tree, const Job& job, const Split& split, Scratch& scratch, bool together, std::vector<Job>& stack) {
        const Column& column = table_.columns[split.feature];
        const auto left = static_cast<std::int32_t>(tree.nodes.size());
        tree.nodes.emplace_back();
        tree.nodes.emplace_back();
        tree.cells.resize(tree.cells.size() + 2 * static_cast<std::size_t>(width_), Cell{0});
        tree.values.resize(tree.values.size() + 2 * static_cast<std::size_t>(outputs_));
        Cell* left_cell = tree.cells.data() + static_cast<std::size_t>(left) * width_;
        Cell* right_cell = left_cell + width_;
        const Cell* own_cell = tree.cells.data() + static_cast<std::size_t>(job.node) * width_;

        Node& node = tree.nodes[job.node];
        node.feature = split.feature;
        node.left = left;
        const bool larger_left = split.left_weight > split.right_weight;  // of equal ones the right one counts as the larger
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
        } else if (column.sorted) {
            const Place* places = order_[split.feature].data() + job.begin;
            auto value = [&](Row k) { return table_.values.at(row_at(places[k]), split.feature); };
            const Row first_right = split.last_left + 1;
            node.threshold = first_right < split.known ? binning::between(value(split.last_left), value(first_right)) : kInf;
            for (Row k = 0; k < first_right; ++k) goes[row_at(places[k])] = 1;
            for (Row k = first_right; k < split.known; ++k) goes[row_at(places[k])] = 0;
            for (Row k = split.known; k < m; ++k) goes[row_at(places[k])] = split.missing_left;
        } else {
            if (!std::isnan(split.threshold))
                node.threshold = split.threshold;
            else
                node.threshold =
                    split.first_right < column.codes() ? binning::between(column.greatest()[split.last_left], column.low[split.first_right]) : kInf;
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
        if (kLoads && !loads_.empty()) {
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
            if (together && static_cast<std::size_t>(m) * table_.d > kAlone)
                crew_.team.run(table_.d, true, [&](std::ptrdiff_t f, int worker) { divide(job, static_cast<int>(f), scratch_[worker]); });
            else
                for (int f = 0; f < table_.d; ++f) divide(job, f, scratch);
        }
    }

    void divide(const Job& job, int f, Scratch& scratch) {
        if (order_[f].empty()) return;
        Place* places = order_[f].data() + job.begin;
        const Row m = job.size();
        auto& spare = scratch.rows;
        if (spare.size() < m + 1) spare.resize(m + 1);
        const std::uint8_t* goes = goes_left_.data();
        Place* aside = spare.data();
        Row lefts = 0, rights = 0;
        Place left_greater = 0, right_greater = 0;  // whether the value rose since the last row of this side
        for (Row k = 0; k < m; ++k) {
            const Row i = row_at(places[k]);
            left_greater |= places[k] & kGreater;
            right_greater |= places[k] & kGreater;
            const Row l = goes[i];
            places[lefts] = i | left_greater;
            aside[rights] = i | right_greater;
            lefts += l;
            rights += 1 - l;
            left_greater &= l - 1;
            right_greater &= Place{0} - l;
        }
        std::copy_n(aside, rights, places + lefts);
    }

    const double* target_;
    const int outputs_;  // values of a node
    const Crew crew_;
    bool presorted_ = false;
    std::vector<std::uint8_t> goes_left_;
    std::vector<Scratch> scratch_;
    Tree<Cell> tree_;
};

}  // namespace certifit::tree
