// Columns of X as coordinate descent sees them: dense (Fortran order) or CSC, weighted and implicitly centered.
//
// The kernels keep u = p ∘ residual. With an intercept every column acts as x_j − m_j, where m_j is its weighted mean,
// but neither X nor its columns are ever copied: a dense step subtracts the mean on the fly, and a sparse step collects
// the means in one number, `shift`, with  u_true = u + shift · p.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "core/index.hpp"
#include "core/interrupt.hpp"
#include "core/team.hpp"
#include "core/vector.hpp"

namespace certifit {

// Rows of a dense update that one thread handles at a time; fixed, so results do not depend on the thread count.
inline constexpr Index kRowChunk = 4096;
// Entries of X that one thread passes over sooner than a second one is awake.
inline constexpr double kAlone = 1e6;

template <class T>
struct Dense {
    static constexpr bool sparse = false;
    const T* data;
    Index n, d;

    const T* column(Index j) const { return data + j * n; }
    Index stored(Index) const { return n; }
    double size() const { return static_cast<double>(n) * static_cast<double>(d); }

    double dot(Index j, const double* u) const { return vec::dot(column(j), u, n); }
    double spread(Index j, double m, const double* p, double) const { return vec::spread(column(j), m, p, n); }
    void subtract(Index j, double a, double m, double* u) const { vec::subtract(a, column(j), m, u, n); }
    void subtract(Index j, double a, const double* p, double m, double* u) const {
        vec::subtract(a, p, column(j), m, u, n);
    }
};

template <class T, class I>
struct Csc {
    static constexpr bool sparse = true;
    const T* data;
    const I* indices;
    const I* indptr;
    Index n, d;

    Index stored(Index j) const { return static_cast<Index>(indptr[j + 1] - indptr[j]); }
    double size() const { return static_cast<double>(indptr[d]); }

    double dot(Index j, const double* u) const {
        double s0 = 0, s1 = 0;
        Index k = indptr[j];
        const Index end = indptr[j + 1];
        for (; k + 2 <= end; k += 2) {
            s0 += static_cast<double>(data[k]) * u[indices[k]];
            s1 += static_cast<double>(data[k + 1]) * u[indices[k + 1]];
        }
        if (k < end) s0 += static_cast<double>(data[k]) * u[indices[k]];
        return s0 + s1;
    }
    // The rows that are not stored are zeros: they add m² each.
    double spread(Index j, double m, const double* p, double total) const {
        double sum = 0, weight = 0;
        for (Index k = indptr[j]; k < static_cast<Index>(indptr[j + 1]); ++k) {
            const double t = static_cast<double>(data[k]) - m;
            sum += p[indices[k]] * t * t;
            weight += p[indices[k]];
        }
        return m == 0.0 ? sum : sum + std::max(total - weight, 0.0) * m * m;
    }
    void subtract(Index j, double a, double, double* u) const {
        for (Index k = indptr[j]; k < static_cast<Index>(indptr[j + 1]); ++k)
            u[indices[k]] -= a * static_cast<double>(data[k]);
    }
    void subtract(Index j, double a, const double* p, double, double* u) const {
        for (Index k = indptr[j]; k < static_cast<Index>(indptr[j + 1]); ++k)
            u[indices[k]] -= a * p[indices[k]] * static_cast<double>(data[k]);
    }
};

// Whether a matrix lies in rows: all columns are then looked at together, and some have to be held before they are moved along.
template <class M>
concept InRows = requires(const M& X, std::span<const Index> columns) { X.hold(columns); };

// X with weights p, column means and squared norms ‖x_j − m_j‖²_p. Columns that were not measured have norm 0.
template <class M>
class Columns {
  public:
    const M X;
    const double* p;
    const bool centered;
    Team& team;
    double total = 0;  // Σ p
    std::vector<double> mean, norm2;

    Columns(const M& X_, const double* p_, bool intercept, Team& team_)
        : X(X_), p(p_), centered(intercept && std::any_of(p_, p_ + X_.n, [](double v) { return v > 0; })), team(team_),
          mean(X_.d, 0.0), norm2(X_.d, 0.0) {
        total = sum(p, X.n);
        uniform_ = true;
        for (Index i = 1; i < X.n && uniform_; ++i) uniform_ = p[i] == p[0];
    }

