// One step of the weights, in one pass over them.
//
//     g ← clip·g + decay·w
//     momentum   v ← μv − ηg,   w ← w + v    (Nesterov: w + μv − ηg)
//     Adam       m ← β₁m + (1 − β₁)g,   v ← β₂v + (1 − β₂)g²,   w ← w − η·m̂/(√v̂ + ε)      Kingma and Ba 2015
//                (`unscaled`: w ← w − η·√(1 − β₂ᵗ)·m̂/(√v + ε), their variant with ε beside the root as it is)
//     AdamW      the same without decay in g, and w ← (1 − η·decay)·w before                  Loshchilov and Hutter 2019
#pragma once

#include <cmath>

#include "network/panels.hpp"

namespace certifit::network {

enum class Rule { momentum, nesterov, adam, adamw };

struct Step {
    Rule rule = Rule::adam;
    float rate = 1e-3f, momentum = 0.9f, beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f, decay = 0.0f;
    float clip = 1.0f;                    // factor of the gradient
    float grown1 = 1.0f, grown2 = 1.0f;  // 1/(1 − β₁ᵗ) and 1/√(1 − β₂ᵗ): averages that began at zero
    bool unscaled = false;               // whether ε is added to the root before it is grown

    bool adaptive() const { return rule == Rule::adam || rule == Rule::adamw; }
    void at(double t) {
        grown1 = static_cast<float>(1.0 / (1.0 - std::pow(static_cast<double>(beta1), t)));
        grown2 = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(static_cast<double>(beta2), t)));
    }
};

// `decay` is that of the step, or zero for a bias.
CERTIFIT_CLONES [[maybe_unused]] static void take(const Step& s, float decay, const float* __restrict g, float* __restrict w,
                                                  float* __restrict m, float* __restrict v, Index n) {
    const float clip = s.clip, rate = s.rate;
    if (s.adaptive()) {
        const float keep = s.rule == Rule::adamw ? 1.0f - rate * decay : 1.0f, pull = s.rule == Rule::adamw ? 0.0f : decay;
        const float b1 = s.beta1, c1 = 1.0f - b1, b2 = s.beta2, c2 = 1.0f - b2, far = rate * s.grown1, grown = s.grown2;
        const float epsilon = s.unscaled ? s.epsilon * grown : s.epsilon;
        for (Index i = 0; i < n; ++i) {
            const float slope = clip * g[i] + pull * w[i];
            m[i] = b1 * m[i] + c1 * slope;
            v[i] = b2 * v[i] + c2 * slope * slope;
            w[i] = keep * w[i] - far * m[i] / (__builtin_sqrtf(v[i]) * grown + epsilon);
        }
        return;
    }
    const float mu = s.momentum;
    if (s.rule == Rule::nesterov)
        for (Index i = 0; i < n; ++i) {
            const float down = rate * (clip * g[i] + decay * w[i]);
            m[i] = mu * m[i] - down, w[i] += mu * m[i] - down;
        }
    else
        for (Index i = 0; i < n; ++i) {
            m[i] = mu * m[i] - rate * (clip * g[i] + decay * w[i]);
            w[i] += m[i];
        }
}

// How to train.
struct Plan {
    Step step;
    Index batch = 128;
    float dropout = 0.0f, noise = 0.0f, attack = 0.0f;  // attack: steps along the sign of the slope at x (Goodfellow et al. 2015)
    double clip = 0.0;                                  // greatest norm of a gradient; 0 for any
    std::uint64_t seed = 0;
};

}  // namespace certifit::network
