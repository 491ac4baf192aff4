// Support vectors on any kernel: sequential minimal optimization over large blocks of variables.
//
//   minimize over β    ½ βᵀKβ − Σ c_i(β_i)      low ≤ β ≤ high,   the sum of each group given      (block.hpp has c)
//
// Each round takes the variables that violate the optimality conditions most beside those of the round before, solves that block
// by pairs of second order, and updates all scores by one product with the rows of the block. The duality gap costs one pass over
// the scores:
//
//   gap = Σ_i φ_i(f_i) − c_i(β_i) + β_i f_i  ≥ 0,     f = Kβ + b of the group,
//   φ_i(f) = max over low ≤ β ≤ high of c_i(β) − βf, the loss
//
// and is what the fit stops on. Rows of K may be in single precision: after a leg the scores are computed anew in double
// precision, and the next leg goes on from them, so that rounding only touches the changes of β, which vanish (iterative
// refinement).
//
// Without c, for two groups, the objective is the distance of two hulls, and never below zero. Hulls that meet have no street
// between them, and their gap may never close: where the objective alone is a small share of the target and round after round
// leaves no street, there is none to find.
//
// Joachims (1998), Making large-scale SVM learning practical; Wen et al. (2018), ThunderSVM.
#pragma once

#include <cmath>

#include "smo/block.hpp"
#include "smo/rows.hpp"

namespace certifit::smo {

// One dual problem: `groups` variables for each of n rows, group by group.
struct Dual {
    Index n;
    int groups;
    const double *lower, *upper, *low, *high;
    double *beta, *g;
    Index variables() const { return n * groups; }
    Terms terms(Index v) const { return {lower[v], upper[v], low[v], high[v]}; }
    bool of_hulls() const {
        const auto zero = [this](const double* c) { return std::all_of(c, c + variables(), [](double x) { return x == 0.0; }); };
        return groups == 2 && zero(lower) && zero(upper);
    }
};

struct Options {
    double target;     // duality gap to stop at
    double bytes;      // for rows of K
    Index max_rounds;  // negative: no limit
    Index block;       // variables of a block
    bool single;       // whether rows of K may be in single precision
};

constexpr double kRounding = 2e-15;  // differences of slopes below this share of the numbers say nothing

constexpr double kMeeting = 0.1;  // share of the target within which the distance of two hulls counts as none
constexpr Index kStreetless = 8;  // rounds without a street after which there is none

constexpr Index kPatience = 300;  // rounds in which the gap does not fall by a hundredth
constexpr Index kCheap = 48;  // columns up to which a value of the kernel costs less than a line of memory
constexpr Index kInner = 64;  // least variables of a block within a block

struct Outcome {
    Index rounds = 0, steps = 0;
    double gap = detail::kInfinity;
};

using Poll = std::function<void()>;

// Slopes of raising and of lowering each variable (±∞ where it cannot), their extremes in each group, and the duality gap.
struct Slopes {
    std::vector<double> up, down, least, most;
    double gap = 0.0, violation = 0.0, size = 0.0;  // size of the numbers that slopes are differences of
    double energy = 0.0, street = 0.0;              // βᵀKβ, and the intercept of the last group less that of the first

