// certifit._native.products: passes over a dense matrix of many rows.
#include "core/boundary/layouts.hpp"
#include "core/boundary/row_matrix.hpp"
#include "products/equal.hpp"
#include "products/lanczos.hpp"
#include "products/order.hpp"
#include "products/products.hpp"
#include "products/told.hpp"
#include "products/sums.hpp"
#include "products/survey.hpp"
#include "products/twice.hpp"

using certifit::Index;
using namespace certifit::boundary;
using namespace certifit::products;

namespace {

template <class T>
Table<T> table(const RowMajor<T>& X) {
    return {X.data(), static_cast<Index>(X.shape(0)), static_cast<Index>(X.shape(1)), true};
}

template <class T>
Table<T> table(const ColumnMajor<T>& X) {
    return {X.data(), static_cast<Index>(X.shape(0)), static_cast<Index>(X.shape(1)), false};
}

// An array of NumPy that owns its numbers; they are not set to zero first.
struct Owned {
    double* data;
    nb::capsule owner;
    explicit Owned(Index size)
        : data(new double[static_cast<std::size_t>(size)]),
          owner(data, [](void* p) noexcept { delete[] static_cast<double*>(p); }) {}
    nb::object vector(Index n) const {
        return nb::cast(nb::ndarray<nb::numpy, double, nb::ndim<1>>(data, {static_cast<std::size_t>(n)}, owner));
    }
    nb::object matrix(Index n, Index d) const {
        return nb::cast(nb::ndarray<nb::numpy, double, nb::ndim<2>>(
            data, {static_cast<std::size_t>(n), static_cast<std::size_t>(d)}, owner));
    }
};

template <class Array>
nb::object run_scores(const Array& X, const Vector<double>& w, double b, int threads) {
    const auto view = table(X);
    expect_length(w, view.d, "w");
    expect_threads(threads);
    Owned out(view.n);
    {
        nb::gil_scoped_release release;
        scores(view, w.data(), b, out.data, threads);
    }
    return out.vector(view.n);
}

template <class Array>
nb::object run_pullback(const Array& X, const RowMajor<double>& Q, int threads) {
    const auto view = table(X);
    if (static_cast<Index>(Q.shape(1)) != view.n) refuse("Q must have one column for each row of X");
    expect_threads(threads);
    const Index k = static_cast<Index>(Q.shape(0));
    Owned out(k * view.d);
    {
        nb::gil_scoped_release release;
        pullback(view, Q.data(), k, out.data, threads);
    }
    return out.matrix(k, view.d);
}

template <class Array>
nb::object run_residual(const Array& X, const Vector<double>& y, const Vector<double>& p, const Vector<double>& w, double b, int threads) {
    const auto view = table(X);
    expect_length(y, view.n, "y");
    expect_length(p, view.n, "p");
    expect_length(w, view.d, "w");
    expect_threads(threads);
    Owned out(view.d + 2);
    {
        nb::gil_scoped_release release;
        residual(view, y.data(), p.data(), w.data(), b, out.data, threads);
    }
    return out.vector(view.d + 2);
}

template <class Array>
nb::object run_residual_twice(const Array& X, const Vector<double>& y, const Vector<double>& p, const Vector<double>& w, double b, int threads) {
    const auto view = table(X);
    expect_length(y, view.n, "y");
    expect_length(p, view.n, "p");
    expect_length(w, view.d, "w");
    expect_threads(threads);
    const Twice found = without_gil([&] { return residual_twice(view, y.data(), p.data(), w.data(), b, false, threads); });
    Owned out(2 * view.d + 3);  // g, what rounding left of it, Σ p r with its rest, Σ p r²
    std::copy_n(found.high.begin(), view.d, out.data);
    std::copy_n(found.low.begin(), view.d, out.data + view.d);
    out.data[2 * view.d] = found.high.back(), out.data[2 * view.d + 1] = found.low.back(), out.data[2 * view.d + 2] = found.energy;
    return out.vector(2 * view.d + 3);
}

template <class Array>
nb::tuple run_logistic(const Array& X, const Vector<double>& y, const Vector<double>& p, const Vector<double>& w, double b, int threads) {
    const auto view = table(X);
    expect_length(y, view.n, "y");
    expect_length(p, view.n, "p");
    expect_length(w, view.d, "w");
    expect_threads(threads);
    Owned f(view.n), theta(view.n), h(view.n), out(view.d + 1);
    {
        nb::gil_scoped_release release;
        logistic(view, y.data(), p.data(), w.data(), b, f.data, theta.data, h.data, out.data, threads);
    }
    return nb::make_tuple(f.vector(view.n), theta.vector(view.n), h.vector(view.n), out.vector(view.d + 1));
}

template <class Array>
nb::object run_gram(const Array& X, const Vector<double>& h, bool ones, int threads) {
    const auto view = table(X);
    expect_length(h, view.n, "h");
    expect_threads(threads);
    const Index m = view.d + (ones ? 1 : 0);
    Owned out(m * m);
    {
        nb::gil_scoped_release release;
        WeightedGram(view, h.data(), ones).run(out.data, threads);
    }
    return out.matrix(m, m);
}

template <class Array>
nb::object run_sums(const Array& X, const Vector<double>& y, const Vector<double>& p, int threads) {
    const Table<double> view = table(X);
    if (view.n < 1) refuse("X has no rows");
    expect_length(y, view.n, "y");
    expect_length(p, view.n, "p");
    expect_threads(threads);
    const Index m = view.d + 2;
    Owned out(m * m);
    {
        nb::gil_scoped_release release;
        const std::vector<double> found = Sums(view, y.data(), p.data()).run(threads);
        for (Index j = 0; j < m; ++j)
            for (Index k = 0; k <= j; ++k) out.data[j * m + k] = out.data[k * m + j] = found[j * m + k];
    }
    return out.matrix(m, m);
}

template <class Array>
nb::object run_squares(const Array& X, const Vector<double>& y, const Vector<double>& p, const Vector<double>& l2, bool intercept,
                       int threads, double bearable) {
    const Table<double> view = table(X);
    if (view.n < 1 || view.d < 1) refuse("X is empty");
    expect_length(y, view.n, "y");
    const bool even = p.size() == 1;  // one weight for all rows
    if (!even) expect_length(p, view.n, "p");
    expect_length(l2, view.d, "l2");
    expect_threads(threads);
    Squares found;
    bool solved = false;
    {
        nb::gil_scoped_release release;
        solved = solve_squares(view, y.data(), p.data(), l2.data(), intercept, threads, found, even, bearable);
    }
    return solved ? told(std::move(found), view.d) : nb::none();
}

// Means and Σ (x − mean)² of the columns over every `step`-th row, as two rows.
template <class Array>
nb::object run_moments(const Array& X, Index step) {
    const auto view = table(X);
    if (view.n < 1 || view.d < 1 || step < 1) refuse("there is nothing to look at");
    Owned out(2 * view.d);
    moments(view, step, out.data, out.data + view.d);
    return out.matrix(2, view.d);
}

nb::tuple run_judged(const RowMajor<double>& moments, double count, double offset) {
    if (moments.shape(0) != 2) refuse("moments must have two rows");
    const auto d = static_cast<Index>(moments.shape(1));
    const Judged found = judged(moments.data(), moments.data() + d, d, count, offset);
    nb::list far;
    for (Index j : found.far) far.append(j);
    return nb::make_tuple(found.energy, far);
}

template <class Array>
nb::tuple run_reach(const Array& X, Index step, const RowMajor<double>& W, const Vector<double>& b) {
    const auto view = table(X);
    if (static_cast<Index>(W.shape(1)) != view.d || step < 1) refuse("W must have one column for each column of X");
    expect_length(b, W.shape(0), "b");
    const Reach found = reach(view, step, W.data(), b.data(), static_cast<Index>(W.shape(0)));
    return nb::make_tuple(found.far, found.high - found.low);
}

template <class Array>
nb::object run_codes(const Array& X) {
    const auto view = table(X);
    auto* data = new std::uint64_t[static_cast<std::size_t>(view.n)];
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<std::uint64_t*>(p); });
    {
        nb::gil_scoped_release release;
        codes(view, data);
    }
    return nb::cast(nb::ndarray<nb::numpy, std::uint64_t, nb::ndim<1>>(data, {static_cast<std::size_t>(view.n)}, owner));
}