    // One pass over the given columns: means, norms and correlations with u (whose sum is 0 if centered).
    void measure(std::span<const Index> columns, const double* u, double* c, SignalPoll& signals) {
        if constexpr (InRows<M>) {
            X.measure(p, u, centered, total, mean.data(), norm2.data(), c, team.size());
            signals.poll();
            for (Index j : columns) settle(j);
        } else {
            over(columns, signals, [&](Index j) {
                const double m = centered ? X.dot(j, p) / total : 0.0;
                mean[j] = std::isfinite(m) ? m : 0.0;
                norm2[j] = X.spread(j, mean[j], p, total);
                settle(j);
                c[j] = X.dot(j, u);
            });
        }
    }

    // Columns that are about to be moved along.
    void hold(std::span<const Index> columns) const {
        if constexpr (InRows<M>) X.hold(columns);
    }

    void correlate(std::span<const Index> columns, const double* u, double shift, double* c, SignalPoll& signals) const {
        if constexpr (InRows<M>) {
            X.correlate(columns, u, c, team.size());
            signals.poll();
        } else {
            over(columns, signals, [&](Index j) { c[j] = correlation(j, u, shift); });
        }
    }

    double correlation(Index j, const double* u, double shift) const {
        const double c = X.dot(j, u);
        return M::sparse && centered ? c + shift * total * mean[j] : c;
    }

    // u −= a p (x_j − m_j): what moving w_j by a does to u.
    void step(Index j, double a, double* u, double& shift) const {
        if (uniform_) {
            X.subtract(j, a * p[0], mean[j], u);
        } else {
            X.subtract(j, a, p, mean[j], u);
        }
        if constexpr (M::sparse) shift += a * mean[j];
    }

    // The same for many columns at once, rows in parallel; without `weighted`, u −= Σ a_j (x_j − m_j).
    void steps(std::span<const Index> columns, const double* a, bool weighted, double* u, double& shift) const {
        if constexpr (M::sparse) {
            for (std::size_t k = 0; k < columns.size(); ++k) {
                if (weighted) {
                    X.subtract(columns[k], a[k], p, 0.0, u);
                } else {
                    X.subtract(columns[k], a[k], 0.0, u);
                }
                shift += a[k] * mean[columns[k]];
            }
        } else {
            const double scale = weighted && uniform_ ? p[0] : 1.0;
            const bool together = static_cast<double>(columns.size()) * static_cast<double>(X.n) > kAlone;
            team.blocks(X.n, kRowChunk, together, [&](Index from, Index to, int) {
                const Index rows = to - from;
                for (std::size_t k = 0; k < columns.size(); ++k) {
                    const Index j = columns[k];
                    if (weighted && !uniform_) {
                        vec::subtract(a[k], p + from, X.column(j) + from, mean[j], u + from, rows);
                    } else {
                        vec::subtract(scale * a[k], X.column(j) + from, mean[j], u + from, rows);
                    }
                }
            });
        }
    }

    static double sum(const double* v, Index n) {
        double lanes[8] = {}, s = 0;  // eight sums at once: one would wait for each of its additions
        Index i = 0;
        for (; i + 8 <= n; i += 8)
            for (Index k = 0; k < 8; ++k) lanes[k] += v[i + k];
        for (; i < n; ++i) s += v[i];
        for (double lane : lanes) s += lane;
        return s;
    }

    // Every column is handled by one thread; signals are polled between blocks of a few hundred million numbers.
    template <class F>
    void over(std::span<const Index> columns, SignalPoll& signals, F&& f) const {
        const Index count = static_cast<Index>(columns.size());
        const double cost = std::max(1.0, X.size() / std::max<Index>(X.d, 1));
        const Index block = std::max<Index>(team.size(), static_cast<Index>(2e8 / cost));
        const Index piece = std::max<Index>(1, static_cast<Index>(5e4 / cost));  // columns worth handing out
        for (Index from = 0; from < count; from += block) {
            const Index to = std::min(count, from + block);
            team.blocks(to - from, piece, (to - from) * cost > kAlone, [&](Index first, Index last, int) {
                for (Index k = from + first; k < from + last; ++k) f(columns[k]);
            });
            signals.poll();
        }
    }

  private:
    // A constant column differs from its mean by rounding only.
    void settle(Index j) {
        if (norm2[j] <= 1e-30 * mean[j] * mean[j] * total) norm2[j] = 0.0;
    }

    bool uniform_ = true;
};

}  // namespace certifit
