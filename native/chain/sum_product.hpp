// log Z, the marginals of labels and the expected numbers of transitions.
//
// On a chain the recursions run on scaled numbers (Rabiner 1989):
//
//   a_t(j) = e_t(j) Σ_i a_{t−1}(i) M(i, j) / Σ a_{t−1},      b_{t−1}(i) = Σ_j M(i, j) e_t(j) b_t(j) / Σ b_t
//   P(y_t = j) = a_t(j) b_t(j) / n_t,    n_t = Σ_j a_t(j) b_t(j),    log Z = Σ_t log Σ a_t + shifts
//
// with e_t = exp(U_t − max U_t) and M = exp(A − max A) made once for all sequences: a step is K² multiplications and additions. A
// step is scaled by the sum of the numbers before it, which is ready in time, and the two directions run side by side, so that
// neither waits for its own last result. When every transition is allowed, no product a_t(j) b_t(j) is below e^−(4 range(A) +
// range(U_t)) / K³, whatever came before; so nothing is lost to underflow while that exponent is below 600. With forbidden
// transitions a label can fall behind step by step; then the numbers themselves are watched. Whatever fails the test is done in
// log space, by the recursion for trees:
//
//   m_v(i) = log Σ_j exp(A_v(i, j) + U_v(j) + Σ_children m_c(j)),    P(y_v = j | y_parent = i) = exp(A_v(i, j) + … − m_v(i))
//
// which goes down with conditional probabilities and cannot underflow. A chain is the tree in which everyone has one child.
#pragma once

#include "chain/model.hpp"

