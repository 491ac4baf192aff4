// Scores on a chain or a tree of labels, and where their parameters lie.
//
//   score(y) = Σ_t U_t(y_t) + Σ_t A_t(y_parent(t), y_t) + Σ_roots start(y_t) + Σ_leaves end(y_t)
//   U_t(k)    = Σ_f x_tf · w[f, k]                  unary features: x is a sparse row of position t
//   A_t(i, j) = A(i, j) + Σ_f z_tf · v[f, (i, j)]   Markov features; those conditioned on the input have weights v
//
// On a chain parent(t) = t − 1. The parameters are one vector: (w, v, A, start, end). A feature need not have a weight for
// every label: a Layout lists the labels (or pairs of labels) it has weights for.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "chain/crew.hpp"
#include "core/aligned.hpp"
#include "core/exponential.hpp"
#include "core/vector.hpp"

namespace certifit::chain {

using vec::detail::Lanes;
using vec::detail::load;
[[gnu::always_inline]] inline void store(double* x, const Lanes& v) { *reinterpret_cast<Lanes*>(x) = v; }

constexpr double kNever = -std::numeric_limits<double>::infinity();

inline Index padded(Index k) { return (k + 7) / 8 * 8; }

// Features × codes: feature f has the weights first[f] … first[f + 1] − 1, for the codes listed there; without lists, all of
// them.
struct Layout {
    Index features = 0, codes = 0;
    const std::int64_t* first = nullptr;
    const std::int32_t* code = nullptr;
    Index size() const { return first ? first[features] : features * codes; }
};

// Rows of sparse features: those of position t are row[t] … row[t + 1] − 1. Without values, all are 1.
struct Rows {
    const std::int64_t* row = nullptr;
    const std::int32_t* feature = nullptr;
    const double* value = nullptr;
    explicit operator bool() const { return row != nullptr; }
};

struct Sequences {
    Index n = 0;
    const std::int64_t* offset = nullptr;  // n + 1
    Rows unary, edge;
    const double* given = nullptr;         // the unary scores themselves, positions × labels, instead of rows
    const std::int32_t* parent = nullptr;  // within the sequence, −1 for a root; none: a chain
    const std::int32_t* order = nullptr;   // positions of the sequence, parents before children
    Index length(Index i) const { return static_cast<Index>(offset[i + 1] - offset[i]); }
    Index longest() const {
        Index most = 0;
        for (Index i = 0; i < n; ++i) most = std::max(most, length(i));
        return most;
    }
};

struct Shape {
    Index labels = 0, width = 0;
    Layout unary, edge;
    const std::uint8_t* allowed = nullptr;  // (labels + 1)²: row and column `labels` are the boundary
    Index size() const { return unary.size() + edge.size() + labels * labels + 2 * labels; }
    bool may(Index i, Index j) const { return allowed[i * (labels + 1) + j] != 0; }
    bool forbids() const {
        const Index all = (labels + 1) * (labels + 1) - 1;  // from boundary to boundary nothing leads
        return std::any_of(allowed, allowed + all, [](std::uint8_t a) { return !a; });
    }
};

// Views into a vector of parameters (or of slopes).
template <class T>
struct Parts {
    T *unary, *edge, *transition, *start, *end;
    Parts(const Shape& shape, T* w)
        : unary(w), edge(unary + shape.unary.size()), transition(edge + shape.edge.size()),
          start(transition + shape.labels * shape.labels), end(start + shape.labels) {}
};

// The scores of transitions as rows of `width` numbers, and their exponentials relative to the highest.
struct Transitions {
    Index K = 0, width = 0;
    AlignedVector<double> score, weight, turned, start, end;
    double highest = 0.0, range = 0.0;
    bool forbids = false;

    Transitions(const Shape& shape, const double* w, double scale = 1.0)
        : K(shape.labels), width(shape.width), score(K * width, kNever), weight(K * width), turned(K * width),
          start(width, kNever), end(width, kNever), forbids(shape.forbids()) {
        read(shape, w, scale);
    }

    void read(const Shape& shape, const double* w, double scale) {
        const Parts<const double> part(shape, w);
        for (Index i = 0; i < K; ++i) {
            for (Index j = 0; j < K; ++j) score[i * width + j] = shape.may(i, j) ? scale * part.transition[i * K + j] : kNever;
            start[i] = shape.may(K, i) ? scale * part.start[i] : kNever;
            end[i] = shape.may(i, K) ? scale * part.end[i] : kNever;
        }
    }

