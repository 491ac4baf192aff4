// A k-d tree for few columns: halves by the median of the widest column, leaves of a few rows that are read with wide registers.
//
// The tree is balanced, so that its shape follows from the number of rows: node i has the children 2i + 1 and 2i + 2, a node of
// rows [a, b) is cut at a + (b − a)/2, and all leaves lie at the same depth. What is kept is the order of the rows, their
// coordinates leaf by leaf, and for each node the column it cuts and the gap that the cut leaves: no coordinate on the left is
// larger than `left`, none on the right smaller than `right`.
//
// Bentley 1975; the distance to a cell from that to its parent: Arya and Mount 1993.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "core/team.hpp"
#include "neighbors/direct.hpp"
#include "neighbors/norm.hpp"
#include "neighbors/sinks.hpp"

namespace certifit::neighbors {

constexpr Index kLeaf = 32;       // most rows of a leaf
constexpr Index kSample = 64;     // rows that tell which column is the widest
constexpr Index kBranch = 4096;   // rows that are copied to one place, where a core keeps them
constexpr Index kPivots = 33;     // keys of which one is taken as pivot
constexpr Index kShort = 64;      // keys that are sorted by counting
constexpr int kPasses = 40;       // without success so far: std::nth_element, which is slower, and never very slow

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

// The column in which a sample of the rows reaches the farthest. Four rows at a time, since each minimum waits for the last one.
inline Index widest(const Dense& rows, const std::int64_t* order, Index count) {
    constexpr Index together = 4;
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const Index step = std::max<Index>(1, count / kSample), size = count / step;
    Index best = 0;
    double most = -1.0;
    for (Index j = 0; j < rows.d; ++j) {
        double low[together] = {infinity, infinity, infinity, infinity},
               high[together] = {-infinity, -infinity, -infinity, -infinity};
        const auto see = [&](Index i, Index lane) {
            const double x = rows.values[order[i * step] * rows.d + j];
            low[lane] = std::min(low[lane], x), high[lane] = std::max(high[lane], x);
        };
        Index i = 0;
        for (; i + together <= size; i += together)
            for (Index lane = 0; lane < together; ++lane) see(i + lane, lane);
        for (; i < size; ++i) see(i, 0);
        const double reach = *std::max_element(high, high + together) - *std::min_element(low, low + together);
        if (reach > most) most = reach, best = j;
    }
    return best;
}

// A number and the place of its row as one integer, in the order of (number, place) but for the last bits of the number, which
// give room to the place. `floor` and `ceiling` are the least and the largest number with the remaining bits: no number lies
// beyond them.
class Keys {
  public:
    using Key = std::uint64_t;

    explicit Keys(Index count) : mask_((Key{1} << std::bit_width(static_cast<Key>(count))) - 1) {}

    Key of(double x, Index place) const {
        const auto bits = std::bit_cast<Key>(x);
        return ((bits ^ (static_cast<Key>(-static_cast<std::int64_t>(bits >> 63)) | kSign)) & ~mask_) | static_cast<Key>(place);
    }
    Index place(Key key) const { return static_cast<Index>(key & mask_); }
    double floor(Key key) const { return number(key & ~mask_); }
    double ceiling(Key key) const { return number(key | mask_); }

  private:
    static constexpr Key kSign = Key{1} << 63;
    Key mask_;

