// Stochastic gradient descent over rows, and the perceptron family.
//
//   min over w, b    Σ p_i ℓ(y_i, x_i·w + b) + Σ_j (l1|w_j| + ½ l2 w_j²)
//
// A step on a batch of rows B with step size η is proximal:
//
//   z = w − η · mean_B ℓ'(y_i, f_i) x_i,      w ← soft(z, η l1) / (1 + η l2),      b ← b − η · mean_B ℓ'(y_i, f_i).
//
// The prox is stable for every η. For sparse rows it is lazy: w = s·v with one scale s for L2, and the threshold that a
// coefficient of v missed since it was last touched is one number for all (thresholds in a row add up).
// Bottou 2012 (scale and averaging tricks); Tsuruoka et al. 2009 (lazy L1); Polyak and Juditsky 1992 (averaging).
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "core/interrupt.hpp"
#include "core/simd.hpp"
#include "core/team.hpp"
#include "core/vector.hpp"

namespace certifit::sgd {

using Index = std::ptrdiff_t;
using Lanes = vec::detail::Lanes;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kFar = 1e100;  // a score beyond this is divergence: its square is near the end of the number range
constexpr Index kAhead = 10;     // rows fetched ahead: a shuffled row comes from memory, not from the cache

// --- exponential and logarithm of eight numbers, to about one unit in the last place ------------------------------
//
// libm takes them one at a time; for the logistic loss, which needs two of each for every row, that is most of the work.

// Every function here is inlined, so that how a caller without wide registers would pass a vector does not matter.
// (Not popped: the compiler reports some of them at the end of the file.)
#pragma GCC diagnostic ignored "-Wpsabi"

namespace detail {

typedef std::int64_t Whole __attribute__((vector_size(64), aligned(8), may_alias));

// The same bits, read as the other type.
[[gnu::always_inline]] inline std::int64_t bits_of(double x) { return std::bit_cast<std::int64_t>(x); }
[[gnu::always_inline]] inline double number_of(std::int64_t x) { return std::bit_cast<double>(x); }
[[gnu::always_inline]] inline Whole bits_of(const Lanes& x) { return (Whole)x; }
[[gnu::always_inline]] inline Lanes number_of(const Whole& x) { return (Lanes)x; }

constexpr double kRound = 6755399441055744.0;  // 1.5·2^52: adding it leaves the nearest whole number in the low bits
constexpr double kLog2High = 0.6931471803691238, kLog2Low = 1.9082149292705877e-10;

// x in [−708, 709]: 2^n·e^r with |r| ≤ ln(2)/2 and the Taylor polynomial of degree 13, split in two for a shorter chain.
template <class V>
[[gnu::always_inline]] inline V exponential(const V& x) {
    const V t = x * 1.4426950408889634 + kRound, n = t - kRound;
    const V r = (x - n * kLog2High) - n * kLog2Low, q = r * r;
    V even = q * (1.0 / 479001600) + 1.0 / 3628800, odd = q * (1.0 / 6227020800.0) + 1.0 / 39916800;
    even = even * q + 1.0 / 40320, odd = odd * q + 1.0 / 362880;
    even = even * q + 1.0 / 720, odd = odd * q + 1.0 / 5040;
    even = even * q + 1.0 / 24, odd = odd * q + 1.0 / 120;
    even = even * q + 1.0 / 2, odd = odd * q + 1.0 / 6;
    even = even * q + 1.0, odd = odd * q + 1.0;
    return (even + r * odd) * number_of((bits_of(t) + 1023) << 52);
}

// x normal and positive: k·ln 2 + 2·artanh((m − 1)/(m + 1)) with x = m·2^k and m in [√½, √2).
[[gnu::always_inline]] inline Lanes logarithm(const Lanes& x) {
    const Whole bits = bits_of(x);
    const Whole k = (bits - 0x3fe6a09e667f3bcd) >> 52;  // the exponent of x/√½
    const Lanes m = number_of(bits - (k << 52));
    const Lanes u = (m - 1.0) / (m + 1.0), q = u * u;
    Lanes tail = q * (1.0 / 19) + 1.0 / 17;
    for (const double c : {1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3}) tail = tail * q + c;
    tail *= q;
    const Lanes n = __builtin_convertvector(k, Lanes);
    return n * kLog2High + (n * kLog2Low + (2.0 * u + 2.0 * u * tail));
}

[[gnu::always_inline]] inline Lanes larger(const Lanes& a, double b) { return a > b ? a : (a * 0.0 + b); }

}  // namespace detail

// --- losses -----------------------------------------------------------------------------------------------------

enum class Kind { squared, absolute, huber, quantile, epsilon, logistic, hinge, squared_hinge, exponential, poisson, gamma };

// The formulas of certifit.losses; `a` and `c` are the parameters of the loss.
struct Loss {
    Kind kind;
    double a = 0.0, c = 0.0;

