// Pegasos: stochastic subgradient steps on   Σ p_i max(0, 1 − s_i (x_i·w + b)) + ½ λ ‖w‖².
//
// Step t draws a row (probability p_i, by the caller) and sets, with η = 1/(λ t),
//     w ← (1 − ηλ) w + η s_i x_i [s_i (x_i·w + b) < 1].
// Shalev-Shwartz, Singer and Srebro (2007), Pegasos: primal estimated sub-gradient solver for SVM.
//
// The recursion solves to w_t = V_t / (λ t) with V_t the sum of s_i x_i over the steps that found a margin below one: no
// shrinking is ever carried out. The mean of w_1 … w_T is (H_T V_T − U_T) / (λ T) with U the same sum weighted by the
// harmonic number H of the step before. The number of times a row was added is its dual variable.
#pragma once

#include <cmath>
#include <span>
#include <vector>

#include "core/rows.hpp"
#include "core/interrupt.hpp"

namespace certifit::dual {

// What a run carries from one batch of draws to the next.
struct PegasosState {
    std::span<double> V, U;          // (d,)
    std::span<double> count, early;  // (n,): additions of each row, and those weighted by the harmonic number
    double steps, harmonic, intercept;
};

template <class Rows>
void pegasos(const Rows& X, const double* sign, std::span<const Index> draws, double lambda, bool fit_intercept,
             PegasosState& state) {
    SignalPoll signals;
    Index seen = 0;
    for (const Index i : draws) {
        if ((++seen & 4095) == 0) signals.poll();
        const double t = state.steps + 1.0;
        const double score = state.steps > 0 ? X.dot(i, state.V.data()) / (lambda * state.steps) : 0.0;
        if (sign[i] * (score + state.intercept) < 1.0) {
            X.add(i, sign[i], state.V.data());
            X.add(i, sign[i] * state.harmonic, state.U.data());
            state.count[i] += 1.0;
            state.early[i] += state.harmonic;
            // The intercept is not strongly convex: the slower rate of plain subgradient steps.
            if (fit_intercept) state.intercept += sign[i] / (10.0 * std::sqrt(t));
        }
        state.steps = t;
        state.harmonic += 1.0 / t;
    }
}

}  // namespace certifit::dual
