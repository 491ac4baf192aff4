// Softmax regression of many columns: Newton's steps by conjugate gradients.
//
//   (Σ p_i (diag(π_i) − π_i π_iᵀ) ⊗ x̃_i x̃_iᵀ + L) δ = −∇P,   directions scaled by the diagonal
//
// A product with the Hessian costs what a gradient costs, and no matrix of columns is formed. Far from the optimum a rough step is enough, near it one
// whose residual leaves room for the proof (Dembo, Eisenstat & Steihaug 1982). The scores of a step are made once, so that a search along it costs no
// product; where P falls faster than a parabola, as it does where classes are nearly apart, twice the step is tried, and twice that.
//
// Sums run along the columns: classes are few, and filled up to whole vectors they would cost up to three times as much. Scores, slopes and
// probabilities of a row lie class by class, as the exponentials want them.
#pragma once

#include "core/interrupt.hpp"
#include "softmax/surface.hpp"

namespace certifit::softmax {

namespace detail {

// out[k·kBlock + r] = b_k + x_r·w_k, the vectors w_k `stride` apart; four rows share each load of a vector, two vectors each load of a row.
template <int Wide, class T>
[[gnu::always_inline]] inline void dots(const T* x, Index rows, Index d, const double* w, Index stride, const double* b, double* out) {
    for (Index i = 0; i < rows; i += 4) {
        const T* row[4];
        for (Index r = 0; r < 4; ++r) row[r] = x + std::min(i + r, rows - 1) * d;
        Lanes s[4][Wide] = {}, a, v[Wide];
        Index j = 0;
        for (; j + 8 <= d; j += 8) {
            for (int k = 0; k < Wide; ++k) load(w + k * stride + j, v[k]);
            for (int r = 0; r < 4; ++r) {
                load(row[r] + j, a);
                for (int k = 0; k < Wide; ++k) s[r][k] += a * v[k];
            }
        }
        for (Index r = 0; r < std::min<Index>(4, rows - i); ++r)
            for (int k = 0; k < Wide; ++k) {
                double sum = vec::detail::total(s[r][k]) + b[k];
                for (Index t = j; t < d; ++t) sum += static_cast<double>(row[r][t]) * w[k * stride + t];
                out[k * kBlock + i + r] = sum;
            }
    }
}

// g_k += Σ_r e[k·kBlock + r] x_r, or of squares: sums of all rows of a block stay in registers.
template <int Wide, bool Squared, class T>
[[gnu::always_inline]] inline void pulls(const T* x, Index rows, Index d, const double* e, double* g, Index stride) {
    Index j = 0;
    for (; j + 16 <= d; j += 16) {
        Lanes s[2][Wide] = {}, a, c;
        for (Index r = 0; r < rows; ++r) {
            load(x + r * d + j, a), load(x + r * d + j + 8, c);
            if constexpr (Squared) a *= a, c *= c;
            for (int k = 0; k < Wide; ++k) s[0][k] += e[k * kBlock + r] * a, s[1][k] += e[k * kBlock + r] * c;
        }
        for (int k = 0; k < Wide; ++k) {
            double* at = g + k * stride + j;
            load(at, a), store(at, a + s[0][k]);
            load(at + 8, c), store(at + 8, c + s[1][k]);
        }
    }
    for (; j < d; ++j)
        for (int k = 0; k < Wide; ++k) {
            double sum = 0.0;
            for (Index r = 0; r < rows; ++r) {
                const double v = static_cast<double>(x[r * d + j]);
                sum += e[k * kBlock + r] * (Squared ? v * v : v);
            }
            g[k * stride + j] += sum;
        }
}

template <class T>
[[gnu::always_inline]] inline void all_dots(const T* x, Index rows, Index d, const double* w, Index stride, const double* b, Index K, double* out) {
    Index k = 0;
    for (; k + 4 <= K; k += 4) dots<4>(x, rows, d, w + k * stride, stride, b + k, out + k * kBlock);
    if (K - k == 3) dots<3>(x, rows, d, w + k * stride, stride, b + k, out + k * kBlock);
    if (K - k == 2) dots<2>(x, rows, d, w + k * stride, stride, b + k, out + k * kBlock);
    if (K - k == 1) dots<1>(x, rows, d, w + k * stride, stride, b + k, out + k * kBlock);
}

template <bool Squared, class T>
[[gnu::always_inline]] inline void all_pulls(const T* x, Index rows, Index d, const double* e, Index K, double* g, Index stride) {
    Index k = 0;
    for (; k + 4 <= K; k += 4) pulls<4, Squared>(x, rows, d, e + k * kBlock, g + k * stride, stride);
    if (K - k == 3) pulls<3, Squared>(x, rows, d, e + k * kBlock, g + k * stride, stride);
    if (K - k == 2) pulls<2, Squared>(x, rows, d, e + k * kBlock, g + k * stride, stride);
    if (K - k == 1) pulls<1, Squared>(x, rows, d, e + k * kBlock, g + k * stride, stride);
}

}  // namespace detail

#define CERTIFIT_ALONG(T)                                                                                                                              \
    CERTIFIT_CLONES [[maybe_unused]] static void dots(const T* x, Index rows, Index d, const double* w, Index stride, const double* b, Index K,        \
                                                      double* out) {                                                                                   \
        detail::all_dots(x, rows, d, w, stride, b, K, out);                                                                                            \
    }                                                                                                                                                  \
    CERTIFIT_CLONES [[maybe_unused]] static void pulls(const T* x, Index rows, Index d, const double* e, Index K, double* g, Index stride) {           \
        detail::all_pulls<false>(x, rows, d, e, K, g, stride);                                                                                         \
    }                                                                                                                                                  \
    CERTIFIT_CLONES [[maybe_unused]] static void pulls_of_squares(const T* x, Index rows, Index d, const double* e, Index K, double* g, Index stride) { \
        detail::all_pulls<true>(x, rows, d, e, K, g, stride);                                                                                          \
    }
CERTIFIT_ALONG(double)
CERTIFIT_ALONG(float)
#undef CERTIFIT_ALONG

// t, changes of scores, becomes p (diag(π) − ππᵀ) t.
CERTIFIT_CLONES [[maybe_unused]] static void bend(const Block& block, const double* pi, Index stride) {
    using namespace detail;
    for (Index g = 0; g < block.rows; g += 8) {
        double* t = block.t + g;
        Lanes mean = {};
        for (Index k = 0; k < block.classes; ++k) mean += lanes(t + k * kBlock) * lanes(pi + k * stride + g);
        for (Index k = 0; k < block.classes; ++k)
            store(t + k * kBlock, lanes(block.p + g) * lanes(pi + k * stride + g) * (lanes(t + k * kBlock) - mean));
    }
}

// e (classes × kBlock) = p π (1 − π), t = p π − p e_y
CERTIFIT_CLONES [[maybe_unused]] static void slopes(const Block& block, double* e) {
    using namespace detail;
    for (Index g = 0; g < block.rows; g += 8)
        for (Index k = 0; k < block.classes; ++k) {
            double* t = block.t + k * kBlock + g;
            const Lanes pi = lanes(t), weighted = lanes(block.p + g) * pi;
            store(t, weighted), store(e + k * kBlock + g, weighted * (1.0 - pi));
        }
    for (Index r = 0; r < block.rows; ++r) block.t[block.y[r] * kBlock + r] -= block.p[r];
}

// Scores t become f + share·moved.
CERTIFIT_CLONES [[maybe_unused]] static void ahead(const Block& block, const double* f, const double* moved, Index stride, double share) {
    using namespace detail;
    for (Index g = 0; g < block.rows; g += 8)
        for (Index k = 0; k < block.classes; ++k)
            store(block.t + k * kBlock + g, lanes(f + k * stride + g) + share * lanes(moved + k * stride + g));
}

template <class T>
class Truncated : Surface<T> {
    using Base = Surface<T>;
    using Numbers = typename Base::Numbers;
    using Base::X_, Base::d_, Base::K_, Base::ones_, Base::D_, Base::size_, Base::rows_, Base::l2_, Base::options_;
    using Base::dot, Base::add, Base::centre, Base::penalty, Base::provable, Base::bound;

