// The best tree of two levels.
//
//     min over (f, t)    best question about {x_f ≤ t}  +  best question about {x_f > t}
//
// First in the coarse: every column is cut into cells of about as many rows, and the rows of each pair of cells of each pair of
// columns are counted once, n·d²/2 additions. Sums over these counts bound the cost of all trees whose root lies within a cell,
// since the rows of cells that contain a threshold may be left out (Demirović et al. 2022 count pairs of binary features; the
// cells make bounds of them for numbers, as in Mazumder, Meng and Wang 2022). Then exactly, within the cells that may hold
// something better: a threshold is evaluated by one pass over each column that may matter, and those beside it are bounded by it
// (Briţa, van der Linden and Demirović 2025): further right the left side costs no less, the right side less by what the rows
// between can cost at most.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "optimal/cost.hpp"
#include "optimal/node.hpp"

namespace certifit::optimal {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What a search is asked for.
struct Terms {
    double price = 0.0;  // of a leaf
    double slack = 0.0;  // what is better by less is not looked for
    std::chrono::steady_clock::time_point end = std::chrono::steady_clock::time_point::max();
    std::atomic<bool>* late = nullptr;  // set when the time is over

    bool over() const {
        if (late->load(std::memory_order_relaxed)) return true;
        if (std::chrono::steady_clock::now() < end) return false;
        late->store(true, std::memory_order_relaxed);
        return true;
    }
};

// The best questions about two sets of rows that one threshold makes.
template <class Kind>
class Questioner {
    using V = typename Kind::Value;

  public:
    struct Side {
        double cost = 0.0;
        Tree tree;
    };
    Side side[2];

    explicit Questioner(const Kind& kind, double price)
        : kind_(kind), price_(price), planes_(kind.planes()), total_(2 * static_cast<std::size_t>(planes_)),
          cell_(total_.size()) {}

    // The first p rows in the order of column f are the left side; each side is a leaf to begin with.
    void divide(const Node<Kind>& node, Index f, Index p) {
        const Index n = node.size();
        of_.resize(static_cast<std::size_t>(n));
        const Entry* const order = node.column(f);
        for (Index i = 0; i < n; ++i) of_[order[i].row] = i >= p;
        std::fill(total_.begin(), total_.end(), V{0});
        for (Index i = 0; i < n; ++i) kind_.add(node.rows, i, total_.data() + of_[i] * planes_, 1);
        for (int s = 0; s < 2; ++s) side[s] = {static_cast<double>(kind_.cost(total_.data() + s * planes_)) + price_, Tree()};
    }

    // Takes a question of column g where it is better.
    void ask(const Node<Kind>& node, Index g) {
        const Index n = node.size();
        const Entry* const order = node.column(g);
        std::fill(cell_.begin(), cell_.end(), V{0});
        double best[2] = {side[0].cost - 2.0 * price_, side[1].cost - 2.0 * price_};
        std::uint32_t cut[2];
        bool found[2] = {false, false};
        const auto look = [&](int s, std::uint32_t code) {
            const V* const cell = cell_.data() + s * planes_;
            const double cost = static_cast<double>(kind_.cost(cell) + kind_.rest(total_.data() + s * planes_, cell));
            if (cost < best[s]) best[s] = cost, cut[s] = code, found[s] = true;
        };
        bool alone = true;  // whether no other row before this one has its code
        for (Index i = 0; i + 1 < n; ++i) {
            const Entry e = order[i];
            const int s = of_[e.row];
            kind_.add(node.rows, e.row, cell_.data() + s * planes_, 1);
            const bool ends = order[i + 1].code != e.code;
            if (ends) {
                look(s, e.code);
                if (!alone) look(1 - s, e.code);
            }
            alone = ends;
        }
        for (int s = 0; s < 2; ++s) {
            if (!found[s]) continue;
            side[s] = {best[s] + 2.0 * price_, Tree::asking(g, cut[s], Tree(), Tree())};
        }
    }

  private:
    const Kind& kind_;
    const double price_;
    const int planes_;
    std::vector<V> total_, cell_;
    std::vector<std::uint8_t> of_;
};

template <class Kind>
class Pairs {
    using V = typename Kind::Value;
    static constexpr Index kCells = 128;