    void exponentiate();
};

namespace detail {

[[gnu::always_inline]] inline double largest(const Lanes& v) {
    const auto more = [](double a, double b) { return a > b ? a : b; };
    return more(more(more(v[0], v[4]), more(v[2], v[6])), more(more(v[1], v[5]), more(v[3], v[7])));
}

}  // namespace detail

// For each group of rows the highest finite score and the distance to the lowest one; a score that is not a number makes the
// distance one.
CERTIFIT_CLONES [[maybe_unused]] static void spans_of(const double* x, Index groups, Index size, double* highest, double* range) {
    for (Index g = 0; g < groups; ++g, x += size) {
        Lanes high = Lanes{} + kNever, deep = high, odd = {}, v;  // deep: the lowest, turned round
        const Lanes never = high;
        for (Index j = 0; j < size; j += 8) {
            load(x + j, v);
            high = v > high ? v : high;
            odd = v != v ? v : odd;
            v = v == never ? never : -v;
            deep = v > deep ? v : deep;
        }
        const double top = detail::largest(high), nothing = vec::detail::total(odd);
        highest[g] = top == kNever ? 0.0 : top;
        range[g] = (top == kNever ? 0.0 : top + detail::largest(deep)) + nothing;
    }
}

// out = e^(x − shift), zero from −708 on; the lanes from K on are zero.
CERTIFIT_CLONES [[maybe_unused]] static void exponentials(const double* __restrict x, Index rows, Index K, Index width,
                                                          const double* __restrict shift, Index step, double* __restrict out) {
    for (Index r = 0; r < rows; ++r) {
        const double s = shift[r * step];
        for (Index k = 0; k < width; ++k) {
            const double a = x[r * width + k] - s;
            const double e = exponential(a < -708.0 ? -708.0 : (a > 708.0 ? 708.0 : a));
            out[r * width + k] = a >= -708.0 ? e : 0.0;
        }
        for (Index k = K; k < width; ++k) out[r * width + k] = 0.0;
    }
}

inline void Transitions::exponentiate() {
    spans_of(score.data(), 1, K * width, &highest, &range);
    exponentials(score.data(), K, K, width, &highest, 0, weight.data());
    for (Index i = 0; i < K; ++i)
        for (Index j = 0; j < K; ++j) turned[j * width + i] = weight[i * width + j];
}

// What one thread needs for one sequence; grows to the longest it has seen.
struct Work {
    Index K, width;
    AlignedVector<double> unary, exps, alpha, beta, ahead, total, shift, range, pairs, own, own_shift, message, best;
    std::vector<std::int32_t> own_at, path, back;
    std::vector<std::uint8_t> has_child;
    Index owned = 0;
    double log_z = 0.0, own_range = 0.0;

    explicit Work(const Shape& shape) : K(shape.labels), width(shape.width), pairs(K * width) {}

    double* u(Index t) { return unary.data() + t * width; }
    // Transition scores into position t, if they are its own.
    double* own_scores(Index t) { return own_at[t] < 0 ? nullptr : own.data() + own_at[t] * K * width; }
};

// u += value · (weights of feature f)
[[gnu::always_inline]] inline void gather(const Layout& at, const double* w, Index f, double value, double* u) {
    if (at.first) {
        for (std::int64_t p = at.first[f]; p < at.first[f + 1]; ++p) u[at.code[p]] += value * w[p];
    } else {
        const double* row = w + f * at.codes;
        for (Index k = 0; k < at.codes; ++k) u[k] += value * row[k];
    }
}

CERTIFIT_CLONES [[maybe_unused]] static void gather_rows(const Rows& rows, const Layout& at, const double* w, double scale,
                                                         std::int64_t from, Index T, Index width, double* u) {
    for (Index t = 0; t < T; ++t, u += width)
        for (std::int64_t e = rows.row[from + t]; e < rows.row[from + t + 1]; ++e)
            gather(at, w, rows.feature[e], rows.value ? scale * rows.value[e] : scale, u);
}

// Unary weights as rows of `width` numbers, where that pays: when the rows are read more often than it takes to lay them out.
struct Spread {
    AlignedVector<double> rows;

