// Lanczos's process on one symmetric matrix K for several starts at once: a step reads K once for all of them.
//
//     A = P D K D P,    D = diag(root),    P = I − u uᵀ,        A V = V T + β v_{m+1} e_mᵀ,    VᵀV = I,    T tridiagonal
//
// with a root and a u of each start's own, so that folds of one sample (roots of weights, zero at rows left out) share K. Every vector is
// made orthogonal to all before it: without that, copies of eigenvalues that were found appear in T, and twice the steps are needed.
//
// Lanczos 1950; when once is not enough: Daniel, Gragg, Kaufman and Stewart 1976.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "core/team.hpp"
#include "products/products.hpp"

namespace certifit::products {

namespace detail {

// out[c·n + r] += Σ_j k[r·n + j] z[c·n + j] for Rows rows k, C columns z and `count` values of j.
template <int Rows, int C>
[[gnu::always_inline]] inline void few_columns(const double* k, const double* ahead, Index n, Index count, const double* z, double* out) {
    Lanes sum[Rows][C] = {};
    Index j = 0;
    for (; j + 8 <= count; j += 8) {
        Lanes a[Rows];
#pragma GCC unroll 4
        for (int r = 0; r < Rows; ++r) {
            load(k + r * n + j, a[r]);
            __builtin_prefetch(ahead + r * n + j, 0, 2);
        }
#pragma GCC unroll 6
        for (int c = 0; c < C; ++c) {
            Lanes b;
            load(z + c * n + j, b);
#pragma GCC unroll 4
            for (int r = 0; r < Rows; ++r) sum[r][c] += a[r] * b;
        }
    }
#pragma GCC unroll 6
    for (int c = 0; c < C; ++c)
#pragma GCC unroll 4
        for (int r = 0; r < Rows; ++r) {
            double found = total(sum[r][c]);
            for (Index l = j; l < count; ++l) found += k[r * n + l] * z[c * n + l];
            out[c * n + r] += found;
        }
}

template <int C>
[[gnu::always_inline]] inline void few_columns(const double* K, Index n, Index from, Index to, const double* z, double* out) {
    for (Index c = 0; c < C; ++c) std::fill(out + c * n + from, out + c * n + to, 0.0);
    // As many entries of z as the nearest cache holds.
    constexpr Index block = 8192 / C / 8 * 8;
    for (Index j = 0; j < n; j += block) {
        const Index count = std::min(block, n - j);
        Index i = from;
        for (; i + 4 <= to; i += 4) few_columns<4, C>(K + i * n + j, K + (i + 4 < to ? (i + 4) * n + j : from * n + j + block), n, count, z + j, out + i);
        for (; i < to; ++i) few_columns<1, C>(K + i * n + j, K + i * n + j, n, count, z + j, out + i);
    }
}

}  // namespace detail

constexpr Index kColumns = 6;  // that four rows of K can be multiplied by in registers

CERTIFIT_CLONES [[maybe_unused]] static void few_columns(const double* K, Index n, Index from, Index to, const double* z, Index columns, double* out) {
    for (; columns >= kColumns; columns -= kColumns, z += kColumns * n, out += kColumns * n)
        detail::few_columns<kColumns>(K, n, from, to, z, out);
    switch (columns) {
        case 5: return detail::few_columns<5>(K, n, from, to, z, out);
        case 4: return detail::few_columns<4>(K, n, from, to, z, out);
        case 3: return detail::few_columns<3>(K, n, from, to, z, out);
        case 2: return detail::few_columns<2>(K, n, from, to, z, out);
        case 1: return detail::few_columns<1>(K, n, from, to, z, out);
        default: return;
    }
}

// The state of the process, in arrays of Python's: of each of `starts` starts root and constant (u, or zeros), `room` vectors, one after the
// other, and as many entries of T on its diagonal and below it.
struct Lanczos {
    const double* K;
    Index n, starts, room;
    const double* root;
    const double* constant;
    double* basis;
    double* diagonal;
    double* below;

    // Vectors from + 1, …, to, given those up to `from`. A start whose space is complete goes on with zeros.
    void run(Index from, Index to, Team& team) const {
        const auto size = static_cast<std::size_t>(starts * n);
        std::vector<double> z(size), image(size);
        std::vector<std::vector<double>> overlap(static_cast<std::size_t>(team.size()), std::vector<double>(static_cast<std::size_t>(room)));
        const bool together = starts * n * n >= kAlone;
        for (Index m = from; m < to; ++m) {
            for (Index s = 0; s < starts; ++s)
                for (Index i = 0; i < n; ++i) z[static_cast<std::size_t>(s * n + i)] = root[s * n + i] * vectors(s)[m * n + i];
            team.blocks(n, kRows, together, [&](Index a, Index b, int) { few_columns(K, n, a, b, z.data(), starts, image.data()); });
            team.run(starts, together, [&](Index s, int worker) { next(s, m, image.data() + s * n, overlap[static_cast<std::size_t>(worker)].data()); });
        }
    }

  private:
    static constexpr Index kRows = 64;  // of K, a task

    double* vectors(Index s) const { return basis + s * room * n; }

    void next(Index s, Index m, double* w, double* overlap) const {
        const double *r = root + s * n, *u = constant + s * n;
        double* const V = vectors(s);
        for (Index i = 0; i < n; ++i) w[i] *= r[i];
        vec::subtract(vec::dot(u, w, n), u, 0.0, w, n);
        const double alpha = vec::dot(V + m * n, w, n);
        diagonal[s * room + m] = alpha;
        const double size = std::sqrt(vec::dot(w, w, n));
        vec::subtract(alpha, V + m * n, 0.0, w, n);
        if (m > 0) vec::subtract(below[s * room + m - 1], V + (m - 1) * n, 0.0, w, n);
        double length = std::sqrt(vec::dot(w, w, n)), before = std::numeric_limits<double>::infinity();
        for (int pass = 0; pass < 3 && length < 0.7 * before; ++pass) {
            scores_by_row(V, m + 1, n, w, 0.0, overlap);
            for (Index k = 0; k <= m; ++k) overlap[k] = -overlap[k];
            pull_by_row(V, m + 1, n, overlap, w);
            vec::subtract(vec::dot(u, w, n), u, 0.0, w, n);
            before = length;
            length = std::sqrt(vec::dot(w, w, n));
        }
        double most = 0.0;
        for (Index k = 0; k <= m; ++k) most = std::max(most, std::fabs(diagonal[s * room + k]));
        const double beta = length > std::numeric_limits<double>::epsilon() * std::max(most, size) ? length : 0.0;
        below[s * room + m] = beta;
        double* const v = V + (m + 1) * n;
        for (Index i = 0; i < n; ++i) v[i] = beta > 0.0 ? w[i] / beta : 0.0;
    }
};

}  // namespace certifit::products
