// What a split is worth.
//
// A node t with weight W holds an impurity i(t) ≥ 0; a split into L and R is worth W·i(t) − W_L·i(L) − W_R·i(R).
//   gini                1 − Σ p_c²                        worth  Σ l_c²/W_L + Σ r_c²/W_R − Σ n_c²/W
//   entropy             −Σ p_c log2 p_c
//   misclassification   1 − max p_c
//   squared             weighted variance                 worth  (S_L W − S W_L)² / (W W_L W_R),  S = Σ w y
//   poisson             mean of y ln(y / mean)
//   absolute            mean of |y − median|
// All sums are sums of integers held in doubles or integers: the caller scales weights and targets to fixed point, so that a sum does
// not depend on the order of its terms. Equal partitions have equal worth to the last bit, whatever the order of the rows.
//
// Breiman, Friedman, Olshen, Stone: Classification and Regression Trees, 1984.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "tree/codes.hpp"

namespace certifit::tree {

inline constexpr double kInf = std::numeric_limits<double>::infinity();

enum class Criterion { gini, entropy, misclassification, squared, absolute, poisson };

// x log2 x, from a table where x is a small integer: classification calls it four times a candidate.
class Entropies {
  public:
    explicit Entropies(std::int64_t largest = 0) {
        if (largest <= 0 || largest > (1 << 21)) return;
        table_.resize(static_cast<std::size_t>(largest) + 1);
        for (std::size_t i = 1; i < table_.size(); ++i) table_[i] = static_cast<double>(i) * std::log2(static_cast<double>(i));
    }
    double operator()(std::int32_t x) const {
        return static_cast<std::size_t>(x) < table_.size() ? table_[static_cast<std::size_t>(x)] : (*this)(static_cast<double>(x));
    }
    double operator()(double x) const { return x > 0 ? x * std::log2(x) : 0.0; }

  private:
    std::vector<double> table_;
};

// Classes. Cell = int32_t: integer weights with a total below 2^26, so that sums of squares are exact in 64 bits.
template <class CellType, Criterion criterion, int kFixed>
struct ClassStatistics {
    using Cell = CellType;
    static constexpr bool kByRow = false;
    static constexpr bool kIntegral = std::is_integral_v<Cell>;
    static constexpr Criterion kCriterion = criterion;

    const std::uint16_t* label;
    const Cell* weight;  // null: all ones
    int classes;
    const double* size_of;  // rows counted by one unit of weight of each class
    const Entropies* entropies;

    int width() const { return kFixed > 0 ? kFixed : classes; }
    int outputs() const { return 0; }
    // How many responses put categories in order: two classes need one, more classes one each.
    int orders() const { return width() == 2 ? 1 : width(); }
    int ordering(int o) const { return width() == 2 ? 1 : o; }
    Cell mass(Row i) const { return weight ? weight[i] : Cell{1}; }
    void add(Cell* cell, Row i) const { cell[label[i]] += mass(i); }
    // What a row adds, small enough to travel with its number when nodes are divided.
    struct Load {
        Cell weight;
        std::uint32_t label;
    };
    Load load(Row i) const { return {mass(i), label[i]}; }
    static void add(Cell* cell, const Load& load) { cell[load.label] += load.weight; }

    double total(const Cell* cell) const {
        double sum = 0;
        for (int c = 0; c < width(); ++c) sum += static_cast<double>(cell[c]);
        return sum;
    }
    double size(const Cell* cell) const {
        double sum = 0;
        for (int c = 0; c < width(); ++c) sum += static_cast<double>(cell[c]) * size_of[c];
        return sum;
    }
    bool pure(const Cell* cell) const {
        int present = 0;
        for (int c = 0; c < width(); ++c) present += cell[c] > 0;
        return present <= 1;
    }
    // What W·i(t) lacks to a constant: the worth of a split is score(L, R) − own(parent).
    double own(const Cell* cell) const {
        const double W = total(cell);
        if (!(W > 0)) return 0.0;
        double sum = 0;
        for (int c = 0; c < width(); ++c) {
            const double n = static_cast<double>(cell[c]);
            if constexpr (criterion == Criterion::gini) sum += n * n;
            if constexpr (criterion == Criterion::entropy) sum += (*entropies)(cell[c]);
            if constexpr (criterion == Criterion::misclassification) sum = std::max(sum, n);
        }
        if constexpr (criterion == Criterion::gini) return sum / W;
        if constexpr (criterion == Criterion::entropy) return sum - (*entropies)(W);
        return sum;
    }
    // W·i(t)
    double loss(const Cell* cell) const {
        if constexpr (criterion == Criterion::entropy) return std::max(0.0, -own(cell));
        return std::max(0.0, total(cell) - own(cell));
    }
    double response(const Cell* cell, int c) const {
        const double W = total(cell);
        return W > 0 ? static_cast<double>(cell[c]) / W : 0.0;
    }
    void shares(const Cell* cell, double* out) const {
        const double W = total(cell);
        for (int c = 0; c < width(); ++c) out[c] = static_cast<double>(cell[c]) / W;
    }