  public:
    Pairs(const Kind& kind, const Terms& terms) : kind_(kind), terms_(terms), exactly_(kind, terms.price) {}

    // No tree of two levels costs less. What it learns of the node stays for `solve`.
    double bound(const Node<Kind>& node) {
        cut_into_cells(node);
        const Index d = node.columns;
        left_.assign(static_cast<std::size_t>(d * d * width_), std::numeric_limits<V>::max());
        right_ = left_;
        for (Index f = 0; f < d; ++f) {
            prepare(node, f);
            for (Index g = f; g < d; ++g) pair(node, f, g);
        }
        return candidates(node);
    }

    // The best tree, if it costs less than `most`; after `bound`.
    Found solve(const Node<Kind>& node, double most) {
        Found found{std::min(most, bound_), kInfinity, Tree()};
        double floor = kInfinity;  // of what was left aside
        best_ = most;
        if (leaf_ < best_) best_ = found.value = leaf_;
        for (const Candidate& candidate : candidates_) {
            if (candidate.bound >= best_ - terms_.slack || terms_.over()) {
                floor = std::min(floor, candidate.bound);
                break;
            }
            floor = std::min(floor, within(node, candidate, found));
        }
        found.lower = std::min(floor, best_);
        return found;
    }

  private:
    struct Candidate {
        double bound;
        Index f, cell;
    };
    struct Interval {
        Index from, to;  // places of thresholds, both included
        double left, right;
    };
    const Kind& kind_;
    const Terms& terms_;
    Questioner<Kind> exactly_;
    Index width_ = 0, plane_ = 0;  // cells of a row of sums; of all sums of a plane
    std::vector<Index> cells_, start_;
    std::vector<std::uint8_t> exact_, bin_;
    std::vector<std::uint32_t> base_;
    std::vector<V> sums_, turned_, spare_, left_, right_;  // left_, right_: by root column, child column, cell
    std::vector<double> left_least_, right_least_;         // by root column and cell
    std::vector<V> leaves_left_, leaves_right_;            // by root column and cell: without a question
    std::vector<Candidate> candidates_;
    std::vector<Interval> open_;
    std::vector<Index> asked_;
    double leaf_ = 0.0, bound_ = 0.0, best_ = 0.0;

    Index at(Index f, Index g, Index c) const { return ((f * static_cast<Index>(cells_.size())) + g) * width_ + c; }
    Questions questions_of(Index f) const { return {cells_[f], exact_[f] != 0}; }
    Index start(Index f, Index c) const { return start_[f * (kCells + 1) + c]; }

    void cut_into_cells(const Node<Kind>& node) {
        const Index n = node.size(), d = node.columns;
        // Counting takes n·d²/2, bounding cells²·d²: as much time for both.
        const Index wanted = std::clamp<Index>(static_cast<Index>(1.5 * std::sqrt(static_cast<double>(n))), 4, kCells);
        cells_.assign(static_cast<std::size_t>(d), 0), exact_.assign(static_cast<std::size_t>(d), 0);
        start_.assign(static_cast<std::size_t>(d * (kCells + 1)), n);
        bin_.resize(static_cast<std::size_t>(n * d));
        width_ = 1;
        for (Index f = 0; f < d; ++f) {
            const Entry* const order = node.column(f);
            Index codes = 1;
            for (Index i = 1; i < n && codes <= wanted; ++i) codes += order[i].code != order[i - 1].code;
            exact_[f] = codes <= wanted;
            Index c = 0;
            std::uint8_t* const bin = bin_.data() + f * n;
            start_[f * (kCells + 1)] = 0;
            for (Index i = 0; i < n; ++i) {
                const bool fresh = i > 0 && order[i].code != order[i - 1].code;
                if (fresh && (exact_[f] || i * wanted >= (c + 1) * n)) start_[f * (kCells + 1) + ++c] = i;
                bin[order[i].row] = static_cast<std::uint8_t>(c);
            }
            cells_[f] = c + 1;
            width_ = std::max(width_, cells_[f]);
        }
        width_ = (width_ + 15) / 16 * 16;  // whole vectors
        plane_ = width_ * (width_ + 1);
        const auto entries = static_cast<std::size_t>(plane_ * kind_.planes());
        sums_.resize(entries), turned_.assign(entries, V{0}), spare_.resize(static_cast<std::size_t>(2 * width_));
        left_least_.assign(static_cast<std::size_t>(d * width_), kInfinity), right_least_ = left_least_;
        leaves_left_.assign(static_cast<std::size_t>(d * width_), V{0}), leaves_right_ = leaves_left_;
    }

