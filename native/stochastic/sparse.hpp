// Stochastic gradient descent over sparse rows: the same steps as for dense ones, made lazily.
//
// w = s·v with one scale s for L2, and the threshold that a coefficient of v missed since it was last touched is one number for
// all (thresholds in a row add up). Bottou 2012 (scale and averaging tricks); Tsuruoka et al. 2009 (lazy L1).
#pragma once

#include "stochastic/dense.hpp"

namespace certifit::sgd {

// Sparse rows: w = scale·v, thresholds and averages are lazy.
//   average: Σ w_k = c·v + u, because w changes only where a row is not zero.
class LazyRows {
  public:
    LazyRows(Index d, const Plan& plan, State& state)
        : plan_(plan), state_(state), v_(state.w, state.w + d), d_(d),
          eager_(plan.average && plan.l1 > 0) {  // an average of thresholded coefficients has no lazy form
        if (plan.l1 > 0 && !eager_) seen_.assign(static_cast<std::size_t>(d), 0.0);
        if (plan.average && !eager_) u_.assign(static_cast<std::size_t>(d), 0.0);
        derivative_.resize(static_cast<std::size_t>(plan.batch));
    }

    template <class T, class I>
    void run(const CsrRows<T, I>& X, const double* y, const std::uint32_t* order, Index count) {
        SignalPoll poll;
        Index batch_number = 0;
        for (Index start = 0; start < count && !state_.diverged; start += plan_.batch, ++batch_number) {
            if ((batch_number & 255) == 0) poll.poll();
            const Index stop = std::min(start + plan_.batch, count);
            double slope = 0.0;
            for (Index i = start; i < stop; ++i) {
                const Index row = order[i];
                double f = 0.0;
                for (I k = X.start[row]; k < X.start[row + 1]; ++k) {
                    const auto j = static_cast<std::size_t>(X.indices[k]);
                    if (!seen_.empty() && seen_[j] != missed_) v_[j] = soft(v_[j], missed_ - seen_[j]), seen_[j] = missed_;
                    f += static_cast<double>(X.data[k]) * v_[j];
                }
                f = f * scale_ + state_.b;
                if (!(std::fabs(f) < kFar)) {
                    state_.diverged = true;
                    break;
                }
                const double g = plan_.loss.derivative(y[row], f);
                if (i % plan_.watch == 0) state_.loss_sum += plan_.loss.value(y[row], f), state_.watched += 1.0;
                if (state_.dual) state_.dual[row] += g, state_.visits[row] += 1.0;
                derivative_[static_cast<std::size_t>(i - start)] = g;
                slope += g;
            }
            if (state_.diverged) break;
            state_.t += 1.0;
            const double m = static_cast<double>(stop - start), full = static_cast<double>(plan_.full);
            const double eta = plan_.schedule.at(state_.t) * (m / full);
            const double step = eta / (m * scale_);
            const bool averaging = plan_.average && batch_number >= plan_.average_from;
            if (plan_.intercept) state_.b -= eta * slope / m;
            for (Index i = start; i < stop; ++i) {
                const Index row = order[i];
                const double change = step * derivative_[static_cast<std::size_t>(i - start)];
                if (change == 0.0) continue;
                for (I k = X.start[row]; k < X.start[row + 1]; ++k) {
                    const auto j = static_cast<std::size_t>(X.indices[k]);
                    const double delta = -change * static_cast<double>(X.data[k]);
                    v_[j] += delta;
                    if (!u_.empty()) u_[j] -= c_ * delta;
                }
            }
            const double threshold = eta * plan_.l1 / scale_;
            if (eager_)
                for (double& v : v_) v = soft(v, threshold);
            else
                missed_ += threshold;
            scale_ /= 1.0 + eta * plan_.l2;
            if (averaging) {
                if (eager_)
                    for (Index j = 0; j < d_; ++j) state_.w_sum[j] += scale_ * v_[static_cast<std::size_t>(j)];
                else
                    c_ += scale_;
                state_.b_sum += state_.b, state_.averaged += 1.0;
            }
            if (!(scale_ > 1e-6) || missed_ > 1e12) settle();
        }
        settle();
        std::copy(v_.begin(), v_.end(), state_.w);
        for (std::size_t j = 0; j < u_.size(); ++j) state_.w_sum[j] += c_ * v_[j] + u_[j];
    }

  private:
    // Applies what is pending, so that v = w.
    void settle() {
        for (std::size_t j = 0; j < seen_.size(); ++j) v_[j] = soft(v_[j], missed_ - seen_[j]), seen_[j] = 0.0;
        missed_ = 0.0;
        for (double& v : v_) v *= scale_;
        c_ /= scale_, scale_ = 1.0;
    }

    const Plan& plan_;
    State& state_;
    std::vector<double> v_;
    Index d_;
    bool eager_;
    std::vector<double> seen_, u_, derivative_;
    double scale_ = 1.0, missed_ = 0.0, c_ = 0.0;
};

}  // namespace certifit::sgd
