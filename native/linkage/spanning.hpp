// Single linkage is the minimum spanning tree of the distances: memory is linear.
//
// Prim: the tree grows by the point nearest to it; every step computes one row of distances. O(n² d).
// Borůvka on a k-d tree: in each round every component finds its shortest edge to another one; boxes that are farther than what
// is known already, and boxes inside the own component, are passed over (March, Ram, Gray 2010). For few columns.
//
// Edges are compared by (length, smaller point, larger point), so that the tree does not depend on threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "core/simd.hpp"
#include "core/team.hpp"
#include "linkage/chain.hpp"
#include "linkage/merges.hpp"

namespace certifit::linkage {

// Distances from one point to those outside of the tree, which lie in `columns` without gaps.
class Outside {
  public:
    Outside(const double* X, Index n, Index d) : n_(n), d_(d), columns_(static_cast<std::size_t>(n * d)) {
        for (Index i = 0; i < n; ++i)
            for (Index j = 0; j < d; ++j) columns_[static_cast<std::size_t>(j * n + i)] = X[i * d + j];
        here_.resize(static_cast<std::size_t>(d));
    }
    void from(Index place) {
        for (Index j = 0; j < d_; ++j) here_[static_cast<std::size_t>(j)] = columns_[static_cast<std::size_t>(j * n_ + place)];
    }
    void measure(Index from, Index size, double* out) const { squares(columns_.data() + from, n_, here_.data(), d_, size, out); }
    void move(Index from, Index to) {
        for (Index j = 0; j < d_; ++j)
            columns_[static_cast<std::size_t>(j * n_ + to)] = columns_[static_cast<std::size_t>(j * n_ + from)];
    }
    Index cost() const { return d_; }
    static double height(double measured) { return std::sqrt(measured); }

  private:
    Index n_, d_;
    std::vector<double> columns_, here_;
    CERTIFIT_CLONES static void squares(const double* columns, Index stride, const double* here, Index d, Index n, double* out) {
        for (Index k = 0; k < n; ++k) out[k] = 0.0;
        for (Index j = 0; j < d; ++j)
            for (Index k = 0; k < n; ++k) {
                const double apart = columns[j * stride + k] - here[j];
                out[k] += apart * apart;
            }
    }
};

// The same from a square matrix of dissimilarities.
class OutsideGiven {
  public:
    OutsideGiven(const double* D, Index n) : D_(D), n_(n), point_(static_cast<std::size_t>(n)) {
        std::iota(point_.begin(), point_.end(), Index{0});
    }
    void from(Index place) { row_ = D_ + point_[static_cast<std::size_t>(place)] * n_; }
    void measure(Index from, Index size, double* out) const {
        for (Index k = 0; k < size; ++k) out[k] = row_[point_[static_cast<std::size_t>(from + k)]];
    }
    void move(Index from, Index to) { point_[static_cast<std::size_t>(to)] = point_[static_cast<std::size_t>(from)]; }
    Index cost() const { return 4; }
    static double height(double measured) { return measured; }

