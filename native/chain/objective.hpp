// The regularized likelihood of a conditional random field: its loss and slopes at a point,
//
//   loss(w) = Σ_i p_i (log Z_i − score_i(y_i)),     slope = Σ_i p_i (E[ψ_i] − ψ_i(y_i))
//
// First the marginals, sequences shared by the threads: residuals p_i (P(y_t = k) − [k = y_it]) of every position, and sums over
// transitions by fixed chunks of sequences, added in their order. Then the slopes of the weights, features shared by the threads:
// each is a sum over the positions that have the feature, in their order. So no result depends on the number of threads.
#pragma once

#include "chain/max_product.hpp"
#include "chain/sum_product.hpp"

namespace certifit::chain {

constexpr Index kChunks = 64;
constexpr Index kChunkBytes = Index{1} << 28;  // for the sums of chunks, all together

// Sequences of about equally many positions in each chunk; depends on the data alone.
inline std::vector<Index> chunks_of(const Sequences& data, Index width) {
    const Index count = std::clamp<Index>(kChunkBytes / std::max<Index>(8 * width, 1), 2, kChunks);
    const std::int64_t first = data.offset[0], all = data.offset[data.n] - first;
    std::vector<Index> cut{0};
    for (Index c = 1; c < count; ++c) {
        const std::int64_t goal = first + all * c / count;
        const Index at = std::lower_bound(data.offset, data.offset + data.n + 1, goal) - data.offset;
        if (at > cut.back() && at < data.n) cut.push_back(at);
    }
    cut.push_back(data.n);
    return cut;
}

// The positions of each feature: the transpose of Rows.
struct Columns {
    const std::int64_t* first = nullptr;
    const std::int32_t* position = nullptr;
    const double* value = nullptr;
};

namespace detail {

// L × 8 columns of the sum over the positions of a feature, in registers.
template <int L>
[[gnu::always_inline]] inline void pull_block(const Columns& columns, std::int64_t from, std::int64_t to, const double* residual,
                                              Index stride, double* out) {
    Lanes s[L] = {}, v;
    for (std::int64_t e = from; e < to; ++e) {
        const double* r = residual + columns.position[e] * stride;
        if (columns.value)
            for (int l = 0; l < L; ++l) load(r + 8 * l, v), s[l] += columns.value[e] * v;
        else
            for (int l = 0; l < L; ++l) load(r + 8 * l, v), s[l] += v;
    }
    for (int l = 0; l < L; ++l) store(out + 8 * l, s[l]);
}

}  // namespace detail

// slope[f, k] = Σ over positions t of feature f of value · residual[t, k]
CERTIFIT_CLONES [[maybe_unused]] static void pull(const Columns& columns, const Layout& at, const double* residual, Index stride,
                                                  Index from, Index to, double* scratch, double* slope) {
    for (Index f = from; f < to; ++f) {
        const std::int64_t a = columns.first[f], b = columns.first[f + 1];
        Index k = 0;
        for (; k + 32 <= stride; k += 32) detail::pull_block<4>(columns, a, b, residual + k, stride, scratch + k);
        switch ((stride - k) / 8) {
            case 3: detail::pull_block<3>(columns, a, b, residual + k, stride, scratch + k); break;
            case 2: detail::pull_block<2>(columns, a, b, residual + k, stride, scratch + k); break;
            case 1: detail::pull_block<1>(columns, a, b, residual + k, stride, scratch + k); break;
            default: break;
        }
        if (at.first)
            for (std::int64_t p = at.first[f]; p < at.first[f + 1]; ++p) slope[p] = scratch[at.code[p]];
        else
            for (Index c = 0; c < at.codes; ++c) slope[f * at.codes + c] = scratch[c];
    }
}

inline void pull_all(const Columns& columns, const Layout& at, const double* residual, Index stride, double* slope, int threads) {
    // Blocks of about equally many entries.
    const Index blocks = std::min<Index>(at.features, 256);
    std::vector<Index> cut{0};
    const std::int64_t all = columns.first[at.features];
    for (Index b = 1; b < blocks; ++b) {
        const Index f = std::lower_bound(columns.first, columns.first + at.features + 1, all * b / blocks) - columns.first;
        if (f > cut.back() && f < at.features) cut.push_back(f);
    }
    cut.push_back(at.features);
    std::vector<AlignedVector<double>> scratch(threads, AlignedVector<double>(stride));
    over_tasks(static_cast<Index>(cut.size()) - 1, threads, [&](Index b, int worker) {
        pull(columns, at, residual, stride, cut[b], cut[b + 1], scratch[worker].data(), slope);
    });
}

// Adds value · weight to the slopes of the Markov features of position t, given the joint probabilities of the two labels.
inline void add_edge(const Sequences& data, const Shape& shape, std::int64_t position, const double* joint, double by,
                     double* slope) {
    const Layout& at = shape.edge;
    const Index K = shape.labels;
    for (std::int64_t e = data.edge.row[position]; e < data.edge.row[position + 1]; ++e) {
        const Index f = data.edge.feature[e];
        const double value = data.edge.value ? by * data.edge.value[e] : by;
        const std::int64_t first = at.first ? at.first[f] : f * at.codes, last = at.first ? at.first[f + 1] : first + at.codes;
        for (std::int64_t p = first; p < last; ++p) {
            const Index code = at.first ? at.code[p] : p - first;
            slope[p] += value * joint[code / K * shape.width + code % K];
        }
    }
}

// Adds by · (transition of the labels a, b into position t) to the slopes of the Markov features conditioned on the input.
inline void add_edge_path(const Sequences& data, const Shape& shape, std::int64_t position, Index a, Index b, double by,
                          double* slope) {
    const Layout& at = shape.edge;
    const Index code = a * shape.labels + b;
    for (std::int64_t e = data.edge.row[position]; e < data.edge.row[position + 1]; ++e) {
        const Index f = data.edge.feature[e];
        const double value = data.edge.value ? by * data.edge.value[e] : by;
        if (!at.first) {
            slope[f * at.codes + code] += value;
            continue;
        }
        const auto *low = at.code + at.first[f], *high = at.code + at.first[f + 1], *found = std::lower_bound(low, high, code);
        if (found != high && *found == code) slope[found - at.code] += value;
    }
}

// out += by · x and out = by · x, n numbers.
CERTIFIT_CLONES [[maybe_unused]] static void add(double by, const double* __restrict x, Index n, double* __restrict out) {
    for (Index k = 0; k < n; ++k) out[k] += by * x[k];
}
CERTIFIT_CLONES [[maybe_unused]] static void scaled_rows(double by, const double* __restrict x, Index rows, Index K, Index width,
                                                         Index stride, double* __restrict out) {
    if (stride == width) {
        for (Index k = 0; k < rows * width; ++k) out[k] = by * x[k];
        return;
    }
    for (Index r = 0; r < rows; ++r)
        for (Index k = 0; k < K; ++k) out[r * stride + k] = by * x[r * width + k];
}

// Loss at w. residual: positions × stride (width for sparse rows, labels for given scores); tail: the slopes of edges,
// transitions, start and end; loss: one number a sequence.
inline double evaluate(const Sequences& data, const Shape& shape, const double* w, const std::int32_t* y, const double* p,
                       double* residual, Index stride, double* tail, double* loss, int threads) {
    const Index K = shape.labels, width = shape.width, edges = shape.edge.size();
    Transitions trans(shape, w);
    trans.exponentiate();
    const Spread spread(data, shape, w);
    const Index size = edges + K * K + 2 * K;
    const std::vector<Index> cut = chunks_of(data, size);
    const Index count = static_cast<Index>(cut.size()) - 1;
    std::vector<double> parts(count * size, 0.0);
    std::vector<Work> works(threads, Work(shape));
    over_tasks(count, threads, [&](Index c, int worker) {
        Work& work = works[worker];
        double *edge = parts.data() + c * size, *A = edge + edges, *start = A + K * K, *end = start + K;
        AlignedVector<double> moved(K * width, 0.0);  // transitions, in rows like those of `work`
        for (Index i = cut[c]; i < cut[c + 1]; ++i) {
            const std::int64_t from = data.offset[i];
            const Index T = data.length(i);
            score_sequence(data, shape, w, 1.0, trans, i, work, &spread);
            sum_product(data, trans, i, work,
                        [&](Index t, const double* joint) { add_edge(data, shape, from + t, joint, p[i], edge); });
            loss[i] = std::max(work.log_z - path_score(data, trans, i, work, y + from), 0.0);
            if (!(work.log_z > kNever && work.log_z < -kNever)) loss[i] = std::numeric_limits<double>::quiet_NaN();
            add(p[i], work.pairs.data(), K * width, moved.data());
            for (Index t = 0; t < T; ++t) work.beta[t * width + y[from + t]] -= 1.0;
            scaled_rows(p[i], work.beta.data(), T, K, width, stride, residual + from * stride);
            for (Index t = 0; t < T; ++t) {
                const double* r = residual + (from + t) * stride;
                const Index label = y[from + t], parent = data.parent ? data.parent[from + t] : t - 1;
                if (parent >= 0) {
                    moved[y[from + parent] * width + label] -= p[i];
                    if (work.own_at[t] >= 0) add_edge_path(data, shape, from + t, y[from + parent], label, -p[i], edge);
                } else {
                    for (Index k = 0; k < K; ++k) start[k] += r[k];
                }
                if (!work.has_child[t])
                    for (Index k = 0; k < K; ++k) end[k] += r[k];
            }
        }
        for (Index a = 0; a < K; ++a) std::copy_n(moved.data() + a * width, K, A + a * K);
    });
    std::fill_n(tail, size, 0.0);
    for (Index c = 0; c < count; ++c)
        for (Index x = 0; x < size; ++x) tail[x] += parts[c * size + x];
    double sum = 0.0;
    for (Index i = 0; i < data.n; ++i) sum += p[i] * loss[i];
    return sum;
}

// What decoding can ask for; null: not wanted.
struct Wanted {
    double* log_z = nullptr;       // sequences
    double* marginals = nullptr;   // positions × labels
    double* pairs = nullptr;       // positions × labels × labels: (y_parent, y_t)
    std::int32_t* path = nullptr;  // positions
    double* best = nullptr;        // sequences: the score of the path
    const std::int32_t* y = nullptr;
    double* score = nullptr;       // sequences: the score of y
};

inline void infer(const Sequences& data, const Shape& shape, const double* w, const Wanted& wanted, int threads) {
    const Index K = shape.labels, width = shape.width;
    Transitions trans(shape, w);
    trans.exponentiate();
    const Spread spread(data, shape, w);
    const std::vector<Index> cut = chunks_of(data, 1);
    std::vector<Work> works(threads, Work(shape));
    over_tasks(static_cast<Index>(cut.size()) - 1, threads, [&](Index c, int worker) {
        Work& work = works[worker];
        for (Index i = cut[c]; i < cut[c + 1]; ++i) {
            const std::int64_t from = data.offset[i];
            const Index T = data.length(i);
            score_sequence(data, shape, w, 1.0, trans, i, work, &spread);
            if (wanted.path) wanted.best[i] = max_product(data, trans, i, work, wanted.path + from);
            if (wanted.score) wanted.score[i] = path_score(data, trans, i, work, wanted.y + from);
            const auto copy = [&](Index t, const double* joint) {
                for (Index a = 0; a < K; ++a) std::copy_n(joint + a * width, K, wanted.pairs + ((from + t) * K + a) * K);
            };
            if (wanted.pairs)
                sum_product_tree(data, trans, i, work, copy);
            else if (wanted.log_z)
                sum_product(data, trans, i, work, [](Index, const double*) {});
            if (wanted.log_z) wanted.log_z[i] = work.log_z;
            if (wanted.marginals)
                for (Index t = 0; t < T; ++t) std::copy_n(work.beta.data() + t * width, K, wanted.marginals + (from + t) * K);
        }
    });
}

}  // namespace certifit::chain