  public:
    // At most so many products with the Hessian.
    Truncated(const T* X, Index d, const Rows& rows, const double* l2, const Options& options, double most)
        : Base(X, d, rows, l2, options), most_(most), stride_((rows.n + 7) / 8 * 8 + 8), f_(K_ * stride_), moved_(K_ * stride_),
          pi_(K_ * stride_), step_(size_) {}

    Found solve(const double* start) {
        SignalPoll signals;
        Found at;
        at.x.assign(start, start + size_);
        centre(at.x);
        scores(at.x, f_);
        at.objective = risk(0.0) + penalty(at.x);
        for (double wanted = 0.3 * options_.tolerance; at.iterations < options_.max_iter && std::isfinite(at.objective); ++at.iterations) {
            signals.poll();
            measure(at.x);
            const double proven = provable(gradient_);
            if (proven <= wanted) {
                at.bound = std::max(at.bound, bound(at.x));
                const double gap = at.objective - at.bound;
                if (gap <= options_.tolerance) break;
                // What a gradient proves is proven after a step of the intercept, which the coefficients feel.
                wanted = std::max(0.1 * wanted, std::min(0.3 * wanted, 0.3 * wanted * options_.tolerance / gap));
            }
            if (products_ > most_ || !solve_equations(wanted, signals) || !search(at)) break;
        }
        return at;
    }

