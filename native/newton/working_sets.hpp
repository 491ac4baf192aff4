// Newton's method on working sets of columns, where the coefficients that are used are few beside all.
//
// Each set is solved as a problem of its own, its columns put together (columns.hpp), until its gap is a share of what was open. Its slopes, scaled into
// the domain of all columns, prove a gap of the whole, and their products with all columns say which ones the next set lacks: the only pass over X.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "newton/columns.hpp"

namespace certifit::newton {

// Columns of X copied one after the other.
template <class M>
class Copied;

template <class T, class I>
class Copied<Csc<T, I>> {
  public:
    using View = Csc<T, I>;
    Copied(const View& X, const std::vector<Index>& columns) : start_(1, I{0}) {
        std::size_t stored = 0;
        for (Index j : columns) stored += static_cast<std::size_t>(X.stored(j));
        data_.reserve(stored), indices_.reserve(stored), start_.reserve(columns.size() + 1);
        for (Index j : columns) {
            data_.insert(data_.end(), X.data + X.indptr[j], X.data + X.indptr[j + 1]);
            indices_.insert(indices_.end(), X.indices + X.indptr[j], X.indices + X.indptr[j + 1]);
            start_.push_back(static_cast<I>(data_.size()));
        }
        view = {data_.data(), indices_.data(), start_.data(), X.n, static_cast<Index>(columns.size())};
    }
    View view;

  private:
    std::vector<T> data_;
    std::vector<I> indices_, start_;
};

template <class Loss, class Store>
class WorkingSets : Steps<Loss> {
    using Base = Steps<Loss>;
    using Base::d_, Base::penalty_, Base::options_, Base::rows_, Base::gradient_, Base::u;
    using View = typename Store::View;

  public:
    template <class Matrix>
    WorkingSets(const Matrix& X, const double* y, Weights p, const Penalty& penalty, const Options& options)
        : Base(X.n, X.d, y, p, penalty, options), X_(X), y_(y), p_(p), store_(X, options.threads) {}

    Found solve(const double* start, double centre) {
        Found at;
        at.w.assign(start, start + d_), at.intercept = centre;
        store_.scores(start, centre, rows_.f.data(), options_.threads);
        slopes(Loss{}, rows_);
        std::vector<double> theta(rows_.theta.begin(), rows_.theta.begin() + store_.n);
        double open = options_.scale;
        for (Index round = 0; round < kRounds; ++round) {
            for (Index i = 0; i < store_.n; ++i) rows_.q[u(i)] = rows_.p[i] * theta[u(i)];
            store_.pull(rows_.q.data(), gradient_.data(), options_.threads, signals_);
            if (round > 0) {
                at.bound = std::max(at.bound, proven(theta, at.intercept));
                open = std::min(open, at.objective - at.bound);
                if (open <= options_.tolerance) return at;
            }
            choose(at.w);
            if (kLarge * static_cast<Index>(chosen_.size()) > d_) break;
            Found part = solved(at, std::max(kInner * options_.tolerance, kShare * open), theta);
            at.iterations += part.iterations;
            if (!std::isfinite(part.objective) || theta.empty()) break;
            for (std::size_t k = 0; k < chosen_.size(); ++k) at.w[u(chosen_[k])] = part.w[k];
            at.intercept = part.intercept, at.objective = part.objective;
        }
        rows_ = {}, theta = {};  // of tall data the most of what is held
        ColumnNewton<Loss, Store> whole(X_, y_, p_, penalty_, options_);
        Found found = whole.solve(at.w.data(), at.intercept);
        found.iterations += at.iterations, found.bound = std::max(found.bound, at.bound);
        return found;
    }

  private:
    static constexpr Index kRounds = 50;
    static constexpr std::size_t kRoom = 64; // columns that a set may always take in
    static constexpr Index kLarge = 3;       // times a set that is not worth a copy
    static constexpr double kAlmost = 0.9;   // share of l1 from which a column may be woken
    static constexpr double kShare = 0.3;    // of what is open: how exactly a set is solved
    static constexpr double kInner = 0.5;    // and of what is wanted of all

    // The columns in use, and of those that want to be the ones that are pulled most.
    void choose(const std::vector<double>& w) {
        chosen_.clear(), others_.clear();
        for (Index j = 0; j < d_; ++j) {
            if (w[u(j)] != 0.0) chosen_.push_back(j);
            else if (std::abs(gradient_[u(j)]) >= kAlmost * penalty_.l1[j]) others_.push_back(j);
        }
        const std::size_t room = std::max<std::size_t>({u(store_.n), chosen_.size(), kRoom});
        if (others_.size() > room) {
            const auto excess = [&](Index j) { return std::abs(gradient_[u(j)]) - penalty_.l1[j]; };
            std::nth_element(others_.begin(), others_.begin() + static_cast<Index>(room), others_.end(), [&](Index a, Index b) { return excess(a) > excess(b); });
            others_.resize(room);
        }
        chosen_.insert(chosen_.end(), others_.begin(), others_.end());
        std::sort(chosen_.begin(), chosen_.end());
    }

    Found solved(const Found& at, double tolerance, std::vector<double>& theta) {
        const Copied<View> part(X_, chosen_);
        std::vector<double> l1, l2, w;
        for (Index j : chosen_) l1.push_back(penalty_.l1[j]), l2.push_back(penalty_.l2[j]), w.push_back(at.w[u(j)]);
        Options options = options_;
        options.tolerance = tolerance;
        ColumnNewton<Loss, Store> small(part.view, y_, p_, Penalty{l1.data(), l2.data()}, options, true);
        Found found = small.solve(w.data(), at.intercept);
        theta = std::move(small.dual);
        return found;
    }

    // What slopes prove of the whole problem.
    double proven(const std::vector<double>& theta, double intercept) {
        double level = 0;
        for (Index i = 0; i < store_.n; ++i) rows_.theta[u(i)] = theta[u(i)], rows_.bent[u(i)] = 0.0, level += rows_.q[u(i)];
        return this->value(gradient_, level, intercept, 0.0);
    }

    const View X_;
    const double* y_;
    Weights p_;
    Store store_;
    SignalPoll signals_;
    std::vector<Index> chosen_, others_;
};

}  // namespace certifit::newton