    [[gnu::always_inline]] static double logistic(double f) {
        const double e = detail::exponential(-std::min(std::fabs(f), 708.0)), share = 1.0 / (1.0 + e);
        return f >= 0 ? share : e * share;
    }
    static double xlogx(double u) { return u > 0 ? u * std::log(u) : 0.0; }

    [[gnu::always_inline]] double derivative(double y, double f) const {
        switch (kind) {
            case Kind::squared: return f - y;
            case Kind::absolute: return f > y ? 1.0 : f < y ? -1.0 : 0.0;
            case Kind::huber: return c * std::clamp(f - y, -a, a);
            case Kind::quantile: return f > y ? 1.0 - a : f < y ? -a : 0.0;
            case Kind::epsilon: return f > y + a ? 1.0 : f < y - a ? -1.0 : 0.0;
            case Kind::logistic: return logistic(f) - y;
            case Kind::hinge: return y > 0.5 ? (f < a ? -1.0 : 0.0) : (f > -a ? 1.0 : 0.0);
            case Kind::squared_hinge: {
                const double sign = 2.0 * y - 1.0;
                return -sign * std::max(1.0 - sign * f, 0.0);
            }
            case Kind::exponential: {
                const double sign = 2.0 * y - 1.0;
                return -sign * std::exp(-sign * f);
            }
            case Kind::poisson: return std::exp(f) - y;
            case Kind::gamma: return -std::expm1(std::log(y) - f);
        }
        return 0.0;
    }

    double value(double y, double f) const {
        switch (kind) {
            case Kind::squared: return 0.5 * (f - y) * (f - y);
            case Kind::absolute: return std::fabs(f - y);
            case Kind::huber: {
                const double r = std::fabs(f - y), inner = std::min(r, a);
                return c * inner * (r - 0.5 * inner);
            }
            case Kind::quantile: return f > y ? (1.0 - a) * (f - y) : a * (y - f);
            case Kind::epsilon: return std::max(std::fabs(f - y) - a, 0.0);
            case Kind::logistic: {
                const double soft = (f > 0 ? f : 0.0) + std::log1p(std::exp(-std::fabs(f)));
                const double entropy = y > 0 && y < 1 ? -xlogx(y) - xlogx(1.0 - y) : 0.0;
                return std::max(soft - y * f - entropy, 0.0);
            }
            case Kind::hinge: return std::max(a - (2.0 * y - 1.0) * f, 0.0);
            case Kind::squared_hinge: {
                const double m = std::max(1.0 - (2.0 * y - 1.0) * f, 0.0);
                return 0.5 * m * m;
            }
            case Kind::exponential: return std::exp(-(2.0 * y - 1.0) * f);
            case Kind::poisson: return std::max(std::exp(f) - y * f - y + xlogx(y), 0.0);
            case Kind::gamma: {
                const double ratio = std::log(y) - f;
                return std::max(std::expm1(ratio) - ratio, 0.0);
            }
        }
        return 0.0;
    }

    bool smooth() const {
        return kind == Kind::squared || kind == Kind::huber || kind == Kind::logistic || kind == Kind::squared_hinge ||
               kind == Kind::exponential || kind == Kind::poisson || kind == Kind::gamma;
    }

