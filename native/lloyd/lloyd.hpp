// Lloyd's iteration: each row to its nearest center, each center to the mean of its rows, until nothing changes.
//
//     minimize over centers c₁ … c_k    Σ s_i min_c ‖x_i − c‖²
//
// Exact: labels are those of distances in double precision, the first of equal centers. A row is looked at only if it may have
// changed: with u ≥ ‖x − own‖ and l ≤ ‖x − second‖, moved by what the centers moved, u ≤ max(l, half the distance from the own
// center to the next) proves that it has not (Hamerly 2010). Rows that are looked at go through tiles in single precision
// (panels.hpp), and those that these cannot decide are computed in double. Sums of the clusters change by the rows that moved;
// when nothing moves any more they are added up anew and checked once more. Blocks of rows are fixed and their sums are added in
// order: threads change nothing.
#pragma once

#include "lloyd/panels.hpp"
#include "neighbors/norm.hpp"

namespace certifit::lloyd {

constexpr Index kDirect = 16;  // rows of a panel from which on all of it is computed in place

// u and l after the centers moved; need[c] = 1 where they prove nothing.
CERTIFIT_CLONES [[maybe_unused]] static void refresh(float* u, float* l, const std::int32_t* label, const float* moved,
                                                     const float* half, std::int32_t mover, float most, float next,
                                                     std::uint8_t* need) {
    constexpr float up = 1.0f + 0x1p-22f;
    for (Index c = 0; c < kWide; ++c) {
        const float reach = (u[c] + moved[label[c]]) * up;
        const float low = (l[c] - (label[c] == mover ? next : most)) - std::fabs(l[c]) * 0x1p-22f;
        u[c] = reach, l[c] = low;
        const float safe = low > half[label[c]] ? low : half[label[c]];
        need[c] = !(reach < safe);
    }
}

// Bounds from the two nearest; unsure[c] = 1 where the nearest is not certain or is not the label so far.
CERTIFIT_CLONES [[maybe_unused]] static void digest(const Two& two, const float* square, const std::int32_t* label, float gamma,
                                                    float longest, float* u, float* l, std::uint8_t* unsure) {
    for (Index c = 0; c < kWide; ++c) {
        const float error = gamma * (square[c] + longest);
        const float near = two.best[c] + square[c] + error, far = two.second[c] + square[c] - error;
        u[c] = std::sqrt(near > 0.0f ? near : 0.0f) * (1.0f + 0x1p-21f);
        l[c] = std::sqrt(far > 0.0f ? far : 0.0f) * (1.0f - 0x1p-21f);
        unsure[c] = !(two.second[c] - two.best[c] > 2.0f * error) | (two.index[c] != label[c]);
    }
}

CERTIFIT_CLONES [[maybe_unused]] static double squared(const double* x, const double* center, Index d) {
    return neighbors::detail::squared(x, center, d);
}
CERTIFIT_CLONES [[maybe_unused]] static double squared(const float* x, const double* center, Index d) {
    return neighbors::detail::squared(x, center, d);
}

// How a run ended.
struct Run {
    Index iterations = 0;
    bool fixed = false;    // every row is with its nearest center, and every center is the mean of its rows
    double inertia = 0.0;  // Σ s_i ‖x_i − its center‖²
};

template <class T>
class Lloyd {
  public:
    Lloyd(const Panels<T>& panels, const double* weight, Index k, double* centers, std::int32_t* labels)
        : X_(panels), weight_(weight), k_(k), d_(panels.d), centers_(centers), labels_(labels), tile_(Nearest::best()),
          gamma_(gamma_of(panels.d)), u_(padded()), l_(padded()), label_(static_cast<std::size_t>(panels.count * kWide), -1),
          sums_(static_cast<std::size_t>(k * panels.d)), mass_(static_cast<std::size_t>(k)),
          counts_(static_cast<std::size_t>(k)) {
        // Blocks of whole panels, as many as have room for sums of their own.
        const Index room = std::max<Index>(4, (Index{1} << 22) / std::max<Index>(1, k * d_));
        block_ = std::max<Index>(16, (X_.count + std::min<Index>(room, 128) - 1) / std::min<Index>(room, 128));
        deltas_.resize(static_cast<std::size_t>((X_.count + block_ - 1) / block_));
    }