  private:
    static constexpr double kRough = 0.1;   // of its size, in the norm of the diagonal: what a step may leave of its equations
    static constexpr double kSteep = 0.55;  // of what a step promises: a parabola holds half

    // Blocks begin anywhere: what is read beyond the last row of one, up to a whole vector, has no weight there, and is not written.
    // Visits the blocks of rows: visit(part, i, block).
    template <class Visit>
    Numbers over(Index width, Visit&& visit) const {
        return walk(d_, rows_, width, options_.threads, std::forward<Visit>(visit));
    }

    // t = the scores of a block.
    void make(const Numbers& x, const Numbers& level, Index i, const Block& block) const {
        dots(X_ + i * d_, block.rows, d_, x.data() + ones_, D_, level.data(), K_, block.t);
        fill_up(block);
    }
    static void fill_up(const Block& block) {
        for (Index k = 0; k < block.classes; ++k) std::fill(block.t + k * kBlock + block.rows, block.t + (k + 1) * kBlock, 0.0);
    }
    Numbers levels(const Numbers& x) const {
        Numbers level(K_, 0.0);
        for (Index k = 0; ones_ && k < K_; ++k) level[k] = x[k * D_];
        return level;
    }
    // The slopes t of a block, pulled back.
    void take(Index i, const Block& block, double* g) const {
        if (ones_)
            for (Index k = 0; k < K_; ++k)
                for (Index r = 0; r < block.rows; ++r) g[k * D_] += block.t[k * kBlock + r];
        pulls(X_ + i * d_, block.rows, d_, block.t, K_, g + ones_, D_);
    }

    void scores(const Numbers& x, Numbers& out) {
        const Numbers level = levels(x);
        over(1, [&](double*, Index i, const Block& block) {
            make(x, level, i, block);
            for (Index k = 0; k < K_; ++k) std::copy_n(block.t + k * kBlock, block.rows, out.data() + k * stride_ + i);
        });
    }

    double risk(double share) const {
        return over(1, [&](double* part, Index i, const Block& block) {
            ahead(block, f_.data() + i, moved_.data() + i, stride_, share);
            part[0] += soften(block);
        })[0];
    }

    // Probabilities, the gradient, and the inverse of the diagonal of the Hessian.
    void measure(const Numbers& x) {
        const Numbers all = over(2 * size_, [&](double* part, Index i, const Block& block) {
            ahead(block, f_.data() + i, moved_.data() + i, stride_, 0.0);
            soften(block);
            for (Index k = 0; k < K_; ++k) std::copy_n(block.t + k * kBlock, block.rows, pi_.data() + k * stride_ + i);
            slopes(block, block.z);
            take(i, block, part);
            if (ones_)
                for (Index k = 0; k < K_; ++k)
                    for (Index r = 0; r < block.rows; ++r) part[size_ + k * D_] += block.z[k * kBlock + r];
            pulls_of_squares(X_ + i * d_, block.rows, d_, block.z, K_, part + size_ + ones_, D_);
        });
        gradient_.assign(all.begin(), all.begin() + size_), inverse_.resize(size_);
        for (Index k = 0; k < K_; ++k)
            for (Index j = 0; j < D_; ++j) {
                const double l2 = j < ones_ ? 0.0 : l2_[j - ones_];
                const Index at = k * D_ + j;
                gradient_[at] += l2 * x[at];
                const double own = all[size_ + at] + l2;
                inverse_[at] = own > 0.0 ? 1.0 / own : 0.0;
            }
        centre(gradient_);
    }

