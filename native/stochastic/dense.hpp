// Stochastic gradient descent over dense rows.
//
//   min over w, b    Σ p_i ℓ(y_i, x_i·w + b) + Σ_j (l1|w_j| + ½ l2 w_j²)
//
// A step on a batch of rows B with step size η is proximal:
//
//   z = w − η · mean_B ℓ'(y_i, f_i) x_i,      w ← soft(z, η l1) / (1 + η l2),      b ← b − η · mean_B ℓ'(y_i, f_i).
//
// The prox is stable for every η. Bottou 2012; Polyak and Juditsky 1992 (averaging).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/interrupt.hpp"
#include "core/rows.hpp"
#include "core/simd.hpp"
#include "stochastic/plan.hpp"

namespace certifit::sgd {

constexpr double kFar = 1e100;  // a score beyond this is divergence: its square is near the end of the number range
constexpr Index kAhead = 10;     // rows fetched ahead: a shuffled row comes from memory, not from the cache

// Dense rows are read as whole vectors of eight; the last one overlaps its neighbor, and the coefficients of the overlap
// are structural zeros (`mask`), so that no tail loop remains. Needs d ≥ 8: narrower matrices come with zero columns.
struct Padded {
    Index d, full, rest, size;
    Lanes mask;

    explicit Padded(Index d_) : d(d_), full(d_ / 8), rest(d_ % 8), size(full + (rest ? 1 : 0)) {
        for (Index k = 0; k < 8; ++k) mask[k] = rest == 0 || k >= 8 - rest ? 1.0 : 0.0;
    }
    Index at(Index block) const { return block < full ? 8 * block : d - 8; }
    void load(const double* w, Lanes* out) const {
        for (Index k = 0; k < full; ++k) vec::detail::load(w + 8 * k, out[k]);
        if (rest) vec::detail::load(w + d - 8, out[full]), out[full] *= mask;
    }
    void store(const Lanes* v, double* w) const {
        for (Index k = 0; k < full; ++k) *reinterpret_cast<Lanes*>(w + 8 * k) = v[k];
        for (Index k = 8 - rest; rest && k < 8; ++k) w[d - 8 + k] = v[full][k];
    }
};

// One row a step and no threshold: the common case. The score of the next row is known before the step of this one is,
//   x'·w⁺ = shrink · (x'·w − step · x'·x),
// so that both products run while the derivative, the slow link of the chain, is computed.
template <class T>
[[gnu::always_inline]] inline void dense_single(const DenseRows<T>& X, const double* y, const std::uint32_t* order, Index count,
                                                const Plan& plan, State& state, Lanes* memory) {
    const Padded pad(X.d);
    const Index size = pad.size, d = X.d, last = size - 1;
    Lanes *w = memory, *sum = w + size;
    pad.load(state.w, w);
    if (plan.average) pad.load(state.w_sum, sum);
    const Index line = 64 / static_cast<Index>(sizeof(T));
    double b = state.b, b_sum = state.b_sum, t = state.t, loss_sum = 0.0, watched = 0.0;
    const Index from = plan.average ? std::min(plan.average_from, count) : count;
    const T* x = X.row(order[0]);
    double f = 0.0;
    {
        Lanes s = {}, v;
        for (Index k = 0; k < size; ++k) vec::detail::load(x + pad.at(k), v), s += v * w[k];
        f = b + vec::detail::total(s);
    }
    const Lanes mask = pad.mask;
    const Index tail = pad.at(last);
    Index until = 0;  // the next row whose loss is watched
    for (Index i = 0; i < count; ++i) {
        if (i + kAhead < count) {
            const T* later = X.row(order[i + kAhead]);
            for (Index j = 0; j < d; j += line) __builtin_prefetch(later + j);
            __builtin_prefetch(later + d - 1);
            __builtin_prefetch(y + order[i + kAhead]);
        }
        const Index row = order[i];
        const T* next = i + 1 < count ? X.row(order[i + 1]) : x;
        if (!(std::fabs(f) < kFar)) {
            state.diverged = true;
            break;
        }
        const double g = plan.loss.derivative(y[row], f);
        if (i == until) loss_sum += plan.loss.value(y[row], f), watched += 1.0, until += plan.watch;
        if (state.dual) state.dual[row] += g, state.visits[row] += 1.0;
        t += 1.0;
        const double eta = plan.schedule.at(t), shrink = 1.0 / (1.0 + eta * plan.l2), step = eta * g;
        if (plan.intercept) b -= step;
        Lanes ahead = {}, cross = {}, u, v;
        if (i >= from) {
            for (Index k = 0; k < last; ++k) {
                vec::detail::load(x + 8 * k, v), vec::detail::load(next + 8 * k, u);
                ahead += u * w[k], cross += u * v;
                w[k] = (w[k] - step * v) * shrink;
                sum[k] += w[k];
            }
            vec::detail::load(x + tail, v), vec::detail::load(next + tail, u);
            v *= mask, ahead += u * w[last], cross += u * v;
            w[last] = (w[last] - step * v) * shrink;
            sum[last] += w[last];
            b_sum += b;
        } else {
            for (Index k = 0; k < last; ++k) {
                vec::detail::load(x + 8 * k, v), vec::detail::load(next + 8 * k, u);
                ahead += u * w[k], cross += u * v;
                w[k] = (w[k] - step * v) * shrink;
            }
            vec::detail::load(x + tail, v), vec::detail::load(next + tail, u);
            v *= mask, ahead += u * w[last], cross += u * v;
            w[last] = (w[last] - step * v) * shrink;
        }
        f = b + shrink * (vec::detail::total(ahead) - step * vec::detail::total(cross));
        x = next;
    }
    pad.store(w, state.w);
    if (plan.average) pad.store(sum, state.w_sum);
    state.b = b, state.b_sum = b_sum, state.averaged += static_cast<double>(count - from), state.t = t;
    state.loss_sum += loss_sum, state.watched += watched;
}

template <class T>
[[gnu::always_inline]] inline void dense_body(const DenseRows<T>& X, const double* y, const std::uint32_t* order, Index count,
                                              const Plan& plan, State& state, Lanes* memory) {
    const Padded pad(X.d);
    const Index size = pad.size, d = X.d;
    Lanes *w = memory, *sum = w + size, *gradient = sum + size;
    pad.load(state.w, w);
    if (plan.average) pad.load(state.w_sum, sum);
    const Lanes zero = {};
    const Index line = 64 / static_cast<Index>(sizeof(T));
    double b = state.b, b_sum = state.b_sum, averaged = state.averaged, t = state.t, loss_sum = 0.0, watched = 0.0;
    Index batch_number = 0;
    for (Index start = 0; start < count && !state.diverged; start += plan.batch, ++batch_number) {
        const Index stop = std::min(start + plan.batch, count);
        double slope = 0.0;
        const T* x = nullptr;
        if (stop - start > 1)
            for (Index k = 0; k < size; ++k) gradient[k] = zero;
        for (Index i = start; i < stop; ++i) {
            if (i + kAhead < count) {
                const T* later = X.row(order[i + kAhead]);
                for (Index j = 0; j < d; j += line) __builtin_prefetch(later + j);
            }
            const Index row = order[i];
            x = X.row(row);
            Lanes s0 = {}, s1 = {}, v;
            Index k = 0;
            for (; k + 2 <= pad.full; k += 2) {
                vec::detail::load(x + 8 * k, v), s0 += v * w[k];
                vec::detail::load(x + 8 * k + 8, v), s1 += v * w[k + 1];
            }
            for (; k < size; ++k) vec::detail::load(x + pad.at(k), v), s0 += v * w[k];
            const double f = b + vec::detail::total(s0 + s1);
            if (!(std::fabs(f) < kFar)) {
                state.diverged = true;
                break;
            }
            const double g = plan.loss.derivative(y[row], f);
            if (i % plan.watch == 0) loss_sum += plan.loss.value(y[row], f), watched += 1.0;
            if (state.dual) state.dual[row] += g, state.visits[row] += 1.0;
            slope += g;
            if (stop - start > 1)
                for (k = 0; k < size; ++k) vec::detail::load(x + pad.at(k), v), gradient[k] += g * v;
        }
        t += 1.0;
        // A last batch with fewer rows takes a shorter step, so that every row counts the same.
        const double m = static_cast<double>(stop - start), full = static_cast<double>(plan.full);
        const double eta = plan.schedule.at(t) * (m / full), shrink = 1.0 / (1.0 + eta * plan.l2);
        const double threshold = eta * plan.l1;
        const bool averaging = plan.average && batch_number >= plan.average_from;
        slope /= m;
        if (plan.intercept) b -= eta * slope;
        const double step = stop - start > 1 ? eta / m : eta * slope;
        for (Index k = 0; k < size; ++k) {
            Lanes v = {};
            if (stop - start > 1)
                v = gradient[k];
            else
                vec::detail::load(x + pad.at(k), v);
            v = w[k] - step * v;
            const Lanes up = v - threshold, down = v + threshold;
            w[k] = (v > threshold ? up : (v < -threshold ? down : zero)) * shrink;
            if (threshold == 0.0) w[k] = v * shrink;
            if (averaging) sum[k] += w[k];
        }
        if (pad.rest) w[size - 1] *= pad.mask;
        if (averaging) {
            // The sum holds the overlap too; it is masked on the way out.
            b_sum += b, averaged += 1.0;
        }
    }
    pad.store(w, state.w);
    if (plan.average) pad.store(sum, state.w_sum);
    state.b = b, state.b_sum = b_sum, state.averaged = averaged, state.t = t;
    state.loss_sum += loss_sum, state.watched += watched;
}

#define CERTIFIT_DENSE_ROWS(T)                                                                                                  \
    CERTIFIT_CLONES [[maybe_unused]] static void dense_rows(const DenseRows<T>& X, const double* y, const std::uint32_t* order, \
                                                            Index count, const Plan& plan, State& state, Lanes* memory) {       \
        if (plan.batch == 1 && plan.l1 == 0.0)                                                                                  \
            dense_single(X, y, order, count, plan, state, memory);                                                              \
        else                                                                                                                    \
            dense_body(X, y, order, count, plan, state, memory);                                                                \
    }
CERTIFIT_DENSE_ROWS(double)
CERTIFIT_DENSE_ROWS(float)
#undef CERTIFIT_DENSE_ROWS

// All batches, a stretch at a time: no exception may leave a function that is cloned per instruction set, so signals are
// polled out here.
template <class T>
void dense_epoch(const DenseRows<T>& X, const double* y, const std::uint32_t* order, Index count, const Plan& plan,
                 State& state) {
    // Numbers, read as vectors of eight: w, its sum, and the gradient of a batch.
    std::vector<double> memory(static_cast<std::size_t>(3 * 8 * Padded(X.d).size));
    auto* lanes = reinterpret_cast<Lanes*>(memory.data());
    const Index stretch = std::max<Index>(1, std::max<Index>(1 << 12, (1 << 20) / X.d) / plan.batch) * plan.batch;
    SignalPoll poll;
    Plan part = plan;
    for (Index start = 0; start < count && !state.diverged; start += stretch) {
        poll.poll();
        part.average_from = std::max<Index>(0, plan.average_from - start / plan.batch);
        dense_rows(X, y, order + start, std::min(stretch, count - start), part, state, lanes);
    }
}

}  // namespace certifit::sgd
