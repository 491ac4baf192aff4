// One column and one target: rows in sorted order, of which a window is read once, with all sums in registers.
//
//     S_k = Σ w z^k, k = 0 … 4        T_k = Σ w z^k y, k = 0 … 2
#pragma once

#include "local/rows.hpp"

namespace certifit::local {

struct Moments {
    double S[5], T[3];
};

namespace detail {

template <Shape shape>
[[gnu::always_inline]] inline Lanes weight_at(const Lanes& z) {
    const Lanes square = z * z;
    if constexpr (shape == Shape::gaussian) {
        const Lanes power = square * -0.5;
        const auto far = power < kLeast;
        return far ? Lanes{} : exponential(far ? Lanes{} : power);
    }
    const Lanes r = z < 0.0 ? -z : z;
    const Lanes t = r < 1.0 ? 1.0 - r * square : Lanes{};
    return t * t * t;
}

template <Shape shape>
[[gnu::always_inline]] inline void moments(const double* x, const double* y, const double* s, Index from, Index to, double q,
                                           double inverse, Moments& out) {
    Lanes S0 = {}, S1 = {}, S2 = {}, S3 = {}, S4 = {}, T0 = {}, T1 = {}, T2 = {}, z, v, a;
    for (Index i = from; i < to; i += 8) {
        load(x + i, z), load(y + i, v), load(s + i, a);
        z = (z - q) * inverse;
        Lanes w = a * weight_at<shape>(z), u = w * v;
        S0 += w, T0 += u;
        w *= z, u *= z, S1 += w, T1 += u;
        w *= z, u *= z, S2 += w, T2 += u;
        w *= z, S3 += w;
        w *= z, S4 += w;
    }
    out = {
        {vec::detail::total(S0), vec::detail::total(S1), vec::detail::total(S2), vec::detail::total(S3), vec::detail::total(S4)},
        {vec::detail::total(T0), vec::detail::total(T1), vec::detail::total(T2)}};
}

template <Shape shape>
[[gnu::always_inline]] inline double squared_influence(const double* x, const double* s, Index from, Index to, double q,
                                                       double inverse, const double* v) {
    Lanes sum = {}, z, a;
    for (Index i = from; i < to; i += 8) {
        load(x + i, z), load(s + i, a);
        z = (z - q) * inverse;
        const Lanes l = weight_at<shape>(z) * (v[0] + z * (v[1] + z * v[2]));
        sum += a * l * l;
    }
    return vec::detail::total(sum);
}

CERTIFIT_CLONES [[maybe_unused]] static void moments_gaussian(const double* x, const double* y, const double* s, Index from,
                                                              Index to, double q, double inverse, Moments& out) {
    moments<Shape::gaussian>(x, y, s, from, to, q, inverse, out);
}
CERTIFIT_CLONES [[maybe_unused]] static void moments_tricube(const double* x, const double* y, const double* s, Index from,
                                                             Index to, double q, double inverse, Moments& out) {
    moments<Shape::tricube>(x, y, s, from, to, q, inverse, out);
}
CERTIFIT_CLONES [[maybe_unused]] static double influence_gaussian(const double* x, const double* s, Index from, Index to,
                                                                  double q, double inverse, const double* v) {
    return squared_influence<Shape::gaussian>(x, s, from, to, q, inverse, v);
}
CERTIFIT_CLONES [[maybe_unused]] static double influence_tricube(const double* x, const double* s, Index from, Index to, double q,
                                                                 double inverse, const double* v) {
    return squared_influence<Shape::tricube>(x, s, from, to, q, inverse, v);
}

}  // namespace detail

// The window of rows that have a weight, widened to whole registers: what is beyond the last row weighs nothing.
class Line {
  public:
    Line(const Rows& rows, const Lens& lens) : rows_(rows), lens_(lens) {}
    static bool fits(const Rows& rows) { return rows.d == 1 && rows.targets == 1; }

    void settle(double q, double width) {
        q_ = q, inverse_ = 1.0 / width;
        const double reach = width * (lens_.shape == Shape::tricube ? 1.0 : std::sqrt(-2.0 * kLeast));
        const double *begin = rows_.X, *end = rows_.X + rows_.n;
        from_ = (std::lower_bound(begin, end, q - reach) - begin) / 8 * 8;
        to_ = (std::upper_bound(begin, end, q + reach) - begin + 7) / 8 * 8;
    }

    // Gram matrix and right side of the local polynomial.
    void gather(double* gram, double* right) const {
        Moments found;
        (lens_.shape == Shape::gaussian ? detail::moments_gaussian : detail::moments_tricube)(rows_.X, rows_.y, rows_.s, from_,
                                                                                              to_, q_, inverse_, found);
        const Index terms = lens_.terms(1);
        for (Index a = 0; a < terms; ++a) {
            right[a] = found.T[a];
            for (Index b = a; b < terms; ++b) gram[a * terms + b] = found.S[a + b];
        }
    }

    double influence(const double* v) const {
        const Index terms = lens_.terms(1);
        const double all[3] = {v[0], terms > 1 ? v[1] : 0.0, terms > 2 ? v[2] : 0.0};
        return (lens_.shape == Shape::gaussian ? detail::influence_gaussian : detail::influence_tricube)(rows_.X, rows_.s, from_,
                                                                                                         to_, q_, inverse_, all);
    }

  private:
    const Rows& rows_;
    const Lens& lens_;
    double q_ = 0.0, inverse_ = 1.0;
    Index from_ = 0, to_ = 0;
};

}  // namespace certifit::local
