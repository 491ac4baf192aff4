// A k-d tree for few columns: halves by the median of the widest column, leaves of a few rows that are read with wide registers.
//
// The tree is balanced, so that its shape follows from the number of rows: node i has the children 2i + 1 and 2i + 2, a node of rows [a, b)
// is cut at a + (b − a)/2, and all leaves lie at the same depth. What is kept is the order of the rows, their coordinates leaf by leaf, and
// for each node the column it cuts and the gap that the cut leaves: the largest coordinate on the left, the smallest on the right.
//
// Bentley 1975; the distance to a cell from that to its parent: Arya and Mount 1993.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/team.hpp"
#include "neighbors/direct.hpp"
#include "neighbors/norm.hpp"
#include "neighbors/sinks.hpp"

namespace certifit::neighbors {

constexpr Index kLeaf = 24;     // most rows of a leaf
constexpr Index kSample = 256;  // rows that tell which column is the widest

struct Tree {
    Index n, d;
    int depth;                  // of the leaves
    const std::int64_t* order;  // rows, leaf by leaf
    const double* points;       // d × m coordinates of each leaf of m rows
    const std::int32_t* column;
    const double* left;
    const double* right;
};

inline int depth_of(Index n) {
    int depth = 0;
    while ((n >> depth) + 1 > kLeaf) ++depth;
    return depth;
}

inline Index nodes_of(int depth) { return (Index{1} << depth) - 1; }

// Which rows a node of a level holds.
inline std::pair<Index, Index> span(Index n, int level, Index place) {
    Index a = 0, b = n;
    for (int l = level - 1; l >= 0; --l) {
        const Index mid = a + (b - a) / 2;
        (place >> l) & 1 ? a = mid : b = mid;
    }
    return {a, b};
}

struct Plan {
    std::int64_t* order;
    double* points;
    std::int32_t* column;
    double* left;
    double* right;
};

inline Index widest(const Dense& rows, const std::int64_t* order, Index count) {
    const Index step = std::max<Index>(1, count / kSample);
    Index best = 0;
    double most = -1.0;
    for (Index j = 0; j < rows.d; ++j) {
        double low = std::numeric_limits<double>::infinity(), high = -low;
        for (Index i = 0; i < count; i += step) {
            const double x = rows.values[order[i] * rows.d + j];
            low = std::min(low, x), high = std::max(high, x);
        }
        if (high - low > most) most = high - low, best = j;
    }
    return best;
}

inline void cut(const Dense& rows, const Plan& plan, Index node, Index a, Index b, std::vector<Entry>& keyed) {
    const Index j = widest(rows, plan.order + a, b - a), half = (b - a) / 2;
    keyed.resize(static_cast<std::size_t>(b - a));
    for (Index i = a; i < b; ++i) keyed[static_cast<std::size_t>(i - a)] = {rows.values[plan.order[i] * rows.d + j], plan.order[i]};
    std::nth_element(keyed.begin(), keyed.begin() + half, keyed.end());
    double left = -std::numeric_limits<double>::infinity();
    for (Index i = 0; i < half; ++i) left = std::max(left, keyed[static_cast<std::size_t>(i)].first);
    for (Index i = a; i < b; ++i) plan.order[i] = keyed[static_cast<std::size_t>(i - a)].second;
    plan.column[node] = static_cast<std::int32_t>(j);
    plan.left[node] = left;
    plan.right[node] = keyed[static_cast<std::size_t>(half)].first;
}

inline void build(const Dense& rows, const Plan& plan, Team& team) {
    const int depth = depth_of(rows.n);
    for (Index i = 0; i < rows.n; ++i) plan.order[i] = i;
    std::vector<std::vector<Entry>> keyed(static_cast<std::size_t>(team.size()));
    for (int level = 0; level < depth; ++level)
        team.run(Index{1} << level, (rows.n >> level) > 512, [&](Index place, int worker) {
            const auto [a, b] = span(rows.n, level, place);
            cut(rows, plan, nodes_of(level) + place, a, b, keyed[static_cast<std::size_t>(worker)]);
        });
    team.run(Index{1} << depth, false, [&](Index place, int) {
        const auto [a, b] = span(rows.n, depth, place);
        double* leaf = plan.points + a * rows.d;
        for (Index i = a; i < b; ++i)
            for (Index j = 0; j < rows.d; ++j) leaf[j * (b - a) + i - a] = rows.values[plan.order[i] * rows.d + j];
    });
}

namespace detail {

template <Kind K>
[[gnu::always_inline]] inline void leaf(const double* points, const double* q, Index d, Index m, double* out) {
    for (Index i = 0; i < m; ++i) out[i] = 0.0;
    for (Index j = 0; j < d; ++j) {
        const double* x = points + j * m;
        for (Index i = 0; i < m; ++i) {
            const double delta = x[i] - q[j], size = delta < 0.0 ? -delta : delta;
            if constexpr (K == Kind::squared) out[i] += delta * delta;
            if constexpr (K == Kind::absolute) out[i] += size;
            if constexpr (K == Kind::maximum) out[i] = out[i] < size ? size : out[i];
        }
    }
}

CERTIFIT_CLONES [[maybe_unused]] static void leaf_squared(const double* points, const double* q, Index d, Index m, double* out) {
    leaf<Kind::squared>(points, q, d, m, out);
}
CERTIFIT_CLONES [[maybe_unused]] static void leaf_absolute(const double* points, const double* q, Index d, Index m, double* out) {
    leaf<Kind::absolute>(points, q, d, m, out);
}
CERTIFIT_CLONES [[maybe_unused]] static void leaf_maximum(const double* points, const double* q, Index d, Index m, double* out) {
    leaf<Kind::maximum>(points, q, d, m, out);
}

inline void leaf_distances(const Part<Kind::squared>&, const double* x, const double* q, Index d, Index m, double* out) { leaf_squared(x, q, d, m, out); }
inline void leaf_distances(const Part<Kind::absolute>&, const double* x, const double* q, Index d, Index m, double* out) { leaf_absolute(x, q, d, m, out); }
inline void leaf_distances(const Part<Kind::maximum>&, const double* x, const double* q, Index d, Index m, double* out) { leaf_maximum(x, q, d, m, out); }
inline void leaf_distances(const Part<Kind::power>& part, const double* x, const double* q, Index d, Index m, double* out) {
    for (Index i = 0; i < m; ++i) {
        out[i] = 0.0;
        for (Index j = 0; j < d; ++j) out[i] += part.of(x[j * m + i] - q[j]);
    }
}

// Cells farther than the sink's bound are passed over; rounding of the sum of parts must not pass over one too many.
constexpr double kSlack = 1.0 - 1e-12;

template <class Part, class Sink>
class Descent {
  public:
    Descent(const Tree& tree, const Part& part, const double* q, Sink& sink, std::vector<double>& offset)
        : tree_(tree), part_(part), q_(q), sink_(sink), offset_(offset) {
        std::fill(offset_.begin(), offset_.end(), 0.0);
        visit(0, 0, 0, tree.n, 0.0);
    }

