// Perceptrons: mistakes move the coefficients, nothing else does.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "core/index.hpp"
#include "core/interrupt.hpp"
#include "core/rows.hpp"

namespace certifit::sgd {

constexpr double kWorst = -std::numeric_limits<double>::infinity();

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
        if (!(sign[i] * (X.dot(i, w) + unit * b) > 0)) {
            ++mistakes;
            X.add(i, sign[i], w);
            b += unit * sign[i];
            if (late) X.add(i, steps * sign[i], late), b_late += steps * unit * sign[i];
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
        if (sign[i] * (X.dot(i, w) + unit * b) > 0) {
            if (++run <= pocket.run) continue;
            double error = 0.0;
            // Better by more than rounding: equal errors must not depend on the order in which they were summed.
            const double wanted = pocket.error * (1.0 - 1e-12);
            for (Index r = 0; r < X.n && error < wanted; ++r)
                if (!(sign[r] * (X.dot(r, w) + unit * b) > 0)) error += p[r];
            if (error < wanted) {
                pocket.w.assign(w, w + X.d);
                pocket.b = b, pocket.error = error, pocket.run = run, ++pocket.changes;
            } else {
                // No better: it must last longer still before all rows are looked at again.
                pocket.run = std::max(pocket.run, run);
            }
        } else {
            run = 0;
            X.add(i, sign[i], w);
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
        double best = kWorst;
        Index rival = own == 0 ? 1 : 0;
        for (Index c = 0; c < K; ++c) {
            if (c == own) continue;
            const double f = X.dot(i, W + c * X.d) + unit * B[c];
            if (f > best) best = f, rival = c;
        }
        if (!(X.dot(i, W + own * X.d) + unit * B[own] > best)) {
            ++mistakes;
            for (const auto& [c, a] : {std::pair<Index, double>{own, 1.0}, std::pair<Index, double>{rival, -1.0}}) {
                X.add(i, a, W + c * X.d);
                B[c] += unit * a;
                if (late) X.add(i, steps * a, late + c * X.d), b_late[c] += steps * unit * a;
            }
        }
        steps += 1.0;
    }
    return mistakes;
}

}  // namespace certifit::sgd