    // The two sides while rows move from right to left.
    struct Scan {
        const ClassStatistics& of;
        Cell *left, *right;
        Cell wl{0}, wr{0};
        using Square = std::conditional_t<kIntegral, std::int64_t, double>;
        Square sl{0}, sr{0};
        double el{0}, er{0};

        Scan(const ClassStatistics& of_, const Cell* all, Cell* buffer) : of(of_), left(buffer), right(buffer + of_.width()) {
            for (int c = 0; c < of.width(); ++c) {
                left[c] = 0;
                right[c] = all[c];
                wr += all[c];
                if constexpr (kIntegral) sr += static_cast<Square>(all[c]) * all[c];
                if constexpr (criterion == Criterion::entropy) er += (*of.entropies)(all[c]);
            }
        }
        void move(int c, Cell w) {
            const Cell l = left[c], r = right[c];
            if constexpr (criterion == Criterion::gini && kIntegral) {
                sl += static_cast<Square>(w) * (2 * l + w);
                sr -= static_cast<Square>(w) * (2 * r - w);
            }
            left[c] = l + w;
            right[c] = r - w;
            wl += w;
            wr -= w;
        }
        void move(Row i) { move(of.label[i], of.mass(i)); }
        void move(const Cell* cell) {
            for (int c = 0; c < of.width(); ++c) move(c, cell[c]);
        }
        // Is the score above the bar? Without a division where the score is a fraction.
        bool above(double bar, double& score) {
            const double a = static_cast<double>(wl), b = static_cast<double>(wr);
            if constexpr (criterion == Criterion::gini) {
                double x, y;
                if constexpr (kIntegral) {
                    x = static_cast<double>(sl), y = static_cast<double>(sr);
                } else {
                    x = y = 0;
                    for (int c = 0; c < of.width(); ++c) x += left[c] * left[c], y += right[c] * right[c];
                }
                const double up = x * b + y * a, down = a * b;
                if (!(up > bar * down)) return false;
                score = up / down;
                return true;
            } else {
                double sum = 0;
                if constexpr (criterion == Criterion::entropy) {
                    for (int c = 0; c < of.width(); ++c) sum += (*of.entropies)(left[c]) + (*of.entropies)(right[c]);
                    sum -= (*of.entropies)(wl) + (*of.entropies)(wr);
                } else {
                    Cell most_left{0}, most_right{0};
                    for (int c = 0; c < of.width(); ++c)
                        most_left = std::max(most_left, left[c]), most_right = std::max(most_right, right[c]);
                    sum = static_cast<double>(most_left) + static_cast<double>(most_right);
                }
                if (!(sum > bar) || !(a > 0) || !(b > 0)) return false;
                score = sum;
                return true;
            }
        }
        double left_weight() const { return static_cast<double>(wl); }
        double right_weight() const { return static_cast<double>(wr); }
        double left_size() const { return of.size(left); }
        double right_size() const { return of.size(right); }
        // The response that monotone constraints speak of: the probability of the last class.
        double left_response() const { return of.response(left, of.width() - 1); }
        double right_response() const { return of.response(right, of.width() - 1); }
    };
};

// Real targets by their moments: a cell is (W, S).
template <Criterion criterion>
struct MomentStatistics {
    using Cell = double;
    static constexpr bool kByRow = false;
    static constexpr Criterion kCriterion = criterion;
    struct Pair {
        double w, wy;
    };
    const Pair* moment;  // of each row, fixed point
    double size_unit;    // rows counted by one unit of weight

    int width() const { return 2; }
    int outputs() const { return 1; }
    int orders() const { return 1; }
    int ordering(int o) const { return o; }
    double mass(Row i) const { return moment[i].w; }
    void add(Cell* cell, Row i) const { add(cell, moment[i]); }
    using Load = Pair;
    Load load(Row i) const { return moment[i]; }
    static void add(Cell* cell, const Load& load) {
        cell[0] += load.w;
        cell[1] += load.wy;
    }
    double total(const Cell* cell) const { return cell[0]; }
    double size(const Cell* cell) const { return cell[0] * size_unit; }
    static double rate(double s, double w) { return s > 0 ? s * std::log(s / w) : 0.0; }
    double own(const Cell* cell) const {
        if constexpr (criterion == Criterion::poisson) return rate(cell[1], cell[0]);
        return 0.0;
    }
    double response(const Cell* cell, int) const { return cell[0] > 0 ? cell[1] / cell[0] : 0.0; }

