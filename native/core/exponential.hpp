// The exponential function as arithmetic alone, so that loops over it are vectorized.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace certifit {

// e^x for |x| <= 708, within an ulp or two: x = k ln 2 + r, a polynomial in r, the exponent by bits.
[[gnu::always_inline]] inline double exponential(double x) {
    const double k = std::nearbyint(x * 1.4426950408889634);
    const double r = (x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10;
    double p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    // k + 1.5·2^52 holds k in its low bits.
    const auto bits = std::bit_cast<std::int64_t>(k + 6755399441055744.0) << 52;
    return std::bit_cast<double>(std::bit_cast<std::int64_t>(p) + bits);
}

}  // namespace certifit
