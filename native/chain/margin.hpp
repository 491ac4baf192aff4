// The structured margin,
//
//   min_w  alpha/2 ‖w‖² + Σ_i p_i max_y (Δ_i(y) + w·ψ_i(y) − w·ψ_i(y_i)),     Δ_i(y) = Σ_t cost(y_it, y_t)
//
// by block-coordinate Frank-Wolfe on its dual, with pairwise steps (Lacoste-Julien et al. 2013; Osokin et al. 2016). The dual
// point of sequence i is a mixture Σ_a λ_a y_a of labellings it has met:
//
//   w = (1/alpha) Σ_i p_i Σ_a λ_a (ψ_i(y_i) − ψ_i(y_a)),      dual = Σ_i p_i Σ_a λ_a Δ_i(y_a) − alpha/2 ‖w‖²
//
// A step takes the labelling s that violates most and the member v that violates least, and moves as much of λ_v to s as is best.
// Only positions where the two differ move w. The sum of the blocks' gaps is the duality gap.
#pragma once

#include <vector>

#include "chain/online.hpp"

namespace certifit::chain {

struct Member {
    std::vector<std::int32_t> path;
    double share, cost;
};

struct Margin {
    double* w;
    const double *p, *cost;     // cost: labels × labels
    const std::uint8_t* fixed;  // of (transitions, start, end)
    double alpha;
    std::vector<std::vector<Member>> mixtures;

    Margin(double* w_, const double* p_, const double* cost_, const std::uint8_t* fixed_, double alpha_, const Sequences& data,
           const std::int32_t* y)
        : w(w_), p(p_), cost(cost_), fixed(fixed_), alpha(alpha_), mixtures(data.n) {
        for (Index i = 0; i < data.n; ++i)
            mixtures[i].push_back({std::vector<std::int32_t>(y + data.offset[i], y + data.offset[i + 1]), 1.0, 0.0});
    }

    // Σ_i p_i Δ_i of the mixtures.
    double mean_cost() const {
        double sum = 0.0;
        for (std::size_t i = 0; i < mixtures.size(); ++i)
            for (const Member& member : mixtures[i]) sum += p[i] * member.share * member.cost;
        return sum;
    }
};

// Sums by parameter that are forgotten in the time they took to build.
class Direction {
  public:
    explicit Direction(Index size) : value_(size, 0.0), seen_(size, 0) {}
    void add(std::int64_t at, double by) {
        if (!seen_[at]) touched_.push_back(at), seen_[at] = 1;
        value_[at] += by;
    }
    double square() const {
        double sum = 0.0;
        for (std::int64_t at : touched_) sum += value_[at] * value_[at];
        return sum;
    }
    // w += by · direction, and the direction is zero again.
    void apply(double by, double* w) {
        for (std::int64_t at : touched_) {
            w[at] += by * value_[at];
            value_[at] = 0.0, seen_[at] = 0;
        }
        touched_.clear();
    }

