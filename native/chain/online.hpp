// Methods that learn from one sequence after the other: the averaged perceptron, stochastic gradient descent on the likelihood, and
// block-coordinate Frank-Wolfe for the structured margin. Sequences are visited in the order given, by one thread.
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

// One epoch of the perceptron (Collins 2002): w += ψ(y) − ψ(ŷ) after a mistake. `late` sums the updates times the number of visits
// before them, so that the average over all visits is w − late / visits. Parameters with fixed = 1 stay zero.
struct Perceptron {
    double *w, *late;
    const std::uint8_t* fixed;
    double visits;
};

inline void perceptron_epoch(const Sequences& data, const Shape& shape, const std::int32_t* y, const std::uint32_t* order, Index count,
                             Perceptron& state, double* mistakes) {
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

// Stochastic gradient descent on mean loss + alpha/2 ‖w‖² (Bottou 2010): w ← (1 − η alpha) w − η ∇loss_i, η = 1 / (alpha (t0 + t)).
// w = scale · v, so that the shrinking costs nothing.
struct Descent {
    double *v, scale, alpha, t0, t;
    const std::uint8_t* fixed;
};

inline double descent_epoch(const Sequences& data, const Shape& shape, const std::int32_t* y, const std::uint32_t* order, Index count, Descent& state) {
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
        sum_product(data, trans, i, work, [&](Index t, const double* joint) { add_edge(data, shape, from + t, joint, by, v.edge); });
        sum += std::max(work.log_z - path_score(data, trans, i, work, own), 0.0);
        state.scale = scale;
        for (Index t = 0; t < data.length(i); ++t) {
            double* mu = work.beta.data() + t * width;
            mu[own[t]] -= 1.0;
            for (std::int64_t e = data.unary.row[from + t]; e < data.unary.row[from + t + 1]; ++e) {
                const Index f = data.unary.feature[e];
                const double step = data.unary.value ? by * data.unary.value[e] : by;
                if (shape.unary.first)
                    for (std::int64_t p = shape.unary.first[f]; p < shape.unary.first[f + 1]; ++p) v.unary[p] += step * mu[shape.unary.code[p]];
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

// The structured margin,   min_w alpha/2 ‖w‖² + Σ_i p_i max_y (Δ_i(y) + w·ψ_i(y) − w·ψ_i(y_i)),     Δ_i(y) = Σ_t cost(y_it, y_t),
// by block-coordinate Frank-Wolfe on the dual (Lacoste-Julien et al. 2013). The dual point of a sequence is a mixture of labellings; all
// that is needed of it are its marginals μ_i (positions × labels) and the numbers of its transitions:
//
//   w = (1/alpha) Σ_i p_i (ψ_i(y_i) − ψ_i(μ_i)),      dual = Σ_i p_i Δ_i(μ_i) − alpha/2 ‖w‖²
//
// A step moves μ_i towards the most violating labelling y* by the γ that is best; the sum of the blocks' gaps is the duality gap.
struct Margin {
    double *w, *mu, *pairs, *edge_pairs;  // mu: positions × labels; pairs: sequences × labels²; edge_pairs: positions × labels², or null
    const double *p, *cost;               // cost: labels × labels
    const std::uint8_t* fixed;            // of (transitions, start, end)
    double alpha;
};

// The most violating labelling of sequence i into path; returns Δ(y*) + w·ψ(y*) and the score w·ψ(y_i).
inline double violate(const Sequences& data, const Shape& shape, const std::int32_t* y, Index i, const Margin& state, const Transitions& trans,
                      Work& work, std::int32_t* path, double& right) {
    const Index K = shape.labels;
    const std::int32_t* own = y + data.offset[i];
    score_sequence(data, shape, state.w, 1.0, trans, i, work);
    right = path_score(data, trans, i, work, own);
    for (Index t = 0; t < data.length(i); ++t)
        for (Index k = 0; k < K; ++k) work.u(t)[k] += state.cost[own[t] * K + k];
    return max_product(data, trans, i, work, path);
}

// The mean loss at w.
inline double margin_loss(const Sequences& data, const Shape& shape, const std::int32_t* y, const Margin& state, int threads) {
    const Transitions trans(shape, state.w);
    const std::vector<Index> cut = chunks_of(data, 1);
    std::vector<Work> works(threads, Work(shape));
    std::vector<double> loss(data.n);
    std::vector<std::vector<std::int32_t>> paths(threads, std::vector<std::int32_t>(data.longest()));
    over_tasks(static_cast<Index>(cut.size()) - 1, threads, [&](Index c, int worker) {
        for (Index i = cut[c]; i < cut[c + 1]; ++i) {
            double right;
            const double most = violate(data, shape, y, i, state, trans, works[worker], paths[worker].data(), right);
            loss[i] = std::max(most - right, 0.0);
        }
    });
    double sum = 0.0;
    for (Index i = 0; i < data.n; ++i) sum += state.p[i] * loss[i];
    return sum;
}

inline void frank_wolfe_epoch(const Sequences& data, const Shape& shape, const std::int32_t* y, const std::uint32_t* order, Index count, Margin& state) {
    const Index K = shape.labels, width = shape.width, tail = shape.unary.size() + shape.edge.size(), size = shape.size();
    Transitions trans(shape, state.w);
    Work work(shape);
    std::vector<std::int32_t> path(data.longest());
    // The direction ψ_i(μ_i) − ψ_i(y*), summed by feature; `touched` lists the entries that are not zero any more.
    std::vector<double> direction(size, 0.0), change, moved;
    std::vector<std::uint8_t> seen(size, 0);
    std::vector<std::int64_t> touched;
    SignalPoll signals;
    for (Index v = 0; v < count; ++v) {
        if (v % 16 == 0) signals.poll();
        const Index i = order[v], T = data.length(i);
        const std::int64_t from = data.offset[i];
        double right;
        const double most = violate(data, shape, y, i, state, trans, work, path.data(), right);
        double *mu = state.mu + from * K, *pairs = state.pairs + i * K * K;
        // Δ(μ) + w·ψ(μ): the unary scores hold the costs, the boundaries too.
        double mixed = 0.0;
        for (Index t = 0; t < T; ++t)
            for (Index k = 0; k < K; ++k)
                if (mu[t * K + k] != 0.0) mixed += mu[t * K + k] * work.u(t)[k];
        for (Index x = 0; x < K * K; ++x)
            if (pairs[x] != 0.0) mixed += pairs[x] * trans.score[x / K * width + x % K];
        if (state.edge_pairs)
            for (Index t = 0; t < T; ++t) {
                const double *own_scores = work.own_scores(t), *joint = state.edge_pairs + (from + t) * K * K;
                if (!own_scores) continue;
                for (Index x = 0; x < K * K; ++x)
                    if (joint[x] != 0.0) mixed += joint[x] * (own_scores[x / K * width + x % K] - trans.score[x / K * width + x % K]);
            }
        const double gap = most - mixed;
        if (!(gap > 0.0)) continue;
        touched.clear();
        change.assign(T * K, 0.0), moved.assign(K * K, 0.0);
        const auto add = [&](std::int64_t at, double by) {
            if (!seen[at]) touched.push_back(at), seen[at] = 1;
            direction[at] += by;
        };
        const std::int64_t edge_at = shape.unary.size(), trans_at = tail, start_at = tail + K * K, end_at = start_at + K;
        for (Index t = 0; t < T; ++t) {
            double* d = change.data() + t * K;
            for (Index k = 0; k < K; ++k) d[k] = mu[t * K + k] - (path[t] == k ? 1.0 : 0.0);
            const Index parent = data.parent ? data.parent[from + t] : t - 1;
            for (Index k = 0; k < K; ++k) {
                if (d[k] == 0.0) continue;
                for (std::int64_t e = data.unary.row[from + t]; e < data.unary.row[from + t + 1]; ++e)
                    add(data.unary.feature[e] * K + k, data.unary.value ? data.unary.value[e] * d[k] : d[k]);
                if (parent < 0) add(start_at + k, d[k]);
                if (!work.has_child[t]) add(end_at + k, d[k]);
            }
            if (parent < 0) continue;
            moved[path[parent] * K + path[t]] -= 1.0;
            if (state.edge_pairs && work.own_at[t] >= 0) {
                const double* joint = state.edge_pairs + (from + t) * K * K;
                for (Index x = 0; x < K * K; ++x) {
                    const double by = joint[x] - (x == path[parent] * K + path[t] ? 1.0 : 0.0);
                    if (by == 0.0) continue;
                    for (std::int64_t e = data.edge.row[from + t]; e < data.edge.row[from + t + 1]; ++e)
                        add(edge_at + data.edge.feature[e] * K * K + x, data.edge.value ? data.edge.value[e] * by : by);
                }
            }
        }
        for (Index x = 0; x < K * K; ++x) {
            moved[x] += pairs[x];
            if (moved[x] != 0.0) add(trans_at + x, moved[x]);
        }
        double square = 0.0;
        for (std::int64_t at : touched) {
            if (at >= tail && state.fixed[at - tail]) direction[at] = 0.0;
            square += direction[at] * direction[at];
        }
        // alpha · ‖p/alpha · direction‖² against p · gap
        const double curvature = state.p[i] * square / state.alpha;
        const double step = gap >= curvature ? 1.0 : gap / curvature, by = step * state.p[i] / state.alpha;
        for (std::int64_t at : touched) {
            state.w[at] += by * direction[at];
            direction[at] = 0.0, seen[at] = 0;
        }
        for (Index t = 0; t < T; ++t) {
            for (Index k = 0; k < K; ++k) mu[t * K + k] -= step * change[t * K + k];
            const Index parent = data.parent ? data.parent[from + t] : t - 1;
            if (state.edge_pairs && parent >= 0) {
                double* joint = state.edge_pairs + (from + t) * K * K;
                for (Index x = 0; x < K * K; ++x) joint[x] += step * ((x == path[parent] * K + path[t] ? 1.0 : 0.0) - joint[x]);
            }
        }
        for (Index x = 0; x < K * K; ++x) pairs[x] -= step * moved[x];
        trans.read(shape, state.w, 1.0);
    }
}

}  // namespace certifit::chain
