// Where kernel values come from: rows of features behind a kernel's formula, or rows that somebody else makes, kept within a
// limit of memory; and the linear kernel, whose scores need no rows of the kernel matrix at all.
#pragma once

#include <sys/mman.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <numeric>

#include "core/team.hpp"
#include "core/vector.hpp"
#include "smo/tiles.hpp"

namespace certifit::smo {

// Some rows of X (row-major, as `Shape` wants them) that one problem is about.
class Features {
  public:
    Features(const double* X, const double* square, Index d, const Index* rows, Index n, Shape shape)
        : X_(X), square_(square), d_(d), rows_(rows), n_(n), shape_(shape) {}

    Index n() const { return n_; }
    Index d() const { return d_; }
    const Shape& shape() const { return shape_; }
    const double* row(Index i) const { return X_ + rows_[i] * d_; }
    double square(Index i) const { return square_[rows_[i]]; }
    double own(Index i) const {
        if (shape_.form == Form::gaussian) return 1.0;
        if (shape_.form == Form::linear) return square(i);
        double base = square(i) + shape_.offset, power = base;
        for (int p = 1; p < shape_.degree; ++p) power *= base;
        return power;
    }

    // Columns [c, c + W) as [d][W], and their squares; what is beyond the last row is zero.
    template <class T, Index W, class Numbers>
    void pack(Numbers&& number, Index count, Index c, T* values, T* squares) const {
        tile::pack<W>(c, count, d_, values, [&](Index k, Index j) { return row(number(k))[j]; });
        for (Index k = 0; k < W; ++k) squares[k] = c + k < count ? static_cast<T>(square(number(c + k))) : T(0);
    }

  private:
    const double *X_, *square_;
    Index d_;
    const Index* rows_;
    Index n_;
    Shape shape_;
};

template <class T>
struct Packed {  // a matrix in pieces of W columns
    std::unique_ptr<T[]> values, squares;
    Index pieces = 0, d = 0;
};

template <class T, Index W, class Numbers>
Packed<T> packed(const Features& X, Numbers&& number, Index count, Team& team) {
    const Index pieces = (count + W - 1) / W;
    Packed<T> out{std::unique_ptr<T[]>(new T[pieces * W * X.d()]), std::unique_ptr<T[]>(new T[pieces * W]), pieces, X.d()};
    team.run(pieces, count * X.d() > 100000, [&](Index p, int) {
        X.pack<T, W>(number, count, p * W, out.values.get() + p * W * X.d(), out.squares.get() + p * W);
    });
    return out;
}

// Q[r, c] = k(rows[r], columns[c]); Q has room for whole panels of columns.
template <class T>
void cross(const Features& X, const Index* rows, Index m, const Index* columns, Index q, T* Q, Index stride, Team& team) {
    constexpr Index P = kPanel<T>;
    const auto tile = KernelTiles<T>::best();
    const Packed<T> panels = packed<T, P>(X, [columns](Index i) { return columns[i]; }, q, team);
    const Packed<T> strips = packed<T, kStrip>(X, [rows](Index i) { return rows[i]; }, m, team);
    team.run(strips.pieces, m * q * X.d() > 100000, [&](Index s, int) {
        alignas(64) T spare[P];
        const Index end = std::min(m, (s + 1) * kStrip);
        for (Index p = 0; p < panels.pieces; ++p) {
            T* to[kStrip];
            for (Index r = 0; r < kStrip; ++r) to[r] = s * kStrip + r < m ? Q + (s * kStrip + r) * stride + p * P : spare;
            tile(strips.values.get() + s * kStrip * X.d(), panels.values.get() + p * P * X.d(), X.d(), X.shape(),
                 strips.squares.get() + s * kStrip, panels.squares.get() + p * P, to);
        }
        for (Index r = s * kStrip; r < end; ++r)
            for (Index c = 0; c < q; ++c)
                if (columns[c] == rows[r])
                    Q[r * stride + c] = static_cast<T>(X.own(rows[r]));  // exact where products would round
    });
}

// Makes rows of the kernel matrix: out[r] = K[rows[r], :], each out[r] with room for a whole number of panels.
template <class T>
class FeatureRows {
  public:
    FeatureRows(const Features& X, Team& team)
        : X_(X), panels_(packed<T, kPanel<T>>(X, [](Index i) { return i; }, X.n(), team)) {}