    void at(const Dual& p) {
        const Index n = p.n;
        up.resize(p.variables()), down.resize(p.variables());
        least.assign(p.groups, detail::kInfinity), most.assign(p.groups, -detail::kInfinity);
        gap = violation = size = energy = street = 0.0;
        for (int k = 0; k < p.groups; ++k) {
            for (Index i = 0; i < n; ++i) {
                const Index v = k * n + i;
                const Terms t = p.terms(v);
                size = std::max({size, std::fabs(p.g[i]), std::fabs(p.lower[v]), std::fabs(p.upper[v])});
                up[v] = p.g[i] - t.rise(p.beta[v]), down[v] = p.g[i] - t.fall(p.beta[v]);
                least[k] = std::min(least[k], up[v]), most[k] = std::max(most[k], down[v]);
            }
            const bool both = least[k] < detail::kInfinity && most[k] > -detail::kInfinity;
            if (both) violation = std::max(violation, most[k] - least[k]);
            const double b = both                           ? -0.5 * (least[k] + most[k])
                             : least[k] < detail::kInfinity ? -least[k]
                             : most[k] > -detail::kInfinity ? -most[k]
                                                            : 0.0;
            street = k == 0 ? -b : street + b;
            for (Index i = 0; i < n; ++i) {
                const Index v = k * n + i;
                const double f = p.g[i] + b, beta = p.beta[v];
                energy += beta * p.g[i];
                const double loss = std::max({0.0, p.high[v] > 0.0 ? p.high[v] * (p.lower[v] - f) : 0.0,
                                              p.low[v] < 0.0 ? p.low[v] * (p.upper[v] - f) : 0.0});
                gap += loss - beta * ((beta >= 0.0 ? p.lower[v] : p.upper[v]) - f);
            }
        }
    }
};

// The worst violators on each side, then free variables of the block before, then the rest of it, then further violators.
inline std::vector<Index> choose(const Dual& p, const Slopes& slopes, const std::vector<Index>& before, Index size) {
    using Candidate = std::pair<double, Index>;
    const auto worse = [](const Candidate& a, const Candidate& b) {
        return a.first != b.first ? a.first > b.first : a.second < b.second;
    };
    std::vector<Candidate> sides[2];
    for (int k = 0; k < p.groups; ++k)
        for (Index v = k * p.n; v < (k + 1) * p.n; ++v) {
            const double up = slopes.most[k] - slopes.up[v], down = slopes.down[v] - slopes.least[k];
            if (up > 0.0) sides[0].push_back({up, v});
            if (down > 0.0) sides[1].push_back({down, v});
        }
    std::vector<char> taken(p.variables(), 0);
    std::vector<Index> block;
    const auto take = [&](Index v) {
        if (taken[v] || static_cast<Index>(block.size()) >= size) return;
        taken[v] = 1, block.push_back(v);
    };
    for (auto& side : sides) {
        const Index some = std::min<Index>(size / 2, side.size());
        if (some < static_cast<Index>(side.size())) std::nth_element(side.begin(), side.begin() + some, side.end(), worse);
        std::sort(side.begin(), side.begin() + some, worse);
        for (Index k = 0; k < std::min(some, std::max<Index>(size / 4, 1)); ++k) take(side[k].second);
    }
    for (const bool free : {true, false})
        for (const Index v : before)
            if ((p.beta[v] > p.low[v] && p.beta[v] < p.high[v]) == free) take(v);
    for (auto& side : sides)
        for (Index k = 0; k < std::min<Index>(size / 2, side.size()); ++k) take(side[k].second);
    std::sort(block.begin(), block.end());  // groups become neighbors
    return block;
}

// A block of the kernel matrix as a source of rows: blocks within a block.
template <class T>
class BlockRows {
  public:
    using Scalar = T;
    explicit BlockRows(const Block<T>& block) : block_(block) {}
    double diagonal(Index i) const { return block_.diagonal[i]; }
    void cross(const Index* rows, Index m, const Index* columns, Index q, T* Q, Index stride, Team&) {
        for (Index r = 0; r < m; ++r)
            for (Index c = 0; c < q; ++c) Q[r * stride + c] = block_.Q[rows[r] * block_.stride + columns[c]];
    }
    void update(const Index* rows, const double* delta, Index m, double* g, Team&) {
        std::vector<const T*> held(m);
        std::vector<T> by(m);
        for (Index r = 0; r < m; ++r) held[r] = block_.Q.data() + rows[r] * block_.stride, by[r] = static_cast<T>(delta[r]);
        combine(held.data(), by.data(), m, 0, block_.q, g);
    }

  private:
    const Block<T>& block_;
};

// The kernel matrix of one block after another: what two rows of the block before have in common is not asked for again, since
// reading an entry of a row costs as much as reading the line of memory around it.
template <class T>
class Succession {
  public:
    explicit Succession(Index n) : place_(n, -1) {}