  private:
    const Tree& tree_;
    const Part& part_;
    const double* q_;
    Sink& sink_;
    std::vector<double>& offset_;  // the part of each column in the distance to the cell

    void visit(Index node, int level, Index a, Index b, double reached) {
        if (level == tree_.depth) {
            double out[kLeaf];
            leaf_distances(part_, tree_.points + a * tree_.d, q_, tree_.d, b - a, out);
            const double bound = sink_.bound();
            for (Index i = 0; i < b - a; ++i)
                if (out[i] <= bound) sink_.offer(out[i], tree_.order[a + i]);
            return;
        }
        const Index mid = a + (b - a) / 2;
        const auto j = static_cast<std::size_t>(tree_.column[node]);
        const double from_left = q_[j] - tree_.left[node], to_right = tree_.right[node] - q_[j];
        const bool on_left = from_left < to_right;
        on_left ? visit(2 * node + 1, level + 1, a, mid, reached) : visit(2 * node + 2, level + 1, mid, b, reached);
        const double gap = on_left ? to_right : from_left, before = offset_[j];
        const double part = std::max(before, gap > 0.0 ? part_.of(gap) : 0.0);
        const double far = Part::join(0.0, 1.0) == Part::join(1.0, 1.0) ? std::max(reached, part) : reached - before + part;
        if (far * kSlack > sink_.bound()) return;
        offset_[j] = part;
        on_left ? visit(2 * node + 2, level + 1, mid, b, far) : visit(2 * node + 1, level + 1, a, mid, far);
        offset_[j] = before;
    }
};

}  // namespace detail

template <class SinkOf>
void scan(const Tree& tree, const Dense& queries, const Norm& norm, Index from, Index to, SinkOf&& sink_of) {
    with_part(norm, [&](const auto& part) {
        std::vector<double> offset(static_cast<std::size_t>(tree.d));
        for (Index q = from; q < to; ++q) {
            auto sink = sink_of(q);
            detail::Descent(tree, part, queries.values + q * tree.d, sink, offset);
            sink.finish();
        }
    });
}

}  // namespace certifit::neighbors