    Numbers product(const Numbers& v) {
        const Numbers level = levels(v);
        Numbers out = over(size_, [&](double* part, Index i, const Block& block) {
            make(v, level, i, block);
            bend(block, pi_.data() + i, stride_);
            take(i, block, part);
        });
        ++products_;
        for (Index k = 0; k < K_; ++k)
            for (Index j = 0; j < d_; ++j) out[k * D_ + ones_ + j] += l2_[j] * v[k * D_ + ones_ + j];
        centre(out);
        return out;
    }

    // δ, up to what leaves room for the proof.
    bool solve_equations(double wanted, SignalPoll& signals) {
        Numbers residual = gradient_, z(size_), direction(size_, 0.0);
        for (double& value : residual) value = -value;
        std::fill(step_.begin(), step_.end(), 0.0);
        double rho = 0.0, first = 0.0;
        for (Index k = 0; k < 20 + 2 * size_; ++k) {
            if (k % 16 == 15) signals.poll();
            const double before = rho;
            for (Index j = 0; j < size_; ++j) z[j] = inverse_[j] * residual[j];
            centre(z);
            rho = dot(z, residual);
            if (!std::isfinite(rho)) return false;
            if (k == 0) first = rho;
            const double rough = std::min(kRough, std::sqrt(first / std::max(options_.scale, 1e-300)));
            if (first > 100.0 * options_.tolerance && rho <= rough * rough * first) break;
            if (rho <= 1e-26 * first || (provable(residual) <= 0.3 * wanted && rho <= 0.01 * options_.tolerance)) break;
            if (products_ > most_) return k > 0;
            for (Index j = 0; j < size_; ++j) direction[j] = z[j] + (k == 0 ? 0.0 : rho / before) * direction[j];
            const Numbers image = product(direction);
            const double curved = dot(direction, image), length = rho / curved;
            if (!(curved > 0.0 && std::isfinite(length))) return k > 0;
            add(length, direction, step_), add(-length, image, residual);
        }
        return true;
    }

    // Halves the step until P falls by a share of what is promised; or doubles it while P falls faster than a parabola would.
    bool search(Found& at) {
        const double promised = dot(gradient_, step_);
        scores(step_, moved_);
        Numbers x = at.x;
        const auto reach = [&](double share) {
            x = at.x, add(share, step_, x);
            return risk(share) + penalty(x);
        };
        double share = 1.0, reached = 0.0;
        bool accepted = false;
        for (int half = 0; half < 40 && !accepted; ++half) {
            reached = reach(share);
            // Near the optimum the promise is below rounding: accept what does not rise.
            const bool level = std::abs(promised) <= 1e-13 * at.objective && reached <= at.objective * (1 + 1e-15);
            accepted = reached <= at.objective + 1e-4 * share * std::min(promised, 0.0) || level;
            if (!accepted) share *= 0.5;
        }
        if (!accepted) return false;
        for (bool on = share == 1.0 && at.objective - reached > -kSteep * promised; on;) {
            const double further = reach(2.0 * share);
            on = further < reached;
            if (on) share *= 2.0, reached = further;
        }
        add(share, step_, at.x);
        centre(at.x);
        for (std::size_t i = 0; i < f_.size(); ++i) f_[i] += share * moved_[i];
        at.objective = reached;
        return true;
    }

    double most_;
    Index stride_, products_ = 0;  // rows, filled up so that the last block may be read as a whole
    Numbers f_, moved_, pi_, gradient_, inverse_, step_;
};

}  // namespace certifit::softmax
