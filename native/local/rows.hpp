// Rows around a query: blocks of rows that lie together, their weights by distance, and the polynomial of their place.
//
//     z = (x − q)/h        w = s·K(‖z‖)        φ(z) = (1, z_1 … z_d, z_1², z_1z_2, …)   up to the degree
//
// K is exp(−½r²), or (1 − r³)³ within r < 1. Blocks that are too far away to have a weight are passed over by their boxes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "core/exponential.hpp"
#include "core/index.hpp"
#include "core/simd.hpp"
#include "core/vector.hpp"

namespace certifit::local {

constexpr Index kRows = 256;       // of a block
constexpr double kLeast = -700.0;  // logarithm below which a weight is nothing
constexpr double kFar = 1e9;       // squared widths to the nearest row whose rounding still says nothing

enum class Shape { gaussian, tricube };

// Block by block, each [column][row]; the last block is filled up with rows of weight zero.
struct Rows {
    const double* X;
    const double* y;
    const double* s;
    const double* low;   // boxes, [block][column]
    const double* high;
    Index blocks, n, d, targets;
    bool alike;  // whether all rows weigh the same
};

// How a neighborhood is made.
struct Lens {
    Shape shape;
    int degree;
    double width;     // 0: as wide as `fraction` of the weight asks for
    double fraction;

    Index terms(Index d) const { return degree == 0 ? 1 : degree == 1 ? 1 + d : 1 + d + d * (d + 1) / 2; }
};

namespace detail {

using vec::detail::load;

// z, and r² = ‖z‖².
CERTIFIT_CLONES [[maybe_unused]] static void place(const double* X, const double* q, Index d, double inverse, double* z,
                                                   double* square) {
    for (Index i = 0; i < kRows; ++i) square[i] = 0.0;
    for (Index j = 0; j < d; ++j) {
        const double* x = X + j * kRows;
        double* out = z + j * kRows;
        for (Index i = 0; i < kRows; ++i) {
            const double t = (x[i] - q[j]) * inverse;
            out[i] = t, square[i] += t * t;
        }
    }
}

CERTIFIT_CLONES [[maybe_unused]] static void gaussian(const double* square, const double* s, double nearest, double* w) {
    for (Index i = 0; i < kRows; i += 8) {
        Lanes r, a;
        load(square + i, r), load(s + i, a);
        Lanes power = (nearest - r) * 0.5;
        const auto far = power < kLeast;
        power = far ? Lanes{} : power;
        const Lanes weight = far ? Lanes{} : a * exponential(power);
        *reinterpret_cast<Lanes*>(w + i) = weight;
    }
}

CERTIFIT_CLONES [[maybe_unused]] static void tricube(const double* square, const double* s, double* w) {
    for (Index i = 0; i < kRows; ++i) {
        const double r = square[i] < 1.0 ? square[i] : 1.0, t = 1.0 - r * std::sqrt(r);
        w[i] = s[i] * t * t * t;
    }
}

// Products of pairs of columns.
CERTIFIT_CLONES [[maybe_unused]] static void squares(const double* z, Index d, double* out) {
    for (Index a = 0; a < d; ++a)
        for (Index b = a; b < d; ++b, out += kRows)
            for (Index i = 0; i < kRows; ++i) out[i] = z[a * kRows + i] * z[b * kRows + i];
}

// gram[a][b ≥ a] += Σ w φ_a φ_b,  right[k][a] += Σ w φ_a y_k
CERTIFIT_CLONES [[maybe_unused]] static void gather(const double* phi, const double* w, const double* y, Index terms,
                                                    Index targets, double* gram, double* right) {
    alignas(64) double weighted[kRows];
    for (Index a = 0; a < terms; ++a) {
        for (Index i = 0; i < kRows; ++i) weighted[i] = w[i] * phi[a * kRows + i];
        for (Index b = a; b < terms; ++b) gram[a * terms + b] += vec::detail::dot(weighted, phi + b * kRows, kRows);
        for (Index k = 0; k < targets; ++k) right[k * terms + a] += vec::detail::dot(weighted, y + k * kRows, kRows);
    }
}

// Σ s (w/s · φ·v)²
CERTIFIT_CLONES [[maybe_unused]] static double influence(const double* phi, const double* w, const double* s, const double* v,
                                                         Index terms) {
    alignas(64) double at[kRows];
    for (Index i = 0; i < kRows; ++i) at[i] = 0.0;
    for (Index a = 0; a < terms; ++a)
        for (Index i = 0; i < kRows; ++i) at[i] += v[a] * phi[a * kRows + i];
    double sum = 0.0;
    for (Index i = 0; i < kRows; ++i) sum += s[i] > 0.0 ? (w[i] * at[i]) * (w[i] * at[i]) / s[i] : 0.0;
    return sum;
}

}  // namespace detail

// What a worker needs for one query after the other.
class Neighborhood {
  public:
    Neighborhood(const Rows& rows, const Lens& lens)
        : rows_(rows), lens_(lens), terms_(lens.terms(rows.d)),
          phi_(static_cast<std::size_t>(std::max(terms_, 1 + rows.d) * kRows)), square_(kRows), weight_(kRows) {
        std::fill(phi_.begin(), phi_.begin() + kRows, 1.0);
    }

