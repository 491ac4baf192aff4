// What a unit does to its input z: activation, slope, and the draws of dropout and noise.
//
//     a = s·m·σ(z),   slope = s·m·σ'(z)      with m = 1 for a unit that is kept (probability 1/s) and 0 for one that is dropped
//
// Draws are functions of (seed, batch, layer, row, unit), so that neither threads nor blocks change them.
#pragma once

#include <cmath>
#include <cstdint>

#include "network/panels.hpp"

namespace certifit::network {

enum class Activation { identity, sigmoid, tanh, relu, leaky, learned };

struct Unit {
    Activation kind = Activation::relu;
    float leak = 0.01f;  // the slope of a leaky unit below zero, unless each unit learns its own
};

// e^x to about one unit in the last place, as arithmetic alone: x = n·ln 2 + r.
[[gnu::always_inline]] inline float exponential_of(float x) {
    x = x < -87.0f ? -87.0f : x > 88.0f ? 88.0f : x;
    const float t = x * 1.44269504f + 12582912.0f, n = t - 12582912.0f;
    const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float e = 1.0f / 5040;
    e = e * r + 1.0f / 720, e = e * r + 1.0f / 120, e = e * r + 1.0f / 24, e = e * r + 1.0f / 6, e = e * r + 0.5f;
    e = e * r * r + r + 1.0f;
    std::int32_t bits;
    __builtin_memcpy(&bits, &t, sizeof bits);
    bits = (bits + 127) << 23;
    float power;
    __builtin_memcpy(&power, &bits, sizeof power);
    return e * power;
}

[[gnu::always_inline]] inline std::uint32_t mixed(std::uint32_t h) {  // the finalizer of MurmurHash3
    h ^= h >> 16, h *= 0x85ebca6bu, h ^= h >> 13, h *= 0xc2b2ae35u;
    return h ^ h >> 16;
}
inline std::uint64_t mixed64(std::uint64_t z) {  // splitmix64
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u, z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

// Rows of one panel, in place; `slope` may be null. NaN goes through, so that a fit that runs away is seen.
CERTIFIT_CLONES [[maybe_unused]] static void activate(Unit unit, float* a, float* slope, Index count) {
    switch (unit.kind) {
        case Activation::identity:
            if (slope)
                for (Index i = 0; i < count; ++i) slope[i] = 1.0f;
            return;
        case Activation::relu:
        case Activation::leaky: {
            const float leak = unit.kind == Activation::relu ? 0.0f : unit.leak;
            if (slope)
                for (Index i = 0; i < count; ++i) {
                    const float s = a[i] > 0.0f ? 1.0f : leak;
                    slope[i] = s, a[i] *= s;
                }
            else
                for (Index i = 0; i < count; ++i) a[i] *= a[i] > 0.0f ? 1.0f : leak;
            return;
        }
        case Activation::learned:  // see bend_learned
            return;
        case Activation::sigmoid:
            for (Index i = 0; i < count; ++i) a[i] = 1.0f / (1.0f + exponential_of(-a[i]));
            if (slope)
                for (Index i = 0; i < count; ++i) slope[i] = a[i] * (1.0f - a[i]);
            return;
        case Activation::tanh:
            for (Index i = 0; i < count; ++i) {
                // tanh z = z − z³/3 + … where the quotient would lose its digits.
                const float z = a[i], q = z * z, far = 1.0f - 2.0f / (1.0f + exponential_of(2.0f * z));
                const float near = z * (1.0f + q * (-1.0f / 3 + q * (2.0f / 15 + q * (-17.0f / 315 + q * (62.0f / 2835)))));
                a[i] = q < 0.04f ? near : far;
            }
            if (slope)
                for (Index i = 0; i < count; ++i) slope[i] = 1.0f - a[i] * a[i];
            return;
    }
}

// The same for units whose slopes below zero are weights of their own (He et al. 2015); `low`, unless null, becomes min(z, 0),
// the slope of a at those weights.
CERTIFIT_CLONES [[maybe_unused]] static void bend_learned(const float* __restrict leak, float* __restrict a,
                                                          float* __restrict slope, float* __restrict low, Index rows) {
    for (Index r = 0; r < rows; ++r, a += kWide)
        for (Index j = 0; j < kWide; ++j) {
            const float s = a[j] > 0.0f ? 1.0f : leak[j];
            if (slope) slope[r * kWide + j] = s;
            if (low) low[r * kWide + j] = a[j] > 0.0f ? 0.0f : a[j];
            a[j] *= s;
        }
}

// Drops units of `rows` rows of a panel; `key` is of (seed, batch, layer, panel), the first row is number r0 of the batch. `low`
// may be null.
CERTIFIT_CLONES [[maybe_unused]] static void drop(std::uint64_t key, float share, float* a, float* slope, float* low, Index r0,
                                                  Index rows) {
    const auto limit = static_cast<std::uint32_t>(static_cast<double>(share) * 4294967296.0);
    const float scale = 1.0f / (1.0f - share);
    for (Index r = 0; r < rows; ++r) {
        const auto base = static_cast<std::uint32_t>(mixed64(key + static_cast<std::uint64_t>(r0 + r)));
        float *x = a + r * kWide, *s = slope + r * kWide;
        for (std::uint32_t j = 0; j < kWide; ++j) {
            const float kept = mixed(base + j * 0x9e3779b9u) >= limit ? scale : 0.0f;
            x[j] *= kept, s[j] *= kept;
            if (low) low[r * kWide + j] *= kept;
        }
    }
}

// Adds normal noise of the given deviation to `columns` entries of each of `rows` rows (Box and Muller 1958).
inline void add_noise(std::uint64_t key, float deviation, float* x, Index r0, Index rows, Index columns) {
    for (Index r = 0; r < rows; ++r) {
        const auto base = static_cast<std::uint32_t>(mixed64(key + static_cast<std::uint64_t>(r0 + r)));
        for (Index j = 0; j < columns; ++j) {
            const auto counter = base + static_cast<std::uint32_t>(j) * 0x9e3779b9u;
            const float u = (static_cast<float>(mixed(counter) >> 8) + 0.5f) * 0x1p-24f;
            const float angle = static_cast<float>(mixed(counter ^ 0x5bd1e995u) >> 8) * (0x1p-24f * 6.2831853f);
            x[r * kWide + j] += deviation * std::sqrt(-2.0f * std::log(u)) * std::cos(angle);
        }
    }
}

}  // namespace certifit::network
