// The best labelling, by dynamic programming, and the n best ones of a chain.
//
//   d_v(i) = max_j A_v(i, j) + U_v(j) + Σ_children d_c(j)      on trees, from the leaves up (Viterbi 1967 on a chain)
//
// Only the values are kept; the labels are found again on the way back, K comparisons a position. Ties go to the first label.
#pragma once

#include "chain/model.hpp"

namespace certifit::chain {

// best_t(j) = max_i (best_{t−1}(i) + A(i, j)) + U_t(j), rows of `width`
CERTIFIT_CLONES [[maybe_unused]] static void viterbi_forward(const double* unary, const double* score, const std::int32_t* own_at,
                                                             const double* own, Index T, Index K, Index width, double* best) {
    for (Index j = 0; j < width; ++j) best[j] = unary[j];
    for (Index t = 1; t < T; ++t) {
        const double *before = best + (t - 1) * width, *A = own_at[t] < 0 ? score : own + own_at[t] * K * width;
        for (Index j = 0; j < width; j += 8) {
            Lanes most = Lanes{} + kNever, other = most, a, b;
            Index i = 0;
            for (; i + 2 <= K; i += 2) {
                load(A + i * width + j, a), load(A + (i + 1) * width + j, b);
                a += before[i], b += before[i + 1];
                most = a > most ? a : most;
                other = b > other ? b : other;
            }
            if (i < K) load(A + i * width + j, a), a += before[i], most = a > most ? a : most;
            most = other > most ? other : most;
            load(unary + t * width + j, a);
            store(best + t * width + j, most + a);
        }
    }
}

inline Index first_best(const double* x, Index K) { return std::max_element(x, x + K) - x; }

// The best labelling of sequence i into y; returns its score, −∞ when every one is forbidden.
inline double max_product(const Sequences& data, const Transitions& trans, Index i, Work& work, std::int32_t* y) {
    const Index T = data.length(i), K = work.K, width = work.width;
    const std::int64_t from = data.offset[i];
    if (static_cast<Index>(work.best.size()) < T * width) work.best.resize(T * width);
    double* best = work.best.data();
    if (!data.parent) {
        viterbi_forward(work.unary.data(), trans.score.data(), work.own_at.data(), work.own.data(), T, K, width, best);
        const double* last = best + (T - 1) * width;
        y[T - 1] = static_cast<std::int32_t>(first_best(last, K));
        for (Index t = T - 1; t > 0; --t) {
            const double *before = best + (t - 1) * width, *own = work.own_scores(t);
            const double* A = (own ? own : trans.score.data()) + y[t];
            Index at = 0;
            for (Index a = 1; a < K; ++a)
                if (before[a] + A[a * width] > before[at] + A[at * width]) at = a;
            y[t - 1] = static_cast<std::int32_t>(at);
        }
        return last[y[T - 1]];
    }
    work.back.resize(T * K);
    std::copy_n(work.unary.begin(), T * width, best);
    double score = 0.0;
    for (Index r = T - 1; r >= 0; --r) {
        const Index t = data.order[from + r], p = data.parent[from + t];
        if (p < 0) {
            score += best[t * width + first_best(best + t * width, K)];
            continue;
        }
        const double *own = work.own_scores(t), *A = own ? own : trans.score.data();
        for (Index a = 0; a < K; ++a, A += width) {
            Index at = 0;
            for (Index j = 1; j < K; ++j)
                if (A[j] + best[t * width + j] > A[at] + best[t * width + at]) at = j;
            work.back[t * K + a] = static_cast<std::int32_t>(at);
            best[p * width + a] += A[at] + best[t * width + at];
        }
    }
    for (Index r = 0; r < T; ++r) {
        const Index t = data.order[from + r], p = data.parent[from + t];
        y[t] = p < 0 ? static_cast<std::int32_t>(first_best(best + t * width, K)) : work.back[t * K + y[p]];
    }
    return score;
}

// The `count` best labellings of a chain, best first: paths count × T, scores count; returns how many there are.
inline Index best_paths(const Sequences& data, const Transitions& trans, Index i, Work& work, Index count, std::int32_t* paths,
                        double* scores) {
    const Index T = data.length(i), K = work.K, width = work.width;
    struct Entry {
        double score;
        std::int32_t label, rank;  // of the position before
    };
    std::vector<std::vector<Entry>> lists(T * K);
    std::vector<Entry> found;
    const auto better = [](const Entry& a, const Entry& b) {
        return a.score != b.score ? a.score > b.score : (a.rank != b.rank ? a.rank < b.rank : a.label < b.label);
    };
    const auto keep = [&](std::vector<Entry>& into) {
        const Index n = std::min<Index>(count, static_cast<Index>(found.size()));
        std::partial_sort(found.begin(), found.begin() + n, found.end(), better);
        into.assign(found.begin(), found.begin() + n);
    };
    for (Index t = 0; t < T; ++t)
        for (Index j = 0; j < K; ++j) {
            const double u = work.u(t)[j];
            if (u == kNever) continue;
            found.clear();
            if (t == 0) {
                found.push_back({u, -1, 0});
            } else {
                const double *own = work.own_scores(t), *A = own ? own : trans.score.data();
                for (Index a = 0; a < K; ++a) {
                    const double step = A[a * width + j];
                    if (step == kNever) continue;
                    const auto& before = lists[(t - 1) * K + a];
                    for (Index r = 0; r < static_cast<Index>(before.size()); ++r)
                        found.push_back({before[r].score + step + u, static_cast<std::int32_t>(a), static_cast<std::int32_t>(r)});
                }
            }
            keep(lists[t * K + j]);
        }
    found.clear();
    for (Index j = 0; j < K; ++j)
        for (Index r = 0; r < static_cast<Index>(lists[(T - 1) * K + j].size()); ++r)
            found.push_back({lists[(T - 1) * K + j][r].score, static_cast<std::int32_t>(j), static_cast<std::int32_t>(r)});
    std::vector<Entry> ends;
    keep(ends);
    for (Index n = 0; n < static_cast<Index>(ends.size()); ++n) {
        scores[n] = ends[n].score;
        std::int32_t label = ends[n].label, rank = ends[n].rank;
        for (Index t = T - 1; t >= 0; --t) {
            paths[n * T + t] = label;
            const Entry& e = lists[t * K + label][rank];
            label = e.label, rank = e.rank;
        }
    }
    return static_cast<Index>(ends.size());
}

}  // namespace certifit::chain
