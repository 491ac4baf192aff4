// Dual block coordinate descent for the multiclass support vector machine with any misclassification costs.
//
//   primal   min over W, b   P = Σ p_i max_k (Δ(y_i, k) + f_ik − f_iy_i) + ½ alpha ‖W‖²,    f_ik = w_k·x_i + b_k
//   dual     max over β      D = Σ p_i Σ_k β_ik Δ(y_i, k) − ½ alpha ‖W(β)‖²
//            β_i in the probability simplex,   θ_ik = β_ik − [k = y_i],   w_k = −Σ p_i θ_ik x_i / alpha,
//            Σ_i p_i θ_ik = 0 for every class k (with intercepts)
//
// One row at a time is minimized exactly: a projection onto the simplex. Crammer and Singer (2001), On the algorithmic
// implementation of multiclass kernel-based vector machines; Keerthi et al. (2008), A sequential dual method for large
// scale multi-class linear SVMs. Intercepts as in dual.hpp: the method of multipliers, one multiplier for each class.
#pragma once

#include "dual/hinge.hpp"

namespace certifit::dual {

// The point of the probability simplex nearest to v, in place; `order` is scratch of the same length.
inline void project_simplex(std::span<double> v, std::vector<double>& order) {
    order.assign(v.begin(), v.end());
    std::sort(order.begin(), order.end(), [](double a, double b) { return a > b; });
    double sum = 0, threshold = 0;
    for (std::size_t k = 0; k < order.size(); ++k) {
        sum += order[k];
        const double candidate = (sum - 1.0) / static_cast<double>(k + 1);
        if (order[k] <= candidate) break;
        threshold = candidate;
    }
    double total = 0;
    for (double& x : v) x = std::max(x - threshold, 0.0), total += x;
    for (double& x : v) x /= total;  // what rounding left
}

template <class Rows>
class MulticlassDual {
  public:
    std::vector<double> W, beta, intercept;  // W: (K, d), beta: (n, K)

    MulticlassDual(const Rows& X, const Index* label, const double* p, const double* delta, Index K, const Options& options)
        : W(K * X.d, 0.0), beta(X.n * K, 0.0), intercept(K, 0.0), X_(X), label_(label), p_(p), delta_(delta), K_(K),
          options_(options), random_(options.seed), sum_(K, 0.0), share_(K, 0.0) {
        step_.resize(X.n);
        for (Index i = 0; i < X.n; ++i) {
            step_[i] = p[i] * (X.squared_norm(i) + options.constant * options.constant) / options.alpha;
            beta[i * K + label[i]] = 1.0;
            share_[label[i]] += p[i];
        }
    }

    Result solve() {
        std::vector<Index> active(X_.n);
        for (Index i = 0; i < X_.n; ++i) active[i] = i;
        double margin = kInfinity, wanted = 0.7 * options_.tolerance;
        Index due = 64, asked = 0;
        Result best;
        SignalPoll signals;
        const double pull = options_.constant * options_.constant / options_.alpha;
        for (Index epoch = 1; epoch <= options_.max_iter; ++epoch) {
            signals.poll();
            const bool whole = margin == kInfinity;
            if (whole) asked = epoch;
            double gap = 0, violation = 0;
            sweep(active, margin, gap, violation, signals);
            best.iterations = epoch;
            const bool last = epoch == options_.max_iter || (whole && violation <= kRounding && balanced());
            if ((whole && gap <= wanted) || last || epoch == due) {
                if (epoch == due) due *= 2;
                check(best);
                if (last || best.objective - best.bound <= options_.tolerance) break;
                const double ratio = options_.tolerance / (best.objective - best.bound);
                if (whole && gap <= wanted) wanted = 0.7 * gap * std::clamp(ratio, 0.1, 0.9);
                margin = kInfinity;
            } else {
                const bool done = gap <= wanted || !(violation > 0) || epoch - asked >= 10;
                margin = done && !whole ? kInfinity : violation;
            }
            if (margin == kInfinity) {
                active.resize(X_.n);
                for (Index i = 0; i < X_.n; ++i) active[i] = i;
            }
            for (Index k = 0; k < K_; ++k) intercept[k] -= sum_[k] * pull;
        }
        std::vector<double> ordered(K_ * X_.d);
        for (Index k = 0; k < K_; ++k)
            for (Index j = 0; j < X_.d; ++j) ordered[k * X_.d + j] = best_W_[X_.place(k, j, K_)];
        W = std::move(ordered);
        intercept = std::move(best_b_);
        beta = std::move(best_beta_);
        return best;
    }

  private:
    bool balanced() const {
        return options_.constant == 0 ||
               std::all_of(sum_.begin(), sum_.end(), [](double x) { return std::abs(x) <= kRounding; });
    }

