// Methods that learn from one sequence after the other: the averaged perceptron, and stochastic gradient descent on the
// likelihood. Sequences are visited in the order given, by one thread.
#pragma once

#include "chain/objective.hpp"

namespace certifit::chain {

// w += by · (weights of code for the features of a position)
inline void add_row(const Rows& rows, const Layout& at, std::int64_t position, Index code, double by, double* w) {
    for (std::int64_t e = rows.row[position]; e < rows.row[position + 1]; ++e) {
        const Index f = rows.feature[e];
        const double value = rows.value ? by * rows.value[e] : by;
        if (!at.first) {
            w[f * at.codes + code] += value;
            continue;
        }
        const auto *low = at.code + at.first[f], *high = at.code + at.first[f + 1], *found = std::lower_bound(low, high, code);
        if (found != high && *found == code) w[found - at.code] += value;
    }
}

// One epoch of the perceptron (Collins 2002): w += ψ(y) − ψ(ŷ) after a mistake. `late` sums the updates times the number of
// visits before them, so that the average over all visits is w − late / visits. Parameters with fixed = 1 stay zero.
struct Perceptron {
    double *w, *late;
    const std::uint8_t* fixed;
    double visits;
};

inline void perceptron_epoch(const Sequences& data, const Shape& shape, const std::int32_t* y, const std::uint32_t* order,
                             Index count, Perceptron& state, double* mistakes) {
    const Index K = shape.labels, tail = shape.unary.size() + shape.edge.size(), size = shape.size();
    Transitions trans(shape, state.w);
    Work work(shape);
    std::vector<std::int32_t> path(data.longest());
    SignalPoll signals;
    mistakes[0] = mistakes[1] = 0.0;
    for (Index v = 0; v < count; ++v, state.visits += 1.0) {
        if (v % 16 == 0) signals.poll();
        const Index i = order[v], T = data.length(i);
        const std::int32_t* own = y + data.offset[i];
        score_sequence(data, shape, state.w, 1.0, trans, i, work);
        max_product(data, trans, i, work, path.data());
        Index wrong = 0;
        for (Index t = 0; t < T; ++t) wrong += path[t] != own[t];
        if (!wrong) continue;
        mistakes[0] += static_cast<double>(wrong), mistakes[1] += 1.0;
        const Parts<double> w(shape, state.w), late(shape, state.late);
        const std::int64_t from = data.offset[i];
        const double before = state.visits;
        for (Index t = 0; t < T; ++t) {
            const Index parent = data.parent ? data.parent[from + t] : t - 1;
            if (path[t] != own[t]) {
                for (const auto& [label, by] : {std::pair<Index, double>{own[t], 1.0}, {path[t], -1.0}}) {
                    add_row(data.unary, shape.unary, from + t, label, by, w.unary);
                    add_row(data.unary, shape.unary, from + t, label, by * before, late.unary);
                    if (parent < 0) w.start[label] += by, late.start[label] += by * before;
                    if (!work.has_child[t]) w.end[label] += by, late.end[label] += by * before;
                }
            }
            if (parent >= 0 && (path[t] != own[t] || path[parent] != own[parent])) {
                w.transition[own[parent] * K + own[t]] += 1.0, late.transition[own[parent] * K + own[t]] += before;
                w.transition[path[parent] * K + path[t]] -= 1.0, late.transition[path[parent] * K + path[t]] -= before;
                if (data.edge) {
                    add_edge_path(data, shape, from + t, own[parent], own[t], 1.0, w.edge);
                    add_edge_path(data, shape, from + t, own[parent], own[t], before, late.edge);
                    add_edge_path(data, shape, from + t, path[parent], path[t], -1.0, w.edge);
                    add_edge_path(data, shape, from + t, path[parent], path[t], -before, late.edge);
                }
            }
        }
        for (Index x = tail; x < size; ++x)
            if (state.fixed[x - tail]) state.w[x] = state.late[x] = 0.0;
        trans.read(shape, state.w, 1.0);
    }
}

// Stochastic gradient descent on mean loss + alpha/2 ‖w‖² (Bottou 2010): w ← (1 − η alpha) w − η ∇loss_i, η = 1 / (alpha (t0 +
// t)). w = scale · v, so that the shrinking costs nothing.
struct Descent {
    double *v, scale, alpha, t0, t;
    const std::uint8_t* fixed;
};

inline double descent_epoch(const Sequences& data, const Shape& shape, const std::int32_t* y, const std::uint32_t* order,
                            Index count, Descent& state) {
    const Index K = shape.labels, width = shape.width, tail = shape.unary.size() + shape.edge.size(), size = shape.size();
    Transitions trans(shape, state.v, state.scale);
    Work work(shape);
    SignalPoll signals;
    double sum = 0.0;
    for (Index n = 0; n < count; ++n, state.t += 1.0) {
        if (n % 16 == 0) signals.poll();
        const Index i = order[n];
        const std::int64_t from = data.offset[i];
        const std::int32_t* own = y + from;
        trans.read(shape, state.v, state.scale);
        trans.exponentiate();
        score_sequence(data, shape, state.v, state.scale, trans, i, work);
        const double eta = 1.0 / (state.alpha * (state.t0 + state.t));
        // t0 > 1 keeps 1 − η alpha positive.
        const double scale = state.scale * (1.0 - eta * state.alpha), by = -eta / scale;
        const Parts<double> v(shape, state.v);
        sum_product(data, trans, i, work,
                    [&](Index t, const double* joint) { add_edge(data, shape, from + t, joint, by, v.edge); });
        sum += std::max(work.log_z - path_score(data, trans, i, work, own), 0.0);
        state.scale = scale;
        for (Index t = 0; t < data.length(i); ++t) {
            double* mu = work.beta.data() + t * width;
            mu[own[t]] -= 1.0;
            for (std::int64_t e = data.unary.row[from + t]; e < data.unary.row[from + t + 1]; ++e) {
                const Index f = data.unary.feature[e];
                const double step = data.unary.value ? by * data.unary.value[e] : by;
                if (shape.unary.first)
                    for (std::int64_t p = shape.unary.first[f]; p < shape.unary.first[f + 1]; ++p)
                        v.unary[p] += step * mu[shape.unary.code[p]];
                else
                    for (Index k = 0; k < K; ++k) v.unary[f * K + k] += step * mu[k];
            }
            const Index parent = data.parent ? data.parent[from + t] : t - 1;
            if (parent >= 0) {
                v.transition[own[parent] * K + own[t]] -= by;
                if (work.own_at[t] >= 0) add_edge_path(data, shape, from + t, own[parent], own[t], -by, v.edge);
            } else {
                for (Index k = 0; k < K; ++k) v.start[k] += by * mu[k];
            }
            if (!work.has_child[t])
                for (Index k = 0; k < K; ++k) v.end[k] += by * mu[k];
        }
        for (Index a = 0; a < K; ++a)
            for (Index b = 0; b < K; ++b) v.transition[a * K + b] += by * work.pairs[a * width + b];
        for (Index x = tail; x < size; ++x)
            if (state.fixed[x - tail]) state.v[x] = 0.0;
        if (state.scale < 1e-9) {
            for (Index x = 0; x < size; ++x) state.v[x] *= state.scale;
            state.scale = 1.0;
        }
    }
    return sum;
}

}  // namespace certifit::chain