    Spread(const Sequences& data, const Shape& shape, const double* w) {
        const Layout& at = shape.unary;
        if (data.given || data.unary.row[data.offset[data.n]] < at.features * shape.width) return;
        rows.assign(at.features * shape.width, 0.0);
        for (Index f = 0; f < at.features; ++f) {
            double* row = rows.data() + f * shape.width;
            if (at.first)
                for (std::int64_t p = at.first[f]; p < at.first[f + 1]; ++p) row[at.code[p]] = w[p];
            else
                std::copy_n(w + f * at.codes, at.codes, row);
        }
    }
};

// The same as gather_rows from weights that lie spread out.
CERTIFIT_CLONES [[maybe_unused]] static void gather_spread(const Rows& rows, const double* w, double scale, std::int64_t from,
                                                           Index T, Index width, double* u) {
    for (Index t = 0; t < T; ++t, u += width)
        for (Index k = 0; k < width; k += 8) {
            Lanes s = {}, v;
            for (std::int64_t e = rows.row[from + t]; e < rows.row[from + t + 1]; ++e) {
                load(w + rows.feature[e] * width + k, v);
                s += (rows.value ? scale * rows.value[e] : scale) * v;
            }
            store(u + k, s);
        }
}

// Which positions of sequence i have a child.
inline void mark_children(const Sequences& data, Index i, Work& work) {
    const Index T = data.length(i);
    const std::int64_t from = data.offset[i];
    work.has_child.assign(T, data.parent ? 0 : 1);
    if (!data.parent) {
        work.has_child[T - 1] = 0;
        return;
    }
    for (Index t = 0; t < T; ++t)
        if (data.parent[from + t] >= 0) work.has_child[data.parent[from + t]] = 1;
}

// Unary and own transition scores of sequence i.
inline void score_sequence(const Sequences& data, const Shape& shape, const double* w, double scale, const Transitions& trans,
                           Index i, Work& work, const Spread* spread = nullptr) {
    const Index T = data.length(i), K = shape.labels, width = shape.width;
    const std::int64_t from = data.offset[i];
    const Parts<const double> part(shape, w);
    if (data.given || !spread || spread->rows.empty())
        work.unary.assign(T * width, 0.0);
    else if (static_cast<Index>(work.unary.size()) < T * width)
        work.unary.resize(T * width);
    if (data.given)
        for (Index t = 0; t < T; ++t) std::copy_n(data.given + (from + t) * K, K, work.u(t));
    else if (spread && !spread->rows.empty())
        gather_spread(data.unary, spread->rows.data(), scale, from, T, width, work.unary.data());
    else
        gather_rows(data.unary, shape.unary, part.unary, scale, from, T, width, work.unary.data());
    mark_children(data, i, work);
    for (Index t = 0; t < T; ++t) {
        const bool root = data.parent ? data.parent[from + t] < 0 : t == 0;
        double* u = work.u(t);
        for (Index k = 0; k < K; ++k) {
            if (root) u[k] += trans.start[k];
            if (!work.has_child[t]) u[k] += trans.end[k];
        }
        for (Index k = K; k < width; ++k) u[k] = kNever;
    }
    work.own_at.assign(T, -1);
    work.owned = 0;
    if (!data.edge) return;
    for (Index t = 0; t < T; ++t) {
        const std::int64_t a = data.edge.row[from + t], b = data.edge.row[from + t + 1];
        if (a == b || (data.parent ? data.parent[from + t] < 0 : t == 0)) continue;
        const Index at = work.owned++;
        work.own_at[t] = static_cast<std::int32_t>(at);
        if (static_cast<Index>(work.own.size()) < work.owned * K * width) work.own.resize(2 * work.owned * K * width);
        double* own = work.own.data() + at * K * width;
        std::copy_n(trans.score.data(), K * width, own);
        for (std::int64_t e = a; e < b; ++e) {
            const Index f = data.edge.feature[e];
            const double value = data.edge.value ? scale * data.edge.value[e] : scale;
            const Layout& lay = shape.edge;
            const std::int64_t first = lay.first ? lay.first[f] : f * lay.codes,
                               last = lay.first ? lay.first[f + 1] : first + lay.codes;
            for (std::int64_t p = first; p < last; ++p) {
                const Index code = lay.first ? lay.code[p] : p - first;
                own[code / K * width + code % K] += value * part.edge[p];
            }
        }
    }
}

// The score of a labelling of the sequence that `work` holds.
inline double path_score(const Sequences& data, const Transitions& trans, Index i, Work& work, const std::int32_t* y) {
    const Index T = data.length(i), width = work.width;
    double score = 0.0;
    for (Index t = 0; t < T; ++t) {
        score += work.u(t)[y[t]];
        const Index p = data.parent ? data.parent[data.offset[i] + t] : t - 1;
        if (p < 0) continue;
        const double* own = work.own_scores(t);
        score += (own ? own : trans.score.data())[y[p] * width + y[t]];
    }
    return score;
}

}  // namespace certifit::chain
