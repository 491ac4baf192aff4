// What a split is worth to several targets at once.
//
// The impurity of a node is the mean over the targets of their impurities, and so is the worth of a split. A cell holds the weight W and a sum S_j
// for each number (Σ w y) or for each class of each target (the weight of that class); of classes, also the rows R that W stands for. In these sums
// the worth is, up to the mean and to constants of the node,
//   squared, gini       Σ_j c_j (S_Lj W − S_j W_L)² / (W W_L W_R): gini is the variance of the indicators of the classes
//   poisson, entropy    Σ_j c_j (r(S_Lj, W_L) + r(S_Rj, W_R)) with r(s, w) = s log(s / w)
//   misclassification   Σ_k max_c S_Lc + max_c S_Rc
// c_j brings targets, each in fixed point of its own, to one unit.
#pragma once

#include <cmath>
#include <vector>

#include "tree/grow/statistics.hpp"

namespace certifit::tree {

template <Criterion criterion>
struct JointStatistics {
    using Cell = double;
    static constexpr bool kByRow = false;
    static constexpr Criterion kCriterion = criterion;
    static constexpr bool kClasses =
        criterion == Criterion::gini || criterion == Criterion::entropy || criterion == Criterion::misclassification;
    static constexpr int kFirst = kClasses ? 2 : 1;  // where the sums of a cell begin

    int targets, sums;
    const int* first;            // of each target: its first sum; and the end
    const double* scale;         // of each sum
    const int* order;            // sums whose means put categories in order
    int order_count;
    const double* weight;        // of each row, as drawn
    const double* moment;        // numbers: w y of each row, its targets side by side
    const std::uint16_t* label;  // classes of each row, side by side
    const double* rows;          // classes: rows that each row counts for, as drawn
    double size_unit;            // numbers: rows counted by one unit of weight

    int width() const { return kFirst + sums; }
    int outputs() const { return kClasses ? 0 : targets; }
    int orders() const { return order_count; }
    int ordering(int o) const { return order[o]; }
    struct Load {};
    double mass(Row i) const { return weight[i]; }
    void add(Cell* cell, Row i) const {
        const std::size_t at = static_cast<std::size_t>(i) * targets;
        cell[0] += weight[i];
        if constexpr (kClasses) {
            cell[1] += rows[i];
            for (int k = 0; k < targets; ++k) cell[kFirst + first[k] + label[at + k]] += weight[i];
        } else {
            for (int k = 0; k < targets; ++k) cell[kFirst + k] += moment[at + k];
        }
    }
    double total(const Cell* cell) const { return cell[0]; }
    double size(const Cell* cell) const { return kClasses ? cell[1] : cell[0] * size_unit; }
    static double rate(double s, double w) {
        if (!(s > 0)) return 0.0;
        return s * (criterion == Criterion::entropy ? std::log2(s / w) : std::log(s / w));
    }
    double own(const Cell* cell) const {
        double sum = 0;
        if constexpr (criterion == Criterion::entropy || criterion == Criterion::poisson)
            for (int j = 0; j < sums; ++j) sum += scale[j] * rate(cell[kFirst + j], cell[0]);
        if constexpr (criterion == Criterion::misclassification)
            for (int k = 0; k < targets; ++k) sum += most(cell, k);
        return sum;
    }
    double response(const Cell* cell, int j) const { return cell[0] > 0 ? cell[kFirst + j] / cell[0] : 0.0; }

    // Classes: W·i(t), and whether no target has two of them.
    double loss(const Cell* cell) const
        requires kClasses
    {
        double sum = 0;
        if constexpr (criterion == Criterion::gini) {
            for (int j = 0; j < sums; ++j) sum += cell[kFirst + j] * (cell[0] - cell[kFirst + j]);
            return std::max(0.0, sum / cell[0] / targets);
        }
        if constexpr (criterion == Criterion::misclassification) sum = targets * cell[0];
        return std::max(0.0, (sum - own(cell)) / targets);
    }
    bool pure(const Cell* cell) const
        requires kClasses
    {
        for (int k = 0; k < targets; ++k)
            if (most(cell, k) < cell[0]) return false;
        return true;
    }
    void shares(const Cell* cell, double* out) const
        requires kClasses
    {
        for (int j = 0; j < sums; ++j) out[j] = cell[kFirst + j] / cell[0];
    }

    // The two sides while rows move from right to left.
    struct Scan {
        const JointStatistics& of;
        const Cell* all;
        Cell* left;

        Scan(const JointStatistics& of_, const Cell* all_, Cell* buffer) : of(of_), all(all_), left(buffer) {
            std::fill_n(left, of.width(), 0.0);
        }
        void move(Row i) { of.add(left, i); }
        void move(const Cell* cell) {
            for (int c = 0; c < of.width(); ++c) left[c] += cell[c];
        }
        bool above(double bar, double& score) {
            const double W = all[0], wl = left[0], wr = W - wl;
            if (!(wl > 0) || !(wr > 0)) return false;
            double sum = 0;
            if constexpr (criterion == Criterion::squared || criterion == Criterion::gini) {
                for (int j = kFirst; j < of.width(); ++j) {
                    const double d = left[j] * W - all[j] * wl;
                    sum += of.scale[j - kFirst] * d * d;
                }
                const double down = W * wl * wr;
                if (!(sum > bar * down)) return false;
                score = sum / down;
                return true;
            } else if constexpr (criterion == Criterion::misclassification) {
                for (int k = 0; k < of.targets; ++k) {
                    double right = 0;
                    for (int j = kFirst + of.first[k]; j < kFirst + of.first[k + 1]; ++j) right = std::max(right, all[j] - left[j]);
                    sum += of.most(left, k) + right;
                }
            } else {
                for (int j = kFirst; j < of.width(); ++j) {
                    if (!(all[j] > 0)) continue;
                    const double right = all[j] - left[j];
                    // A child that expects none of what its parent expects would forbid every later event.
                    if (criterion == Criterion::poisson && (!(left[j] > 0) || !(right > 0))) return false;
                    sum += of.scale[j - kFirst] * (rate(left[j], wl) + rate(right, wr));
                }
            }
            if (!(sum > bar)) return false;
            score = sum;
            return true;
        }
        double left_weight() const { return left[0]; }
        double right_weight() const { return all[0] - left[0]; }
        double left_size() const { return of.size(left); }
        double right_size() const { return of.size(all) - of.size(left); }
        // Monotone constraints are for one target.
        double left_response() const { return 0.0; }
        double right_response() const { return 0.0; }
    };

  private:
    double most(const Cell* cell, int k) const {
        double found = 0;
        for (int j = kFirst + first[k]; j < kFirst + first[k + 1]; ++j) found = std::max(found, cell[j]);
        return found;
    }
};

}  // namespace certifit::tree