// The rows that differ from all before them, and which of those each row is; None where copies are few.
nb::object run_copies(const RowMatrix& X, const Vector<double>& y) {
    expect_length(y, static_cast<std::size_t>(X.rows()), "y");
    return std::visit(
        [&](const auto& view) -> nb::object {
            Copies copies(view, y.data());
            std::vector<Index> which = without_gil([&] { return copies.found(); });
            if (which.empty()) return nb::none();
            return nb::make_tuple(array(std::move(copies.first)), array(std::move(which)));
        },
        X.view);
}

// Whether the indices climb within every row of a CSR matrix, or column of a CSC matrix, whose pointers are sound.
template <class I>
bool run_climbs(const Vector<I>& indices, const Vector<I>& indptr) {
    const Index stored = static_cast<Index>(indices.size()), n = static_cast<Index>(indptr.size()) - 1;
    const I *column = indices.data(), *start = indptr.data();
    nb::gil_scoped_release release;
    for (Index i = 0; i < n; ++i) {
        if (start[i] < 0 || static_cast<Index>(start[i + 1]) > stored) return false;
        for (Index k = static_cast<Index>(start[i]) + 1; k < static_cast<Index>(start[i + 1]); ++k)
            if (!(column[k - 1] < column[k])) return false;
    }
    return true;
}