    // From the centers, at most `most` iterations; also ends when Σ‖moves of centers‖² ≤ `still`.
    Run run(Index most, double still, Team& team) {
        Run out;
        bool summed = false;  // whether the sums are fresh
        forget();
        for (;;) {
            const Index changed = assign(team);
            if (changed == 0 && summed) {
                out.fixed = true;
                break;
            }
            if (out.iterations == most && !(changed == 0)) break;
            summed = changed == 0;
            if (summed) add_up(team);
            else ++out.iterations;
            const bool repaired = !summed && repair(team);
            const double moved = move(repaired);
            if (!summed && !repaired && moved <= still && still > 0.0) {
                assign(team);
                break;
            }
        }
        std::copy_n(label_.begin(), X_.n, labels_);
        out.inertia = inertia(team);
        return out;
    }

    // Labels of the rows for the centers as they are.
    double nearest(Team& team) {
        forget();
        assign(team);
        std::copy_n(label_.begin(), X_.n, labels_);
        return inertia(team);
    }

  private:
    // What the rows of a block that changed their cluster add to it.
    struct Delta {
        std::vector<double> sum, mass;
        std::vector<Index> count;
        std::vector<std::uint8_t> touched;
        Index changed = 0;

        void clear(Index k, Index d) {
            sum.assign(static_cast<std::size_t>(k * d), 0.0), mass.assign(static_cast<std::size_t>(k), 0.0);
            count.assign(static_cast<std::size_t>(k), 0), touched.assign(static_cast<std::size_t>(k), 0);
        }
    };

    const Panels<T>& X_;
    const double* weight_;
    const Index k_, d_;
    double* const centers_;
    std::int32_t* const labels_;
    const Nearest::Call tile_;
    const double gamma_;
    std::vector<float> u_, l_;
    std::vector<std::int32_t> label_;
    std::vector<double> sums_, mass_;
    std::vector<Index> counts_;
    std::vector<Delta> deltas_;
    Index block_;
    // Since the last assignment, in the units of the panels: how far each center moved, the farthest and the next.
    std::vector<float> moved_, half_;
    std::int32_t mover_ = -1;
    float most_ = 0.0f, next_ = 0.0f;
    bool known_ = false;  // whether bounds exist

    std::size_t padded() const { return static_cast<std::size_t>(X_.count * kWide); }
    const T* row(Index i) const { return X_.rows + i * d_; }

    void forget() {
        std::fill(label_.begin(), label_.end(), -1);
        clear();
        known_ = false;
    }

    // Rows to their nearest centers; the sums follow. Returns how many rows changed.
    Index assign(Team& team) {
        const Packed packed = X_.packed(centers_, k_);
        halve(team);
        team.run(static_cast<Index>(deltas_.size()), true, [&](Index b, int worker) {
            const Index last = std::min(X_.count, (b + 1) * block_);
            sweep(b * block_, last, packed, deltas_[static_cast<std::size_t>(b)], team, worker);
        });
        known_ = true;
        Index changed = 0;
        for (Delta& delta : deltas_) {
            changed += delta.changed;
            if (delta.changed) take(delta);
        }
        return changed;
    }

    // The sums of a block join those of all.
    void take(Delta& delta) {
        for (Index c = 0; c < k_; ++c) {
            const auto s = static_cast<std::size_t>(c);
            if (!delta.touched[s]) continue;
            for (auto e = static_cast<std::size_t>(c * d_); e < static_cast<std::size_t>((c + 1) * d_); ++e)
                sums_[e] += delta.sum[e], delta.sum[e] = 0.0;
            mass_[s] += delta.mass[s], counts_[s] += delta.count[s];
            delta.mass[s] = 0.0, delta.count[s] = 0, delta.touched[s] = 0;
        }
    }

    // Half the distance from each center to the next, a little less.
    void halve(Team& team) {
        half_.assign(static_cast<std::size_t>(k_), 0.0f);
        if (!known_ || 8 * k_ > X_.n) return;
        team.blocks(k_, 8, k_ * k_ * d_ > 100000, [&](Index from, Index to, int) {
            for (Index a = from; a < to; ++a) {
                double least = std::numeric_limits<double>::infinity();
                for (Index b = 0; b < k_; ++b)
                    if (b != a) least = std::min(least, squared(centers_ + a * d_, centers_ + b * d_, d_));
                half_[static_cast<std::size_t>(a)] =
                    k_ > 1 ? static_cast<float>(0.5 * std::sqrt(least) * X_.scale * (1.0 - 1e-6)) : kInfinity;
            }
        });
    }