    // ℓ'' and the conjugate, of the smooth losses only.
    double curvature(double y, double f) const {
        switch (kind) {
            case Kind::squared: return 1.0;
            case Kind::huber: return std::fabs(f - y) <= a ? c : 0.0;
            case Kind::logistic: {
                const double e = std::exp(-std::fabs(f));
                return e / ((1.0 + e) * (1.0 + e));
            }
            case Kind::squared_hinge: return (2.0 * y - 1.0) * f < 1.0 ? 1.0 : 0.0;
            case Kind::exponential: return std::exp(-(2.0 * y - 1.0) * f);
            case Kind::poisson: return std::exp(f);
            case Kind::gamma: return std::exp(std::log(y) - f);
            default: return 0.0;
        }
    }

    double conjugate(double y, double u) const {
        switch (kind) {
            case Kind::squared: return u * (0.5 * u + y);
            case Kind::huber: return std::fabs(u) <= a * c ? u * (0.5 * u / c + y) : kInfinity;
            case Kind::logistic: {
                const double q = u + y;
                if (!(q >= 0 && q <= 1)) return kInfinity;
                const double entropy = y > 0 && y < 1 ? -xlogx(y) - xlogx(1.0 - y) : 0.0;
                return xlogx(q) + xlogx(1.0 - q) + entropy;
            }
            case Kind::squared_hinge: {
                const double v = (2.0 * y - 1.0) * u;
                return v <= 0 ? v * (1.0 + 0.5 * v) : kInfinity;
            }
            case Kind::exponential: {
                const double v = -(2.0 * y - 1.0) * u;
                return v >= 0 ? xlogx(v) - v : kInfinity;
            }
            case Kind::poisson: return u + y >= 0 ? xlogx(u + y) - xlogx(y) - u : kInfinity;
            case Kind::gamma: return u <= 1 ? u * std::log(y) + xlogx(1.0 - u) + u : kInfinity;
            default: return kInfinity;
        }
    }
};

// --- rows -------------------------------------------------------------------------------------------------------

template <class T>
struct Dense {
    const T* data;
    Index n, d;
    const T* row(Index i) const { return data + i * d; }
};

template <class T, class I>
struct Csr {
    const T* data;
    const I* indices;
    const I* indptr;
    Index n, d;
};

// xoshiro256++ (Blackman and Vigna 2019): the order of the rows must not depend on a library's generator.
struct Random {
    std::uint64_t s[4];

    static std::uint64_t rotate(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
    std::uint64_t next() {
        const std::uint64_t result = rotate(s[0] + s[3], 23) + s[0], t = s[1] << 17;
        s[2] ^= s[0], s[3] ^= s[1], s[1] ^= s[2], s[0] ^= s[3], s[2] ^= t;
        s[3] = rotate(s[3], 45);
        return result;
    }
    // Uniform on 0 … n−1 by multiplication (Lemire 2019); the bias of 2^-32·n per draw is left in.
    std::uint64_t below(std::uint64_t n) {
        return static_cast<std::uint64_t>((static_cast<unsigned __int128>(next()) * n) >> 64);
    }
};

inline void shuffle(std::uint32_t* order, Index n, Random& random) {
    for (Index i = n - 1; i > 0; --i) std::swap(order[i], order[random.below(static_cast<std::uint64_t>(i) + 1)]);
}

// The same for rows too many for the cache: blocks of neighbors are dealt at random into groups, and each group is shuffled
// as a whole. Neighbors then share pages and memory bursts, and a group is still a random sample of blocks.
inline void shuffle_blocks(std::uint32_t* order, Index n, Index block, Index group, Random& random) {
    const Index blocks = n / block;
    std::vector<std::uint32_t> dealt(static_cast<std::size_t>(blocks)), kept(order, order + n);
    for (Index k = 0; k < blocks; ++k) dealt[static_cast<std::size_t>(k)] = static_cast<std::uint32_t>(k);
    shuffle(dealt.data(), blocks, random);
    for (Index k = 0; k < blocks; ++k)
        std::copy_n(kept.data() + static_cast<Index>(dealt[static_cast<std::size_t>(k)]) * block, block, order + k * block);
    const Index size = block * group;
    for (Index start = 0; start < n; start += size) shuffle(order + start, std::min(size, n - start), random);
}

// --- one epoch --------------------------------------------------------------------------------------------------

// η_t = size / (offset + slope·t)^power, with t counting batches from 1.
struct Schedule {
    double size, offset, slope, power;

