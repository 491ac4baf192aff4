// certifit._native.newton: Newton's method for smooth losses with an elastic-net penalty and few columns.
#include <cmath>
#include <string>

#include <nanobind/stl/string.h>

#include "core/boundary/options.hpp"
#include "core/boundary/held_matrix.hpp"
#include "core/boundary/layouts.hpp"
#include "newton/working_sets.hpp"
#include "newton/newton.hpp"
#include "newton/truncated.hpp"

using namespace certifit::boundary;
using certifit::Index;
using certifit::Options;
using namespace certifit::newton;
namespace products = certifit::products;

namespace {

Weights weights(const Vector<double>& p) { return {p.data(), p.size() == 1}; }

template <class Loss, class Array>
Found run(const Array& X, const Vector<double>& y, const Vector<double>& p, const Penalty& penalty, const Vector<double>& coef, double intercept,
          const Options& options) {
    using T = std::remove_const_t<typename Array::Scalar>;
    const products::Table<T> table{X.data(), static_cast<Index>(X.shape(0)), static_cast<Index>(X.shape(1)), X.stride(1) == 1 && X.shape(1) > 1};
    return without_gil([&] { return Newton<Loss, T>(table, y.data(), weights(p), penalty, options).solve(coef.data(), intercept); });
}

using Matrix = HeldMatrix<certifit::Dense, certifit::Csc, false>;

// What both layouts are asked.
Penalty checked(std::size_t n, std::size_t d, const Vector<double>& y, const Vector<double>& p, const Vector<double>& l1, const Vector<double>& l2,
                const Vector<double>& coef) {
    expect_length(y, n, "y");
    if (p.size() != 1) expect_length(p, n, "p");  // one weight for all rows
    expect_length(l1, d, "l1");
    expect_length(l2, d, "l2");
    expect_length(coef, d, "coef");
    for (std::size_t j = 0; j < d; ++j)
        if (!(l1.data()[j] >= 0) || !(l2.data()[j] >= 0) || !(l1.data()[j] + l2.data()[j] > 0)) refuse("every column needs a penalty");
    return {l1.data(), l2.data()};
}

nb::tuple answer(Found&& found) { return nb::make_tuple(array(std::move(found.w)), found.intercept, found.objective, found.bound, found.iterations); }

template <class Run>
nb::tuple by_loss(const std::string& loss, Run&& run) {
    if (loss == "logistic") return answer(run(Logistic{}));
    if (loss == "poisson") return answer(run(Poisson{}));
    refuse("loss must be 'logistic' or 'poisson'");
}

// (coef, intercept, objective, bound, iterations)
template <class Array>
nb::tuple minimize(const std::string& loss, const Array& X, const Vector<double>& y, const Vector<double>& p, const Vector<double>& l1, const Vector<double>& l2,
                   const Vector<double>& coef, double intercept, const Options& options) {
    const Penalty penalty = checked(X.shape(0), X.shape(1), y, p, l1, l2, coef);
    const auto with = [&](auto kind) { return run<decltype(kind)>(X, y, p, penalty, coef, intercept, options); };
    return loss == "squared_hinge" ? answer(with(SquaredHinge{})) : by_loss(loss, with);
}

// The same for columns that are compressed.
nb::tuple minimize_columns(const std::string& loss, const Matrix& X, const Vector<double>& y, const Vector<double>& p, const Vector<double>& l1,
                           const Vector<double>& l2, const Vector<double>& coef, double intercept, const Options& options) {
    const Penalty penalty = checked(static_cast<std::size_t>(X.rows()), static_cast<std::size_t>(X.columns()), y, p, l1, l2, coef);
    return by_loss(loss, [&](auto kind) {
        return std::visit(
            [&](const auto& view) {
                using View = std::decay_t<decltype(view)>;
                Found found;
                if constexpr (View::sparse)
                    found = without_gil([&] {
                        return WorkingSets<decltype(kind), Compressed<View>>(view, y.data(), weights(p), penalty, options).solve(coef.data(), intercept);
                    });
                else
                    refuse("X must be compressed");
                return found;
            },
            X.view);
    });
}

// The same for many columns that are dense.
template <class Array>
nb::tuple minimize_packed(const std::string& loss, const Array& X, const Vector<double>& y, const Vector<double>& p, const Vector<double>& l1,
                          const Vector<double>& l2, const Vector<double>& coef, double intercept, const Options& options) {
    const Penalty penalty = checked(X.shape(0), X.shape(1), y, p, l1, l2, coef);
    const products::Table<double> table{X.data(), static_cast<Index>(X.shape(0)), static_cast<Index>(X.shape(1)), X.stride(1) == 1 && X.shape(1) > 1};
    return by_loss(loss, [&](auto kind) {
        return without_gil([&] { return ColumnNewton<decltype(kind), Packed>(table, y.data(), weights(p), penalty, options).solve(coef.data(), intercept); });
    });
}

// The same without l1, for rows that are dense or compressed: at most so many products with the Hessian.
template <class Rows>
nb::tuple truncated(const std::string& loss, const Rows& X, const Vector<double>& y, const Vector<double>& p, const Vector<double>& l2,
                    const Vector<double>& coef, double intercept, const Options& options, double most) {
    expect_length(y, static_cast<std::size_t>(X.n), "y");
    expect_length(p, static_cast<std::size_t>(X.n), "p");
    expect_length(l2, static_cast<std::size_t>(X.d), "l2");
    expect_length(coef, static_cast<std::size_t>(X.d), "coef");
    for (Index j = 0; j < X.d; ++j)
        if (!(l2.data()[j] > 0)) refuse("l2 must be positive");
    return by_loss(loss, [&](auto kind) {
        Found found;
        with_team(options.threads, [&](certifit::Team& team) {
            found = Truncated<decltype(kind), Rows>(X, y.data(), p.data(), l2.data(), options, most, team).solve(coef.data(), intercept);
        });
        return found;
    });
}

template <class Array>
nb::tuple truncated_dense(const std::string& loss, const Array& X, Vector<double> y, Vector<double> p, Vector<double> l2, Vector<double> coef,
                          double intercept, const Options& options, double most) {
    using T = std::remove_const_t<typename Array::Scalar>;
    constexpr bool by_row = std::is_same_v<Array, RowMajor<T>>;
    const products::Table<T> table{X.data(), static_cast<Index>(X.shape(0)), static_cast<Index>(X.shape(1)), by_row};
    return truncated(loss, table, y, p, l2, coef, intercept, options, most);
}

template <class T, class I>
nb::tuple truncated_sparse(const std::string& loss, Vector<T> data, Vector<I> indices, Vector<I> indptr, Index d, Vector<double> y, Vector<double> p,
                           Vector<double> l2, Vector<double> coef, double intercept, const Options& options, double most) {
    const Index n = check_compressed(data, indices, indptr, d, "column");
    const certifit::CsrRows<T, I> rows{data.data(), indices.data(), indptr.data(), n, d};
    return truncated(loss, rows, y, p, l2, coef, intercept, options, most);
}

double risk_of(const Vector<double>& y, const Vector<double>& p, const Vector<double>& f) {
    expect_length(p, y.size(), "p");
    expect_length(f, y.size(), "f");
    return without_gil([&] { return logistic_risk(y.data(), p.data(), f.data(), static_cast<Index>(y.size())); });
}

double conjugate_of(const Vector<double>& y, const Vector<double>& p, const Vector<double>& theta) {
    expect_length(p, y.size(), "p");
    expect_length(theta, y.size(), "theta");
    return without_gil([&] { return logistic_conjugate(y.data(), p.data(), theta.data(), static_cast<Index>(y.size())); });
}

// (theta, h)
nb::tuple slopes_of(const Vector<double>& y, const Vector<double>& f) {
    expect_length(f, y.size(), "f");
    std::vector<double> theta(y.size()), h(y.size());
    without_gil([&] { logistic_slopes(y.data(), f.data(), static_cast<Index>(y.size()), theta.data(), h.data()); });
    return nb::make_tuple(array(std::move(theta)), array(std::move(h)));
}

template <class Array>
void define_packed(nb::module_& m) {
    m.def("minimize_packed", &minimize_packed<Array>, "loss"_a, "X"_a.noconvert(), "y"_a.noconvert(), "p"_a.noconvert(), "l1"_a.noconvert(),
          "l2"_a.noconvert(), "coef"_a.noconvert(), "intercept"_a, "options"_a);
}

template <class Array>
void define(nb::module_& m) {
    m.def("minimize", &minimize<Array>, "loss"_a, "X"_a.noconvert(), "y"_a.noconvert(), "p"_a.noconvert(), "l1"_a.noconvert(), "l2"_a.noconvert(),
          "coef"_a.noconvert(), "intercept"_a, "options"_a);
}

template <class Array>
void define_truncated(nb::module_& m) {
    m.def("truncated", &truncated_dense<Array>, "loss"_a, "X"_a.noconvert(), "y"_a.noconvert(), "p"_a.noconvert(), "l2"_a.noconvert(),
          "coef"_a.noconvert(), "intercept"_a, "options"_a, "most"_a);
}

template <class T, class I>
void define_truncated_sparse(nb::module_& m) {
    m.def("truncated", &truncated_sparse<T, I>, "loss"_a, "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(), "d"_a,
          "y"_a.noconvert(), "p"_a.noconvert(), "l2"_a.noconvert(), "coef"_a.noconvert(), "intercept"_a, "options"_a, "most"_a);
}

}  // namespace

NB_MODULE(newton, m) {
    define_options(m);
    Matrix::define(m, "Matrix");
    m.def("minimize_columns", &minimize_columns, "loss"_a, "X"_a, "y"_a.noconvert(), "p"_a.noconvert(), "l1"_a.noconvert(), "l2"_a.noconvert(),
          "coef"_a.noconvert(), "intercept"_a, "options"_a);
    m.def("logistic_risk", &risk_of, "y"_a.noconvert(), "p"_a.noconvert(), "f"_a.noconvert());
    m.def("logistic_conjugate", &conjugate_of, "y"_a.noconvert(), "p"_a.noconvert(), "theta"_a.noconvert());
    m.def("logistic_slopes", &slopes_of, "y"_a.noconvert(), "f"_a.noconvert());
    for_dense([&]<class X>() { define_truncated<X>(m); });
    for_sparse([&]<class T, class I>() { define_truncated_sparse<T, I>(m); });
    define_packed<RowMajor<double>>(m);
    define_packed<ColumnMajor<double>>(m);
    for_dense([&]<class X>() { define<X>(m); });
}