    // Where the rows go whatever the child column is.
    void prepare(const Node<Kind>& node, Index f) {
        const Index n = node.size();
        base_.resize(static_cast<std::size_t>(n));
        const std::uint8_t* const bin = bin_.data() + f * n;
        for (Index i = 0; i < n; ++i) base_[i] = static_cast<std::uint32_t>(width_ + bin[i]);
    }

    void pair(const Node<Kind>& node, Index f, Index g) {
        const Index n = node.size(), root = cells_[f], child = cells_[g];
        for (int k = 0; k < kind_.planes(); ++k) std::fill_n(sums_.data() + k * plane_, plane_, V{0});
        const std::uint8_t* const bin = bin_.data() + g * n;
        for (Index i = 0; i < n; ++i) kind_.add(node.rows, i, sums_.data() + base_[i] + bin[i] * width_, plane_);
        for (int k = 0; k < kind_.planes(); ++k) {
            V *const sums = sums_.data() + k * plane_, *const turned = turned_.data() + k * plane_;
            accumulate(sums, child);
            turn<V>(sums + width_, turned + width_, child, root, width_);
            accumulate(turned, root);
            turn<V>(turned + width_, sums + width_, root, child, width_);
        }
        questions(kind_, {sums_.data(), plane_, width_, kind_.planes()}, root, questions_of(g), left_.data() + at(f, g, 0),
                  right_.data() + at(f, g, 0), spare_.data());
        if (f == g) return leaves(f);
        questions(kind_, {turned_.data(), plane_, width_, kind_.planes()}, child, questions_of(f), left_.data() + at(g, f, 0),
                  right_.data() + at(g, f, 0), spare_.data());
    }
    // Adds to each row the one before it; row 0 is zero.
    void accumulate(V* sums, Index rows) const {
        for (Index e = 2; e <= rows; ++e)
            for (Index c = 0; c < width_; ++c) sums[e * width_ + c] += sums[(e - 1) * width_ + c];
    }

    // Both sides of each cell of f as leaves, from its counts with itself.
    void leaves(Index f) {
        const Index m = cells_[f];
        std::vector<V> cell(static_cast<std::size_t>(kind_.planes())), all(cell);
        for (int k = 0; k < kind_.planes(); ++k) all[k] = sums_[k * plane_ + m * width_ + m - 1];
        for (Index c = 0; c < m; ++c) {
            for (int k = 0; k < kind_.planes(); ++k) cell[k] = sums_[k * plane_ + m * width_ + c];
            leaves_left_[f * width_ + c] = kind_.cost(cell.data());
            leaves_right_[f * width_ + c] = kind_.rest(all.data(), cell.data());
        }
        leaf_ = static_cast<double>(kind_.cost(all.data())) + terms_.price;
    }