    Index terms() const { return terms_; }
    double width() const { return width_; }
    const double* query() const { return q_; }
    const double* phi() const { return phi_.data(); }
    const double* weight() const { return weight_.data(); }

    // Sets the width for a query; then `each` gives its rows.
    void settle(const double* q) {
        q_ = q, nearest_ = 0.0;
        width_ = lens_.width > 0.0 ? lens_.width : reach();
    }

    // Nobody has a weight: weights relative to that of the nearest row (Gaussian), or a width that just reaches it. So many Gaussian
    // widths away that rounding of its distance is a width, the row would have any weight: the width grows too.
    void widen() {
        double least = std::numeric_limits<double>::infinity();
        over_distances([&](double square, double) { least = std::min(least, square); });
        if (lens_.shape == Shape::gaussian) {
            width_ = std::max(width_, std::sqrt(least / kFar));
            nearest_ = least / (width_ * width_);
        } else
            width_ = least > 0.0 ? 1.001 * std::sqrt(least) : 1.0;
    }

    // visit(block) for every block that may have a weight, with φ and w in place.
    template <class Visit>
    void each(Visit&& visit) {
        const double inverse = 1.0 / width_;
        const double most = lens_.shape == Shape::tricube ? 1.0 : nearest_ - 2.0 * kLeast;
        for (Index b = 0; b < rows_.blocks; ++b) {
            if (away(b) * inverse * inverse > most) continue;
            double* z = phi_.data() + kRows;
            const double* s = rows_.s + b * kRows;
            detail::place(rows_.X + b * rows_.d * kRows, q_, rows_.d, inverse, z, square_.data());
            lens_.shape == Shape::gaussian ? detail::gaussian(square_.data(), s, nearest_, weight_.data())
                                           : detail::tricube(square_.data(), s, weight_.data());
            if (lens_.degree == 2) detail::squares(z, rows_.d, z + rows_.d * kRows);
            visit(b);
        }
    }

    // K at the query itself.
    double own() const { return lens_.shape == Shape::gaussian ? std::exp(0.5 * nearest_) : 1.0; }

  private:
    const Rows& rows_;
    const Lens& lens_;
    Index terms_;
    std::vector<double> phi_, square_, weight_;
    std::vector<std::pair<double, double>> met_;
    std::vector<double> far_;
    const double* q_ = nullptr;
    double width_ = 1.0, nearest_ = 0.0;

    // Squared distance of the query from the box of a block.
    double away(Index b) const {
        double sum = 0.0;
        for (Index j = 0; j < rows_.d; ++j) {
            const double gap = std::max({0.0, rows_.low[b * rows_.d + j] - q_[j], q_[j] - rows_.high[b * rows_.d + j]});
            sum += gap * gap;
        }
        return sum;
    }

    // visit(squared distance, weight) of every row.
    template <class Visit>
    void over_distances(Visit&& visit) {
        for (Index b = 0; b < rows_.blocks; ++b) {
            detail::place(rows_.X + b * rows_.d * kRows, q_, rows_.d, 1.0, phi_.data() + kRows, square_.data());
            for (Index i = 0; i < std::min(kRows, rows_.n - b * kRows); ++i)
                visit(square_[static_cast<std::size_t>(i)], rows_.s[b * kRows + i]);
        }
    }

    // The least distance within which the wanted share of the weight lies.
    double reach() {
        const Index k = std::clamp<Index>(
            static_cast<Index>(std::ceil(lens_.fraction * static_cast<double>(rows_.n) * (1 - 1e-12))), 1, rows_.n);
        const double found = !rows_.alike ? shared() : rows_.d == 1 ? windowed(k) : counted(k);
        if (found > 0.0) return found;
        // All of them lie at the query: up to the first row that does not, which then has no weight.
        double least = std::numeric_limits<double>::infinity();
        over_distances([&](double square, double) { least = square > 0.0 ? std::min(least, square) : least; });
        return std::isfinite(least) ? std::sqrt(least) : 1.0;
    }

    // One column in sorted order: the k nearest are a window.
    double windowed(Index k) const {
        const double* x = rows_.X;
        const double q = q_[0];
        Index a = 0, b = rows_.n - k;
        while (a < b) {
            const Index mid = a + (b - a) / 2;
            q - x[mid] > x[mid + k] - q ? a = mid + 1 : b = mid;
        }
        return std::max(q - x[a], x[a + k - 1] - q);
    }

    double counted(Index k) {
        far_.clear();
        over_distances([&](double square, double) { far_.push_back(square); });
        std::nth_element(far_.begin(), far_.begin() + (k - 1), far_.end());
        return std::sqrt(far_[static_cast<std::size_t>(k - 1)]);
    }

    double shared() {
        met_.clear();
        double total = 0.0, seen = 0.0;
        over_distances([&](double square, double s) { met_.emplace_back(square, s), total += s; });
        std::sort(met_.begin(), met_.end());
        for (const auto& [square, s] : met_)
            if ((seen += s) >= lens_.fraction * total * (1 - 1e-12)) return std::sqrt(square);
        return std::sqrt(met_.back().first);
    }
};

}  // namespace certifit::local