    struct Scan {
        const MomentStatistics& of;
        double W, S, wl{0}, s{0};

        Scan(const MomentStatistics& of_, const Cell* all, Cell*) : of(of_), W(all[0]), S(all[1]) {}
        void move(Row i) {
            wl += of.moment[i].w;
            s += of.moment[i].wy;
        }
        void move(const Cell* cell) {
            wl += cell[0];
            s += cell[1];
        }
        bool above(double bar, double& score) {
            const double wr = W - wl;
            if constexpr (criterion == Criterion::squared) {
                const double d = s * W - S * wl, up = d * d, down = W * wl * wr;
                if (!(up > bar * down)) return false;
                score = up / down;
                return true;
            } else {
                // A child that expects nothing at all would forbid every later event.
                if (!(s > 0) || !(S - s > 0) || !(wl > 0) || !(wr > 0)) return false;
                const double sum = rate(s, wl) + rate(S - s, wr);
                if (!(sum > bar)) return false;
                score = sum;
                return true;
            }
        }
        double left_weight() const { return wl; }
        double right_weight() const { return W - wl; }
        double left_size() const { return wl * of.size_unit; }
        double right_size() const { return (W - wl) * of.size_unit; }
        double left_response() const { return s / wl; }
        double right_response() const { return (S - s) / (W - wl); }
    };
};

// Sums over the ranks of the targets of a node (Fenwick tree), for the weighted median of a growing set and its cost.
class MedianCost {
  public:
    void reset(std::span<const double> sorted_targets) {
        value_ = sorted_targets;
        weight_.assign(value_.size() + 1, 0.0);
        moment_.assign(value_.size() + 1, 0.0);
        W_ = S_ = 0;
        top_ = std::bit_floor(std::max<std::size_t>(value_.size(), 1));
    }
    void add(std::size_t rank, double w) {
        const double y = value_[rank];
        W_ += w, S_ += w * y;
        for (std::size_t i = rank + 1; i < weight_.size(); i += i & (~i + 1)) weight_[i] += w, moment_[i] += w * y;
    }
    // Σ w |y − median|
    double cost() const {
        const Prefix below = descend(false);
        const double y = value_[below.ranks];
        return std::max(0.0, (y * below.w - below.s) + ((S_ - below.s) - y * (W_ - below.w)));
    }
    // The middle of all minimizers.
    double median() const { return 0.5 * value_[descend(false).ranks] + 0.5 * value_[descend(true).ranks]; }
    double weight() const { return W_; }

  private:
    struct Prefix {
        std::size_t ranks;
        double w, s;
    };
    // The longest prefix of ranks that holds less than half of the weight (or, `even`, at most half).
    Prefix descend(bool even) const {
        Prefix p{0, 0, 0};
        for (std::size_t step = top_; step > 0; step >>= 1) {
            const std::size_t at = p.ranks + step;
            if (at >= weight_.size()) continue;
            const double twice = 2 * (p.w + weight_[at]);
            if (twice < W_ || (even && twice == W_)) p = {at, p.w + weight_[at], p.s + moment_[at]};
        }
        if (p.ranks >= value_.size()) p.ranks = value_.size() - 1;
        return p;
    }
    std::span<const double> value_;
    std::vector<double> weight_, moment_;
    double W_ = 0, S_ = 0;
    std::size_t top_ = 1;
};

// Real targets, one or several, by their medians. Rows move one by one; the costs of all prefixes are found by one pass from each end.
struct MedianStatistics {
    using Cell = double;
    static constexpr bool kByRow = true;
    static constexpr Criterion kCriterion = Criterion::absolute;
    const double* weight;  // fixed point
    const double* target;  // fixed point, one target after the other
    double size_unit;
    Row n;
    int targets;
    const double* scale;  // of each target

    int width() const { return 1 + targets; }
    int outputs() const { return targets; }
    int orders() const { return targets; }
    int ordering(int o) const { return o; }
    struct Load {};
    double at(int k, Row i) const { return target[static_cast<std::size_t>(k) * n + i]; }
    double mass(Row i) const { return weight[i]; }
    void add(Cell* cell, Row i) const {
        cell[0] += weight[i];
        for (int k = 0; k < targets; ++k) cell[1 + k] += weight[i] * at(k, i);
    }
    double total(const Cell* cell) const { return cell[0]; }
    double size(const Cell* cell) const { return cell[0] * size_unit; }
    double own(const Cell*) const { return 0.0; }
    double response(const Cell* cell, int k) const { return cell[0] > 0 ? cell[1 + k] / cell[0] : 0.0; }
};

}  // namespace certifit::tree
