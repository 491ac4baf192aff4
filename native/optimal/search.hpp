// The best tree of any depth, by branch and bound over the root's thresholds.
//
// An open interval of thresholds of a column has a bound: what lies surely left of it and what lies surely right of it cost at
// least so much, each as the best tree with one level less. The interval with the least bound is looked at next, at its middle:
// both sides are bounded (two levels: `Pairs::bound`) and, if they may be better than the best tree known, solved. What is learnt
// bounds the two intervals that remain, and those thresholds of them that differ from the middle by too few rows to matter are
// gone.
//
// At the root, rounds of as many intervals as ever are looked at by all threads, each with what was known when the round began;
// so the tree does not depend on the number of threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <queue>
#include <utility>
#include <vector>

#include "core/team.hpp"
#include "optimal/cost.hpp"
#include "optimal/node.hpp"
#include "optimal/pairs.hpp"

namespace certifit::optimal {

inline constexpr Index kRound = 8;
inline constexpr int kSketch = 3;  // times that an interval is halved before trees are looked for in it

struct Interval {
    double bound;
    Index f, from, to;  // places of thresholds of column f, both included
    double left, right;
    int halved;
    bool solve;  // a single threshold whose sides are bounded, not solved

    bool operator<(const Interval& other) const {  // the least bound comes first out of a heap
        if (bound != other.bound) return bound > other.bound;
        return f != other.f ? f > other.f : from > other.from;
    }
};

// What came of looking at an interval.
struct Look {
    Found found{kInfinity, kInfinity, Tree()};
    std::vector<Interval> rest;
    std::int64_t trees = 0;  // sets of rows for which trees were looked for
};

template <class Kind>
class Searcher {
  public:
    Searcher(const Kind& kind, const Terms& terms, int depth)
        : kind_(kind), terms_(terms), pairs_{{kind, terms}, {kind, terms}}, ask_(kind, terms.price) {
        if (depth > 2) halves_ = std::make_unique<Halves<Kind>>(), below_ = std::make_unique<Searcher>(kind, terms, depth - 1);
    }

    std::int64_t trees = 0;

    // The best tree if it costs less than `most`.
    Found solve(const Node<Kind>& node, int depth, double most, const auto& tick) {
        tick();
        ++trees;
        if (depth == 2) return pairs_[0].bound(node), pairs_[0].solve(node, most);
        if (depth < 2) return shallow(node, depth, most);
        Found best{most, kInfinity, Tree()};
        improve(best, sketch(node, depth));
        if (best.value >= most) best.value = most;
        double floor = kInfinity;
        std::priority_queue<Interval> open = start(node);
        while (!open.empty() && open.top().bound < best.value - terms_.slack && !terms_.over()) {
            const Interval now = open.top();
            open.pop();
            Look look = examine(node, depth, now, best.value, tick);
            floor = std::min(floor, look.found.lower);
            improve(best, look.found);
            for (const Interval& rest : look.rest) open.push(rest);
        }
        if (!open.empty()) floor = std::min(floor, open.top().bound);
        best.lower = std::min(floor, best.value);
        if (best.value >= most) best.value = kInfinity;
        return best;
    }

    static void improve(Found& best, const Found& other) {
        if (other.value < best.value) best.value = other.value, best.tree = other.tree;
    }

    static std::priority_queue<Interval> start_with(const Node<Kind>& node, double price) {
        std::priority_queue<Interval> open;
        for (Index f = 0; f < node.columns; ++f)
            if (node.size() > 1) open.push({2.0 * price, f, 1, node.size() - 1, price, price, 0, false});
        return open;
    }
    std::priority_queue<Interval> start(const Node<Kind>& node) const { return start_with(node, terms_.price); }

    // A good tree: greedy questions down to the last two levels, which are the best.
    Found sketch(const Node<Kind>& node, int depth) {
        if (depth == 2) return pairs_[0].bound(node), pairs_[0].solve(node, kInfinity);
        if (depth < 2) return shallow(node, depth, kInfinity);
        Found best = shallow(node, 0, kInfinity);
        const auto [f, p] = greedy(node);
        if (p < 0) return best;
        halves_->of(node, f, p);
        const Found left = below_->sketch(halves_->left, depth - 1), right = below_->sketch(halves_->right, depth - 1);
        if (left.value + right.value < best.value)
            best.value = left.value + right.value, best.tree = Tree::asking(f, node.column(f)[p - 1].code, left.tree, right.tree);
        return best;
    }

