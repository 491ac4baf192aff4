// The Cholesky factor of G + diag(l2) on a list of columns that come and go:
//
//   L L' = (G + diag(l2))[order, order]
//
// Columns that come are appended. Those that leave take their rows out of L, and what their columns of L held, V, goes
// back to the rows below by rotations, L⁺L⁺' = L L' + V V': m² operations for each instead of m³/3 for a new factor.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "core/simd.hpp"
#include "core/team.hpp"
#include "core/vector.hpp"

namespace certifit {

namespace detail {

inline constexpr std::ptrdiff_t kStrip = 16;

// Rotations (cos, sin) one after the other, each of x with its own strip of v.
CERTIFIT_CLONES [[maybe_unused]] static void rotate(const double* turns, std::ptrdiff_t count, double* x, double* v) {
    using vec::detail::Lanes, vec::detail::load;
    Lanes x0, x1, v0, v1;
    load(x, x0), load(x + 8, x1);
    for (std::ptrdiff_t e = 0; e < count; ++e, v += kStrip) {
        const double c = turns[2 * e], s = turns[2 * e + 1];
        load(v, v0), load(v + 8, v1);
        *reinterpret_cast<Lanes*>(v) = c * v0 - s * x0;
        *reinterpret_cast<Lanes*>(v + 8) = c * v1 - s * x1;
        x0 = c * x0 + s * v0, x1 = c * x1 + s * v1;
    }
    *reinterpret_cast<Lanes*>(x) = x0;
    *reinterpret_cast<Lanes*>(x + 8) = x1;
}

}  // namespace detail

class Factor {
  public:
    using Index = std::ptrdiff_t;

    explicit Factor(Team* team = nullptr) : team_(team) {}  // null: the caller does all
    void forget() { order_.clear(), dependent_ = false; }
    Index size() const { return static_cast<Index>(order_.size()); }

    // Whether every column has its own direction.
    bool regular() const { return !dependent_; }

    // Multiplications of an update to `wanted` and the two solves that follow, those of a blocked loop counted as a fifth.
    double cost(const std::vector<Index>& wanted, Index k) const {
        const Plan plan = planned(wanted, k);
        const double m = static_cast<double>(wanted.size());
        return plan.work + m * m;
    }

    // Reorders `wanted` so that what is factored already comes first.
    void update(const double* G, Index stride, const double* l2, std::vector<Index>& wanted, Index k) {
        const Plan plan = planned(wanted, k);
        Index kept = size();
        if (plan.rotate) {
            remove(plan.gone);
            kept = size();
        } else if (!plan.gone.empty()) {
            kept = plan.gone.front();
            Index to = kept;
            std::size_t next = 0;
            for (Index i = kept; i < size(); ++i) {
                if (next < plan.gone.size() && plan.gone[next] == i) ++next;
                else order_[to++] = order_[i];
            }
            order_.resize(to);
        }
        order_.insert(order_.end(), plan.come.begin(), plan.come.end());
        wanted = order_;
        extend(G, stride, l2, kept);
    }

    void solve(double* x) const {
        const Index m = size();
        for (Index i = 0; i < m; ++i) x[i] = (x[i] - vec::dot(row(i), x, i)) / row(i)[i];
        for (Index i = m - 1; i >= 0; --i) {
            x[i] /= row(i)[i];
            vec::subtract(x[i], row(i), 0.0, x, i);
        }
    }

    // Row i of L, as far as its diagonal.
    const double* row(Index i) const { return values_.get() + i * capacity_; }

  private:
    // A column that depends on earlier ones gets an infinite pivot: it stays where it is.
    static constexpr double kNever = 1e200;
    static constexpr Index kStrip = detail::kStrip;

    struct Plan {
        std::vector<Index> gone, come;  // positions that leave, slots that are new
        bool rotate = false;            // whether rotations are cheaper than factoring again from the first that leaves
        double work = 0;
    };