namespace certifit::chain {

constexpr double kSwing = 600.0;         // e^−600 is far from underflow
constexpr double kGuardedSwing = 130.0;  // with forbidden transitions: no step can jump over the guard below
constexpr double kGuard = 1e-240;
constexpr double kLeast = 1e-280;        // of n_t

namespace detail {

[[gnu::always_inline]] inline double sum(const Lanes& v) { return vec::detail::total(v); }

// L × 8 numbers of Σ_i a(i) M(i, ·), times `by`, times e if given; adds them to `all`. Two sums a lane keep the multipliers busy.
template <int L>
[[gnu::always_inline]] inline void step_block(const double* a, const double* M, const double* e, double by, Index K, Index width,
                                              double* out, Lanes& all) {
    Lanes s[L] = {}, r[L] = {}, m;
    Index i = 0;
    for (; i + 2 <= K; i += 2, M += 2 * width)
        for (int l = 0; l < L; ++l) {
            load(M + 8 * l, m), s[l] += a[i] * m;
            load(M + width + 8 * l, m), r[l] += a[i + 1] * m;
        }
    for (int l = 0; l < L; ++l) {
        if (i < K) load(M + 8 * l, m), s[l] += a[i] * m;
        m = Lanes{} + by;
        if (e) load(e + 8 * l, m), m *= by;
        s[l] = (s[l] + r[l]) * m;
        all += s[l];
        store(out + 8 * l, s[l]);
    }
}

// out = by · Σ_i a(i) M(i, ·), times e if given; returns the sum of out.
[[gnu::always_inline]] inline double step(const double* a, const double* M, const double* e, double by, Index K, Index width,
                                          double* out) {
    Lanes all = {};
    Index j = 0;
    for (; j + 32 <= width; j += 32) step_block<4>(a, M + j, e ? e + j : nullptr, by, K, width, out + j, all);
    switch ((width - j) / 8) {
        case 3: step_block<3>(a, M + j, e ? e + j : nullptr, by, K, width, out + j, all); break;
        case 2: step_block<2>(a, M + j, e ? e + j : nullptr, by, K, width, out + j, all); break;
        case 1: step_block<1>(a, M + j, e ? e + j : nullptr, by, K, width, out + j, all); break;
        default: break;
    }
    return sum(all);
}

// out(i) = by · Σ_j M(i, j) v(j); returns the sum of out.
[[gnu::always_inline]] inline double step_back(const double* v, const double* M, double by, Index K, Index width, double* out) {
    double all = 0.0;
    for (Index i = K; i < width; ++i) out[i] = 0.0;
    for (Index i = 0; i < K; ++i, M += width) {
        Lanes s = {}, x, y;
        for (Index j = 0; j < width; j += 8) load(M + j, x), load(v + j, y), s += x * y;
        all += out[i] = by * sum(s);
    }
    return all;
}

// pairs(i, j) = M(i, j) Σ_t a_{t−1}(i) v_t(j) for R rows from i and L × 8 columns from j, over the positions that share M.
template <int R, int L>
[[gnu::always_inline]] inline void pair_block(const double* alpha, const double* v, const std::int32_t* own_at, Index T,
                                              Index width, Index rows, const double* M, double* pairs) {
    Lanes s[R][L] = {}, x[L];
    for (Index t = 1; t < T; ++t) {
        if (own_at[t] >= 0) continue;
        const double* a = alpha + (t - 1) * width;
        for (int l = 0; l < L; ++l) load(v + t * width + 8 * l, x[l]);
        for (int r = 0; r < R; ++r)
            for (int l = 0; l < L; ++l) s[r][l] += a[r] * x[l];
    }
    for (int r = 0; r < R && r < rows; ++r)
        for (int l = 0; l < L; ++l) {
            load(M + r * width + 8 * l, x[l]);
            store(pairs + r * width + 8 * l, s[r][l] * x[l]);
        }
}

template <int R, int L>
[[gnu::always_inline]] inline void pair_rows(const double* alpha, const double* v, const std::int32_t* own_at, Index T, Index K,
                                             Index width, const double* M, double* pairs) {
    for (Index i = 0; i < K; i += R)  // rows are padded to a multiple of eight, so that R of them can be read
        pair_block<R, L>(alpha + i, v, own_at, T, width, K - i, M + i * width, pairs + i * width);
}

// Whether a number that is not zero came near underflow.
[[gnu::always_inline]] inline bool faint(const double* x, Index K) {
    bool found = false;
    for (Index k = 0; k < K; ++k) found |= x[k] > 0.0 && x[k] < kGuard;
    return found;
}

}  // namespace detail

struct Chain {
    Index T, K, width;
    const double *weight, *turned;          // M, Mᵀ
    const std::int32_t* own_at;             // positions with transition weights of their own,
    const double* own;                      // K × width each
    const double* exps;
    double *alpha, *beta, *ahead, *total;   // a_t, b_t, e_t b_t, Σ a_t
    bool watched;                           // look out for faint numbers
};

namespace detail {

// Both recursions: alpha, beta, ahead and total. False when a number came near underflow.
[[gnu::always_inline]] inline bool recursions(const Chain& c) {
    const Index T = c.T, K = c.K, width = c.width;
    bool fine = true;
    Lanes all = {}, x, y;
    double* b = c.beta + (T - 1) * width;
    for (Index j = 0; j < width; j += 8) load(c.exps + j, x), all += x, store(c.alpha + j, x);
    for (Index j = 0; j < width; ++j) b[j] = j < K ? 1.0 : 0.0;
    double before = sum(all), after = static_cast<double>(K);
    c.total[0] = before;
    for (Index t = 1; t < T; ++t) {
        double* a = c.alpha + t * width;
        const Index u = T - t;
        const double *forward = c.own_at[t] < 0 ? c.weight : c.own + c.own_at[t] * K * width, *e = c.exps + u * width;
        fine &= before > 0.0 && after > 0.0;
        double* v = c.ahead + u * width;
        for (Index j = 0; j < width; j += 8) load(e + j, x), load(b + j, y), store(v + j, x * y);
        before = c.total[t] = step(a - width, forward, c.exps + t * width, 1.0 / before, K, width, a);
        b -= width;
        after = c.own_at[u] < 0 ? step(v, c.turned, nullptr, 1.0 / after, K, width, b)
                                : step_back(v, c.own + c.own_at[u] * K * width, 1.0 / after, K, width, b);
        if (c.watched) fine &= !faint(a, K) && !faint(b, K);
    }
    return fine && before > 0.0;
}

// beta ← marginals, ahead ← e_t b_t / (n_t Σ a_{t−1}), so that a_{t−1}(i) M(i, j) ahead_t(j) is a joint probability.
[[gnu::always_inline]] inline bool normalize(const Chain& c) {
    bool fine = true;
    for (Index t = 0; t < c.T; ++t) {
        const double* a = c.alpha + t * c.width;
        double *b = c.beta + t * c.width, *v = c.ahead + t * c.width;
        Lanes all = {}, x, y;
        for (Index j = 0; j < c.width; j += 8) load(a + j, x), load(b + j, y), x *= y, all += x, store(b + j, x);
        const double n = sum(all), unit = 1.0 / n;
        fine &= n > kLeast;
        for (Index j = 0; j < c.width; j += 8) load(b + j, x), store(b + j, x * unit);
        if (t == 0) continue;
        const double by = unit / c.total[t - 1];
        for (Index j = 0; j < c.width; j += 8) load(v + j, x), store(v + j, x * by);
    }
    return fine;
}

// As many rows of pairs at a time as waste the fewest.
template <int R, int L>
[[gnu::always_inline]] inline void pair_columns(const Chain& c, Index j, double* pairs) {
    if (R > 4 && (c.K - 1) % 8 < 4)
        pair_rows<4, L>(c.alpha, c.ahead + j, c.own_at, c.T, c.K, c.width, c.weight + j, pairs + j);
    else
        pair_rows<R, L>(c.alpha, c.ahead + j, c.own_at, c.T, c.K, c.width, c.weight + j, pairs + j);
}

}  // namespace detail

// Both passes; beta ends up holding the marginals. False when a number came near underflow.
CERTIFIT_CLONES [[maybe_unused]] static bool forward_backward(const Chain& c, double* pairs) {
    const bool fine = detail::recursions(c) && detail::normalize(c);
    Index j = 0;
    for (; j + 32 <= c.width; j += 32) detail::pair_columns<4, 4>(c, j, pairs);
    switch ((c.width - j) / 8) {
        case 3: detail::pair_columns<4, 3>(c, j, pairs); break;
        case 2: detail::pair_columns<8, 2>(c, j, pairs); break;
        case 1: detail::pair_columns<8, 1>(c, j, pairs); break;
        default: break;
    }
    return fine;
}

// Σ log x; x has room up to a multiple of eight.
CERTIFIT_CLONES [[maybe_unused]] static double sum_of_logs(double* x, Index n) {
    Lanes all = {}, v;
    for (Index k = n; k < padded(n); ++k) x[k] = 1.0;
    for (Index k = 0; k < n; k += 8) load(x + k, v), all += logarithm(v);
    return detail::sum(all);
}

// log Σ_j exp(score(i, j) + inside(j)) for each row i
CERTIFIT_CLONES [[maybe_unused]] static void upward(const double* score, const double* inside, Index rows, Index K, Index width,
                                                    double* scratch, double* out) {
    for (Index i = 0; i < rows; ++i, score += width) {
        double most = kNever;
        for (Index j = 0; j < K; ++j) {
            scratch[j] = score[j] + inside[j];
            most = scratch[j] > most ? scratch[j] : most;
        }
        if (most == kNever) {
            out[i] = kNever;
            continue;
        }
        double all = 0.0;
        for (Index j = 0; j < K; ++j) {
            const double a = scratch[j] - most;
            all += a >= -708.0 ? exponential(a < -708.0 ? -708.0 : a) : 0.0;
        }
        out[i] = most + std::log(all);
    }
}

// joint(i, j) = P(parent = i) · exp(score(i, j) + inside(j) − message(i)), and its sums over i
CERTIFIT_CLONES [[maybe_unused]] static void downward(const double* score, const double* inside, const double* message,
                                                      const double* parent, Index K, Index width, double* joint, double* below) {
    for (Index j = 0; j < width; ++j) below[j] = 0.0;
    for (Index i = 0; i < K; ++i, score += width, joint += width) {
        for (Index j = 0; j < width; ++j) joint[j] = 0.0;
        if (!(parent[i] > 0.0) || message[i] == kNever) continue;
        for (Index j = 0; j < K; ++j) {
            const double a = score[j] + inside[j] - message[i];
            joint[j] = a >= -708.0 ? parent[i] * exponential(a < -708.0 ? -708.0 : (a > 0.0 ? 0.0 : a)) : 0.0;
            below[j] += joint[j];
        }
    }
}

// The log-space recursion for trees and for chains of any scores. pair(t, joint) sees P(y_parent, y_t) of every position with a
// parent.
template <class Pair>
void sum_product_tree(const Sequences& data, const Transitions& trans, Index i, Work& work, Pair&& pair) {
    const Index T = data.length(i), K = work.K, width = work.width;
    const std::int64_t from = data.offset[i];
    const auto parent = [&](Index t) { return data.parent ? static_cast<Index>(data.parent[from + t]) : t - 1; };
    const auto at = [&](Index r) { return data.order ? static_cast<Index>(data.order[from + r]) : r; };
    AlignedVector<double> scratch(width), joint(K * width);
    const std::vector<double> flat(width, 0.0);  // the scores of a root: nothing leads to it
    work.message.resize(T * width);
    work.log_z = 0.0;
    AlignedVector<double> inside(work.unary.begin(), work.unary.begin() + T * width);
    for (Index r = T - 1; r >= 0; --r) {
        const Index t = at(r), p = parent(t);
        double* in = inside.data() + t * width;
        if (p >= 0) {
            const double* own = work.own_scores(t);
            double* m = work.message.data() + t * width;
            upward(own ? own : trans.score.data(), in, K, K, width, scratch.data(), m);
            // Only differences matter to the parent; without their common part the numbers stay small on a long way up.
            const double top = *std::max_element(m, m + K), part = std::isfinite(top) ? top : 0.0;
            for (Index k = 0; k < K; ++k) inside[p * width + k] += m[k] - part;
            work.log_z += part;
        } else {
            upward(flat.data(), in, 1, K, width, scratch.data(), work.message.data() + t * width);
            work.log_z += work.message[t * width];
        }
    }
    work.beta.resize(std::max<std::size_t>(work.beta.size(), T * width));
    for (Index r = 0; r < T; ++r) {
        const Index t = at(r), p = parent(t);
        double *in = inside.data() + t * width, *mu = work.beta.data() + t * width;
        if (p < 0) {
            for (Index k = 0; k < width; ++k) mu[k] = k < K ? std::exp(in[k] - work.message[t * width]) : 0.0;
            continue;
        }
        const double* own = work.own_scores(t);
        downward(own ? own : trans.score.data(), in, work.message.data() + t * width, work.beta.data() + p * width, K, width,
                 joint.data(), mu);
        pair(t, joint.data());
    }
}

// Fills work.log_z, work.beta (marginals, positions × width) and work.pairs (expected transitions that share A, plus those of
// positions with their own); pair(t, joint) sees the joint probabilities of positions with transitions of their own.
template <class Pair>
void sum_product(const Sequences& data, const Transitions& trans, Index i, Work& work, Pair&& pair) {
    const Index T = data.length(i), K = work.K, width = work.width, size = T * width;
    const auto grow = [](AlignedVector<double>& x, Index n) {
        if (static_cast<Index>(x.size()) < n) x.resize(n);
    };
    std::fill(work.pairs.begin(), work.pairs.end(), 0.0);
    bool scaled = !data.parent;
    if (scaled) {
        grow(work.exps, size), grow(work.alpha, size), grow(work.beta, size), grow(work.ahead, size);
        grow(work.total, padded(T)), grow(work.shift, T), grow(work.range, T), grow(work.own_shift, T);
        spans_of(work.unary.data(), T, width, work.shift.data(), work.range.data());
        double edge = T > 1 ? trans.range : 0.0, most = 0.0;
        for (Index t = 0; t < T; ++t) {
            if (double* own = work.own_scores(t)) {
                double range;
                spans_of(own, 1, K * width, &work.own_shift[t], &range);
                edge = range > edge || range != range ? range : edge;
            }
            most = work.range[t] > most || work.range[t] != work.range[t] ? work.range[t] : most;
        }
        scaled = trans.forbids ? edge + most <= kGuardedSwing : 4.0 * edge + most <= kSwing;  // false of what is not a number
    }
    if (scaled) {
        exponentials(work.unary.data(), T, K, width, work.shift.data(), 1, work.exps.data());
        std::vector<double> kept;
        if (work.owned) kept.assign(work.own.begin(), work.own.begin() + work.owned * K * width);
        double shifts = 0.0;
        for (Index t = 0; t < T; ++t) {
            shifts += work.shift[t];
            if (t == 0) continue;
            if (double* own = work.own_scores(t)) {
                shifts += work.own_shift[t];
                exponentials(kept.data() + work.own_at[t] * K * width, K, K, width, &work.own_shift[t], 0, own);
            } else {
                shifts += trans.highest;
            }
        }
        const Chain c{T, K, width, trans.weight.data(), trans.turned.data(), work.own_at.data(), work.own.data(),
                      work.exps.data(), work.alpha.data(), work.beta.data(), work.ahead.data(), work.total.data(),
                      trans.forbids};
        scaled = forward_backward(c, work.pairs.data());
        if (scaled) {
            work.log_z = sum_of_logs(work.total.data(), T) + shifts;
            AlignedVector<double> joint(work.owned ? K * width : 0);
            for (Index t = 1; t < T && work.owned; ++t) {
                const double* own = work.own_scores(t);
                if (!own) continue;
                for (Index a = 0; a < K; ++a)
                    for (Index j = 0; j < width; ++j) {
                        joint[a * width + j] = work.alpha[(t - 1) * width + a] * own[a * width + j] * work.ahead[t * width + j];
                        work.pairs[a * width + j] += joint[a * width + j];
                    }
                pair(t, joint.data());
            }
        }
        if (work.owned) std::copy(kept.begin(), kept.end(), work.own.begin());
    }
    if (!scaled) {
        std::fill(work.pairs.begin(), work.pairs.end(), 0.0);
        sum_product_tree(data, trans, i, work, [&](Index t, const double* joint) {
            for (Index x = 0; x < K * width; ++x) work.pairs[x] += joint[x];
            if (work.own_at[t] >= 0) pair(t, joint);
        });
    }
}

}  // namespace certifit::chain