// Into an array of the caller's: NumPy asks for large pages, without which getting the memory takes longer than the copy.
template <class T>
void run_by_column(const RowMajor<T>& X, nb::ndarray<T, nb::ndim<2>, nb::f_contig, nb::device::cpu> out, int threads) {
    const Index n = static_cast<Index>(X.shape(0)), d = static_cast<Index>(X.shape(1));
    if (static_cast<Index>(out.shape(0)) != n || static_cast<Index>(out.shape(1)) != d) refuse("out must have the shape of X");
    expect_threads(threads);
    nb::gil_scoped_release release;
    by_column(X.data(), n, d, out.data(), threads);
}

template <class T>
double run_energy(const Vector<T>& x, int threads) {
    expect_threads(threads);
    nb::gil_scoped_release release;
    return energy(x.data(), static_cast<Index>(x.size()), threads);
}

using Rows = nb::ndarray<double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

void run_lanczos(const RowMajor<double>& K, const RowMajor<double>& root, const RowMajor<double>& constant, Rows basis, OutputRows<double> diagonal,
                 OutputRows<double> below, Index from, Index to, int threads) {
    const std::size_t n = K.shape(0), starts = root.shape(0), room = diagonal.shape(1);
    if (K.shape(1) != n) refuse("K must be square");
    if (root.shape(1) != n || constant.shape(0) != starts || constant.shape(1) != n) refuse("root and constant must have a row for each start");
    if (basis.shape(0) != starts || basis.shape(1) != room || basis.shape(2) != n) refuse("basis must have room for the vectors of each start");
    if (diagonal.shape(0) != starts || below.shape(0) != starts || below.shape(1) != room) refuse("diagonal and below must have a row for each start");
    if (from < 0 || to < from || to >= static_cast<Index>(room)) refuse("there is no room for so many vectors");
    const Lanczos process{K.data(), static_cast<Index>(n), static_cast<Index>(starts), static_cast<Index>(room), root.data(), constant.data(),
                          basis.data(), diagonal.data(), below.data()};
    certifit::boundary::with_team(threads, [&](certifit::Team& team) { process.run(from, to, team); });
}