    double candidates(const Node<Kind>& node) {
        const Index d = node.columns;
        const double price = terms_.price;
        candidates_.clear();
        bound_ = leaf_;
        for (Index f = 0; f < d; ++f) {
            double* const left = left_least_.data() + f * width_;
            double* const right = right_least_.data() + f * width_;
            V *const least = spare_.data(), *const least_after = least + width_;
            std::fill_n(least, 2 * width_, std::numeric_limits<V>::max());
            for (Index g = 0; g < d; ++g) {
                const V *const l = left_.data() + at(f, g, 0), *const r = right_.data() + at(f, g, 0);
                for (Index c = 0; c < width_; ++c)
                    least[c] = std::min(least[c], l[c]), least_after[c] = std::min(least_after[c], r[c]);
            }
            for (Index c = 0; c < cells_[f]; ++c) {
                const V l = least[c], r = least_after[c];
                left[c] =
                    std::min(static_cast<double>(leaves_left_[f * width_ + c]) + price, static_cast<double>(l) + 2.0 * price);
                right[c] =
                    std::min(static_cast<double>(leaves_right_[f * width_ + c]) + price, static_cast<double>(r) + 2.0 * price);
            }
            for (Index c = 0; c < questions_of(f).count(); ++c) {
                const double bound = (exact_[f] ? left[c] : left_before(f, c)) + right[c];
                bound_ = std::min(bound_, bound);
                candidates_.push_back({bound, f, c});
            }
        }
        std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
            return a.bound != b.bound ? a.bound < b.bound : a.f != b.f ? a.f < b.f : a.cell < b.cell;
        });
        return bound_;
    }
    double left_before(Index f, Index c) const { return c ? left_least_[f * width_ + c - 1] : terms_.price; }

    // Looks at the thresholds in and right after a cell; returns a bound of what it left aside.
    double within(const Node<Kind>& node, const Candidate& candidate, Found& found) {
        const auto [ignored, f, c] = candidate;
        const double* const right = right_least_.data() + f * width_;
        const Index end = start(f, c + 1);
        double floor = kInfinity;
        // The columns in the order of what they promise, with their bounds on both sides of the cell.
        const auto promise = [&](Index g) {
            return static_cast<double>(right_[at(f, g, c)]) +
                   (c || exact_[f] ? static_cast<double>(left_[at(f, g, exact_[f] ? c : c - 1)]) : 0.0);
        };
        asked_.resize(static_cast<std::size_t>(node.columns));
        for (Index g = 0; g < node.columns; ++g) asked_[g] = g;
        std::sort(asked_.begin(), asked_.end(), [&](Index g, Index h) {
            const double a = promise(g), b = promise(h);
            return a != b ? a < b : g < h;
        });
        open_.clear();
        open_.push_back(exact_[f] ? Interval{end, end, left_least_[f * width_ + c], right[c]}
                                  : Interval{start(f, c) + 1, end, left_before(f, c), right[c]});
        while (!open_.empty()) {
            const Interval now = open_.back();
            open_.pop_back();
            if (now.from > now.to) continue;
            if (now.left + now.right >= best_ - terms_.slack) {
                floor = std::min(floor, now.left + now.right);
                continue;
            }
            const Index p = middle(node, f, now.from, now.to);
            if (p < 0) continue;
            exactly_.divide(node, f, p);
            for (const Index g : asked_) {
                const double l = c || exact_[f] ? static_cast<double>(left_[at(f, g, exact_[f] ? c : c - 1)]) : 0.0;
                if (l + 2.0 * terms_.price < exactly_.side[0].cost ||
                    static_cast<double>(right_[at(f, g, c)]) + 2.0 * terms_.price < exactly_.side[1].cost)
                    exactly_.ask(node, g);
            }
            const double l = exactly_.side[0].cost, r = exactly_.side[1].cost;
            if (l + r < best_) {
                best_ = found.value = l + r;
                found.tree = Tree::asking(f, node.column(f)[p - 1].code, exactly_.side[0].tree, exactly_.side[1].tree);
            }
            const auto [before, after] = beside(node, f, p, now.from, now.to, l + r - best_);
            open_.push_back({now.from, before, now.left, r});
            open_.push_back({after, now.to, l, now.right});
        }
        return floor;
    }

  public:
    // The place of a threshold nearest to the middle, −1 if there is none.
    static Index middle(const Node<Kind>& node, Index f, Index from, Index to) {
        const Index m = from + (to - from) / 2;
        for (Index step = 0; m - step >= from || m + step <= to; ++step) {
            if (m - step >= from && node.cuts(f, m - step)) return m - step;
            if (m + step <= to && node.cuts(f, m + step)) return m + step;
        }
        return -1;
    }

    // The nearest places to the left and to the right of p that may be better than p by more than `excess`.
    static std::pair<Index, Index> beside(const Node<Kind>& node, Index f, Index p, Index from, Index to, double excess) {
        const Entry* const order = node.column(f);
        Index before = p - 1, after = p + 1;
        for (double sum = 0.0; before >= from; --before) {
            sum += node.rows.reach[order[before].row];
            if (sum > excess) break;
        }
        for (double sum = 0.0; after <= to; ++after) {
            sum += node.rows.reach[order[after - 1].row];
            if (sum > excess) break;
        }
        return {before, after};
    }
};

}  // namespace certifit::optimal