    template <class Rows>
    void next(Rows& rows, const std::vector<Index>& number, Block<T>& block, Team& team) {
        const Index q = block.q, stride = block.stride;
        fresh_.clear(), fresh_rows_.clear(), old_.clear();
        for (Index r = 0; r < q; ++r) {
            if (place_[number[r]] < 0)
                fresh_.push_back(r), fresh_rows_.push_back(number[r]);
            else
                old_.push_back(r);
        }
        const Index m = static_cast<Index>(fresh_.size());
        part_.resize(m * stride);
        if (m > 0) rows.cross(fresh_rows_.data(), m, number.data(), q, part_.data(), stride, team);
        Q_.resize(q * stride);
        for (const Index r : old_) {
            const T* from = block.Q.data() + place_[number[r]] * stride_;
            for (const Index c : old_) Q_[r * stride + c] = from[place_[number[c]]];
        }
        for (Index k = 0; k < m; ++k) {
            T* to = Q_.data() + fresh_[k] * stride;
            std::copy(part_.begin() + k * stride, part_.begin() + k * stride + q, to);
            for (const Index r : old_) Q_[r * stride + fresh_[k]] = to[r];
        }
        std::swap(Q_, block.Q);
        for (const Index i : before_) place_[i] = -1;
        for (Index r = 0; r < q; ++r) place_[number[r]] = r;
        before_ = number, stride_ = stride;
    }

