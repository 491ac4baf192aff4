// Starts for k-means: k-means++ with several candidates a step (Arthur and Vassilvitskii 2007, the greedy variant).
//
// Each further center is drawn among the rows with probability s_i·D_i², D_i being the distance from the nearest center so far;
// of a few candidates the one that leaves the least Σ s_i D_i² is taken. The draws come as numbers in [0, 1): the same numbers,
// the same rows, whatever the number of threads.
#pragma once

#include "lloyd/panels.hpp"

namespace certifit::lloyd {

template <class T>
class Seeding {
  public:
    Seeding(const Panels<T>& panels, const double* weight)
        : X_(panels), away_(static_cast<std::size_t>(panels.count * kWide)), weight_(away_.size()),
          share_(static_cast<std::size_t>(panels.count)) {
        const double top = *std::max_element(weight, weight + panels.n);
        for (Index i = 0; i < panels.n; ++i) {
            weight_[static_cast<std::size_t>(i)] = static_cast<float>(weight[i] / top);
            away_[static_cast<std::size_t>(i)] = 1.0f;
        }
    }

    // Rows for k centers from k × trials numbers in [0, 1).
    void draw(const double* uniform, Index k, Index trials, std::int64_t* rows, Team& team) {
        std::vector<float> points(static_cast<std::size_t>(trials * X_.d));
        std::vector<double> potential(static_cast<std::size_t>(trials * X_.count));
        std::vector<Index> candidate(static_cast<std::size_t>(trials));
        for (Index p = 0; p < X_.count; ++p) share_[static_cast<std::size_t>(p)] = mass(p, away_.data() + p * kWide);
        for (Index c = 0; c < k; ++c) {
            const Index tried = c == 0 ? 1 : trials;  // before the first all rows are equally far: nothing to compare
            for (Index t = 0; t < tried; ++t) {
                candidate[static_cast<std::size_t>(t)] = pick(uniform[c * trials + t]);
                point(candidate[static_cast<std::size_t>(t)], points.data() + t * X_.d);
            }
            team.blocks(X_.count, 64, true, [&](Index from, Index to, int) {
                float left[kWide];
                for (Index p = from; p < to; ++p)
                    for (Index t = 0; t < tried; ++t) {
                        nearer(p, points.data() + t * X_.d, c == 0, left);
                        potential[static_cast<std::size_t>(t * X_.count + p)] = mass(p, left);
                    }
            });
            Index best = 0;
            double least = std::numeric_limits<double>::infinity();
            for (Index t = 0; t < tried; ++t) {
                double total = 0.0;
                for (Index p = 0; p < X_.count; ++p) total += potential[static_cast<std::size_t>(t * X_.count + p)];
                if (total < least) least = total, best = t;
            }
            rows[c] = candidate[static_cast<std::size_t>(best)];
            team.blocks(X_.count, 64, true, [&](Index from, Index to, int) {
                for (Index p = from; p < to; ++p) {
                    nearer(p, points.data() + best * X_.d, c == 0, away_.data() + p * kWide);
                    share_[static_cast<std::size_t>(p)] = potential[static_cast<std::size_t>(best * X_.count + p)];
                }
            });
        }
    }

  private:
    const Panels<T>& X_;
    std::vector<float> away_, weight_;
    std::vector<double> share_;

    void point(Index i, float* out) const {
        for (Index j = 0; j < X_.d; ++j) out[j] = X_.panel(i / kWide)[j * kWide + i % kWide];
    }

    // D² of a panel's rows with one more center.
    void nearer(Index p, const float* point, bool first, float* out) const {
        float found[kWide];
        squared_from(X_.panel(p), point, X_.d, found);
        const float* so_far = away_.data() + p * kWide;
        for (Index c = 0; c < kWide; ++c) out[c] = first || found[c] < so_far[c] ? found[c] : so_far[c];
    }

    double mass(Index p, const float* away) const {
        const float* weight = weight_.data() + p * kWide;
        double sum = 0.0;
        for (Index c = 0; c < kWide; ++c) sum += static_cast<double>(weight[c]) * static_cast<double>(away[c]);
        return sum;
    }

    // The row at which the running sum of s·D² passes a share of the whole.
    Index pick(double uniform) const {
        double total = 0.0;
        for (const double part : share_) total += part;
        double left = uniform * total;
        Index p = 0;
        while (p + 1 < X_.count && left >= share_[static_cast<std::size_t>(p)]) left -= share_[static_cast<std::size_t>(p++)];
        const Index first = p * kWide, last = std::min(X_.n, first + kWide);
        Index found = first;
        for (Index i = first; i < last; ++i) {
            const double mass = static_cast<double>(weight_[static_cast<std::size_t>(i)]) *
                                static_cast<double>(away_[static_cast<std::size_t>(i)]);
            if (mass > 0.0) found = i;
            if (left < mass) break;
            left -= mass;
        }
        return found;
    }
};

}  // namespace certifit::lloyd
