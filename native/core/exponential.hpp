// Exponential and logarithm as arithmetic alone, of one number or of eight, to about one unit in the last place.
//
// libm takes them one at a time; loops over these are vectorized.
#pragma once

#include <bit>
#include <cstdint>

#include "core/vector.hpp"

namespace certifit {

// Every function here is inlined, so that how a caller without wide registers would pass a vector does not matter.
// (Not popped: the compiler reports some of them at the end of the file.)
#pragma GCC diagnostic ignored "-Wpsabi"

using Lanes = vec::detail::Lanes;

namespace detail {

typedef std::int64_t Whole __attribute__((vector_size(64), aligned(8), may_alias));

// The same bits, read as the other type.
[[gnu::always_inline]] inline std::int64_t bits_of(double x) { return std::bit_cast<std::int64_t>(x); }
[[gnu::always_inline]] inline double number_of(std::int64_t x) { return std::bit_cast<double>(x); }
[[gnu::always_inline]] inline Whole bits_of(const Lanes& x) { return (Whole)x; }
[[gnu::always_inline]] inline Lanes number_of(const Whole& x) { return (Lanes)x; }

constexpr double kRound = 6755399441055744.0;  // 1.5·2^52: adding it leaves the nearest whole number in the low bits
constexpr double kLog2High = 0.6931471803691238, kLog2Low = 1.9082149292705877e-10;

}  // namespace detail

// x in [−708, 709]: 2^n·e^r with |r| ≤ ln(2)/2 and the Taylor polynomial of degree 13, split in two for a shorter chain.
template <class V>
[[gnu::always_inline]] inline V exponential(const V& x) {
    const V t = x * 1.4426950408889634 + detail::kRound, n = t - detail::kRound;
    const V r = (x - n * detail::kLog2High) - n * detail::kLog2Low, q = r * r;
    V even = q * (1.0 / 479001600) + 1.0 / 3628800, odd = q * (1.0 / 6227020800.0) + 1.0 / 39916800;
    even = even * q + 1.0 / 40320, odd = odd * q + 1.0 / 362880;
    even = even * q + 1.0 / 720, odd = odd * q + 1.0 / 5040;
    even = even * q + 1.0 / 24, odd = odd * q + 1.0 / 120;
    even = even * q + 1.0 / 2, odd = odd * q + 1.0 / 6;
    even = even * q + 1.0, odd = odd * q + 1.0;
    return (even + r * odd) * detail::number_of((detail::bits_of(t) + 1023) << 52);
}

// x normal and positive: k·ln 2 + 2·artanh((m − 1)/(m + 1)) with x = m·2^k and m in [√½, √2).
[[gnu::always_inline]] inline Lanes logarithm(const Lanes& x) {
    const detail::Whole bits = detail::bits_of(x);
    const detail::Whole k = (bits - 0x3fe6a09e667f3bcd) >> 52;  // the exponent of x/√½
    const Lanes m = detail::number_of(bits - (k << 52));
    const Lanes u = (m - 1.0) / (m + 1.0), q = u * u;
    Lanes tail = q * (1.0 / 19) + 1.0 / 17;
    for (const double c : {1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3}) tail = tail * q + c;
    tail *= q;
    const Lanes n = __builtin_convertvector(k, Lanes);
    return n * detail::kLog2High + (n * detail::kLog2Low + (2.0 * u + 2.0 * u * tail));
}

// ln(1 + x), x > −1: the rounding of 1 + x is undone (Kahan), so that small x keep their digits.
[[gnu::always_inline]] inline Lanes log_one_plus(const Lanes& x) {
    const Lanes u = 1.0 + x, low = u - 1.0, one = 0.0 * x + 1.0;
    return low != 0.0 ? logarithm(u) * (x / (low != 0.0 ? low : one)) : x;
}

// x ln x, zero at zero
[[gnu::always_inline]] inline Lanes x_log_x(const Lanes& x) {
    const Lanes zero = {}, one = zero + 1.0;
    return x > 1e-300 ? x * logarithm(x > 1e-300 ? x : one) : zero;
}

// q ln q + r ln r of q + r = 1, both given: the smaller has digits that 1 − (the larger) does not.
[[gnu::always_inline]] inline Lanes negative_entropy(const Lanes& q, const Lanes& r) {
    const Lanes rare = q < r ? q : r;
    return x_log_x(rare) + (1.0 - rare) * log_one_plus(-rare);
}

// e^x − 1 − x, |x| ≤ ½: what is left of e^x beside its tangent
[[gnu::always_inline]] inline Lanes beyond_tangent(const Lanes& x) {
    Lanes sum = 0.0 * x + 1.0 / 1307674368000;
    for (const double c : {1.0 / 87178291200, 1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320,
                           1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 1.0 / 2})
        sum = sum * x + c;
    return x * x * sum;
}

}  // namespace certifit
