// log Z, the marginals of labels and the expected numbers of transitions.
//
// On a chain the recursions run on numbers scaled to sum one (Rabiner 1989):
//
//   a_t(j) = e_t(j) Σ_i a_{t−1}(i) M(i, j) / c_t,      b_{t−1}(i) = Σ_j M(i, j) e_t(j) b_t(j) / c_t,      log Z = Σ log c_t + shifts
//
// with e_t = exp(U_t − max U_t) and M = exp(A − max A) made once for all sequences: a step is K² multiplications and additions.
// When every transition is allowed, a label is at most range(A) + range(U_t) behind the best one, whatever came before; so nothing
// is lost to underflow while that is below 600. With forbidden transitions a label can fall behind step by step; then the numbers
// themselves are watched. Whatever fails the test is done in log space, by the recursion for trees:
//
//   m_v(i) = log Σ_j exp(A_v(i, j) + U_v(j) + Σ_children m_c(j)),    P(y_v = j | y_parent = i) = exp(A_v(i, j) + … − m_v(i))
//
// which goes down with conditional probabilities and cannot underflow. A chain is the tree in which everyone has one child.
#pragma once

#include "chain/model.hpp"

namespace certifit::chain {

constexpr double kSwing = 600.0;         // e^−600 is far from underflow
constexpr double kGuardedSwing = 130.0;  // with forbidden transitions: no step can jump over the guard below
constexpr double kGuard = 1e-250;

namespace detail {

[[gnu::always_inline]] inline double sum(const Lanes& v) { return vec::detail::total(v); }

// L × 8 numbers of Σ_i a(i) M(i, ·), times e if given; adds them to `all`. Two sums a lane keep the multipliers busy.
template <int L>
[[gnu::always_inline]] inline void step_block(const double* a, const double* M, const double* e, Index K, Index width, double* out, Lanes& all) {
    Lanes s[L] = {}, r[L] = {}, m;
    Index i = 0;
    for (; i + 2 <= K; i += 2, M += 2 * width)
        for (int l = 0; l < L; ++l) {
            load(M + 8 * l, m), s[l] += a[i] * m;
            load(M + width + 8 * l, m), r[l] += a[i + 1] * m;
        }
    for (int l = 0; l < L; ++l) {
        if (i < K) load(M + 8 * l, m), s[l] += a[i] * m;
        s[l] += r[l];
        if (e) load(e + 8 * l, m), s[l] *= m;
        all += s[l];
        store(out + 8 * l, s[l]);
    }
}

// out = Σ_i a(i) M(i, ·), times e if given; returns the sum of out.
[[gnu::always_inline]] inline double step(const double* a, const double* M, const double* e, Index K, Index width, double* out) {
    Lanes all = {};
    Index j = 0;
    for (; j + 32 <= width; j += 32) step_block<4>(a, M + j, e ? e + j : nullptr, K, width, out + j, all);
    switch ((width - j) / 8) {
        case 3: step_block<3>(a, M + j, e ? e + j : nullptr, K, width, out + j, all); break;
        case 2: step_block<2>(a, M + j, e ? e + j : nullptr, K, width, out + j, all); break;
        case 1: step_block<1>(a, M + j, e ? e + j : nullptr, K, width, out + j, all); break;
        default: break;
    }
    return sum(all);
}

// pairs(i, j) = M(i, j) Σ_t a_{t−1}(i) v_t(j) for R rows from i and L × 8 columns from j, over the positions that share M.
template <int R, int L>
[[gnu::always_inline]] inline void pair_block(const double* alpha, const double* v, const std::int32_t* own_at, Index T, Index width, Index rows,
                                              const double* M, double* pairs) {
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
[[gnu::always_inline]] inline void pair_rows(const double* alpha, const double* v, const std::int32_t* own_at, Index T, Index K, Index width,
                                             const double* M, double* pairs) {
    for (Index i = 0; i < K; i += R)  // rows are padded to a multiple of eight, so that R of them can be read
        pair_block<R, L>(alpha + i, v, own_at, T, width, K - i, M + i * width, pairs + i * width);
}

[[gnu::always_inline]] inline void scale(double* x, double by, Index width) {
    Lanes v;
    for (Index j = 0; j < width; j += 8) load(x + j, v), store(x + j, v * by);
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
    double *alpha, *beta, *total;
    bool watched;                           // look out for faint numbers
};

// Both passes; beta ends up holding the marginals, exps holds e_t b_t / c_t. False when a number came near underflow.
CERTIFIT_CLONES [[maybe_unused]] static bool forward_backward(const Chain& c, double* exps, double* pairs) {
    const Index T = c.T, K = c.K, width = c.width;
    bool fine = true;
    {
        Lanes all = {}, v;
        for (Index j = 0; j < width; j += 8) load(exps + j, v), all += v, store(c.alpha + j, v);
        c.total[0] = detail::sum(all);
        fine &= c.total[0] > 0.0;
        detail::scale(c.alpha, 1.0 / c.total[0], width);
    }
    for (Index t = 1; t < T; ++t) {
        double* a = c.alpha + t * width;
        const double* M = c.own_at[t] < 0 ? c.weight : c.own + c.own_at[t] * K * width;
        c.total[t] = detail::step(a - width, M, exps + t * width, K, width, a);
        fine &= c.total[t] > 0.0;
        detail::scale(a, 1.0 / c.total[t], width);
        if (c.watched) fine &= !detail::faint(a, K);
    }
    double* b = c.beta + (T - 1) * width;
    for (Index j = 0; j < width; ++j) b[j] = 1.0;
    for (Index t = T - 1; t > 0; --t, b -= width) {
        double* v = exps + t * width;
        Lanes x, y;
        const double unit = 1.0 / c.total[t];
        for (Index j = 0; j < width; j += 8) load(v + j, x), load(b + j, y), store(v + j, x * y * unit);
        if (c.own_at[t] < 0) {
            detail::step(v, c.turned, nullptr, K, width, b - width);
        } else {
            const double* M = c.own + c.own_at[t] * K * width;
            for (Index i = 0; i < width; ++i) b[i - width] = 0.0;
            for (Index i = 0; i < K; ++i, M += width) {
                Lanes s = {};
                for (Index j = 0; j < width; j += 8) load(M + j, x), load(v + j, y), s += x * y;
                b[i - width] = detail::sum(s);
            }
        }
        if (c.watched) fine &= !detail::faint(b - width, K);
    }
    Index j = 0;
    for (; j + 32 <= width; j += 32)
        detail::pair_rows<4, 4>(c.alpha, exps + j, c.own_at, T, K, width, c.weight + j, pairs + j);
    switch ((width - j) / 8) {
        case 3: detail::pair_rows<4, 3>(c.alpha, exps + j, c.own_at, T, K, width, c.weight + j, pairs + j); break;
        case 2: detail::pair_rows<8, 2>(c.alpha, exps + j, c.own_at, T, K, width, c.weight + j, pairs + j); break;
        case 1: detail::pair_rows<8, 1>(c.alpha, exps + j, c.own_at, T, K, width, c.weight + j, pairs + j); break;
        default: break;
    }
    for (Index x = 0; x < T * width; x += 8) {
        Lanes a, v;
        load(c.alpha + x, a), load(c.beta + x, v);
        store(c.beta + x, a * v);
    }
    return fine;
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
CERTIFIT_CLONES [[maybe_unused]] static void downward(const double* score, const double* inside, const double* message, const double* parent,
                                                      Index K, Index width, double* joint, double* below) {
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

// The log-space recursion for trees and for chains of any scores. pair(t, joint) sees P(y_parent, y_t) of every position with a parent.
template <class Pair>
void sum_product_tree(const Sequences& data, const Transitions& trans, Index i, Work& work, Pair&& pair) {
    const Index T = data.length(i), K = work.K, width = work.width;
    const std::int64_t from = data.offset[i];
    const auto parent = [&](Index t) { return data.parent ? static_cast<Index>(data.parent[from + t]) : t - 1; };
    const auto at = [&](Index r) { return data.order ? static_cast<Index>(data.order[from + r]) : r; };
    std::vector<double> scratch(width), joint(K * width);
    const std::vector<double> flat(width, 0.0);  // the scores of a root: nothing leads to it
    work.message.resize(T * width);
    work.log_z = 0.0;
    std::vector<double> inside(work.unary.begin(), work.unary.begin() + T * width);
    for (Index r = T - 1; r >= 0; --r) {
        const Index t = at(r), p = parent(t);
        double* in = inside.data() + t * width;
        if (p >= 0) {
            const double* own = work.own_scores(t);
            double* m = work.message.data() + t * width;
            upward(own ? own : trans.score.data(), in, K, K, width, scratch.data(), m);
            for (Index k = 0; k < K; ++k) inside[p * width + k] += m[k];
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
        downward(own ? own : trans.score.data(), in, work.message.data() + t * width, work.beta.data() + p * width, K, width, joint.data(), mu);
        pair(t, joint.data());
    }
}

// Fills work.log_z, work.beta (marginals, positions × width) and work.pairs (expected transitions that share A, plus those of positions
// with their own); pair(t, joint) sees the joint probabilities of positions with transitions of their own.
template <class Pair>
void sum_product(const Sequences& data, const Transitions& trans, Index i, Work& work, Pair&& pair) {
    const Index T = data.length(i), K = work.K, width = work.width, size = T * width;
    const auto grow = [](std::vector<double>& x, Index n) {
        if (static_cast<Index>(x.size()) < n) x.resize(n);
    };
    std::fill(work.pairs.begin(), work.pairs.end(), 0.0);
    bool scaled = !data.parent;
    if (scaled) {
        grow(work.exps, size), grow(work.alpha, size), grow(work.beta, size), grow(work.total, T), grow(work.shift, T);
        grow(work.own_shift, T);
        double swing = 0.0;
        for (Index t = 0; t < T; ++t) {
            double range, edge = trans.range;
            span_of(work.u(t), 1, K, width, work.shift[t], range);
            if (double* own = work.own_scores(t)) span_of(own, K, K, width, work.own_shift[t], edge);
            swing = std::max(swing, range + (t > 0 ? edge : 0.0));
            if (!(range + edge <= kSwing)) swing = kSwing + 1.0;  // also when it is not a number
        }
        scaled = swing <= (trans.forbids ? kGuardedSwing : kSwing);
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
                      work.alpha.data(), work.beta.data(), work.total.data(), trans.forbids};
        scaled = forward_backward(c, work.exps.data(), work.pairs.data());
        if (scaled) {
            double log_z = 0.0;
            for (Index t = 0; t < T; ++t) log_z += std::log(work.total[t]);
            work.log_z = log_z + shifts;
            std::vector<double> joint(work.owned ? K * width : 0);
            for (Index t = 1; t < T && work.owned; ++t) {
                const double* own = work.own_scores(t);
                if (!own) continue;
                for (Index a = 0; a < K; ++a)
                    for (Index j = 0; j < width; ++j) {
                        joint[a * width + j] = work.alpha[(t - 1) * width + a] * own[a * width + j] * work.exps[t * width + j];
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