    void sweep(Index first, Index last, const Packed& packed, Delta& delta, Team& team, int worker) {
        if (delta.sum.empty()) delta.clear(k_, d_);
        delta.changed = 0;
        const auto gamma = static_cast<float>(gamma_);
        const float longest = detail::above(packed.longest);
        Two two;
        std::uint8_t need[kWide], unsure[kWide];
        // Rows of panels in which few are looked at, gathered.
        std::vector<float> held;
        float held_square[kWide] = {}, held_u[kWide], held_l[kWide];
        std::int32_t held_label[kWide] = {};
        Index held_row[kWide], count = 0;
        const auto flush = [&] {
            tile_(held.data(), packed, two);
            digest(two, held_square, held_label, gamma, longest, held_u, held_l, unsure);
            for (Index c = 0; c < count; ++c) {
                const auto i = static_cast<std::size_t>(held_row[c]);
                u_[i] = held_u[c], l_[i] = held_l[c];
                if (unsure[c]) settle(held_row[c], two, c, gamma * (held_square[c] + longest), delta);
            }
            count = 0;
        };
        for (Index p = first; p < last; ++p) {
            if (p % 64 == 0) team.check(worker);
            const Index base = p * kWide, rows = std::min(kWide, X_.n - base);
            Index wanted = rows;
            if (known_) {
                refresh(u_.data() + base, l_.data() + base, label_.data() + base, moved_.data(), half_.data(), mover_, most_,
                        next_, need);
                wanted = 0;
                for (Index c = 0; c < rows; ++c) wanted += need[c];
            }
            if (wanted == 0) continue;
            if (wanted >= kDirect || !known_) {
                tile_(X_.panel(p), packed, two);
                digest(two, X_.square.data() + base, label_.data() + base, gamma, longest, u_.data() + base, l_.data() + base,
                       unsure);
                for (Index c = 0; c < rows; ++c)
                    if (unsure[c])
                        settle(base + c, two, c, gamma * (X_.square[static_cast<std::size_t>(base + c)] + longest), delta);
                if (!known_)
                    for (Index c = rows; c < kWide; ++c) label_[static_cast<std::size_t>(base + c)] = 0;
                continue;
            }
            if (held.empty()) held.assign(static_cast<std::size_t>(kWide * d_), 0.0f);
            for (Index c = 0; c < rows; ++c) {
                if (!need[c]) continue;
                const float* x = X_.panel(p) + c;
                for (Index j = 0; j < d_; ++j) held[static_cast<std::size_t>(j * kWide + count)] = x[j * kWide];
                held_square[count] = X_.square[static_cast<std::size_t>(base + c)];
                held_label[count] = label_[static_cast<std::size_t>(base + c)];
                held_row[count++] = base + c;
                if (count == kWide) flush();
            }
        }
        if (count) flush();
    }

    // A row whose cluster changed, or whose nearest center single precision cannot tell.
    void settle(Index i, const Two& two, Index c, float error, Delta& delta) {
        std::int32_t found = two.index[c];
        if (!(two.second[c] - two.best[c] > 2.0f * error)) {
            double best = std::numeric_limits<double>::infinity(), second = best;
            for (Index a = 0; a < k_; ++a) {
                const double away = squared(row(i), centers_ + a * d_, d_);
                if (away < best) second = best, best = away, found = static_cast<std::int32_t>(a);
                else if (away < second) second = away;
            }
            u_[static_cast<std::size_t>(i)] = static_cast<float>(std::sqrt(best) * X_.scale * (1.0 + 1e-6));
            l_[static_cast<std::size_t>(i)] = static_cast<float>(std::sqrt(std::min(second, 1e300)) * X_.scale * (1.0 - 1e-6));
        }
        std::int32_t& label = label_[static_cast<std::size_t>(i)];
        if (found == label) return;
        ++delta.changed;
        add(i, found, 1, delta);
        if (label >= 0) add(i, label, -1, delta);
        label = found;
    }

