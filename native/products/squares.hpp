// Least squares of few ordinary columns: one pass over X for all sums, one for the residual, Cholesky's factor between them.
//
//   minimize over w, b    Σ p_i ½(y_i − x_i·w − b)² + ½ Σ_j l2_j w_j²
//
// Problems that would lose more digits than the caller bears have steps with gradients in twice the precision instead.
// With m = Σ p_i x_i and H = Σ p_i (x_i − m)(x_i − m)' + diag(l2), units u_j = 1/√H_jj make the diagonal of H one. What comes back is the
// solution after one step with the gradient of X itself, and the evidence by which the caller judges it.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "coordinate/factor.hpp"
#include "products/sparse.hpp"
#include "products/sums.hpp"
#include "products/twice.hpp"

namespace certifit::products {

struct Squares {
    std::vector<double> coef, mean, unit, factor;  // the factor L, row after row, with L L' = H in units
    double intercept = 0, objective = 0, gap = 0;
    double square = 0;    // estimated condition of H in units
    double residual = 0;  // largest component of the normal equations, relative, before the step
    double moved = 0;     // length of the last step beside that of the coefficients
    double lean = 0;      // norm of the residual beside the length of the coefficients
    double offset = 0;    // largest mean of a column beside its deviation
    bool exact = false;   // whether gradients had twice the precision