  private:
    const double* D_;
    Index n_;
    const double* row_ = nullptr;
    std::vector<Index> point_;
};

template <class Points>
std::vector<Merge> prim(Points& points, Index n, Team& team, SignalPoll* signals) {
    constexpr Index kBlock = 2048;
    std::vector<double> nearest(static_cast<std::size_t>(n), kFar);
    std::vector<std::int64_t> point(static_cast<std::size_t>(n)), via(static_cast<std::size_t>(n), 0);
    std::iota(point.begin(), point.end(), std::int64_t{0});
    std::vector<Nearest> best(static_cast<std::size_t>((n + kBlock - 1) / kBlock));
    std::vector<Merge> merges;
    merges.reserve(static_cast<std::size_t>(n));
    Index outside = n, current = 0;
    while (outside > 1) {
        if (signals && outside % 64 == 0) signals->poll();
        points.from(current);
        const std::int64_t source = point[static_cast<std::size_t>(current)];
        --outside;  // the last one takes the place of the one that joined
        points.move(outside, current);
        for (auto* list : {&point, &via}) (*list)[static_cast<std::size_t>(current)] = (*list)[static_cast<std::size_t>(outside)];
        nearest[static_cast<std::size_t>(current)] = nearest[static_cast<std::size_t>(outside)];
        const Index blocks = (outside + kBlock - 1) / kBlock;
        team.run(blocks, outside * points.cost() > 200'000, [&](Index block, int) {
            double measured[kBlock];
            const Index from = block * kBlock, size = std::min(kBlock, outside - from);
            points.measure(from, size, measured);
            Nearest least;
            for (Index k = 0; k < size; ++k) {
                const auto at = static_cast<std::size_t>(from + k);
                if (measured[k] < nearest[at]) nearest[at] = measured[k], via[at] = source;
                if (nearest[at] < least.distance) least = {nearest[at], from + k};
            }
            best[static_cast<std::size_t>(block)] = least;
        });
        Nearest least;
        for (Index block = 0; block < blocks; ++block)
            if (least.slot < 0 || best[static_cast<std::size_t>(block)].distance < least.distance)
                least = best[static_cast<std::size_t>(block)];
        current = least.slot;
        const auto at = static_cast<std::size_t>(current);
        merges.push_back({via[at], point[at], Points::height(nearest[at])});
    }
    return merges;
}

struct Edge {
    double square = kFar;
    std::int64_t low = std::numeric_limits<std::int64_t>::max(), high = low;
    bool operator<(const Edge& other) const {
        if (square != other.square) return square < other.square;
        return low != other.low ? low < other.low : high < other.high;
    }
};

class Boruvka {
  public:
    Boruvka(const double* X, Index n, Index d)
        : n_(n), d_(d), order_(static_cast<std::size_t>(n)), rows_(static_cast<std::size_t>(n * d)) {
        std::iota(order_.begin(), order_.end(), std::int64_t{0});
        build(X, 0, n);
        for (Index i = 0; i < n; ++i) std::copy_n(X + order_[at(i)] * d, d, rows_.data() + i * d);
    }

    std::vector<Merge> tree(Team& team) {
        Union sets(n_);
        std::vector<Merge> merges;
        component_.resize(at(n_));
        for (std::size_t node = 0; node < nodes_.size(); ++node)  // a box without extent holds equal points, maybe very many
            if (nodes_[node].right < 0 && flat(node))
                for (Index i = nodes_[node].from + 1; i < nodes_[node].to; ++i) {
                    sets.join(i - 1, i);
                    merges.push_back({order_[at(i - 1)], order_[at(i)], 0.0});
                }
        for (Index i = 0; i < n_; ++i) component_[at(i)] = sets.find(i);
        bound_.assign(at(n_), 0.0);
        const std::unique_ptr<std::atomic<double>[]> known(new std::atomic<double>[at(n_)]);
        std::vector<Edge> found(at(n_)), best(at(n_));
        while (static_cast<Index>(merges.size()) + 1 < n_) {
            mark();
            for (Index i = 0; i < n_; ++i) known[at(i)].store(kFar, std::memory_order_relaxed);
            team.blocks(n_, 256, true, [&](Index from, Index to, int) {
                for (Index i = from; i < to; ++i) found[at(i)] = search(i, known[at(component_[at(i)])]);
            });
            std::fill(best.begin(), best.end(), Edge());
            for (Index i = 0; i < n_; ++i) best[at(component_[at(i)])] = std::min(best[at(component_[at(i)])], found[at(i)]);
            for (Index c = 0; c < n_; ++c)
                if (best[at(c)].square < kFar && sets.join(best[at(c)].low, best[at(c)].high))
                    merges.push_back({order_[at(best[at(c)].low)], order_[at(best[at(c)].high)], std::sqrt(best[at(c)].square)});
            for (Index i = 0; i < n_; ++i) component_[at(i)] = sets.find(i);
        }
        return merges;
    }

  private:
    static constexpr Index kLeaf = 12;
    static constexpr double kSurely = 1.0 - 1e-12;  // boxes and points are measured with rounding
    struct Node {
        Index from, to, right;  // the left child follows its parent; a leaf has no right one
        std::int64_t component;  // −1: several
    };
    Index n_, d_;
    std::vector<std::int64_t> order_, component_;
    std::vector<double> rows_, box_, bound_;
    std::vector<Node> nodes_;