    // The row joins a cluster (+1) or leaves it (−1).
    void add(Index i, std::int32_t cluster, int sign, Delta& delta) const {
        const double weight = sign * weight_[i];
        double* sum = delta.sum.data() + cluster * d_;
        const T* x = row(i);
        for (Index j = 0; j < d_; ++j) sum[j] += weight * (static_cast<double>(x[j]) - X_.mean[static_cast<std::size_t>(j)]);
        delta.mass[static_cast<std::size_t>(cluster)] += weight;
        delta.count[static_cast<std::size_t>(cluster)] += sign;
        delta.touched[static_cast<std::size_t>(cluster)] = 1;
    }

    // The sums anew, from the labels.
    void add_up(Team& team) {
        clear();
        team.run(static_cast<Index>(deltas_.size()), true, [&](Index b, int) {
            Delta& delta = deltas_[static_cast<std::size_t>(b)];
            const Index end = std::min(X_.n, (b + 1) * block_ * kWide);
            for (Index i = b * block_ * kWide; i < end; ++i) add(i, label_[static_cast<std::size_t>(i)], 1, delta);
        });
        for (Delta& delta : deltas_) take(delta);
    }

    void clear() {
        std::fill(sums_.begin(), sums_.end(), 0.0);
        std::fill(mass_.begin(), mass_.end(), 0.0);
        std::fill(counts_.begin(), counts_.end(), Index{0});
    }

    // An empty cluster gets the row that is farthest from its center; false when there is none, or nothing to give.
    bool repair(Team& team) {
        bool given = false;
        std::vector<double> away;
        for (Index c = 0; c < k_; ++c) {
            if (counts_[static_cast<std::size_t>(c)] > 0) continue;
            if (away.empty()) {
                away.resize(static_cast<std::size_t>(X_.n));
                team.blocks(X_.n, 4096, true, [&](Index from, Index to, int) {
                    for (Index i = from; i < to; ++i)
                        away[static_cast<std::size_t>(i)] =
                            squared(row(i), centers_ + label_[static_cast<std::size_t>(i)] * d_, d_);
                });
            }
            const Index i = std::max_element(away.begin(), away.end()) - away.begin();
            if (!(away[static_cast<std::size_t>(i)] > 0.0)) break;
            away[static_cast<std::size_t>(i)] = 0.0;
            std::int32_t& label = label_[static_cast<std::size_t>(i)];
            label = static_cast<std::int32_t>(c);
            given = true;
        }
        if (given) add_up(team);
        return given;
    }

    // Centers to the means; returns Σ‖moves‖². After a repair no bound holds.
    double move(bool repaired) {
        moved_.assign(static_cast<std::size_t>(k_), 0.0f);
        most_ = next_ = 0.0f, mover_ = -1;
        double total = 0.0;
        for (Index c = 0; c < k_; ++c) {
            const double mass = mass_[static_cast<std::size_t>(c)];
            if (counts_[static_cast<std::size_t>(c)] == 0 || !(mass > 0.0)) continue;  // nobody's center stays where it is
            double square = 0.0;
            for (Index j = 0; j < d_; ++j) {
                const double now = X_.mean[static_cast<std::size_t>(j)] + sums_[static_cast<std::size_t>(c * d_ + j)] / mass;
                const double step = (now - centers_[c * d_ + j]) * X_.scale;
                square += step * step;
                centers_[c * d_ + j] = now;
            }
            total += square;
            const float far = detail::above(std::sqrt(square) * (1.0 + 1e-6));
            moved_[static_cast<std::size_t>(c)] = far;
            if (far > most_) next_ = most_, most_ = far, mover_ = static_cast<std::int32_t>(c);
            else if (far > next_) next_ = far;
        }
        if (repaired) known_ = false;
        return total / (X_.scale * X_.scale);
    }

    double inertia(Team& team) const {
        constexpr Index size = 4096;
        std::vector<double> parts(static_cast<std::size_t>((X_.n + size - 1) / size));
        team.blocks(X_.n, size, true, [&](Index from, Index to, int) {
            double sum = 0.0;
            for (Index i = from; i < to; ++i)
                sum += weight_[i] * squared(row(i), centers_ + label_[static_cast<std::size_t>(i)] * d_, d_);
            parts[static_cast<std::size_t>(from / size)] = sum;
        });
        double total = 0.0;
        for (const double part : parts) total += part;
        return total;
    }
};

}  // namespace certifit::lloyd