    void sweep(std::vector<Index>& active, double margin, double& gap, double& violation, SignalPoll& signals) {
        std::vector<double> g(K_), fresh(K_), change(K_), scratch;
        random_.shuffle(active);
        const double pull = options_.constant * options_.constant / options_.alpha;
        const Index count = static_cast<Index>(active.size());
        Index kept = 0;
        for (Index at = 0; at < count; ++at) {
            if ((at & 1023) == 1023) signals.poll();
            const Index i = active[at];
            if (at + 1 < count) X_.prefetch(active[at + 1]);
            double* now = beta.data() + i * K_;
            const double* cost = delta_ + label_[i] * K_;
            X_.scores(i, W.data(), K_, g.data());
            double largest = -kInfinity, least = kInfinity, inner = 0;
            for (Index k = 0; k < K_; ++k) {
                g[k] += intercept[k] + cost[k];
                largest = std::max(largest, g[k]);
                if (now[k] > 0) least = std::min(least, g[k]);
            }
            const double distance = largest - least;  // zero when all of β lies on maximal classes
            if (distance <= 0) {
                double second = -kInfinity;  // a vertex rests when its class leads by a margin
                Index holder = -1;
                for (Index k = 0; k < K_; ++k)
                    if (now[k] == 1.0) holder = k;
                for (Index k = 0; k < K_; ++k)
                    if (k != holder) second = std::max(second, g[k]);
                if (holder >= 0 && g[holder] - second > margin) continue;
                active[kept++] = i;
                continue;
            }
            active[kept++] = i;
            violation = std::max(violation, distance);
            const double H = step_[i];
            if (H > 0) {
                for (Index k = 0; k < K_; ++k) fresh[k] = now[k] + (g[k] - largest) / H;
                project_simplex(fresh, scratch);
            } else {
                const Index winner = std::max_element(g.begin(), g.end()) - g.begin();
                std::fill(fresh.begin(), fresh.end(), 0.0);
                fresh[winner] = 1.0;
            }
            bool moved = false;
            for (Index k = 0; k < K_; ++k) {
                const double move = fresh[k] - now[k];
                change[k] = -p_[i] * move / options_.alpha;
                moved = moved || move != 0;
                sum_[k] += p_[i] * move;
                intercept[k] -= p_[i] * move * pull;
                now[k] = fresh[k];
                inner += fresh[k] * g[k];
            }
            if (moved) X_.add(i, change.data(), W.data(), K_);
            gap += p_[i] * (largest - inner);
        }
        active.resize(kept);
    }

    void check(Result& best) {
        const Index n = X_.n;
        std::vector<double> f(K_);
        double objective = 0.5 * options_.alpha * vec::dot(W.data(), W.data(), static_cast<Index>(W.size()));
        for (Index i = 0; i < n; ++i) {
            X_.scores(i, W.data(), K_, f.data());
            double largest = -kInfinity;
            for (Index k = 0; k < K_; ++k) largest = std::max(largest, f[k] + intercept[k] + delta_[label_[i] * K_ + k]);
            objective += p_[i] * (largest - f[label_[i]] - intercept[label_[i]]);
        }
        if (objective <= best.objective * (1 + 1e-14)) best.objective = objective, best_W_ = W, best_b_ = intercept;

        std::vector<double> fixed = beta, V(W.size(), 0.0), theta(K_);
        if (options_.constant > 0) repair(fixed);
        double bound = 0;
        for (Index i = 0; i < n; ++i) {
            bool any = false;
            for (Index k = 0; k < K_; ++k) {
                bound += p_[i] * fixed[i * K_ + k] * delta_[label_[i] * K_ + k];
                theta[k] = p_[i] * (fixed[i * K_ + k] - (k == label_[i] ? 1.0 : 0.0));
                any = any || theta[k] != 0;
            }
            if (any) X_.add(i, theta.data(), V.data(), K_);
        }
        bound -= 0.5 * vec::dot(V.data(), V.data(), static_cast<Index>(V.size())) / options_.alpha;
        if (bound > best.bound) best.bound = bound, best_beta_ = std::move(fixed);
        if (best_beta_.empty()) best_beta_ = beta;
        if (best_W_.empty()) best_W_ = W, best_b_ = intercept;
    }

    // Makes Σ_i p_i β_ik the weight of class k: classes with too much give to those with too little, row by row.
    // Rows that already share their mass between both go first: there the exchange costs nothing to first order.
    void repair(std::vector<double>& b) const {
        std::vector<double> excess(K_);
        for (int round = 0; round < 2; ++round) {
            for (Index k = 0; k < K_; ++k) {
                excess[k] = -share_[k];
                for (Index i = 0; i < X_.n; ++i) excess[k] += p_[i] * b[i * K_ + k];
            }
            for (const bool shared : {true, false})
                for (Index from = 0; from < K_; ++from)
                    for (Index to = 0; to < K_ && excess[from] > 0; ++to) {
                        const double want = std::min(excess[from], -excess[to]);
                        if (!(want > 0)) continue;
                        double room = 0;
                        for (Index i = 0; i < X_.n; ++i)
                            if (!shared || b[i * K_ + to] > 0) room += p_[i] * b[i * K_ + from];
                        if (!(room > 0)) continue;
                        const double part = std::min(1.0, want / room), moved = part * room;
                        for (Index i = 0; i < X_.n; ++i)
                            if (!shared || b[i * K_ + to] > 0) {
                                const double move = part * b[i * K_ + from];
                                b[i * K_ + from] -= move;
                                b[i * K_ + to] += move;
                            }
                        excess[from] -= moved;
                        excess[to] += moved;
                    }
        }
    }

    const Rows& X_;
    const Index* label_;
    const double *p_, *delta_;
    Index K_;
    Options options_;
    Random random_;
    std::vector<double> sum_, share_, step_, best_W_, best_b_, best_beta_;
};

}  // namespace certifit::dual