  private:
    std::vector<Index> place_, before_, fresh_, fresh_rows_, old_;
    std::vector<T> part_, Q_;
    Index stride_ = 0;
};

template <class Rows>
void leg(const Dual& p, Rows& rows, double target, double slack, const Options& how, Outcome& out, Team& team, const Poll& poll);

// Exchanges on a block. An exchange costs as much as the block is long, and few variables of a large block still move after a
// while: these are solved as a block of their own, until the whole block is as good as asked for.
template <class T>
Index settle(Block<T>& block, double tol, Team& team, const Poll& poll) {
    const Index q = block.q;
    Index free = 0;
    for (Index r = 0; r < q; ++r) free += block.beta[r] > block.terms[r].low && block.beta[r] < block.terms[r].high;
    const Index part = std::max<Index>(kInner, free + free / 4 + 32);
    if (block.ends.size() > 1 || 3 * part > 2 * q) return exchange(block, tol, 100 * q, poll);
    std::vector<double> lower(q), upper(q), low(q), high(q);
    for (Index r = 0; r < q; ++r)
        lower[r] = block.terms[r].lower, upper[r] = block.terms[r].upper, low[r] = block.terms[r].low,
        high[r] = block.terms[r].high;
    const Dual inside{q, 1, lower.data(), upper.data(), low.data(), high.data(), block.beta.data(), block.g.data()};
    BlockRows<T> rows(block);
    Outcome out;
    leg(inside, rows, 0.0, tol, Options{0.0, 0.0, 100, part, false}, out, team, poll);
    return out.steps;
}

// Rounds until the gap, as the scores have it, is within `target`, or slopes differ by no more than `slack`. p.g must hold the
// scores of p.beta.
template <class Rows>
void leg(const Dual& p, Rows& rows, double target, double slack, const Options& how, Outcome& out, Team& team, const Poll& poll) {
    using T = typename Rows::Scalar;
    Slopes slopes;
    Block<T> block;
    Succession<T> matrices(p.n);
    std::vector<Index> chosen, number, moved;
    std::vector<double> delta;
    // A matrix that is no inner product may never close its gap: rounds that gain nothing come to an end.
    double best = detail::kInfinity;
    Index idle = 0, streetless = 0;
    const Index patience = std::max<Index>(kPatience, 40 * p.variables() / how.block);
    const bool hulls = p.of_hulls();
    for (;;) {
        poll();
        slopes.at(p);
        out.gap = slopes.gap;
        idle = slopes.gap < 0.99 * best ? 0 : idle + 1;
        best = std::min(best, slopes.gap);
        streetless = hulls && 0.5 * slopes.energy <= kMeeting * target && !(slopes.street > 0.0) ? streetless + 1 : 0;
        if (idle > patience || streetless > kStreetless) return;
        if (!(slopes.gap > target) || !(slopes.violation > std::max(slack, kRounding * slopes.size)) ||
            (how.max_rounds >= 0 && out.rounds >= how.max_rounds))
            return;
        ++out.rounds;
        chosen = choose(p, slopes, chosen, std::min(how.block, p.variables()));
        const Index q = block.q = static_cast<Index>(chosen.size());
        block.stride = (q + 31) / 32 * 32;  // whole panels of single precision
        block.terms.resize(q), block.diagonal.resize(q), block.beta.resize(q), block.g.resize(q), block.rise.resize(q),
            block.fall.resize(q);
        block.ends.clear(), number.resize(q);
        for (Index r = 0; r < q; ++r) {
            const Index v = chosen[r];
            number[r] = v % p.n;
            if (r > 0 && v / p.n != chosen[r - 1] / p.n) block.ends.push_back(r);
            block.terms[r] = p.terms(v), block.beta[r] = p.beta[v], block.g[r] = p.g[number[r]],
            block.diagonal[r] = rows.diagonal(number[r]);
        }
        block.ends.push_back(q);
        matrices.next(rows, number, block, team);
        out.steps += settle(block, std::max(0.1 * slopes.violation, slack), team, poll);
        moved.clear(), delta.clear();
        for (Index r = 0; r < q; ++r) {
            const double by = block.beta[r] - p.beta[chosen[r]];
            if (by == 0.0) continue;
            moved.push_back(number[r]), delta.push_back(by), p.beta[chosen[r]] = block.beta[r];
        }
        if (moved.empty()) return;  // rounding: nothing can be improved any more
        rows.update(moved.data(), delta.data(), static_cast<Index>(moved.size()), p.g, team);
    }
}

// Legs until the gap of scores in double precision is within the target. `anew` computes these scores.
template <class Rows, class Anew>
bool legs(const Dual& p, Rows& rows, Anew&& anew, const Options& how, Outcome& out, Team& team, const Poll& poll) {
    double before = detail::kInfinity;
    Slopes slopes;
    for (int k = 0; k < 100; ++k) {
        const Index rounds = out.rounds;
        leg(p, rows, 0.7 * how.target, 0.0, how, out, team, poll);
        if (out.rounds == rounds) return !(out.gap > how.target);
        anew();
        slopes.at(p);
        out.gap = slopes.gap;
        if (!(out.gap > how.target)) return true;
        if (how.max_rounds >= 0 && out.rounds >= how.max_rounds) return false;
        if (!(out.gap < 0.5 * before)) return false;
        before = out.gap;
    }
    return false;
}

// The rows with a multiplier, and the multipliers.
struct Support {
    std::vector<Index> rows;
    std::vector<double> beta;
    explicit Support(const Dual& p) {
        for (Index v = 0; v < p.variables(); ++v)
            if (p.beta[v] != 0.0) rows.push_back(v % p.n), beta.push_back(p.beta[v]);
    }
    Index size() const { return static_cast<Index>(rows.size()); }
};

inline Outcome solve(const Features& X, const Dual& p, const Options& how, Team& team, const Poll& poll) {
    const auto anew = [&] {
        const Support s(p);
        scores(X, s.rows.data(), s.beta.data(), s.size(), p.g, team);
    };
    Outcome out;
    anew();
    if (X.shape().form == Form::linear && X.d() <= 2 * how.block) {
        LinearRows rows(X);
        legs(p, rows, anew, how, out, team, poll);
        return out;
    }
    std::vector<double> diagonal(p.n);
    for (Index i = 0; i < p.n; ++i) diagonal[i] = X.own(i);
    const Features* cheap = X.d() <= kCheap ? &X : nullptr;
    if (how.single) {
        const FeatureRows<float> make(X, team);
        CachedRows<float> rows(p.n, how.bytes, std::min(how.block, p.n), diagonal, std::cref(make), cheap);
        if (legs(p, rows, anew, how, out, team, poll) || (how.max_rounds >= 0 && out.rounds >= how.max_rounds)) return out;
    }
    const FeatureRows<double> make(X, team);
    CachedRows<double> rows(p.n, how.bytes, std::min(how.block, p.n), diagonal, std::cref(make), cheap);
    legs(p, rows, anew, how, out, team, poll);
    return out;
}

// The same on rows that somebody else makes, in double precision.
inline Outcome solve(CachedRows<double>& rows, const Dual& p, const Options& how, Team& team, const Poll& poll) {
    const auto anew = [&] {
        const Support s(p);
        std::fill(p.g, p.g + p.n, 0.0);
        rows.update(s.rows.data(), s.beta.data(), s.size(), p.g, team);
    };
    Outcome out;
    anew();
    legs(p, rows, anew, how, out, team, poll);
    return out;
}

}  // namespace certifit::smo