    static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

    Index build(const double* X, Index from, Index to) {
        const auto node = static_cast<Index>(nodes_.size());
        nodes_.push_back({from, to, -1, -1});
        Index widest = 0;
        double width = -1.0;
        for (Index j = 0; j < d_; ++j) {
            double low = kFar, high = -kFar;
            for (Index i = from; i < to; ++i) {
                const double x = X[order_[at(i)] * d_ + j];
                low = std::min(low, x), high = std::max(high, x);
            }
            box_.push_back(low), box_.push_back(high);
            if (high - low > width) width = high - low, widest = j;
        }
        if (to - from > kLeaf && width > 0.0) {
            const Index middle = from + (to - from) / 2;
            std::nth_element(order_.begin() + from, order_.begin() + middle, order_.begin() + to,
                             [&](std::int64_t a, std::int64_t b) {
                                 const double xa = X[a * d_ + widest], xb = X[b * d_ + widest];
                                 return xa != xb ? xa < xb : a < b;
                             });
            build(X, from, middle);
            const Index right = build(X, middle, to);
            nodes_[at(node)].right = right;
        }
        return node;
    }

    bool flat(std::size_t node) const {
        const double* box = box_.data() + 2 * static_cast<std::size_t>(d_) * node;
        for (Index j = 0; j < d_; ++j)
            if (box[2 * j] != box[2 * j + 1]) return false;
        return true;
    }

    // Which boxes lie inside one component.
    void mark() {
        for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
            if (node->right >= 0) {
                const std::int64_t left = (node - 1)->component;
                node->component = left == nodes_[at(node->right)].component ? left : -1;
                continue;
            }
            node->component = component_[at(node->from)];
            for (Index i = node->from + 1; i < node->to; ++i)
                if (component_[at(i)] != node->component) node->component = -1;
        }
    }

    double apart(const double* x, Index node) const {
        const double* box = box_.data() + 2 * d_ * node;
        double sum = 0.0;
        for (Index j = 0; j < d_; ++j) {
            const double out = std::max(0.0, std::max(box[2 * j] - x[j], x[j] - box[2 * j + 1]));
            sum += out * out;
        }
        return sum * kSurely;
    }

    // The shortest edge from point i to another component, if it is no longer than what the component knows already. `known` only
    // shrinks, and what is longer is never wanted: the answer of the component does not depend on who asks first.
    Edge search(Index i, std::atomic<double>& known) {
        Edge best;
        if (bound_[at(i)] > known.load(std::memory_order_relaxed)) return best;
        const double* x = rows_.data() + i * d_;
        double most = known.load(std::memory_order_relaxed);
        visit(0, apart(x, 0), i, x, best, most);
        // Nothing in other components is nearer than this; components only grow, so it stays true.
        bound_[at(i)] = std::max(bound_[at(i)], std::min(best.square, most));
        double was = known.load(std::memory_order_relaxed);
        while (best.square < was && !known.compare_exchange_weak(was, best.square, std::memory_order_relaxed)) {
        }
        return best;
    }

    void visit(Index node, double away, Index i, const double* x, Edge& best, double& most) const {
        const Node& here = nodes_[at(node)];
        if (away > most || here.component == component_[at(i)]) return;
        if (here.right < 0) {
            for (Index k = here.from; k < here.to; ++k) {
                if (component_[at(k)] == component_[at(i)]) continue;
                const double* z = rows_.data() + k * d_;
                double sum = 0.0;
                for (Index j = 0; j < d_; ++j) sum += (x[j] - z[j]) * (x[j] - z[j]);
                if (sum > most) continue;
                const Edge edge{sum, std::min<std::int64_t>(i, k), std::max<std::int64_t>(i, k)};
                if (edge < best) best = edge, most = sum;
            }
            return;
        }
        const double left = apart(x, node + 1), right = apart(x, here.right);
        if (left <= right) {
            visit(node + 1, left, i, x, best, most);
            visit(here.right, right, i, x, best, most);
        } else {
            visit(here.right, right, i, x, best, most);
            visit(node + 1, left, i, x, best, most);
        }
    }
};

}  // namespace certifit::linkage
