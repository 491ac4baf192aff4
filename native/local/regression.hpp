// Local regression: at each query, the polynomial of least weighted squares around it, read off at the query.
//
//     minimize over β   Σ_i w_i (y_i − β·φ(z_i))²
//     ŷ(q) = β_0 = Σ_i l_i y_i,   l_i = w_i v·φ(z_i),   v = G⁻¹e_0,   G = Σ w φφ'
//
// Of a row that is the query itself one copy has the influence K(0)·v_0, with which the answer without it follows in closed form;
// the
// variance of the answer is σ²·Σ l_i².                                                                    Cleveland 1979; Loader
// 1999
#pragma once

#include "core/team.hpp"
#include "local/line.hpp"
#include "local/rows.hpp"
#include "local/solve.hpp"

namespace certifit::local {

constexpr double kPivot = 1e-9;  // of scaled Gram matrices: directions with less are left out

// For each query: its values, [query][target]; the influence of one copy of a row at the query; Σ l²; the width. What is null is
// not wanted.
struct Found {
    double* value;
    double* own;
    double* spread;
    double* width;
};

inline void regress(const Rows& rows, const Lens& lens, const double* queries, Index m, const Found& found, Team& team) {
    const Index terms = lens.terms(rows.d), targets = rows.targets;
    team.blocks(m, 4, true, [&](Index from, Index to, int worker) {
        Neighborhood near(rows, lens);
        Line line(rows, lens);
        Factor factor(terms);
        std::vector<double> gram(static_cast<std::size_t>(terms * terms)), right(static_cast<std::size_t>(terms * targets)),
            beta(static_cast<std::size_t>(terms)), unit(static_cast<std::size_t>(terms)), v(static_cast<std::size_t>(terms));
        unit[0] = 1.0;
        const auto gathered = [&](bool on_line) {
            std::fill(gram.begin(), gram.end(), 0.0), std::fill(right.begin(), right.end(), 0.0);
            if (on_line) line.settle(near.query()[0], near.width()), line.gather(gram.data(), right.data());
            else
                near.each([&](Index b) {
                    detail::gather(near.phi(), near.weight(), rows.y + b * targets * kRows, terms, targets, gram.data(),
                                   right.data());
                });
            return factor.of(gram.data(), kPivot);
        };
        for (Index i = from; i < to; ++i) {
            team.check(worker);
            near.settle(queries + i * rows.d);
            bool on_line = Line::fits(rows);
            if (!gathered(on_line)) near.widen(), on_line = false, gathered(on_line);
            for (Index k = 0; k < targets; ++k) {
                factor.solve(right.data() + k * terms, beta.data());
                found.value[i * targets + k] = beta[0];
            }
            factor.solve(unit.data(), v.data());
            found.own[i] = near.own() * v[0];
            found.width[i] = near.width();
            if (!found.spread) continue;
            double sum = 0.0;
            if (on_line) sum = line.influence(v.data());
            else
                near.each(
                    [&](Index b) { sum += detail::influence(near.phi(), near.weight(), rows.s + b * kRows, v.data(), terms); });
            found.spread[i] = sum;
        }
    });
}

}  // namespace certifit::local
