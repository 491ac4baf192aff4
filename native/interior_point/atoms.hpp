// One-sided hinges h·max(g·z − r, 0): what a piecewise linear loss is made of, and the passes of a primal-dual iteration over them.
//
// With g·z − r = e = v − s and v, s ≥ 0 the optimality conditions of each are a·s = 0, b·v = 0 with b = h − a and 0 ≤ a ≤ h; Newton's
// method on them has the weight D = 1/(s/a + v/b). Every array is padded to whole vectors with atoms that never move.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "core/simd.hpp"
#include "core/vector.hpp"

namespace certifit::interior {

// The numbers of all atoms, each kind in an array of its own.
struct Atoms {
    Index count = 0, padded = 0;
    std::vector<double> h, share, room, r, a, b, s, v, e, D, inverse_a, inverse_b, slope_s, slope_v, da, ds, dv, push_s, push_v, image, q;

    void resize(Index wanted) {
        count = wanted, padded = (wanted + 7) / 8 * 8;
        for (auto* part : {&h, &share, &room, &a, &b, &s, &v}) part->assign(static_cast<std::size_t>(padded), 1.0);
        for (auto* part : {&r, &e, &D, &inverse_a, &inverse_b, &slope_s, &slope_v, &da, &ds, &dv, &push_s, &push_v, &image, &q})
            part->assign(static_cast<std::size_t>(padded), 0.0);
    }
    double complementarity() const { return vec::dot(a.data(), s.data(), count) + vec::dot(b.data(), v.data(), count); }
};

// The pointers of the atoms, for the passes.
struct View {
    Index count, padded;
    const double* share;
    double *a, *b, *s, *v, *e, *D, *inverse_a, *inverse_b, *slope_s, *slope_v, *da, *ds, *dv, *push_s, *push_v, *image, *q;
};

inline View view(Atoms& x) {
    return {x.count,          x.padded,         x.share.data(),   x.a.data(),  x.b.data(),  x.s.data(),  x.v.data(),      x.e.data(),      x.D.data(),
            x.inverse_a.data(), x.inverse_b.data(), x.slope_s.data(), x.slope_v.data(), x.da.data(), x.ds.data(), x.dv.data(), x.push_s.data(), x.push_v.data(),
            x.image.data(),   x.q.data()};
}

namespace detail {

using vec::detail::Lanes;
using vec::detail::total;

[[gnu::always_inline]] inline const Lanes& lanes(const double* x) { return *reinterpret_cast<const Lanes*>(x); }
[[gnu::always_inline]] inline void put(double* x, Index k, const Lanes& v) { *reinterpret_cast<Lanes*>(x + k) = v; }
[[gnu::always_inline]] inline void lower(Lanes& least, const Lanes& x) { least = x < least ? x : least; }
[[gnu::always_inline]] inline double least(const Lanes& x) {
    double found = x[0];
    for (int k = 1; k < 8; ++k) found = std::min(found, x[k]);
    return found;
}

}  // namespace detail

// The weights of the Newton system, and q = a + D·e.
CERTIFIT_CLONES [[maybe_unused]] static void weigh(const View& x) {
    using namespace detail;
    for (Index k = 0; k < x.padded; k += 8) {
        const Lanes inverse_a = 1.0 / lanes(x.a + k), inverse_b = 1.0 / lanes(x.b + k), slope_s = lanes(x.s + k) * inverse_a, slope_v = lanes(x.v + k) * inverse_b;
        const Lanes D = 1.0 / (slope_s + slope_v);
        put(x.inverse_a, k, inverse_a), put(x.inverse_b, k, inverse_b), put(x.slope_s, k, slope_s), put(x.slope_v, k, slope_v);
        put(x.D, k, D), put(x.q, k, lanes(x.a + k) + D * lanes(x.e + k));
    }
    for (Index k = x.count; k < x.padded; ++k) x.D[k] = 0.0;
}

struct Reach {
    double step, cross;  // the longest share of the step that keeps all positive; what its second order adds to the products
};

[[gnu::always_inline]] inline double share(double ratio) { return ratio >= -1.0 ? 1.0 : -1.0 / ratio; }

// The predictor, which aims at products of zero.
CERTIFIT_CLONES [[maybe_unused]] static Reach predict(const View& x) {
    using namespace detail;
    Lanes worst = {}, cross = {};
    for (Index k = 0; k < x.padded; k += 8) {
        const Lanes da = (lanes(x.image + k) + lanes(x.e + k)) * lanes(x.D + k), s = lanes(x.s + k), v = lanes(x.v + k);
        const Lanes ds = -s - lanes(x.slope_s + k) * da, dv = lanes(x.slope_v + k) * da - v;
        const Lanes of_a = da * lanes(x.inverse_a + k), of_b = da * lanes(x.inverse_b + k);
        lower(worst, of_a), lower(worst, -of_b), lower(worst, -1.0 - of_a), lower(worst, of_b - 1.0);
        cross += da * (ds - dv);
        put(x.da, k, da), put(x.ds, k, ds), put(x.dv, k, dv);
    }
    return {share(least(worst)), total(cross)};
}

// What the corrector adds: the centre, and the products that the predictor left out; q = a + D·(e + push_s − push_v). The
// products of each atom aim at its `share` of the centre.
CERTIFIT_CLONES [[maybe_unused]] static void correct(const View& x, double centre) {
    using namespace detail;
    for (Index k = 0; k < x.padded; k += 8) {
        const Lanes da = lanes(x.da + k), own = centre * lanes(x.share + k);
        const Lanes push_s = (own - da * lanes(x.ds + k)) * lanes(x.inverse_a + k), push_v = (own + da * lanes(x.dv + k)) * lanes(x.inverse_b + k);
        put(x.push_s, k, push_s), put(x.push_v, k, push_v);
        put(x.q, k, lanes(x.a + k) + lanes(x.D + k) * (lanes(x.e + k) + push_s - push_v));
    }
}

// The step itself, and the longest share of it.
CERTIFIT_CLONES [[maybe_unused]] static double direct(const View& x) {
    using namespace detail;
    Lanes worst = {};
    for (Index k = 0; k < x.padded; k += 8) {
        const Lanes push_s = lanes(x.push_s + k), push_v = lanes(x.push_v + k), s = lanes(x.s + k), v = lanes(x.v + k);
        const Lanes da = (lanes(x.image + k) + lanes(x.e + k) + push_s - push_v) * lanes(x.D + k);
        const Lanes ds = push_s - s - lanes(x.slope_s + k) * da, dv = push_v - v + lanes(x.slope_v + k) * da;
        lower(worst, da * lanes(x.inverse_a + k)), lower(worst, -da * lanes(x.inverse_b + k)), lower(worst, ds / s), lower(worst, dv / v);
        put(x.da, k, da), put(x.ds, k, ds), put(x.dv, k, dv);
    }
    return share(least(worst));
}

CERTIFIT_CLONES [[maybe_unused]] static void move(const View& x, double step) {
    for (Index k = 0; k < x.count; ++k) {
        x.e[k] += step * x.image[k], x.s[k] += step * x.ds[k], x.v[k] += step * x.dv[k];
        x.a[k] += step * x.da[k], x.b[k] -= step * x.da[k];
    }
}

}  // namespace certifit::interior