    Plan planned(const std::vector<Index>& wanted, Index k) const {
        Plan plan;
        std::vector<char> mark(k, 0);
        for (Index s : wanted) mark[s] = 1;
        double turns = 0;
        const double before = static_cast<double>(size());
        for (Index i = 0; i < size(); ++i) {
            if (mark[order_[i]]) {
                mark[order_[i]] = 0;
            } else {
                plan.gone.push_back(i);
                turns += (before - i) * (before - i);
            }
        }
        for (Index s : wanted)
            if (mark[s]) mark[s] = 0, plan.come.push_back(s);
        const double m = static_cast<double>(wanted.size()), old = before - static_cast<double>(plan.gone.size());
        const auto blocked = [m](double kept) { return (m * m * m - kept * kept * kept) / 15; };
        plan.work = blocked(old);
        if (plan.gone.empty()) return plan;
        const double again = blocked(static_cast<double>(plan.gone.front()));
        // A column that depended on one that leaves may count again: only a new factor can tell.
        plan.rotate = !dependent_ && plan.work + turns < again;
        plan.work = plan.rotate ? plan.work + turns : again;
        return plan;
    }

    double* row(Index i) { return values_.get() + i * capacity_; }

    // Rows from `kept` on, by blocks of columns: the rows below a finished diagonal block are independent of each other.
    void extend(const double* G, Index stride, const double* l2, Index kept) {
        const Index m = size();
        if (kept == 0) dependent_ = false;
        if (m > capacity_) {
            const Index capacity = (m * 5 / 4 + 39) / 8 * 8;
            auto grown = std::make_unique_for_overwrite<double[]>(capacity * capacity);
            for (Index i = 0; i < kept; ++i) std::copy_n(row(i), i + 1, grown.get() + i * capacity);
            values_.swap(grown);
            capacity_ = capacity;
        }
        constexpr Index block = 64;
        const bool large = static_cast<double>(m - kept) * m * m > 1.5e8;
        for (Index from = 0; from < m; from += block) {
            const Index to = std::min(m, from + block);
            for (Index i = std::max(kept, from); i < to; i += 4)
                factor_rows(G, stride, l2, i, std::min<Index>(4, to - i), from, to);
            const Index below = std::max(kept, to), groups = (m - below + 3) / 4;
            const auto four = [&](Index group) {
                const Index i = below + 4 * group;
                factor_rows(G, stride, l2, i, std::min<Index>(4, m - i), from, to);
            };
            if (team_ && large && static_cast<double>(m - below) * from * block > 2e6)
                team_->run(groups, true, [&](Index group, int) { four(group); });
            else
                for (Index group = 0; group < groups; ++group) four(group);
        }
        for (Index i = kept; i < m; ++i) dependent_ |= row(i)[i] == kNever;
    }

    // Rows i … i+count−1, columns from ≤ j < to, all earlier columns being done: left-looking, in tiles of 4 × 4.
    void factor_rows(const double* G, Index stride, const double* l2, Index i, Index count, Index from, Index to) {
        const double *a[4], *b[4];
        double sums[16];
        for (Index r = 0; r < 4; ++r) a[r] = row(i + std::min(r, count - 1));
        for (Index j = from; j < std::min(to, i + count); j += 4) {
            const Index width = std::min<Index>(4, std::min(to, i + count) - j);
            for (Index c = 0; c < 4; ++c) b[c] = row(j + std::min(c, width - 1));
            vec::dot16(a, b, j, sums);
            for (Index r = 0; r < count; ++r) {
                double* L = row(i + r);
                const double* source = G + order_[i + r] * stride;
                for (Index c = 0; c < width && j + c <= i + r; ++c) {
                    const double* other = row(j + c);
                    double value = source[order_[j + c]] - sums[4 * r + c];
                    for (Index t = j; t < j + c; ++t) value -= L[t] * other[t];
                    if (j + c < i + r) {
                        L[j + c] = value / other[j + c];
                    } else {
                        const double diagonal = source[order_[i + r]] + l2[order_[i + r]];
                        value += l2[order_[i + r]];
                        L[i + r] = value > 1e-11 * diagonal ? std::sqrt(value) : kNever;
                    }
                }
            }
        }
    }