    // What rounding of X and y, or of sums over them, may change in the coefficients.
    double lost() const {
        const double condition = std::sqrt(square);
        return std::numeric_limits<double>::epsilon() * condition * (1.0 + offset) * (1.0 + condition * lean);
    }
};

namespace detail {

// ‖H⁻¹‖₁ as Hager and Higham estimate it, with a few solves (Higham 2002, algorithm 15.4).
inline double inverse_norm(const Factor& factor, Index d) {
    const auto size = [](const std::vector<double>& x) {
        return std::accumulate(x.begin(), x.end(), 0.0, [](double sum, double v) { return sum + std::abs(v); });
    };
    const auto farthest = [](const std::vector<double>& x) {
        return std::max_element(x.begin(), x.end(), [](double a, double b) { return std::abs(a) < std::abs(b); }) - x.begin();
    };
    std::vector<double> x(d, 1.0 / static_cast<double>(d)), sign(d, 0.0);
    factor.solve(x.data());
    double found = size(x);
    if (d == 1) return found;
    for (int round = 0; round < 5; ++round) {
        std::vector<double> next(d);
        for (Index j = 0; j < d; ++j) next[j] = x[j] >= 0 ? 1.0 : -1.0;
        if (next == sign) break;
        sign = next;
        factor.solve(next.data());
        const Index j = farthest(next);
        std::fill(x.begin(), x.end(), 0.0);
        x[j] = 1.0;
        factor.solve(x.data());
        const double before = found;
        found = std::max(found, size(x));
        if (found <= before) break;
    }
    for (Index j = 0; j < d; ++j) x[j] = (j % 2 ? -1.0 : 1.0) * (1.0 + static_cast<double>(j) / static_cast<double>(d - 1));
    factor.solve(x.data());
    return std::max(found, 2.0 * size(x) / (3.0 * static_cast<double>(d)));
}

// A number near the mean of y, where that is far from zero beside the deviation; of a few of its entries.
inline double near_mean(const double* y, Index n) {
    constexpr Index kFew = 64;
    const Index count = std::min(n, kFew);
    double sum = 0, squares = 0;
    for (Index k = 0; k < count; ++k) sum += y[n * k / count];
    const double centre = sum / static_cast<double>(count);
    for (Index k = 0; k < count; ++k) squares += (y[n * k / count] - centre) * (y[n * k / count] - centre);
    return std::isfinite(centre) && centre * centre * static_cast<double>(count) > squares ? centre : 0.0;
}

// Whether the columns that are said to be zero are: squares of small numbers vanish too.
inline bool are_zero(const Table<double>& X, const std::vector<char>& zero) {
    for (Index i = 0; i < X.n; ++i)
        for (Index j = 0; j < X.d; ++j)
            if (zero[j] && X.data[X.by_row ? i * X.d + j : j * X.n + i] != 0.0) return false;
    return true;
}

template <class T, class I>
bool are_zero(const CsrRows<T, I>& X, const std::vector<char>& zero) {
    for (auto k = X.start[0]; k < X.start[X.n]; ++k)
        if (zero[X.indices[k]] && X.data[k] != T{0}) return false;
    return true;
}

}  // namespace detail

// Of weights that are known to be `even` only the first is read; `bearable` is the relative change of the coefficients by rounding that needs no
// second precision, which sparse rows do not have. False where the numbers are not ordinary: squares beyond `kLeast` and 1/kLeast,
// means of columns far from zero beside deviations, columns that depend on each other.
template <class Rows>
bool solve_squares(const Rows& X, const double* y, const double* p, const double* l2, bool intercept, int threads, Squares& out,
                   bool even = false, double bearable = std::numeric_limits<double>::infinity()) {
    constexpr int kMostSteps = 8;
    constexpr double kSure = 1e11;  // condition times columns up to which steps surely contract, by 10⁻³ and more
    constexpr double kSame = 1e-6;  // second moment of a column beside the square of its mean: digits that its variance may lose
    constexpr double kLeast = 1e-18;
    constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
    const auto ordinary = [](double square) { return square > kLeast && square < 1.0 / kLeast; };
    const Index d = X.d, m = d + 2;
    const double centre = intercept ? detail::near_mean(y, X.n) : 0.0;
    const std::vector<double> sums = sums_of(X, y, p, threads, even, centre);  // the lower triangle: ones, columns, y
    const double* last = sums.data() + (m - 1) * m;
    const double level_y = intercept ? last[0] : 0.0, y_mean = centre + level_y, energy = last[m - 1] - level_y * level_y;
    // Written so that what is not a number fails too. A mean of y beyond its deviation would cost digits of the moments.
    if (!(ordinary(energy) && level_y * level_y <= energy)) return false;
    out.mean.assign(d, 0.0), out.unit.resize(d), out.coef.resize(d);
    std::vector<double> H(d * d), none(d, 0.0), g(d), step(d);
    std::vector<char> zero(d, 0);  // columns of zeros, as sparse rows have them: coefficient and unit are zero
    for (Index j = 0; j < d; ++j) {
        const double* row = sums.data() + (j + 1) * m;
        if (row[j + 1] == 0.0) {
            zero[j] = 1, out.unit[j] = 0.0;
            continue;
        }
        if (intercept) out.mean[j] = row[0];
        const double square = row[j + 1], second = square - out.mean[j] * out.mean[j];
        if (!(ordinary(second) && second > kSame * square && l2[j] < 1.0 / kLeast)) return false;
        out.offset = std::max(out.offset, std::abs(out.mean[j]) / std::sqrt(second));
        out.unit[j] = 1.0 / std::sqrt(second + l2[j]);
    }
    if (std::find(zero.begin(), zero.end(), 1) != zero.end() && !detail::are_zero(X, zero)) return false;
    double norm = 0;
    for (Index j = 0; j < d; ++j) {
        const double* row = sums.data() + (j + 1) * m + 1;
        for (Index k = 0; k < j; ++k) H[j * d + k] = H[k * d + j] = (row[k] - out.mean[j] * out.mean[k]) * (out.unit[j] * out.unit[k]);
        H[j * d + j] = 1.0;
    }
    for (Index j = 0; j < d; ++j) {
        double sum = 0;
        for (Index k = 0; k < d; ++k) sum += std::abs(H[j * d + k]);
        norm = std::max(norm, sum);
    }
    Factor factor;
    std::vector<Index> all(d);
    std::iota(all.begin(), all.end(), Index{0});
    factor.update(H.data(), d, none.data(), all, d);
    if (!factor.regular()) return false;
    out.square = norm * detail::inverse_norm(factor, d);
    const auto solve = [&](const double* right, double* to) {
        for (Index j = 0; j < d; ++j) to[j] = out.unit[j] * right[j];
        factor.solve(to);
        for (Index j = 0; j < d; ++j) to[j] *= out.unit[j];
    };
    for (Index j = 0; j < d; ++j) g[j] = zero[j] ? 0.0 : last[j + 1] - level_y * out.mean[j];
    std::vector<double>& w = out.coef;
    solve(g.data(), w.data());
    out.intercept = intercept ? y_mean - vec::dot(out.mean.data(), w.data(), d) : 0.0;
    const bool same = even || equal(p, X.n);
    std::vector<double> found(d + 2);
    // What is left of the equations at the present point, and the step.
    const auto look = [&](double level, const auto& slope) {
        double largest = std::abs(level), length = 0, change = 0;
        for (Index j = 0; j < d; ++j) {
            g[j] = slope(j);
            largest = std::max(largest, std::abs(out.unit[j] * g[j]));
        }
        solve(g.data(), step.data());
        for (Index j = 0; j < d; ++j) {
            if (zero[j]) continue;
            length += w[j] / out.unit[j] * (w[j] / out.unit[j]);
            change += step[j] / out.unit[j] * (step[j] / out.unit[j]);
        }
        out.residual = largest / std::sqrt(energy);
        out.moved = std::sqrt(change / length);
        return length;
    };
    const auto go = [&](double level) {
        for (Index j = 0; j < d; ++j) w[j] += step[j];
        if (intercept) out.intercept += level - vec::dot(out.mean.data(), step.data(), d);
    };
    residual(X, y, p, w.data(), out.intercept, found.data(), threads, same);
    double level = intercept ? found[d] : 0.0, left = found[d + 1];
    const double length = look(level, [&](Index j) { return found[j] - level * out.mean[j] - l2[j] * w[j]; });
    if (!(length > 0)) return false;
    out.lean = std::sqrt(left / length);
    if constexpr (std::is_same_v<Rows, Table<double>>) {
        out.exact = out.lost() > bearable && out.square * static_cast<double>(d) < kSure;
        double before = std::numeric_limits<double>::infinity();
        for (int round = 0; out.exact; ++round) {
            const Twice twice = residual_twice(X, y, p, w.data(), out.intercept, same, 1);
            level = intercept ? twice.high[d] + twice.low[d] : 0.0, left = twice.energy;
            look(level, [&](Index j) { return twice.slope(j, out.mean[j], l2[j], w[j], intercept); });
            if (out.moved <= kEpsilon || !(out.moved < 0.5 * before) || round == kMostSteps) break;
            before = out.moved;
            go(level);
        }
    }
    out.gap = std::max(0.0, 0.5 * vec::dot(g.data(), step.data(), d));
    // The last digits of an intercept far from the means hang on this step.
    if (!out.exact && out.moved > 0.5 * kEpsilon && out.residual > 0) go(level);
    double penalty = 0;
    for (Index j = 0; j < d; ++j) w[j] += 0.0, penalty += l2[j] * w[j] * w[j];  // no negative zeros
    out.objective = 0.5 * (left + penalty);
    out.factor.assign(d * d, 0.0);
    const Factor& done = factor;
    for (Index j = 0; j < d; ++j) std::copy_n(done.row(j), j + 1, out.factor.begin() + j * d);
    return std::isfinite(out.square);
}

}  // namespace certifit::products