    // Halves an interval, or solves a threshold; `most` is the cost of the best tree known.
    Look examine(const Node<Kind>& node, int depth, const Interval& now, double most, const auto& tick) {
        Look look;
        const Index p = now.solve ? now.from : Pairs<Kind>::middle(node, now.f, now.from, now.to);
        if (p < 0) return look;
        tick();
        halves_->of(node, now.f, p);
        const Node<Kind>&left = halves_->left, &right = halves_->right;
        double l = now.left, r = now.right;
        if (depth == 3) l = std::max(l, pairs_[0].bound(left)), r = std::max(r, pairs_[1].bound(right));
        const bool promising = l + r < most - terms_.slack;
        if (promising && !now.solve && now.halved < kSketch) {
            look.rest.push_back({l + r, now.f, p, p, l, r, now.halved, true});
        } else if (promising) {
            // The larger side first: it decides more.
            const bool larger = left.size() >= right.size();
            Found one = side(larger, depth - 1, most - (larger ? r : l), tick);
            (larger ? l : r) = std::max(larger ? l : r, one.lower);
            if (l + r < most - terms_.slack) {
                Found two = side(!larger, depth - 1, most - (larger ? l : r), tick);
                (larger ? r : l) = std::max(larger ? r : l, two.lower);
                look.found.value = one.value + two.value;
                look.found.tree = Tree::asking(now.f, node.column(now.f)[p - 1].code, larger ? one.tree : two.tree,
                                               larger ? two.tree : one.tree);
            }
            look.found.lower = l + r;
            look.trees += 2;
        } else {
            look.found.lower = l + r;
        }
        if (now.solve) return look;
        const auto [before, after] =
            Pairs<Kind>::beside(node, now.f, p, now.from, now.to, l + r - std::min(most, look.found.value));
        if (now.from <= before) look.rest.push_back({now.left + r, now.f, now.from, before, now.left, r, now.halved + 1, false});
        if (after <= now.to) look.rest.push_back({l + now.right, now.f, after, now.to, l, now.right, now.halved + 1, false});
        return look;
    }

  private:
    const Kind& kind_;
    const Terms& terms_;
    Pairs<Kind> pairs_[2];
    Questioner<Kind> ask_;
    std::unique_ptr<Halves<Kind>> halves_;
    std::unique_ptr<Searcher> below_;

    Found side(bool left, int depth, double most, const auto& tick) {
        const Node<Kind>& node = left ? halves_->left : halves_->right;
        if (depth == 2) return pairs_[left ? 0 : 1].solve(node, most);
        return below_->solve(node, depth, most, tick);
    }

    Found shallow(const Node<Kind>& node, int depth, double most) {
        ask_.divide(node, 0, node.size());
        if (depth == 1)
            for (Index g = 0; g < node.columns; ++g) ask_.ask(node, g);
        const auto& whole = ask_.side[0];
        return {std::min(whole.cost, most), whole.cost < most ? whole.cost : kInfinity, whole.tree};
    }

    // The question after which both sides are purest.
    std::pair<Index, Index> greedy(const Node<Kind>& node) const {
        using V = typename Kind::Value;
        std::vector<V> all(static_cast<std::size_t>(kind_.planes()), V{0}), cell(all), rest(all);
        for (Index i = 0; i < node.size(); ++i) kind_.add(node.rows, i, all.data(), 1);
        double most = -kInfinity;
        std::pair<Index, Index> where{0, -1};
        for (Index f = 0; f < node.columns; ++f) {
            std::fill(cell.begin(), cell.end(), V{0});
            for (Index i = 0; i + 1 < node.size(); ++i) {
                kind_.add(node.rows, node.column(f)[i].row, cell.data(), 1);
                if (!node.cuts(f, i + 1)) continue;
                for (std::size_t k = 0; k < all.size(); ++k) rest[k] = all[k] - cell[k];
                const double purity = kind_.purity(cell.data()) + kind_.purity(rest.data());
                if (purity > most) most = purity, where = {f, i + 1};
            }
        }
        return where;
    }
};

struct Best {
    Found found;
    std::int64_t trees = 0;
};

// The best tree of all rows, by all threads. After each round, `told(looked at, open, value, bound)`: how much was looked at and
// how many intervals are open, the cost of the best tree so far, and what every tree costs at least.
template <class Kind, class Told>
Best best_tree(const Kind& kind, const Node<Kind>& root, int depth, const Terms& terms, Team& team, Told&& told) {
    std::vector<std::unique_ptr<Searcher<Kind>>> workers(static_cast<std::size_t>(team.size()));
    const auto worker = [&](int number) -> Searcher<Kind>& {
        auto& made = workers[static_cast<std::size_t>(number)];
        if (!made) made = std::make_unique<Searcher<Kind>>(kind, terms, depth);
        return *made;
    };
    Best best;
    if (depth < 3) {
        best.found = worker(0).solve(root, depth, kInfinity, [] {});
        best.trees = 1;
        return best;
    }
    best.found = worker(0).sketch(root, depth);
    double floor = kInfinity;
    auto open = Searcher<Kind>::start_with(root, terms.price);
    const auto promising = [&] { return !open.empty() && open.top().bound < best.found.value - terms.slack; };
    std::vector<Interval> round;
    std::vector<Look> looks;
    while (promising() && !terms.over()) {
        round.clear();
        while (promising() && static_cast<Index>(round.size()) < kRound) round.push_back(open.top()), open.pop();
        looks.assign(round.size(), Look());
        team.run(static_cast<Index>(round.size()), true, [&](Index task, int number) {
            looks[task] = worker(number).examine(root, depth, round[task], best.found.value, [&] { team.check(number); });
        });
        for (Look& look : looks) {
            floor = std::min(floor, look.found.lower);
            Searcher<Kind>::improve(best.found, look.found);
            best.trees += 1 + look.trees;
            for (const Interval& rest : look.rest) open.push(rest);
        }
        const double lower = open.empty() ? floor : std::min(floor, open.top().bound);
        told(best.trees, static_cast<std::int64_t>(open.size()), best.found.value, std::min(lower, best.found.value));
    }
    if (!open.empty()) floor = std::min(floor, open.top().bound);
    best.found.lower = std::min(floor, best.found.value);
    return best;
}

}  // namespace certifit::optimal