    // Takes the rows at `gone` (ascending) out of L and turns their columns into the rows below, a strip of rows at a time:
    // within a strip the same rotation acts on all rows at once.
    void remove(const std::vector<Index>& gone) {
        const Index first = gone.front(), left = size() - static_cast<Index>(gone.size());
        const Index p = static_cast<Index>(gone.size());
        std::vector<Index> turning(left, p);  // how many of the columns that left have begun at or before column t
        Index begun = 0;
        for (Index t = 0; t < left; ++t) {
            while (begun < p && gone[begun] - begun <= t) ++begun;
            turning[t] = begun;
        }
        std::vector<double> rotations(2 * p * (left - first)), V(p * kStrip), tile(kWide * kStrip);
        const auto turn = [&](Index t) { return rotations.data() + 2 * p * (t - first); };
        Index source = first;
        std::size_t next = 0;
        for (Index from = first; from < left; from += kStrip) {
            const Index rows = std::min(kStrip, left - from);
            std::fill(V.begin(), V.end(), 0.0);
            for (Index q = 0; q < rows; ++q, ++source) {
                while (next < gone.size() && gone[next] == source) ++next, ++source;
                pull(gone, source, from + q, q, V.data());
            }
            for (Index t = first; t < from; t += kWide) {
                const Index wide = std::min(kWide, from - t);
                for (Index q = 0; q < rows; ++q)
                    for (Index c = 0; c < wide; ++c) tile[c * kStrip + q] = row(from + q)[t + c];
                for (Index c = 0; c < wide; ++c)
                    detail::rotate(turn(t + c), turning[t + c], tile.data() + c * kStrip, V.data());
                for (Index q = 0; q < rows; ++q)
                    for (Index c = 0; c < wide; ++c) row(from + q)[t + c] = tile[c * kStrip + q];
            }
            for (Index q = 0; q < rows; ++q) {
                double* L = row(from + q);
                for (Index t = from; t < from + q; ++t) {
                    const double* r = turn(t);
                    for (Index e = 0; e < turning[t]; ++e) {
                        double& v = V[e * kStrip + q];
                        const double x = L[t];
                        L[t] = r[2 * e] * x + r[2 * e + 1] * v;
                        v = r[2 * e] * v - r[2 * e + 1] * x;
                    }
                }
                double* r = turn(from + q);
                for (Index e = 0; e < turning[from + q]; ++e) {
                    const double v = V[e * kStrip + q], long_side = std::hypot(L[from + q], v);
                    r[2 * e] = L[from + q] / long_side, r[2 * e + 1] = v / long_side;
                    L[from + q] = long_side;
                }
            }
        }
        Index to = first;
        next = 0;
        for (Index i = first; i < size(); ++i) {
            if (next < gone.size() && gone[next] == i) ++next;
            else order_[to++] = order_[i];
        }
        order_.resize(to);
    }

    // Row `from` of L becomes row `to`, without the columns that left; these go to lane q of V.
    void pull(const std::vector<Index>& gone, Index from, Index to, Index q, double* V) {
        const double* old = row(from);
        double* now = row(to);
        Index begin = 0, written = 0;
        for (std::size_t e = 0; e <= gone.size() && begin <= from; ++e) {
            const Index end = e < gone.size() && gone[e] < from ? gone[e] : from + 1;
            if (now + written != old + begin) std::copy(old + begin, old + end, now + written);
            written += end - begin;
            if (end <= from) V[e * kStrip + q] = old[end];
            begin = end + 1;
        }
    }

    static constexpr Index kWide = 32;

    Team* team_;
    std::vector<Index> order_;
    bool dependent_ = false;  // whether some pivot is infinite
    Index capacity_ = 0;
    std::unique_ptr<double[]> values_;
};

}  // namespace certifit
