// Columns of a dense X that is stored one row after the other, as coordinate descent sees them.
//
// Descent wants columns, and few of them count where an l1 penalty keeps the others at zero: those are held beside X, one after the other. Passes over all
// columns read the rows as they lie. So the memory of a fit is that of the columns that ever were in a working set, and most are never copied.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include "coordinate/matrix.hpp"
#include "products/products.hpp"

namespace certifit {

// Σ p (x − m)² of all columns, added to s.
CERTIFIT_CLONES [[maybe_unused]] static void spread_rows(const double* x, Index rows, Index d, const double* m, const double* p, double* __restrict s) {
    Index i = 0;
    for (; i + 4 <= rows; i += 4, x += 4 * d) {  // four rows share each load of a sum
        const double p0 = p[i], p1 = p[i + 1], p2 = p[i + 2], p3 = p[i + 3];
        for (Index j = 0; j < d; ++j) {
            const double a = x[j] - m[j], b = x[d + j] - m[j], c = x[2 * d + j] - m[j], e = x[3 * d + j] - m[j];
            s[j] += (p0 * a * a + p1 * b * b) + (p2 * c * c + p3 * e * e);
        }
    }
    for (; i < rows; ++i, x += d)
        for (Index j = 0; j < d; ++j) s[j] += p[i] * (x[j] - m[j]) * (x[j] - m[j]);
}

class HeldColumns {
  public:
    explicit HeldColumns(const products::Table<double>& rows) : X(rows), slot_(static_cast<std::size_t>(rows.d), -1) {}

    const products::Table<double> X;

    // What is not held, or null.
    const double* column(Index j) const { return slot_[static_cast<std::size_t>(j)] < 0 ? nullptr : data_.get() + slot_[static_cast<std::size_t>(j)] * X.n; }

    void hold(std::span<const Index> columns) {
        new_.clear();
        for (Index j : columns)
            if (slot_[static_cast<std::size_t>(j)] < 0) slot_[static_cast<std::size_t>(j)] = count_ + static_cast<Index>(new_.size()), new_.push_back(j);
        if (new_.empty()) return;
        // Room for all of them is promised once and taken as it is used: to grow later would copy what is there, and move it.
        if (!data_) data_ = std::make_unique_for_overwrite<double[]>(static_cast<std::size_t>(X.n) * static_cast<std::size_t>(X.d));
        const Index before = count_;
        count_ += static_cast<Index>(new_.size());
        constexpr Index rows = 8;  // that are read along their lines, for a line of each column
        for (Index from = 0; from < X.n; from += rows) {
            const Index to = std::min(X.n, from + rows);
            for (Index k = before; k < count_; ++k) {
                const double* x = X.data + new_[static_cast<std::size_t>(k - before)];
                double* column = data_.get() + k * X.n;
                for (Index i = from; i < to; ++i) column[i] = x[i * X.d];
            }
        }
    }

  private:
    std::vector<Index> slot_, new_;
    std::unique_ptr<double[]> data_;
    Index count_ = 0;
};

// The matrix that Columns asks; the store outlives it.
struct RowsHeld {
    static constexpr bool sparse = false;
    HeldColumns* store;
    Index n, d;

    explicit RowsHeld(HeldColumns& held) : store(&held), n(held.X.n), d(held.X.d) {}

    const double* column(Index j) const { return store->column(j); }
    Index stored(Index) const { return n; }
    double size() const { return static_cast<double>(n) * static_cast<double>(d); }
    void hold(std::span<const Index> columns) const { store->hold(columns); }

    double dot(Index j, const double* u) const {
        if (const double* x = column(j)) return vec::dot(x, u, n);
        const double* x = store->X.data + j;
        double lanes[4] = {}, sum = 0;
        Index i = 0;
        for (; i + 4 <= n; i += 4)
            for (Index k = 0; k < 4; ++k) lanes[k] += x[(i + k) * d] * u[i + k];
        for (; i < n; ++i) sum += x[i * d] * u[i];
        return sum + ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3]));
    }
    void subtract(Index j, double a, double m, double* u) const { vec::subtract(a, column(j), m, u, n); }
    void subtract(Index j, double a, const double* p, double m, double* u) const { vec::subtract(a, p, column(j), m, u, n); }

    // Means of all columns (zeros where they are not centered), Σ p (x − m)² and X'u.
    void measure(const double* p, const double* u, bool centered, double total, double* mean, double* norm2, double* c, int threads) const {
        const Index count = products::chunk_count(n, d, 1);
        std::vector<double> both(static_cast<std::size_t>(2 * n)), sums(static_cast<std::size_t>(2 * d)), parts(static_cast<std::size_t>(count * d), 0.0);
        std::copy_n(u, n, both.data()), std::copy_n(p, n, both.data() + n);
        products::pullback(store->X, both.data(), centered ? 2 : 1, sums.data(), threads);
        std::copy_n(sums.data(), d, c);
        for (Index j = 0; j < d; ++j) {
            const double m = centered ? sums[static_cast<std::size_t>(d + j)] / total : 0.0;
            mean[j] = std::isfinite(m) ? m : 0.0;
        }
        products::over_chunks(n, count, n * d, threads, [&](Index chunk, Index from, Index to) {
            products::over_blocks(from, to, d, [&](Index i, Index rows) { spread_rows(store->X.data + i * d, rows, d, mean, p + i, parts.data() + chunk * d); });
        });
        products::add_up(parts, count, d, norm2);
    }

    // X'u of some columns: those that are held one by one, the others in one pass over the rows.
    void correlate(std::span<const Index> columns, const double* u, double* c, int threads) const {
        constexpr Index apart = 12;  // a number out of a row costs as much as so many in their order
        std::vector<Index> others;
        for (Index j : columns)
            if (!column(j)) others.push_back(j);
        const Index few = static_cast<Index>(others.size());
        const bool all = few * apart >= d;
        const Index width = all ? d : few, count = products::chunk_count(n, d, 1);
        std::vector<double> found(static_cast<std::size_t>(width));
        if (all) {
            products::pullback(store->X, u, 1, found.data(), threads);
        } else if (few > 0) {
            std::vector<double> parts(static_cast<std::size_t>(count * few), 0.0);
            products::over_chunks(n, count, apart * n * few, threads, [&](Index chunk, Index from, Index to) {
                double* part = parts.data() + chunk * few;
                for (Index i = from; i < to; ++i) {
                    const double* x = store->X.data + i * d;
                    for (Index k = 0; k < few; ++k) part[k] += x[others[static_cast<std::size_t>(k)]] * u[i];
                }
            });
            products::add_up(parts, count, few, found.data());
        }
        for (Index k = 0; k < few; ++k) c[others[static_cast<std::size_t>(k)]] = found[static_cast<std::size_t>(all ? others[static_cast<std::size_t>(k)] : k)];
        Team team(threads);
        const Index held = static_cast<Index>(columns.size()) - few;
        team.run(static_cast<Index>(columns.size()), static_cast<double>(held) * static_cast<double>(n) > kAlone, [&](Index k, int) {
            const Index j = columns[static_cast<std::size_t>(k)];
            if (const double* x = column(j)) c[j] = vec::dot(x, u, n);
        });
    }
};

}  // namespace certifit
