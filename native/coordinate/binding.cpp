// certifit._native.coordinate: coordinate descent for penalized weighted least squares.
#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include "coordinate/coordinate.hpp"
#include "coordinate/held.hpp"
#include "coordinate/rows.hpp"
#include "coordinate/tall.hpp"
#include "core/boundary/held_matrix.hpp"

using namespace certifit;
using namespace certifit::boundary;

namespace {

using Matrix = HeldMatrix<Dense, Csc, false>;

// The penalty arrays, checked once.
struct PenaltyArrays {
    Vector<double> l1, l2, lower, upper;
    double q;

    PenaltyArrays(Vector<double> l1_, Vector<double> l2_, Vector<double> lower_, Vector<double> upper_, double q_)
        : l1(l1_), l2(l2_), lower(lower_), upper(upper_), q(q_) {
        const Index d = static_cast<Index>(l1.size());
        expect_length(l2, d, "l2");
        expect_length(lower, d, "lower");
        expect_length(upper, d, "upper");
        if (q != 0.0 && !(q > 1.0 && q <= 2.0)) refuse("q must lie in (1, 2]");
        for (Index j = 0; j < d; ++j) {
            if (!(l1.data()[j] >= 0) || !(l2.data()[j] >= 0) || !(l1.data()[j] < kInfinity) ||
                !(l2.data()[j] < kInfinity))
                refuse("l1 and l2 must be finite and not negative");
            if (!(lower.data()[j] <= upper.data()[j]) || lower.data()[j] == kInfinity || upper.data()[j] == -kInfinity)
                refuse("lower must not exceed upper");
        }
    }
    Penalty view() const { return {l1.data(), l2.data(), lower.data(), upper.data(), q}; }
    Index size() const { return static_cast<Index>(l1.size()); }
};

std::vector<double> copy(const Vector<double>& v) { return {v.data(), v.data() + v.size()}; }

void expect_weights(const Vector<double>& p, Index n, const char* name) {
    expect_length(p, n, name);
    bool good = true;  // all at once: a question after each would cost more than the answers
    for (Index i = 0; i < n; ++i) good &= (p.data()[i] >= 0) & (p.data()[i] < kInfinity);
    if (!good) refuse(std::string(name) + " must be finite and not negative");
}


struct Options {
    bool intercept;
    double tolerance;
    Index max_iter;
    int threads;

