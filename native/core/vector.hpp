// Dense vector kernels: columns of X in float or double, residuals and sums in double.
//
// Each body is an always-inlined template; the functions around it are cloned per instruction set (native/core/simd.hpp).
// Sums run in a fixed order that depends on the length only, so results never depend on the number of threads.
#pragma once

#include <cstddef>

#include "core/index.hpp"
#include "core/simd.hpp"

namespace certifit::vec {

using certifit::Index;

namespace detail {

// Unaligned, aliasing-safe views of eight numbers.
typedef double Lanes __attribute__((vector_size(64), aligned(8), may_alias));
typedef float HalfLanes __attribute__((vector_size(32), aligned(4), may_alias));

[[gnu::always_inline]] inline void load(const double* x, Lanes& out) { out = *reinterpret_cast<const Lanes*>(x); }
[[gnu::always_inline]] inline void load(const float* x, Lanes& out) {
    out = __builtin_convertvector(*reinterpret_cast<const HalfLanes*>(x), Lanes);
}
[[gnu::always_inline]] inline double total(const Lanes& v) {
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

template <class T>
[[gnu::always_inline]] inline double dot(const T* x, const double* u, Index n) {
    Lanes s0 = {}, s1 = {}, s2 = {}, s3 = {}, a, b;
    Index i = 0;
    for (; i + 32 <= n; i += 32) {
        load(x + i, a), load(u + i, b), s0 += a * b;
        load(x + i + 8, a), load(u + i + 8, b), s1 += a * b;
        load(x + i + 16, a), load(u + i + 16, b), s2 += a * b;
        load(x + i + 24, a), load(u + i + 24, b), s3 += a * b;
    }
    for (; i + 8 <= n; i += 8) load(x + i, a), load(u + i, b), s0 += a * b;
    s0 = (s0 + s1) + (s2 + s3);
    double sum = total(s0);
    for (; i < n; ++i) sum += static_cast<double>(x[i]) * u[i];
    return sum;
}

// Σ p (x − m)²
template <class T>
[[gnu::always_inline]] inline double spread(const T* x, double m, const double* p, Index n) {
    Lanes s0 = {}, s1 = {}, a, b;
    Index i = 0;
    for (; i + 16 <= n; i += 16) {
        load(x + i, a), load(p + i, b), a -= m, s0 += a * a * b;
        load(x + i + 8, a), load(p + i + 8, b), a -= m, s1 += a * a * b;
    }
    for (; i + 8 <= n; i += 8) load(x + i, a), load(p + i, b), a -= m, s0 += a * a * b;
    s0 += s1;
    double sum = total(s0);
    for (; i < n; ++i) sum += (static_cast<double>(x[i]) - m) * (static_cast<double>(x[i]) - m) * p[i];
    return sum;
}

// u −= a (x − m)
template <class T>
[[gnu::always_inline]] inline void subtract(double a, const T* x, double m, double* u, Index n) {
    Index i = 0;
    Lanes v, t;
    for (; i + 8 <= n; i += 8) {
        load(x + i, v), load(u + i, t);
        t -= a * (v - m);
        *reinterpret_cast<Lanes*>(u + i) = t;
    }
    for (; i < n; ++i) u[i] -= a * (static_cast<double>(x[i]) - m);
}

// u −= a p (x − m)
template <class T>
[[gnu::always_inline]] inline void subtract(double a, const double* p, const T* x, double m, double* u, Index n) {
    Index i = 0;
    Lanes v, t, q;
    for (; i + 8 <= n; i += 8) {
        load(x + i, v), load(u + i, t), load(p + i, q);
        t -= a * q * (v - m);
        *reinterpret_cast<Lanes*>(u + i) = t;
    }
    for (; i < n; ++i) u[i] -= a * p[i] * (static_cast<double>(x[i]) - m);
}

// out = p (x − m)
template <class T>
[[gnu::always_inline]] inline void pack(const T* x, double m, const double* p, double* out, Index n) {
    Index i = 0;
    Lanes v, q;
    for (; i + 8 <= n; i += 8) {
        load(x + i, v), load(p + i, q);
        *reinterpret_cast<Lanes*>(out + i) = q * (v - m);
    }
    for (; i < n; ++i) out[i] = p[i] * (static_cast<double>(x[i]) - m);
}

// out[4 r + c] = a_r · b_c: sixteen sums held in registers, the core of every Gram matrix and Cholesky factor.
template <class T>
[[gnu::always_inline]] inline void dot16(const double* const* a, const T* const* b, Index n, double* out) {
    const double *a0 = a[0], *a1 = a[1], *a2 = a[2], *a3 = a[3];
    const T *b0 = b[0], *b1 = b[1], *b2 = b[2], *b3 = b[3];
    Lanes s00 = {}, s01 = {}, s02 = {}, s03 = {}, s10 = {}, s11 = {}, s12 = {}, s13 = {};
    Lanes s20 = {}, s21 = {}, s22 = {}, s23 = {}, s30 = {}, s31 = {}, s32 = {}, s33 = {};
    Lanes x, y0, y1, y2, y3;
    Index i = 0;
    for (; i + 8 <= n; i += 8) {
        load(b0 + i, y0), load(b1 + i, y1), load(b2 + i, y2), load(b3 + i, y3);
        load(a0 + i, x), s00 += x * y0, s01 += x * y1, s02 += x * y2, s03 += x * y3;
        load(a1 + i, x), s10 += x * y0, s11 += x * y1, s12 += x * y2, s13 += x * y3;
        load(a2 + i, x), s20 += x * y0, s21 += x * y1, s22 += x * y2, s23 += x * y3;
        load(a3 + i, x), s30 += x * y0, s31 += x * y1, s32 += x * y2, s33 += x * y3;
    }
    out[0] = total(s00), out[1] = total(s01), out[2] = total(s02), out[3] = total(s03);
    out[4] = total(s10), out[5] = total(s11), out[6] = total(s12), out[7] = total(s13);
    out[8] = total(s20), out[9] = total(s21), out[10] = total(s22), out[11] = total(s23);
    out[12] = total(s30), out[13] = total(s31), out[14] = total(s32), out[15] = total(s33);
    for (; i < n; ++i)
        for (int r = 0; r < 4; ++r)
            for (int c = 0; c < 4; ++c) out[4 * r + c] += a[r][i] * static_cast<double>(b[c][i]);
}

}  // namespace detail

CERTIFIT_CLONES [[maybe_unused]] static double dot(const double* x, const double* u, Index n) {
    return detail::dot(x, u, n);
}
CERTIFIT_CLONES [[maybe_unused]] static double dot(const float* x, const double* u, Index n) {
    return detail::dot(x, u, n);
}
CERTIFIT_CLONES [[maybe_unused]] static double spread(const double* x, double m, const double* p, Index n) {
    return detail::spread(x, m, p, n);
}
CERTIFIT_CLONES [[maybe_unused]] static double spread(const float* x, double m, const double* p, Index n) {
    return detail::spread(x, m, p, n);
}
CERTIFIT_CLONES [[maybe_unused]] static void subtract(double a, const double* x, double m, double* u, Index n) {
    detail::subtract(a, x, m, u, n);
}
CERTIFIT_CLONES [[maybe_unused]] static void subtract(double a, const float* x, double m, double* u, Index n) {
    detail::subtract(a, x, m, u, n);
}
CERTIFIT_CLONES [[maybe_unused]] static void subtract(double a, const double* p, const double* x, double m, double* u,
                                                      Index n) {
    detail::subtract(a, p, x, m, u, n);
}
CERTIFIT_CLONES [[maybe_unused]] static void subtract(double a, const double* p, const float* x, double m, double* u,
                                                      Index n) {
    detail::subtract(a, p, x, m, u, n);
}
CERTIFIT_CLONES [[maybe_unused]] static void pack(const double* x, double m, const double* p, double* out, Index n) {
    detail::pack(x, m, p, out, n);
}
CERTIFIT_CLONES [[maybe_unused]] static void pack(const float* x, double m, const double* p, double* out, Index n) {
    detail::pack(x, m, p, out, n);
}
CERTIFIT_CLONES [[maybe_unused]] static void dot16(const double* const* a, const double* const* b, Index n,
                                                   double* out) {
    detail::dot16(a, b, n, out);
}
CERTIFIT_CLONES [[maybe_unused]] static void dot16(const double* const* a, const float* const* b, Index n,
                                                   double* out) {
    detail::dot16(a, b, n, out);
}

}  // namespace certifit::vec
