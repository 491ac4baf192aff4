// certifit._native.ridge: ridge regression by conjugate gradients, and least squares of sparse rows by their sums.
#include <limits>

#include "core/boundary.hpp"
#include "core/boundary/layouts.hpp"
#include "products/told.hpp"
#include "ridge/conjugate.hpp"

using namespace certifit;
using namespace certifit::boundary;
using namespace certifit::ridge;

namespace {

template <class Rows>
nb::tuple iterate(const Rows& X, const Vector<double>& y, const Vector<double>& p, const Vector<double>& l2, const Asked& asked,
                  int threads) {
    if (X.n < 1 || X.d < 1) refuse("X is empty");
    expect_length(y, X.n, "y");
    expect_length(p, X.n, "p");
    expect_length(l2, X.d, "l2");
    for (Index j = 0; j < X.d; ++j)
        if (!(l2.data()[j] > 0.0)) refuse("l2 must be positive");
    Found found;
    with_team(threads, [&](Team& team) { found = Conjugate<Rows>(X, y.data(), p.data(), l2.data(), asked, team).run(); });
    return nb::make_tuple(boundary::array(std::move(found.coef)), found.intercept, found.objective, found.gap, found.products,
                          found.given_up);
}

template <class Array>
nb::tuple iterate_dense(const Array& X, Vector<double> y, Vector<double> p, Vector<double> l2, bool intercept, double tol,
                        double most, Index max_iter, int threads, double share) {
    using T = std::remove_const_t<typename Array::Scalar>;
    constexpr bool by_row = std::is_same_v<Array, RowMajor<T>>;
    const Table<T> view{X.data(), static_cast<Index>(X.shape(0)), static_cast<Index>(X.shape(1)), by_row};
    return iterate(view, y, p, l2, {intercept, tol, share, most, max_iter}, threads);
}

template <class T, class I>
CsrRows<T, I> checked(const Vector<T>& data, const Vector<I>& indices, const Vector<I>& indptr, Index d) {
    const Index n = check_compressed(data, indices, indptr, d, "column");
    return {data.data(), indices.data(), indptr.data(), n, d};
}

template <class T, class I>
nb::tuple iterate_sparse(Vector<T> data, Vector<I> indices, Vector<I> indptr, Index d, Vector<double> y, Vector<double> p,
                         Vector<double> l2, bool intercept, double tol, double most, Index max_iter, int threads, double share) {
    return iterate(checked(data, indices, indptr, d), y, p, l2, {intercept, tol, share, most, max_iter}, threads);
}

template <class T, class I>
nb::object run_gram(Vector<T> data, Vector<I> indices, Vector<I> indptr, Index d, Vector<double> p, int threads) {
    const auto X = checked(data, indices, indptr, d);
    expect_length(p, X.n, "p");
    expect_threads(threads);
    std::vector<double> out(d * d);
    {
        nb::gil_scoped_release release;
        products::gram(X, p.data(), out.data(), threads);
    }
    const auto size = static_cast<std::size_t>(d);
    return boundary::array(std::move(out), {size, size});
}

template <class T, class I>
nb::object run_pullback(Vector<T> data, Vector<I> indices, Vector<I> indptr, Index d, const RowMajor<double>& Q, int threads) {
    const auto X = checked(data, indices, indptr, d);
    if (static_cast<Index>(Q.shape(1)) != X.n) refuse("Q must have one column for each row of X");
    expect_threads(threads);
    std::vector<double> out(Q.shape(0) * d);
    {
        nb::gil_scoped_release release;
        products::pullback(X, Q.data(), static_cast<Index>(Q.shape(0)), out.data(), threads);
    }
    return boundary::array(std::move(out), {Q.shape(0), static_cast<std::size_t>(d)});
}

template <class T, class I>
nb::object run_residual(Vector<T> data, Vector<I> indices, Vector<I> indptr, Index d, Vector<double> y, Vector<double> p,
                        Vector<double> w, double b, int threads) {
    const auto X = checked(data, indices, indptr, d);
    expect_length(y, X.n, "y");
    expect_length(p, X.n, "p");
    expect_length(w, d, "w");
    expect_threads(threads);
    std::vector<double> out(d + 2);
    {
        nb::gil_scoped_release release;
        products::residual(X, y.data(), p.data(), w.data(), b, out.data(), threads);
    }
    return boundary::array(std::move(out));
}

template <class I>
nb::object run_squares(Vector<double> data, Vector<I> indices, Vector<I> indptr, Index d, Vector<double> y, Vector<double> p,
                       Vector<double> l2, bool intercept, int threads) {
    const auto X = checked(data, indices, indptr, d);
    if (X.n < 1 || d < 1) refuse("X is empty");
    expect_length(y, X.n, "y");
    const bool even = p.size() == 1;  // one weight for all rows
    if (!even) expect_length(p, X.n, "p");
    expect_length(l2, d, "l2");
    expect_threads(threads);
    products::Squares found;
    bool solved = false;
    {
        nb::gil_scoped_release release;
        solved = products::solve_squares(X, y.data(), p.data(), l2.data(), intercept, threads, found, even);
    }
    return solved ? products::told(std::move(found), d) : nb::none();
}

template <class Array>
void define_dense(nb::module_& m) {
    m.def("iterate", &iterate_dense<Array>, "X"_a.noconvert(), "y"_a.noconvert(), "p"_a.noconvert(), "l2"_a.noconvert(),
          "intercept"_a, "tol"_a, "most"_a, "max_iter"_a, "threads"_a, "share"_a = std::numeric_limits<double>::infinity());
}

template <class T, class I>
void define_sparse(nb::module_& m) {
    m.def("iterate", &iterate_sparse<T, I>, "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(), "d"_a,
          "y"_a.noconvert(), "p"_a.noconvert(), "l2"_a.noconvert(), "intercept"_a, "tol"_a, "most"_a, "max_iter"_a, "threads"_a,
          "share"_a = std::numeric_limits<double>::infinity());
    m.def("gram", &run_gram<T, I>, "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(), "d"_a,
          "p"_a.noconvert(), "threads"_a);
    m.def("pullback", &run_pullback<T, I>, "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(), "d"_a,
          "Q"_a.noconvert(), "threads"_a);
    m.def("residual", &run_residual<T, I>, "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(), "d"_a,
          "y"_a.noconvert(), "p"_a.noconvert(), "w"_a.noconvert(), "b"_a, "threads"_a);
}

template <class I>
void define_squares(nb::module_& m) {
    m.def("squares", &run_squares<I>, "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(), "d"_a,
          "y"_a.noconvert(), "p"_a.noconvert(), "l2"_a.noconvert(), "intercept"_a, "threads"_a);
}

}  // namespace

NB_MODULE(ridge, m) {
    for_dense([&]<class X>() { define_dense<X>(m); });
    for_sparse([&]<class T, class I>() { define_sparse<T, I>(m); });
    define_squares<std::int32_t>(m);
    define_squares<std::int64_t>(m);
}