    void operator()(const Index* rows, Index m, T* const* out, Team& team) const {
        const Packed<T> strips = packed<T, kStrip>(X_, [rows](Index i) { return rows[i]; }, m, team);
        const auto tile = KernelTiles<T>::best();
        constexpr Index P = kPanel<T>;
        team.run(panels_.pieces, m * X_.n() > 20000, [&](Index p, int) {
            alignas(64) T spare[P];
            for (Index s = 0; s < strips.pieces; ++s) {
                T* to[kStrip];
                for (Index r = 0; r < kStrip; ++r) to[r] = s * kStrip + r < m ? out[s * kStrip + r] + p * P : spare;
                tile(strips.values.get() + s * kStrip * X_.d(), panels_.values.get() + p * P * X_.d(), X_.d(), X_.shape(),
                     strips.squares.get() + s * kStrip, panels_.squares.get() + p * P, to);
            }
        });
        for (Index r = 0; r < m; ++r) out[r][rows[r]] = static_cast<T>(X_.own(rows[r]));  // exact where products would round
    }

  private:
    const Features& X_;
    Packed<T> panels_;
};

// g = K[:, rows] · beta in double precision, whatever the rows are kept in.
inline void scores(const Features& X, const Index* rows, const double* beta, Index m, double* g, Team& team) {
    std::fill(g, g + X.n(), 0.0);
    if (m == 0) return;
    if (X.shape().form == Form::linear) {
        std::vector<double> w(X.d(), 0.0);
        for (Index r = 0; r < m; ++r)
            for (Index j = 0; j < X.d(); ++j) w[j] += beta[r] * X.row(rows[r])[j];
        team.blocks(X.n(), 256, X.n() * X.d() > 100000, [&](Index from, Index to, int) {
            for (Index i = from; i < to; ++i) g[i] = vec::dot(X.row(i), w.data(), X.d());
        });
        return;
    }
    constexpr Index P = kPanel<double>;
    const auto tile = KernelTiles<double>::best();
    const Packed<double> strips = packed<double, kStrip>(X, [rows](Index i) { return rows[i]; }, m, team);
    team.run((X.n() + P - 1) / P, m * X.n() > 20000, [&](Index p, int) {
        std::vector<double> panel(P * X.d());
        alignas(64) double squares[P], values[kStrip][P], sums[P] = {};
        X.pack<double, P>([](Index i) { return i; }, X.n(), p * P, panel.data(), squares);
        double* to[kStrip];
        for (Index r = 0; r < kStrip; ++r) to[r] = values[r];
        for (Index s = 0; s < strips.pieces; ++s) {
            tile(strips.values.get() + s * kStrip * X.d(), panel.data(), X.d(), X.shape(), strips.squares.get() + s * kStrip,
                 squares, to);
            for (Index r = 0; r < kStrip && s * kStrip + r < m; ++r) {
                const Index row = rows[s * kStrip + r];
                if (row >= p * P && row < (p + 1) * P) values[r][row - p * P] = X.own(row);
                for (Index c = 0; c < P; ++c) sums[c] += beta[s * kStrip + r] * values[r][c];
            }
        }
        for (Index c = 0; c < P && p * P + c < X.n(); ++c) g[p * P + c] = sums[c];
    });
}

// Rows of the kernel matrix within a limit of memory; those used least recently give way.
template <class T>
class CachedRows {
  public:
    using Scalar = T;
    using Make = std::function<void(const Index*, Index, T* const*, Team&)>;

    CachedRows(Index n, double bytes, Index least, std::vector<double> diagonal, Make make, const Features* cheap = nullptr)
        : n_(n), stride_((n + kPanel<T> - 1) / kPanel<T> * kPanel<T>), make_(std::move(make)), cheap_(cheap),
          diagonal_(std::move(diagonal)), slot_(n, -1) {
        capacity_ = std::min(n, std::max(least, static_cast<Index>(bytes / (sizeof(T) * stride_))));
        const std::size_t bytes_wanted = static_cast<std::size_t>(capacity_) * stride_ * sizeof(T);
        const std::size_t page = bytes_wanted > (std::size_t(1) << 22) ? std::size_t(1) << 21 : 64;
        const std::size_t whole = (bytes_wanted + page - 1) / page * page;
        data_.reset(static_cast<T*>(std::aligned_alloc(page, whole)));
        if (!data_) throw std::bad_alloc();
        if (page > 64)
            (void)madvise(data_.get(), whole, MADV_HUGEPAGE);  // the first touch of small pages costs as much as their numbers
        owner_.assign(capacity_, -1), used_.assign(capacity_, 0);
    }

    double diagonal(Index i) const { return diagonal_[i]; }

