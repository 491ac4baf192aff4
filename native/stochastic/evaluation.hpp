// The objective at a point, in one pass over dense rows.
#pragma once

#include <algorithm>
#include <vector>

#include "core/exponential.hpp"
#include "core/index.hpp"
#include "core/interrupt.hpp"
#include "core/rows.hpp"
#include "core/simd.hpp"
#include "core/team.hpp"
#include "stochastic/loss.hpp"

namespace certifit::sgd {

// One pass over dense rows: the risk, and with θ = ℓ' and h = ℓ'' the products Xᵀ(pθ), Xᵀ(ph) and sums Σpθ, Σph, from
// which the dual point θ − h·(Σpθ/Σph), orthogonal to the intercept, is known without a second pass.
struct Evaluation {
    double risk = 0.0, slope = 0.0, curvature = 0.0;
    std::vector<double> g, h;
};

constexpr Index kBlock = 4096;  // rows; partial sums are added in the order of the blocks, whatever the threads
constexpr Index kAlone = 8;     // blocks of a column: passing over them takes less than to start a thread

[[gnu::always_inline]] inline Lanes larger(const Lanes& a, double b) { return a > b ? a : (a * 0.0 + b); }

// θ, h and the loss of eight rows.
[[gnu::always_inline]] inline void eight(const Loss& loss, const Lanes& y, const Lanes& f, Lanes& theta, Lanes& curvature,
                                         Lanes& value) {
    if (loss.kind == Kind::logistic) {
        const Lanes size = f > 0.0 ? f : -f, capped = size > 708.0 ? (size * 0.0 + 708.0) : size;
        const Lanes e = exponential(-capped), share = 1.0 / (1.0 + e);
        const Lanes zero = {};
        const Lanes rare = e * share;
        theta = (1.0 - y) * (f > 0.0 ? share : rare) - y * (f > 0.0 ? rare : share);
        curvature = rare * share;
        value = ((f > 0.0 ? f : zero) - y * f) + log_one_plus(e);
        for (int k = 0; k < 8; ++k)
            if (y[k] > 0.0 && y[k] < 1.0) value[k] += Loss::xlogx(y[k]) + Loss::xlogx(1.0 - y[k]);
        value = larger(value, 0.0);
        return;
    }
    for (int k = 0; k < 8; ++k) {
        theta[k] = loss.derivative(y[k], f[k]);
        curvature[k] = loss.curvature(y[k], f[k]);
        value[k] = loss.value(y[k], f[k]);
    }
}

template <class T>
[[gnu::always_inline]] inline void evaluate_body(const DenseRows<T>& X, Index first, Index last, const double* y, const double* p,
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
            const Lanes u = scale * (theta - shift * curvature), q = target + u, rest = (1.0 - target) - u;
            bool inside = true;
            for (int k = 0; k < 8; ++k) inside = inside && q[k] >= 0.0 && rest[k] >= 0.0;
            if (!inside) return kInfinity;
            total += weight * negative_entropy(q, rest);
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

CERTIFIT_CLONES [[maybe_unused]] static void evaluate_block(const DenseRows<double>& X, Index first, Index last, const double* y,
                                                            const double* p, const Loss& loss, const double* w, double b,
                                                            double* f, Evaluation& out) {
    evaluate_body(X, first, last, y, p, loss, w, b, f, out);
}
CERTIFIT_CLONES [[maybe_unused]] static void evaluate_block(const DenseRows<float>& X, Index first, Index last, const double* y,
                                                            const double* p, const Loss& loss, const double* w, double b,
                                                            double* f, Evaluation& out) {
    evaluate_body(X, first, last, y, p, loss, w, b, f, out);
}

template <class T>
Evaluation evaluate(const DenseRows<T>& X, const double* y, const double* p, const Loss& loss, const double* w, double b,
                    double* f, int threads) {
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

}  // namespace certifit::sgd