    Options(bool intercept_, double tolerance_, Index max_iter_, int threads_)
        : intercept(intercept_), tolerance(tolerance_), max_iter(max_iter_), threads(threads_) {
        if (!(tolerance >= 0)) refuse("tol must not be negative");
        if (max_iter < 0) refuse("max_iter must not be negative");
        if (threads < 1) refuse("n_threads must be at least 1");
    }
};

template <class M>
nb::tuple solved(const M& X, const Vector<double>& y, const Vector<double>& p, const PenaltyArrays& penalty, const Vector<double>& coef,
                 const Options& options) {
    std::vector<double> w = copy(coef), theta;
    const Certified result = without_gil([&] {
        LeastSquares solver(X, y.data(), p.data(), options.intercept, options.threads, std::move(w));
        const Certified found = solver.solve(penalty.view(), options.tolerance, options.max_iter);
        w = std::move(solver.coef);
        theta = std::move(solver.theta);
        return found;
    });
    return nb::make_tuple(array(std::move(w)), result.intercept, result.objective, result.gap, result.iterations, array(std::move(theta)));
}

nb::tuple least_squares(const Matrix& X, Vector<double> y, Vector<double> p, const PenaltyArrays& penalty,
                        Vector<double> coef, const Options& options) {
    const Index n = X.rows(), d = X.columns();
    expect_length(y, n, "y");
    expect_weights(p, n, "p");
    expect_length(coef, d, "coef");
    if (penalty.size() != d) refuse("the penalty and X differ in their number of columns");
    return std::visit([&](const auto& view) { return solved(view, y, p, penalty, coef, options); }, X.view);
}

// The same for few columns and many rows, by their sums of squares and products; a gap beyond the tolerance is no failure of the
// caller's, who takes the function above instead.
template <class Rows>
nb::tuple tall_least_squares(const Rows& X, const Vector<double>& y, const Vector<double>& p, const PenaltyArrays& penalty,
                             const Vector<double>& coef, const Options& options) {
    if (X.n < 1 || X.d < 1) refuse("X is empty");
    expect_length(y, X.n, "y");
    const bool even = p.size() == 1;  // one weight for all rows
    expect_weights(p, even ? 1 : X.n, "p");
    expect_length(coef, X.d, "coef");
    if (penalty.size() != X.d) refuse("the penalty and X differ in their number of columns");
    std::vector<double> w = copy(coef);
    const Certified result = without_gil([&] {
        SignalPoll signals;
        TallLeastSquares solver(X, y.data(), p.data(), even, options.intercept, options.threads, std::move(w));
        const Certified found = solver.solve(penalty.view(), options.tolerance, signals);
        w = std::move(solver.coef);
        return found;
    });
    return nb::make_tuple(array(std::move(w)), result.intercept, result.objective, result.gap, result.iterations);
}

template <class Array>
nb::tuple tall_dense(const Array& X, Vector<double> y, Vector<double> p, const PenaltyArrays& penalty, Vector<double> coef,
                     const Options& options) {
    constexpr bool by_row = std::is_same_v<Array, RowMajor<double>>;
    const products::Table<double> table{X.data(), static_cast<Index>(X.shape(0)), static_cast<Index>(X.shape(1)), by_row};
    return tall_least_squares(table, y, p, penalty, coef, options);
}

// No row has a column twice.
template <class I>
nb::tuple tall_sparse(Vector<double> data, Vector<I> indices, Vector<I> indptr, Index d, Vector<double> y, Vector<double> p,
                      const PenaltyArrays& penalty, Vector<double> coef, const Options& options) {
    const Index n = check_compressed(data, indices, indptr, d, "column");
    return tall_least_squares(CsrRows<double, I>{data.data(), indices.data(), indptr.data(), n, d}, y, p, penalty, coef, options);
}

// The same for many columns, one row after the other.
nb::tuple held_least_squares(const RowMajor<double>& X, Vector<double> y, Vector<double> p, const PenaltyArrays& penalty, Vector<double> coef,
                             const Options& options) {
    const products::Table<double> table{X.data(), static_cast<Index>(X.shape(0)), static_cast<Index>(X.shape(1)), true};
    if (table.n < 1 || table.d < 1) refuse("X is empty");
    expect_length(y, table.n, "y");
    expect_weights(p, table.n, "p");
    expect_length(coef, table.d, "coef");
    if (penalty.size() != table.d) refuse("the penalty and X differ in their number of columns");
    HeldColumns held(table);
    return solved(RowsHeld(held), y, p, penalty, coef, options);
}

// Penalties alpha · (l1, l2) for each alpha, one after the other.
nb::tuple path(const Matrix& X, Vector<double> y, Vector<double> p, const PenaltyArrays& penalty, Vector<double> alphas,
               const Options& options) {
    const Index n = X.rows(), d = X.columns(), steps = static_cast<Index>(alphas.size());
    expect_length(y, n, "y");
    expect_weights(p, n, "p");
    if (penalty.size() != d) refuse("the penalty and X differ in their number of columns");
    for (Index k = 0; k < steps; ++k)
        if (!(alphas.data()[k] >= 0) || !(alphas.data()[k] < kInfinity)) refuse("alphas must be finite and not negative");
    return std::visit(
        [&](const auto& view) {
            std::vector<double> coefs(steps * d), intercepts(steps), gaps(steps), objectives(steps), iterations(steps);
            without_gil([&] {
                LeastSquares solver(view, y.data(), p.data(), options.intercept, options.threads,
                                    std::vector<double>(d, 0.0));
                const Penalty base = penalty.view();
                std::vector<double> l1(d), l2(d), previous(d, kInfinity);
                const bool curved = std::any_of(base.l2, base.l2 + d, [](double v) { return v != 0.0; });
                for (Index k = 0; k < steps; ++k) {
                    for (Index j = 0; j < d; ++j) l1[j] = alphas.data()[k] * base.l1[j], l2[j] = alphas.data()[k] * base.l2[j];
                    const Penalty now{l1.data(), l2.data(), base.lower, base.upper, base.q};
                    if (curved) solver.forget_factor();  // it holds G + diag(l2)
                    const Certified found = solver.solve(now, options.tolerance, options.max_iter, k ? previous.data() : nullptr);
                    std::copy(solver.coef.begin(), solver.coef.end(), coefs.begin() + k * d);
                    intercepts[k] = found.intercept, gaps[k] = found.gap, objectives[k] = found.objective;
                    iterations[k] = static_cast<double>(found.iterations);
                    previous = l1;
                }
                return 0;
            });
            return nb::make_tuple(array(std::move(coefs)), array(std::move(intercepts)), array(std::move(gaps)),
                                  array(std::move(objectives)), array(std::move(iterations)));
        },
        X.view);
}

nb::tuple newton_quadratic(const Matrix& X, Vector<double> r, Vector<double> h, const PenaltyArrays& penalty,
                           Vector<double> coef, Vector<std::int64_t> columns, const Options& options) {
    const Index n = X.rows(), d = X.columns();
    expect_length(r, n, "r");
    expect_weights(h, n, "h");
    expect_length(coef, d, "coef");
    if (penalty.size() != d) refuse("the penalty and X differ in their number of columns");
    std::vector<char> seen(d, 0);
    std::vector<Index> chosen(columns.data(), columns.data() + columns.size());
    for (Index j : chosen) {
        if (j < 0 || j >= d) refuse("columns holds an index out of bounds");
        if (seen[j]++) refuse("columns holds an index twice");
    }
    return std::visit(
        [&](const auto& view) {
            std::vector<double> w = copy(coef), u = copy(r), scores(n);
            const NewtonStep step = without_gil([&] {
                return quadratic(view, std::span<double>(u), h.data(), penalty.view(), std::span<const Index>(chosen),
                                 options.intercept, options.tolerance, options.max_iter, options.threads,
                                 std::span<double>(w), std::span<double>(scores));
            });
            return nb::make_tuple(array(std::move(w)), step.intercept, array(std::move(scores)), step.violation,
                                  step.iterations);
        },
        X.view);
}

nb::tuple gram_quadratic(nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu> G, Vector<double> g,
                         const PenaltyArrays& penalty, Vector<double> coef, const Options& options) {
    const Index k = static_cast<Index>(g.size());
    if (static_cast<Index>(G.shape(0)) != k || static_cast<Index>(G.shape(1)) != k) refuse("G must be square, one row for each g");
    expect_length(coef, k, "coef");
    if (penalty.size() != k) refuse("the penalty and G differ in their size");
    std::vector<double> w = copy(coef), c = copy(g);
    double violation = 0;
    const Index sweeps = without_gil([&] {
        SignalPoll signals;
        const Penalty view = penalty.view();
        Factor factor;
        std::vector<Index> all(k);
        for (Index j = 0; j < k; ++j) {
            all[j] = j;
            const double clipped = view.clip(j, w[j]);
            vec::subtract(clipped - w[j], G.data() + j * k, 0.0, c.data(), k);
            w[j] = clipped;
        }
        GramSolver solver(G.data(), k, k, view, factor);
        const Index used = solver.solve(all, w.data(), c.data(), Target{options.tolerance}, options.max_iter, signals);
        for (Index j = 0; j < k; ++j) violation = std::max(violation, view.violation(j, w[j], c[j]));
        return used;
    });
    return nb::make_tuple(array(std::move(w)), array(std::move(c)), violation, sweeps);
}

nb::tuple gram_rows(nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu> G,
                    nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu> g, const PenaltyArrays& penalty,
                    nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu> coef, double energy,
                    const Options& options) {
    const Index K = static_cast<Index>(g.shape(0)), m = static_cast<Index>(g.shape(1));
    if (static_cast<Index>(G.shape(0)) != m || static_cast<Index>(G.shape(1)) != m)
        refuse("G must be square, one row for each column");
    if (static_cast<Index>(coef.shape(0)) != K || static_cast<Index>(coef.shape(1)) != m)
        refuse("coef and g must have one shape");
    if (penalty.size() != m) refuse("the penalty and G differ in their size");
    std::vector<double> W(coef.data(), coef.data() + K * m), C(g.data(), g.data() + K * m);
    const Index sweeps = without_gil([&] {
        SignalPoll signals;
        const Penalty view = penalty.view();
        RowDescent descent(G.data(), m, K, view.l1, view.l2, W.data(), C.data());
        return descent.solve(energy, options.tolerance, options.max_iter, signals);
    });
    return nb::make_tuple(array(std::move(W)), array(std::move(C)), sweeps);
}

template <class I>
void define_tall_sparse(nb::module_& m) {
    m.def("tall_least_squares", &tall_sparse<I>, "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(), "d"_a,
          "y"_a.noconvert(), "p"_a.noconvert(), "penalty"_a, "coef"_a.noconvert(), "options"_a);
}

}  // namespace