    static double number(Key key) { return std::bit_cast<double>(key & kSign ? key ^ kSign : ~key); }
};

namespace detail {

// Sorted by counting how many are smaller, for a few keys at a time with wide registers.
[[gnu::always_inline]] inline void sort_few(const Keys::Key* keys, Index count, Keys::Key* sorted) {
    for (Index i = 0; i < count; ++i) {
        const Keys::Key key = keys[i];
        Keys::Key smaller = 0;
        for (Index k = 0; k < count; ++k) smaller += keys[k] < key;
        sorted[smaller] = key;
    }
}

CERTIFIT_CLONES [[maybe_unused]] static void sort_short(const Keys::Key* keys, Index count, Keys::Key* sorted) {
    sort_few(keys, count, sorted);
}

}  // namespace detail

// Puts the key that is number `place` of all in order where it belongs, smaller ones before it and larger ones behind. No two are
// equal.
//
// As std::nth_element, but passes over the keys have no branches that depend on them, and so none that a processor guesses wrong.
// From the second pass on the pivot lies a little beyond the place, so that most of the rest falls away (Floyd and Rivest 1975).
inline void place_nth(Keys::Key* keys, Index count, Index place) {
    Index a = 0, b = count;
    Keys::Key sample[kPivots], sorted[kShort];
    for (int pass = 0; pass < kPasses && b - a > kShort; ++pass) {
        const Index size = b - a > 1024 ? kPivots : 9, step = (b - a) / size;
        for (Index i = 0; i < size; ++i) sample[i] = keys[a + i * step];
        detail::sort_few(sample, size, sorted);
        const Index aim = (place - a) * size / (b - a);
        const Keys::Key pivot = sorted[pass ? std::clamp<Index>(2 * aim < size ? aim + 1 : aim - 1, 0, size - 1) : aim];
        Index less = a;
        for (Index i = a; i < b; ++i) {
            const Keys::Key key = keys[i];
            keys[i] = keys[less];
            keys[less] = key;
            less += key < pivot;
        }
        place < less ? b = less : a = less;
    }
    if (b - a > kShort) return std::nth_element(keys + a, keys + place, keys + b);
    detail::sort_short(keys + a, b - a, sorted);
    std::copy(sorted, sorted + (b - a), keys + a);
}

// One node: `count` of the rows in two halves.
inline void cut(const Dense& rows, std::int64_t* order, Index count, const Plan& plan, Index node, std::vector<Keys::Key>& room) {
    const Keys keys(rows.n);
    const Index j = widest(rows, order, count), half = count / 2;
    room.resize(static_cast<std::size_t>(count));
    Keys::Key* const all = room.data();
    for (Index i = 0; i < count; ++i) all[i] = keys.of(rows.values[order[i] * rows.d + j], order[i]);
    place_nth(all, count, half);
    for (Index i = 0; i < count; ++i) order[i] = keys.place(all[i]);
    plan.column[node] = static_cast<std::int32_t>(j);
    plan.left[node] = keys.ceiling(*std::max_element(all, all + half));
    plan.right[node] = keys.floor(all[half]);
}

// The nodes below one that is small enough for its rows to be copied to one place.
class Branch {
  public:
    std::vector<Keys::Key> room;

    void build(const Dense& rows, const Plan& plan, int level, Index place, int depth) {
        const auto [a, b] = span(rows.n, level, place);
        values_.resize(static_cast<std::size_t>((b - a) * rows.d));
        number_.assign(plan.order + a, plan.order + b);
        for (Index i = 0; i < b - a; ++i) {
            const double* row = rows.values + plan.order[a + i] * rows.d;
            std::copy(row, row + rows.d, values_.data() + i * rows.d);
            plan.order[a + i] = i;
        }
        grow({values_.data(), b - a, rows.d}, plan, level, place, a, b, depth);
    }

  private:
    std::vector<double> values_;
    std::vector<std::int64_t> number_;

    void grow(const Dense& rows, const Plan& plan, int level, Index place, Index a, Index b, int depth) {
        std::int64_t* const order = plan.order + a;
        if (level < depth) {
            cut(rows, order, b - a, plan, nodes_of(level) + place, room);
            const Index mid = a + (b - a) / 2;
            grow(rows, plan, level + 1, 2 * place, a, mid, depth);
            grow(rows, plan, level + 1, 2 * place + 1, mid, b, depth);
            return;
        }
        double* const leaf = plan.points + a * rows.d;
        for (Index i = 0; i < b - a; ++i) {
            for (Index j = 0; j < rows.d; ++j) leaf[j * (b - a) + i] = rows.values[order[i] * rows.d + j];
            order[i] = number_[static_cast<std::size_t>(order[i])];
        }
    }
};

inline void build(const Dense& rows, const Plan& plan, Team& team) {
    const int depth = depth_of(rows.n);
    for (Index i = 0; i < rows.n; ++i) plan.order[i] = i;
    std::vector<Branch> branches(static_cast<std::size_t>(team.size()));
    int top = 0;
    for (; top < depth && (rows.n >> top) > kBranch; ++top)
        team.run(Index{1} << top, true, [&](Index place, int worker) {
            const auto [a, b] = span(rows.n, top, place);
            cut(rows, plan.order + a, b - a, plan, nodes_of(top) + place, branches[static_cast<std::size_t>(worker)].room);
        });
    team.run(Index{1} << top, rows.n > kBranch, [&](Index place, int worker) {
        branches[static_cast<std::size_t>(worker)].build(rows, plan, top, place, depth);
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

inline void leaf_distances(const Part<Kind::squared>&, const double* x, const double* q, Index d, Index m, double* out) {
    leaf_squared(x, q, d, m, out);
}
inline void leaf_distances(const Part<Kind::absolute>&, const double* x, const double* q, Index d, Index m, double* out) {
    leaf_absolute(x, q, d, m, out);
}
inline void leaf_distances(const Part<Kind::maximum>&, const double* x, const double* q, Index d, Index m, double* out) {
    leaf_maximum(x, q, d, m, out);
}
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