template <class Array>
void define(nb::module_& m) {
    m.def("scores", &run_scores<Array>, "X"_a.noconvert(), "w"_a.noconvert(), "b"_a, "threads"_a);
    m.def("pullback", &run_pullback<Array>, "X"_a.noconvert(), "Q"_a.noconvert(), "threads"_a);
    m.def("residual", &run_residual<Array>, "X"_a.noconvert(), "y"_a.noconvert(), "p"_a.noconvert(),
          "w"_a.noconvert(), "b"_a, "threads"_a);
    m.def("logistic", &run_logistic<Array>, "X"_a.noconvert(), "y"_a.noconvert(), "p"_a.noconvert(),
          "w"_a.noconvert(), "b"_a, "threads"_a);
    m.def("gram", &run_gram<Array>, "X"_a.noconvert(), "h"_a.noconvert(), "ones"_a, "threads"_a);
    m.def("codes", &run_codes<Array>, "X"_a.noconvert());
    m.def("moments", &run_moments<Array>, "X"_a.noconvert(), "step"_a);
    m.def("reach", &run_reach<Array>, "X"_a.noconvert(), "step"_a, "W"_a.noconvert(), "b"_a.noconvert());
}

template <class Array>
void define_twice(nb::module_& m) {
    m.def("residual_twice", &run_residual_twice<Array>, "X"_a.noconvert(), "y"_a.noconvert(), "p"_a.noconvert(), "w"_a.noconvert(), "b"_a,
          "threads"_a);
}

}  // namespace

NB_MODULE(products, m) {
    for_dense([&]<class X>() { define<X>(m); });
    define_twice<RowMajor<double>>(m);
    define_twice<ColumnMajor<double>>(m);
    RowMatrix::define(m, "RowMatrix");
    m.def("climbs", &run_climbs<std::int32_t>, "indices"_a.noconvert(), "indptr"_a.noconvert());
    m.def("climbs", &run_climbs<std::int64_t>, "indices"_a.noconvert(), "indptr"_a.noconvert());
    m.def("copies", &run_copies, "X"_a, "y"_a.noconvert());
    m.def("sums", &run_sums<RowMajor<double>>, "X"_a.noconvert(), "y"_a.noconvert(), "p"_a.noconvert(), "threads"_a);
    m.def("sums", &run_sums<ColumnMajor<double>>, "X"_a.noconvert(), "y"_a.noconvert(), "p"_a.noconvert(), "threads"_a);
    m.def("squares", &run_squares<RowMajor<double>>, "X"_a.noconvert(), "y"_a.noconvert(), "p"_a.noconvert(), "l2"_a.noconvert(),
          "intercept"_a, "threads"_a, "bearable"_a);
    m.def("squares", &run_squares<ColumnMajor<double>>, "X"_a.noconvert(), "y"_a.noconvert(), "p"_a.noconvert(), "l2"_a.noconvert(),
          "intercept"_a, "threads"_a, "bearable"_a);
    m.def("judged", &run_judged, "moments"_a.noconvert(), "count"_a, "offset"_a);
    m.def("by_column", &run_by_column<double>, "X"_a.noconvert(), "out"_a.noconvert(), "threads"_a);
    m.def("by_column", &run_by_column<float>, "X"_a.noconvert(), "out"_a.noconvert(), "threads"_a);
    m.def("lanczos", &run_lanczos, "K"_a.noconvert(), "root"_a.noconvert(), "constant"_a.noconvert(), "basis"_a.noconvert(),
          "diagonal"_a.noconvert(), "below"_a.noconvert(), "begin"_a, "end"_a, "threads"_a);
    m.def("energy", &run_energy<double>, "x"_a.noconvert(), "threads"_a);
    m.def("energy", &run_energy<float>, "x"_a.noconvert(), "threads"_a);
}