    double at(double t) const {
        if (power == 0.0) return size;
        const double x = offset + slope * t;
        if (power == 1.0) return size / x;
        const double root = std::sqrt(x);
        if (power == 0.5) return size / root;
        return power == 0.75 ? size / (root * std::sqrt(root)) : size * std::pow(x, -power);
    }
};

struct Plan {
    Loss loss;
    Schedule schedule;
    double l1, l2;
    bool intercept, average;
    Index batch;
    Index average_from;  // batches of this epoch that are not averaged yet
    Index watch;         // every how many rows the running loss looks at one
    Index full;          // rows of a full batch: the batch size, or all rows if they are fewer
};

// What an epoch reads and changes. `w_sum` and `b_sum` add up the iterates that are averaged, `dual` the derivatives of
// each row (with `visits` counting them), when they are wanted.
struct State {
    double* w;
    double b;
    double* w_sum;
    double b_sum;
    double averaged;
    double t;
    double* dual;
    double* visits;
    double loss_sum = 0.0;  // of watched rows, each before the step that used it: an honest running loss
    double watched = 0.0;
    bool diverged = false;
};

inline double soft(double z, double t) { return z > t ? z - t : z < -t ? z + t : 0.0; }

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
[[gnu::always_inline]] inline void dense_single(const Dense<T>& X, const double* y, const std::uint32_t* order, Index count,
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
[[gnu::always_inline]] inline void dense_body(const Dense<T>& X, const double* y, const std::uint32_t* order, Index count,
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

CERTIFIT_CLONES [[maybe_unused]] static void dense_rows(const Dense<double>& X, const double* y, const std::uint32_t* order,
                                                        Index count, const Plan& plan, State& state,
                                                        Lanes* memory) {
    if (plan.batch == 1 && plan.l1 == 0.0)
        dense_single(X, y, order, count, plan, state, memory);
    else
        dense_body(X, y, order, count, plan, state, memory);
}
CERTIFIT_CLONES [[maybe_unused]] static void dense_rows(const Dense<float>& X, const double* y, const std::uint32_t* order,
                                                        Index count, const Plan& plan, State& state,
                                                        Lanes* memory) {
    if (plan.batch == 1 && plan.l1 == 0.0)
        dense_single(X, y, order, count, plan, state, memory);
    else
        dense_body(X, y, order, count, plan, state, memory);
}

// All batches, a stretch at a time: no exception may leave a function that is cloned per instruction set, so signals are
// polled out here.
template <class T>
void dense_epoch(const Dense<T>& X, const double* y, const std::uint32_t* order, Index count, const Plan& plan, State& state) {
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

// Sparse rows: w = scale·v, thresholds and averages are lazy.
//   average: Σ w_k = c·v + u, because w changes only where a row is not zero.
class LazyRows {
  public:
    LazyRows(Index d, const Plan& plan, State& state)
        : plan_(plan), state_(state), v_(state.w, state.w + d), d_(d),
          eager_(plan.average && plan.l1 > 0) {  // an average of thresholded coefficients has no lazy form
        if (plan.l1 > 0 && !eager_) seen_.assign(static_cast<std::size_t>(d), 0.0);
        if (plan.average && !eager_) u_.assign(static_cast<std::size_t>(d), 0.0);
        derivative_.resize(static_cast<std::size_t>(plan.batch));
    }

    template <class T, class I>
    void run(const Csr<T, I>& X, const double* y, const std::uint32_t* order, Index count) {
        SignalPoll poll;
        Index batch_number = 0;
        for (Index start = 0; start < count && !state_.diverged; start += plan_.batch, ++batch_number) {
            if ((batch_number & 255) == 0) poll.poll();
            const Index stop = std::min(start + plan_.batch, count);
            double slope = 0.0;
            for (Index i = start; i < stop; ++i) {
                const Index row = order[i];
                double f = 0.0;
                for (I k = X.indptr[row]; k < X.indptr[row + 1]; ++k) {
                    const auto j = static_cast<std::size_t>(X.indices[k]);
                    if (!seen_.empty() && seen_[j] != missed_) v_[j] = soft(v_[j], missed_ - seen_[j]), seen_[j] = missed_;
                    f += static_cast<double>(X.data[k]) * v_[j];
                }
                f = f * scale_ + state_.b;
                if (!(std::fabs(f) < kFar)) {
                    state_.diverged = true;
                    break;
                }
                const double g = plan_.loss.derivative(y[row], f);
                if (i % plan_.watch == 0) state_.loss_sum += plan_.loss.value(y[row], f), state_.watched += 1.0;
                if (state_.dual) state_.dual[row] += g, state_.visits[row] += 1.0;
                derivative_[static_cast<std::size_t>(i - start)] = g;
                slope += g;
            }
            if (state_.diverged) break;
            state_.t += 1.0;
            const double m = static_cast<double>(stop - start), full = static_cast<double>(plan_.full);
            const double eta = plan_.schedule.at(state_.t) * (m / full);
            const double step = eta / (m * scale_);
            const bool averaging = plan_.average && batch_number >= plan_.average_from;
            if (plan_.intercept) state_.b -= eta * slope / m;
            for (Index i = start; i < stop; ++i) {
                const Index row = order[i];
                const double change = step * derivative_[static_cast<std::size_t>(i - start)];
                if (change == 0.0) continue;
                for (I k = X.indptr[row]; k < X.indptr[row + 1]; ++k) {
                    const auto j = static_cast<std::size_t>(X.indices[k]);
                    const double delta = -change * static_cast<double>(X.data[k]);
                    v_[j] += delta;
                    if (!u_.empty()) u_[j] -= c_ * delta;
                }
            }
            const double threshold = eta * plan_.l1 / scale_;
            if (eager_)
                for (double& v : v_) v = soft(v, threshold);
            else
                missed_ += threshold;
            scale_ /= 1.0 + eta * plan_.l2;
            if (averaging) {
                if (eager_)
                    for (Index j = 0; j < d_; ++j) state_.w_sum[j] += scale_ * v_[static_cast<std::size_t>(j)];
                else
                    c_ += scale_;
                state_.b_sum += state_.b, state_.averaged += 1.0;
            }
            if (!(scale_ > 1e-6) || missed_ > 1e12) settle();
        }
        settle();
        std::copy(v_.begin(), v_.end(), state_.w);
        for (std::size_t j = 0; j < u_.size(); ++j) state_.w_sum[j] += c_ * v_[j] + u_[j];
    }

  private:
    // Applies what is pending, so that v = w.
    void settle() {
        for (std::size_t j = 0; j < seen_.size(); ++j) v_[j] = soft(v_[j], missed_ - seen_[j]), seen_[j] = 0.0;
        missed_ = 0.0;
        for (double& v : v_) v *= scale_;
        c_ /= scale_, scale_ = 1.0;
    }

    const Plan& plan_;
    State& state_;
    std::vector<double> v_;
    Index d_;
    bool eager_;
    std::vector<double> seen_, u_, derivative_;
    double scale_ = 1.0, missed_ = 0.0, c_ = 0.0;
};

// --- evaluation -------------------------------------------------------------------------------------------------

// One pass over dense rows: the risk, and with θ = ℓ' and h = ℓ'' the products Xᵀ(pθ), Xᵀ(ph) and sums Σpθ, Σph, from
// which the dual point θ − h·(Σpθ/Σph), orthogonal to the intercept, is known without a second pass.
struct Evaluation {
    double risk = 0.0, slope = 0.0, curvature = 0.0;
    std::vector<double> g, h;
};

constexpr Index kBlock = 4096;  // rows; partial sums are added in the order of the blocks, whatever the threads
constexpr Index kAlone = 8;     // blocks of a column: passing over them takes less than to start a thread

// θ, h and the loss of eight rows.
[[gnu::always_inline]] inline void eight(const Loss& loss, const Lanes& y, const Lanes& f, Lanes& theta, Lanes& curvature, Lanes& value) {
    if (loss.kind == Kind::logistic) {
        const Lanes size = f > 0.0 ? f : -f, capped = size > 708.0 ? (size * 0.0 + 708.0) : size;
        const Lanes e = detail::exponential(-capped), share = 1.0 / (1.0 + e);
        const Lanes zero = {};
        theta = (f > 0.0 ? share : e * share) - y;
        curvature = e * share * share;
        value = (f > 0.0 ? f : zero) + detail::logarithm(1.0 + e) - y * f;
        for (int k = 0; k < 8; ++k)
            if (y[k] > 0.0 && y[k] < 1.0) value[k] += Loss::xlogx(y[k]) + Loss::xlogx(1.0 - y[k]);
        value = detail::larger(value, 0.0);
        return;
    }
    for (int k = 0; k < 8; ++k) {
        theta[k] = loss.derivative(y[k], f[k]);
        curvature[k] = loss.curvature(y[k], f[k]);
        value[k] = loss.value(y[k], f[k]);
    }
}

template <class T>
[[gnu::always_inline]] inline void evaluate_body(const Dense<T>& X, Index first, Index last, const double* y, const double* p,
                                                 const Loss& loss, const double* w, double b, double* f, Evaluation& out) {
    const Index d = X.d;
    double* g = out.g.data();
    double* h = out.h.data();
    Lanes risk = {}, slope = {}, bend = {};
    for (Index i = first; i < last; i += 8) {
        // The last rows of a block are read again, with weight zero, where eight are not left.
        const int rows = static_cast<int>(std::min<Index>(8, last - i));
        const T* x[8];
        Lanes score = {}, target = {}, weight = {}, theta = {}, curvature = {}, value = {};
        for (int r = 0; r < 8; ++r) {
            const Index row = i + std::min(r, rows - 1);
            x[r] = X.row(row);
            target[r] = y[row], weight[r] = r < rows ? p[row] : 0.0;
            score[r] = r < rows ? b + vec::detail::dot(x[r], w, d) : score[rows - 1];
        }
        for (int r = 0; r < rows; ++r) f[i + r] = score[r];
        eight(loss, target, score, theta, curvature, value);
        theta *= weight, curvature *= weight;
        risk += weight * value, slope += theta, bend += curvature;
        Index j = 0;
        for (; j + 8 <= d; j += 8) {
            Lanes v, a, c;
            vec::detail::load(g + j, a), vec::detail::load(h + j, c);
            for (int r = 0; r < 8; ++r) vec::detail::load(x[r] + j, v), a += theta[r] * v, c += curvature[r] * v;
            *reinterpret_cast<Lanes*>(g + j) = a;
            *reinterpret_cast<Lanes*>(h + j) = c;
        }
        for (; j < d; ++j)
            for (int r = 0; r < rows; ++r) {
                g[j] += theta[r] * static_cast<double>(x[r][j]);
                h[j] += curvature[r] * static_cast<double>(x[r][j]);
            }
    }
    out.risk = vec::detail::total(risk), out.slope = vec::detail::total(slope), out.curvature = vec::detail::total(bend);
}

// Σ p ℓ*(y, scale·(θ − shift·h)) over some rows.
[[gnu::always_inline]] inline double conjugate_body(const double* y, const double* p, const double* f, Index first, Index last,
                                                    const Loss& loss, double shift, double scale) {
    double sum = 0.0;
    Index i = first;
    if (loss.kind == Kind::logistic) {
        Lanes total = {};
        for (; i + 8 <= last; i += 8) {
            Lanes target, weight, score, theta, curvature, value;
            vec::detail::load(y + i, target), vec::detail::load(p + i, weight), vec::detail::load(f + i, score);
            eight(loss, target, score, theta, curvature, value);
            const Lanes q = target + scale * (theta - shift * curvature), rest = 1.0 - q;
            bool inside = true;
            for (int k = 0; k < 8; ++k) inside = inside && q[k] >= 0.0 && rest[k] >= 0.0;
            if (!inside) return kInfinity;
            // Below the least normal number u·ln u is zero for all purposes.
            const Lanes one = q * detail::logarithm(detail::larger(q, 1e-300));
            total += weight * (one + rest * detail::logarithm(detail::larger(rest, 1e-300)));
            for (int k = 0; k < 8; ++k)
                if (target[k] > 0.0 && target[k] < 1.0)
                    total[k] -= weight[k] * (Loss::xlogx(target[k]) + Loss::xlogx(1.0 - target[k]));
        }
        sum = vec::detail::total(total);
    }
    for (; i < last; ++i) {
        const double theta = loss.derivative(y[i], f[i]) - shift * loss.curvature(y[i], f[i]);
        sum += p[i] * loss.conjugate(y[i], scale * theta);
    }
    return sum;
}

CERTIFIT_CLONES [[maybe_unused]] static double conjugate_block(const double* y, const double* p, const double* f, Index first,
                                                               Index last, const Loss& loss, double shift, double scale) {
    return conjugate_body(y, p, f, first, last, loss, shift, scale);
}

CERTIFIT_CLONES [[maybe_unused]] static void evaluate_block(const Dense<double>& X, Index first, Index last, const double* y,
                                                            const double* p, const Loss& loss, const double* w, double b,
                                                            double* f, Evaluation& out) {
    evaluate_body(X, first, last, y, p, loss, w, b, f, out);
}
CERTIFIT_CLONES [[maybe_unused]] static void evaluate_block(const Dense<float>& X, Index first, Index last, const double* y,
                                                            const double* p, const Loss& loss, const double* w, double b,
                                                            double* f, Evaluation& out) {
    evaluate_body(X, first, last, y, p, loss, w, b, f, out);
}

template <class T>
Evaluation evaluate(const Dense<T>& X, const double* y, const double* p, const Loss& loss, const double* w, double b, double* f,
                    int threads) {
    const Index blocks = (X.n + kBlock - 1) / kBlock;
    Evaluation total;
    total.g.assign(static_cast<std::size_t>(X.d), 0.0), total.h = total.g;
    // A window of blocks at a time, so that the partial sums stay small whatever n is.
    const Index window = 256;
    std::vector<Evaluation> parts(static_cast<std::size_t>(std::min(window, blocks)));
    SignalPoll poll;
    Team team(threads);
    for (Index start = 0; start < blocks; start += window) {
        poll.poll();
        const Index stop = std::min(start + window, blocks);
        team.run(stop - start, X.d * (stop - start) > kAlone, [&](Index at, int) {
            const Index block = start + at;
            Evaluation& part = parts[static_cast<std::size_t>(at)];
            part.risk = part.slope = part.curvature = 0.0;
            part.g.assign(static_cast<std::size_t>(X.d), 0.0), part.h.assign(static_cast<std::size_t>(X.d), 0.0);
            evaluate_block(X, block * kBlock, std::min((block + 1) * kBlock, X.n), y, p, loss, w, b, f, part);
        });
        for (Index block = start; block < stop; ++block) {
            const Evaluation& part = parts[static_cast<std::size_t>(block - start)];
            total.risk += part.risk, total.slope += part.slope, total.curvature += part.curvature;
            for (std::size_t j = 0; j < total.g.size(); ++j) total.g[j] += part.g[j], total.h[j] += part.h[j];
        }
    }
    return total;
}

// Σ p ℓ*(y, scale·(θ − shift·h)) at the scores f; infinite as soon as one row leaves the domain.
inline double conjugate_sum(const double* y, const double* p, const double* f, Index n, const Loss& loss, double shift,
                            double scale, int threads) {
    const Index blocks = (n + kBlock - 1) / kBlock;
    std::vector<double> parts(static_cast<std::size_t>(blocks));
    Team(threads).blocks(n, kBlock, blocks > kAlone, [&](Index first, Index last, int) {
        parts[static_cast<std::size_t>(first / kBlock)] = conjugate_block(y, p, f, first, last, loss, shift, scale);
    });
    double total = 0.0;
    for (const double part : parts) total += part;
    return total;
}

// --- perceptrons ------------------------------------------------------------------------------------------------

template <class T, class V>
inline double score(const Dense<T>& X, Index i, const V* w) {
    double f = 0.0;
    const T* x = X.row(i);
    for (Index j = 0; j < X.d; ++j) f += static_cast<double>(x[j]) * w[j];
    return f;
}
template <class T, class I, class V>
inline double score(const Csr<T, I>& X, Index i, const V* w) {
    double f = 0.0;
    for (I k = X.indptr[i]; k < X.indptr[i + 1]; ++k) f += static_cast<double>(X.data[k]) * w[X.indices[k]];
    return f;
}
template <class T>
inline void add(const Dense<T>& X, Index i, double a, double* w) {
    const T* x = X.row(i);
    for (Index j = 0; j < X.d; ++j) w[j] += a * static_cast<double>(x[j]);
}
template <class T, class I>
inline void add(const Csr<T, I>& X, Index i, double a, double* w) {
    for (I k = X.indptr[i]; k < X.indptr[i + 1]; ++k) w[X.indices[k]] += a * static_cast<double>(X.data[k]);
}

// One pass in the given order: a row with (2y−1)·f ≤ 0 is a mistake, and is added with its sign (Rosenblatt 1958).
// For the average over all visits (Freund and Schapire 1999), `late` adds each change times the visit it came at:
// Σ_k w_k = steps·w − late.
template <class Rows>
Index perceptron_epoch(const Rows& X, const double* sign, const std::uint32_t* order, Index count, double unit, double* w,
                       double& b, double* late, double& b_late, double& steps) {
    SignalPoll poll;
    Index mistakes = 0;
    for (Index k = 0; k < count; ++k) {
        if ((k & 255) == 0) poll.poll();
        const Index i = order[k];
        if (!(sign[i] * (score(X, i, w) + unit * b) > 0)) {
            ++mistakes;
            add(X, i, sign[i], w);
            b += unit * sign[i];
            if (late) add(X, i, steps * sign[i], late), b_late += steps * unit * sign[i];
        }
        steps += 1.0;
    }
    return mistakes;
}

struct Pocket {
    std::vector<double> w;
    double b, error;
    Index run, changes;  // longest run of the pocket's coefficients; how often they were replaced
};

// Gallant 1990, with ratchet: coefficients enter the pocket when they survive a longer run of correct rows than the
// pocket's did, and make a smaller weighted error on all rows.
template <class Rows>
void pocket_epoch(const Rows& X, const double* sign, const double* p, const std::uint32_t* order, Index count, double unit,
                  double* w, double& b, Index& run, Pocket& pocket) {
    SignalPoll poll;
    for (Index k = 0; k < count && pocket.error > 0; ++k) {
        if ((k & 15) == 0) poll.poll();
        const Index i = order[k];
        if (sign[i] * (score(X, i, w) + unit * b) > 0) {
            if (++run <= pocket.run) continue;
            double error = 0.0;
            // Better by more than rounding: equal errors must not depend on the order in which they were summed.
            const double wanted = pocket.error * (1.0 - 1e-12);
            for (Index r = 0; r < X.n && error < wanted; ++r)
                if (!(sign[r] * (score(X, r, w) + unit * b) > 0)) error += p[r];
            if (error < wanted) {
                pocket.w.assign(w, w + X.d);
                pocket.b = b, pocket.error = error, pocket.run = run, ++pocket.changes;
            } else {
                // No better: it must last longer still before all rows are looked at again.
                pocket.run = std::max(pocket.run, run);
            }
        } else {
            run = 0;
            add(X, i, sign[i], w);
            b += unit * sign[i];
        }
    }
}

// K prototypes: a row whose own class has not the strictly highest score is added to it and taken from the highest other.
template <class Rows>
Index multiclass_epoch(const Rows& X, const std::int64_t* label, const std::uint32_t* order, Index count, double unit, Index K,
                       double* W, double* B, double* late, double* b_late, double& steps) {
    SignalPoll poll;
    Index mistakes = 0;
    for (Index k = 0; k < count; ++k) {
        if ((k & 63) == 0) poll.poll();
        const Index i = order[k], own = static_cast<Index>(label[i]);
        double best = -kInfinity;
        Index rival = own == 0 ? 1 : 0;
        for (Index c = 0; c < K; ++c) {
            if (c == own) continue;
            const double f = score(X, i, W + c * X.d) + unit * B[c];
            if (f > best) best = f, rival = c;
        }
        if (!(score(X, i, W + own * X.d) + unit * B[own] > best)) {
            ++mistakes;
            for (const auto& [c, a] : {std::pair<Index, double>{own, 1.0}, std::pair<Index, double>{rival, -1.0}}) {
                add(X, i, a, W + c * X.d);
                B[c] += unit * a;
                if (late) add(X, i, steps * a, late + c * X.d), b_late[c] += steps * unit * a;
            }
        }
        steps += 1.0;
    }
    return mistakes;
}

}  // namespace certifit::sgd