    // Q[r, c] = K[rows[r], columns[c]]
    void cross(const Index* rows, Index m, const Index* columns, Index q, T* Q, Index stride, Team& team) {
        if (cheap_) return smo::cross(*cheap_, rows, m, columns, q, Q, stride, team);
        hold(rows, m, team);
        team.blocks(m, 16, m * q > 10000, [&](Index from, Index to, int) {
            for (Index r = from; r < to; ++r) {
                const T* row = at(rows[r]);
                for (Index c = 0; c < q; ++c) Q[r * stride + c] = row[columns[c]];
            }
        });
    }

    // g += K[:, rows] · delta
    void update(const Index* rows, const double* delta, Index m, double* g, Team& team) {
        for (Index from = 0; from < m; from += capacity_) {
            const Index count = std::min(capacity_, m - from);
            hold(rows + from, count, team);
            std::vector<const T*> held(count);
            std::vector<T> by(count);
            for (Index r = 0; r < count; ++r) held[r] = at(rows[from + r]), by[r] = static_cast<T>(delta[from + r]);
            team.blocks(n_, 1024, count * n_ > 50000,
                        [&](Index a, Index b, int) { combine(held.data(), by.data(), count, a, b, g); });
        }
    }

  private:
    struct Free {
        void operator()(T* p) const { std::free(p); }
    };
    Index n_, stride_, capacity_ = 0, filled_ = 0;
    Make make_;
    const Features* cheap_;  // whose values cost less to compute anew than to gather from rows that are held
    std::vector<double> diagonal_;
    std::unique_ptr<T[], Free> data_;
    std::vector<Index> slot_, owner_;
    std::vector<std::uint64_t> used_;
    std::uint64_t clock_ = 0;

    T* at(Index row) const { return data_.get() + slot_[row] * stride_; }

    void hold(const Index* rows, Index q, Team& team) {
        ++clock_;
        std::vector<Index> missing;
        for (Index r = 0; r < q; ++r) {
            if (slot_[rows[r]] < 0)
                missing.push_back(rows[r]), slot_[rows[r]] = capacity_;  // asked for once
            else if (slot_[rows[r]] < capacity_)
                used_[slot_[rows[r]]] = clock_;
        }
        if (missing.empty()) return;
        const Index m = static_cast<Index>(missing.size());
        std::vector<Index> slots(m);
        const Index fresh = std::min(m, capacity_ - filled_);
        std::iota(slots.begin(), slots.begin() + fresh, filled_);
        filled_ += fresh;
        if (fresh < m) {
            std::vector<Index> old(filled_);
            std::iota(old.begin(), old.end(), Index(0));
            for (Index k = 0; k < fresh; ++k) used_[slots[k]] = clock_;
            std::nth_element(old.begin(), old.begin() + (m - fresh - 1), old.end(),
                             [&](Index a, Index b) { return used_[a] != used_[b] ? used_[a] < used_[b] : a < b; });
            std::copy(old.begin(), old.begin() + (m - fresh), slots.begin() + fresh);
        }
        std::vector<T*> out(m);
        for (Index k = 0; k < m; ++k) {
            if (owner_[slots[k]] >= 0) slot_[owner_[slots[k]]] = -1;
            owner_[slots[k]] = missing[k], slot_[missing[k]] = slots[k], used_[slots[k]] = clock_;
            out[k] = data_.get() + slots[k] * stride_;
        }
        make_(missing.data(), m, out.data(), team);
    }
};

// The linear kernel with few columns: scores through w = Σ β_i x_i, and no row of the kernel matrix longer than the block.
class LinearRows {
  public:
    using Scalar = double;
    explicit LinearRows(const Features& X) : X_(X) {}

    double diagonal(Index i) const { return X_.square(i); }

    void cross(const Index* rows, Index m, const Index* columns, Index q, double* Q, Index stride, Team& team) {
        smo::cross(X_, rows, m, columns, q, Q, stride, team);
    }

    void update(const Index* rows, const double* delta, Index m, double* g, Team& team) {
        std::vector<double> w(X_.d(), 0.0);
        for (Index r = 0; r < m; ++r)
            for (Index j = 0; j < X_.d(); ++j) w[j] += delta[r] * X_.row(rows[r])[j];
        team.blocks(X_.n(), 256, X_.n() * X_.d() > 100000, [&](Index from, Index to, int) {
            for (Index i = from; i < to; ++i) g[i] += vec::dot(X_.row(i), w.data(), X_.d());
        });
    }

  private:
    const Features& X_;
};

}  // namespace certifit::smo