NB_MODULE(coordinate, m) {
    Matrix::define(m, "Matrix");
    nb::class_<PenaltyArrays>(m, "Penalty")
        .def(nb::init<Vector<double>, Vector<double>, Vector<double>, Vector<double>, double>(), "l1"_a.noconvert(),
             "l2"_a.noconvert(), "lower"_a.noconvert(), "upper"_a.noconvert(), "q"_a);
    nb::class_<Options>(m, "Options")
        .def(nb::init<bool, double, Index, int>(), "intercept"_a, "tolerance"_a, "max_iter"_a, "threads"_a);
    m.def("least_squares", &least_squares, "X"_a, "y"_a.noconvert(), "p"_a.noconvert(), "penalty"_a, "coef"_a.noconvert(),
          "options"_a);
    m.def("tall_least_squares", &tall_dense<RowMajor<double>>, "X"_a.noconvert(), "y"_a.noconvert(), "p"_a.noconvert(),
          "penalty"_a, "coef"_a.noconvert(), "options"_a);
    m.def("tall_least_squares", &tall_dense<ColumnMajor<double>>, "X"_a.noconvert(), "y"_a.noconvert(), "p"_a.noconvert(),
          "penalty"_a, "coef"_a.noconvert(), "options"_a);
    define_tall_sparse<std::int32_t>(m);
    define_tall_sparse<std::int64_t>(m);
    m.def("held_least_squares", &held_least_squares, "X"_a.noconvert(), "y"_a.noconvert(), "p"_a.noconvert(), "penalty"_a,
          "coef"_a.noconvert(), "options"_a);
    m.def("path", &path, "X"_a, "y"_a.noconvert(), "p"_a.noconvert(), "penalty"_a, "alphas"_a.noconvert(), "options"_a);
    m.def("quadratic", &newton_quadratic, "X"_a, "r"_a.noconvert(), "h"_a.noconvert(), "penalty"_a, "coef"_a.noconvert(),
          "columns"_a.noconvert(), "options"_a);
    m.def("gram_quadratic", &gram_quadratic, "G"_a.noconvert(), "g"_a.noconvert(), "penalty"_a, "coef"_a.noconvert(),
          "options"_a);
    m.def("gram_rows", &gram_rows, "G"_a.noconvert(), "g"_a.noconvert(), "penalty"_a, "coef"_a.noconvert(), "energy"_a,
          "options"_a);
    // The one-dimensional pieces, for tests.
    m.def("minimizer", [](const PenaltyArrays& a, double z, double H) {
        if (a.size() < 1) refuse("the penalty is empty");
        return a.view().minimizer(0, z, H, 0.0);
    });
    m.def("conjugate", [](const PenaltyArrays& a, double v) {
        if (a.size() < 1) refuse("the penalty is empty");
        const Penalty penalty = a.view();
        return v > penalty.domain_above(0) || -v > penalty.domain_below(0) ? kInfinity : penalty.conjugate(0, v);
    });
}