  private:
    std::vector<double> value_;
    std::vector<std::uint8_t> seen_;
    std::vector<std::int64_t> touched_;
};

// direction += ψ_i(a) − ψ_i(b), without what is fixed
inline void add_difference(const Sequences& data, const Shape& shape, Index i, const std::uint8_t* has_child,
                           const std::int32_t* a, const std::int32_t* b, const std::uint8_t* fixed, Direction& direction) {
    const Index K = shape.labels;
    const std::int64_t from = data.offset[i], edge_at = shape.unary.size(), trans_at = edge_at + shape.edge.size();
    const std::int64_t start_at = trans_at + K * K, end_at = start_at + K;
    const auto tail = [&](std::int64_t at, double by) {
        if (!fixed[at - trans_at]) direction.add(at, by);
    };
    for (Index t = 0; t < data.length(i); ++t) {
        const Index parent = data.parent ? data.parent[from + t] : t - 1;
        if (a[t] != b[t]) {
            for (std::int64_t e = data.unary.row[from + t]; e < data.unary.row[from + t + 1]; ++e) {
                const double value = data.unary.value ? data.unary.value[e] : 1.0;
                direction.add(data.unary.feature[e] * K + a[t], value);
                direction.add(data.unary.feature[e] * K + b[t], -value);
            }
            if (parent < 0) tail(start_at + a[t], 1.0), tail(start_at + b[t], -1.0);
            if (!has_child[t]) tail(end_at + a[t], 1.0), tail(end_at + b[t], -1.0);
        }
        if (parent < 0 || (a[t] == b[t] && a[parent] == b[parent])) continue;
        const Index one = a[parent] * K + a[t], other = b[parent] * K + b[t];
        tail(trans_at + one, 1.0), tail(trans_at + other, -1.0);
        if (!data.edge) continue;
        for (std::int64_t e = data.edge.row[from + t]; e < data.edge.row[from + t + 1]; ++e) {
            const double value = data.edge.value ? data.edge.value[e] : 1.0;
            direction.add(edge_at + data.edge.feature[e] * K * K + one, value);
            direction.add(edge_at + data.edge.feature[e] * K * K + other, -value);
        }
    }
}

// The scores of sequence i, and then with the costs of wrong labels; returns the score of the right labelling.
inline double score_with_costs(const Sequences& data, const Shape& shape, const std::int32_t* y, Index i, const Margin& state,
                               const Transitions& trans, Work& work) {
    const Index K = shape.labels;
    const std::int32_t* own = y + data.offset[i];
    score_sequence(data, shape, state.w, 1.0, trans, i, work);
    const double right = path_score(data, trans, i, work, own);
    for (Index t = 0; t < data.length(i); ++t)
        for (Index k = 0; k < K; ++k) work.u(t)[k] += state.cost[own[t] * K + k];
    return right;
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
            const double right = score_with_costs(data, shape, y, i, state, trans, works[worker]);
            loss[i] = std::max(max_product(data, trans, i, works[worker], paths[worker].data()) - right, 0.0);
        }
    });
    double sum = 0.0;
    for (Index i = 0; i < data.n; ++i) sum += state.p[i] * loss[i];
    return sum;
}

// w from the mixtures, so that rounding does not add up.
inline void rebuild(const Sequences& data, const Shape& shape, const std::int32_t* y, Margin& state) {
    std::fill_n(state.w, shape.size(), 0.0);
    const Transitions trans(shape, state.w);
    Direction direction(shape.size());
    Work work(shape);
    SignalPoll signals;
    for (Index i = 0; i < data.n; ++i) {
        signals.poll();
        mark_children(data, i, work);
        for (const Member& member : state.mixtures[i]) {
            add_difference(data, shape, i, work.has_child.data(), y + data.offset[i], member.path.data(), state.fixed, direction);
            direction.apply(state.p[i] * member.share / state.alpha, state.w);
        }
    }
}

inline void frank_wolfe_epoch(const Sequences& data, const Shape& shape, const std::int32_t* y, const std::uint32_t* order,
                              Index count, Margin& state) {
    Transitions trans(shape, state.w);
    Work work(shape);
    std::vector<std::int32_t> path(data.longest());
    Direction direction(shape.size());
    SignalPoll signals;
    for (Index v = 0; v < count; ++v) {
        if (v % 16 == 0) signals.poll();
        const Index i = order[v], T = data.length(i);
        const std::int32_t* own = y + data.offset[i];
        score_with_costs(data, shape, y, i, state, trans, work);
        const double most = max_product(data, trans, i, work, path.data());
        std::vector<Member>& mixture = state.mixtures[i];
        std::size_t away = 0, toward = mixture.size();
        double least = -kNever;
        for (std::size_t m = 0; m < mixture.size(); ++m) {
            const double score = path_score(data, trans, i, work, mixture[m].path.data());
            if (score < least) least = score, away = m;
            if (std::equal(path.begin(), path.begin() + T, mixture[m].path.begin())) toward = m;
        }
        const double gain = most - least;
        if (!(gain > 0.0) || toward == away) continue;
        add_difference(data, shape, i, work.has_child.data(), mixture[away].path.data(), path.data(), state.fixed, direction);
        // along γ the dual rises by p·(γ·gain − γ²·p·‖direction‖²/(2·alpha))
        const double bend = state.p[i] * direction.square() / state.alpha, most_step = mixture[away].share;
        const double step = gain >= bend * most_step ? most_step : gain / bend;
        direction.apply(step * state.p[i] / state.alpha, state.w);
        if (toward == mixture.size()) {
            double cost = 0.0;
            for (Index t = 0; t < T; ++t) cost += state.cost[own[t] * shape.labels + path[t]];
            mixture.push_back({std::vector<std::int32_t>(path.begin(), path.begin() + T), 0.0, cost});
        }
        mixture[toward].share += step;
        mixture[away].share -= step;
        if (step == most_step) mixture.erase(mixture.begin() + static_cast<std::ptrdiff_t>(away));
        trans.read(shape, state.w, 1.0);
    }
}

}  // namespace certifit::chain
