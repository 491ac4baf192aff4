// The loss at the output of a network: its value, and its slope at every score.
//
// Losses of one score are those of `stochastic/loss.hpp`, summed over the columns of y; the softmax loss reads class numbers.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "network/units.hpp"
#include "stochastic/loss.hpp"

namespace certifit::network {

struct Output {
    bool softmax = false;
    sgd::Loss loss{sgd::Kind::squared};
    std::vector<double> offset;  // of each score, in double precision: what the targets have in common. Not for the softmax loss.
};

// The targets of the rows of X, one after the other.
struct Targets {
    const double* y;
    Index columns;
    const double* of(Index row) const { return y + row * columns; }
};

// One row of K scores whose panels lie `stride` apart; the slopes are factor·(π − e_label). Returns the loss.
CERTIFIT_CLONES [[maybe_unused]] static double softmax_row(const float* z, float* d, Index stride, Index K, Index label,
                                                           float factor) {
    float highest = z[0], total = 0.0f;
    for (Index p = 0; p < panels(K); ++p) {
        const Index last = K - p * kWide < kWide ? K - p * kWide : kWide;
        for (Index j = 0; j < last; ++j) highest = z[p * stride + j] > highest ? z[p * stride + j] : highest;
    }
    for (Index p = 0; p < panels(K); ++p) {
        const Index last = K - p * kWide < kWide ? K - p * kWide : kWide;
        const float* from = z + p * stride;
        float* to = d + p * stride;
        for (Index j = 0; j < last; ++j) to[j] = exponential_of(from[j] - highest);
        for (Index j = 0; j < last; ++j) total += to[j];
    }
    const float share = factor / total;
    for (Index p = 0; p < panels(K); ++p) {
        const Index last = K - p * kWide < kWide ? K - p * kWide : kWide;
        for (Index j = 0; j < last; ++j) d[p * stride + j] *= share;
    }
    const Index own = label / kWide * stride + label % kWide;
    d[own] -= factor;
    // What is not a number in a score must be seen in the loss.
    return std::log(static_cast<double>(total)) + (static_cast<double>(highest) - static_cast<double>(z[own])) +
           0.0 * static_cast<double>(z[0]);
}

// The same for K scores, each with a loss of its own.
inline double separate_row(const Output& out, const float* z, float* d, Index stride, Index K, const double* y, float factor) {
    const sgd::Loss& loss = out.loss;
    double sum = 0.0;
    for (Index k = 0; k < K; ++k) {
        const Index at = k / kWide * stride + k % kWide;
        const double score = static_cast<double>(z[at]) + out.offset[static_cast<std::size_t>(k)];
        d[at] = factor * static_cast<float>(loss.derivative(y[k], score));
        sum += loss.value(y[k], score);
    }
    return sum;
}

inline double output_row(const Output& out, const float* z, float* d, Index stride, Index K, const double* y, float factor) {
    return out.softmax ? softmax_row(z, d, stride, K, static_cast<Index>(y[0]), factor)
                       : separate_row(out, z, d, stride, K, y, factor);
}

}  // namespace certifit::network
