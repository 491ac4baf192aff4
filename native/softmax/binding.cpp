// certifit._native.softmax: one pass of softmax regression over a dense matrix, and as many as a descent takes.
#include "core/boundary/options.hpp"
#include "softmax/descent.hpp"
#include "softmax/truncated.hpp"

using namespace certifit::boundary;
using certifit::Index;
using certifit::Options;
using namespace certifit::softmax;

namespace {

template <class T>
using Matrix = RowMajor<T>;
using Output = OutputRows<double>;

void expect(const Output& out, Index rows, Index columns) {
    if (static_cast<Index>(out.shape(0)) != rows || static_cast<Index>(out.shape(1)) != columns) refuse("an output has the wrong shape");
}

template <class T>
Rows checked(const Matrix<T>& X, const Vector<std::int64_t>& y, const Vector<double>& p, Index K) {
    const Index n = static_cast<Index>(X.shape(0));
    if (static_cast<Index>(y.size()) != n || static_cast<Index>(p.size()) != n) refuse("y and p must have one entry for each row of X");
    if (K < 1) refuse("there must be a class");
    for (Index i = 0; i < n; ++i)
        if (y.data()[i] < 0 || y.data()[i] >= K) refuse("y must hold classes from 0");
    return {y.data(), p.data(), n, K};
}

template <class T>
Rows checked(const Matrix<T>& X, const Vector<std::int64_t>& y, const Vector<double>& p, Index K, const Output& sums, int threads) {
    expect_threads(threads);
    expect(sums, K, static_cast<Index>(X.shape(1)) + 1);
    return checked(X, y, p, K);
}

template <class T>
double run_evaluate(Matrix<T> X, Vector<std::int64_t> y, Vector<double> p, Matrix<double> W, Vector<double> b, Output f, Output pi,
                    Output sums, int threads) {
    const Index d = static_cast<Index>(X.shape(1)), K = static_cast<Index>(W.shape(0));
    const Rows rows = checked(X, y, p, K, sums, threads);
    if (static_cast<Index>(W.shape(1)) != d || static_cast<Index>(b.size()) != K) refuse("W must be classes × columns, b one for each class");
    expect(f, K, rows.n), expect(pi, K, rows.n);
    nb::gil_scoped_release release;
    return evaluate(X.data(), d, rows, W.data(), b.data(), f.data(), pi.data(), sums.data(), threads);
}

// The negative entropy, and whether the point is in the domain.
template <class T>
nb::tuple run_dual(Matrix<T> X, Vector<std::int64_t> y, Vector<double> p, Matrix<double> pi, Vector<double> shift, Output sums, int threads) {
    const Index K = static_cast<Index>(pi.shape(0));
    const Rows rows = checked(X, y, p, K, sums, threads);
    if (static_cast<Index>(pi.shape(1)) != rows.n || static_cast<Index>(shift.size()) != K) refuse("pi must be classes × rows, shift one for each class");
    double extra[2];
    {
        nb::gil_scoped_release release;
        dual(X.data(), static_cast<Index>(X.shape(1)), rows, pi.data(), shift.data(), sums.data(), extra, threads);
    }
    return nb::make_tuple(extra[0], extra[1] == 0.0);
}

void expect_penalties(const Vector<double>& l2, Index d) {
    expect_length(l2, static_cast<std::size_t>(d), "l2");
    for (Index j = 0; j < d; ++j)
        if (!(l2.data()[j] > 0)) refuse("every column needs a penalty");
}

using Cube = nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

// An inverse as it is held here: its arrays live as long as it does.
struct HeldInverse {
    Matrix<double> vectors;
    Vector<std::int64_t> which;
    Cube matrices;
    Matrix<double> diagonal, factor;
    Vector<double> unit;

    Inverse view(Index K, Index D) const {
        if (factor.is_valid()) {
            if (static_cast<Index>(factor.shape(0)) != K * D || static_cast<Index>(factor.shape(1)) != K * D) refuse("factor must be square, of all coefficients");
            expect_length(unit, static_cast<std::size_t>(K * D), "unit");
            return {.factor = factor.data(), .unit = unit.data()};
        }
        if (diagonal.is_valid()) {
            if (static_cast<Index>(diagonal.shape(0)) != K || static_cast<Index>(diagonal.shape(1)) != D) refuse("the diagonal must be classes × columns");
            return {.diagonal = diagonal.data()};
        }
        if (static_cast<Index>(vectors.shape(0)) != K || static_cast<Index>(vectors.shape(1)) != K) refuse("vectors must be classes × classes");
        expect_length(which, static_cast<std::size_t>(K), "which");
        if (static_cast<Index>(matrices.shape(1)) != D || static_cast<Index>(matrices.shape(2)) != D) refuse("matrices must be columns × columns");
        for (Index k = 0; k < K; ++k)
            if (which.data()[k] < 0 || which.data()[k] >= static_cast<std::int64_t>(matrices.shape(0))) refuse("which must number the matrices");
        return {vectors.data(), which.data(), matrices.data()};
    }
};

// (x, objective, bound, iterations)
template <class T>
nb::tuple run_descent(Matrix<T> X, Vector<std::int64_t> y, Vector<double> p, Vector<double> l2, Matrix<double> start, const HeldInverse& held,
                      const Options& options, Index patience, double step, Index least) {
    const Index d = static_cast<Index>(X.shape(1)), K = static_cast<Index>(start.shape(0)), D = d + options.intercept;
    const Rows rows = checked(X, y, p, K);
    if (static_cast<Index>(start.shape(1)) != D) refuse("start must be classes × columns");
    expect_penalties(l2, d);
    if (least < 1) refuse("least must be at least 1");
    const Inverse inverse = held.view(K, D);
    Found found = without_gil([&] {
        return Descent<T>(X.data(), d, rows, l2.data(), inverse, options, Course{patience, step, least}).solve(start.data());
    });
    return nb::make_tuple(array(std::move(found.x), {static_cast<std::size_t>(K), static_cast<std::size_t>(D)}), found.objective, found.bound,
                          found.iterations);
}

// The same by Newton's steps, with at most so many products with the Hessian.
template <class T>
nb::tuple run_truncated(Matrix<T> X, Vector<std::int64_t> y, Vector<double> p, Vector<double> l2, Matrix<double> start, const Options& options,
                        double most) {
    const Index d = static_cast<Index>(X.shape(1)), K = static_cast<Index>(start.shape(0)), D = d + options.intercept;
    const Rows rows = checked(X, y, p, K);
    if (static_cast<Index>(start.shape(1)) != D) refuse("start must be classes × columns");
    expect_penalties(l2, d);
    Found found = without_gil([&] { return Truncated<T>(X.data(), d, rows, l2.data(), options, most).solve(start.data()); });
    return nb::make_tuple(array(std::move(found.x), {static_cast<std::size_t>(K), static_cast<std::size_t>(D)}), found.objective, found.bound,
                          found.iterations);
}

template <class T>
void define(nb::module_& m) {
    m.def("descend", &run_descent<T>, "X"_a.noconvert(), "y"_a.noconvert(), "p"_a.noconvert(), "l2"_a.noconvert(), "start"_a.noconvert(), "inverse"_a,
          "options"_a, "patience"_a, "step"_a, "least"_a);
    m.def("truncated", &run_truncated<T>, "X"_a.noconvert(), "y"_a.noconvert(), "p"_a.noconvert(), "l2"_a.noconvert(), "start"_a.noconvert(),
          "options"_a, "most"_a);
    m.def("evaluate", &run_evaluate<T>, "X"_a.noconvert(), "y"_a.noconvert(), "p"_a.noconvert(), "W"_a.noconvert(), "b"_a.noconvert(),
          "f"_a.noconvert(), "pi"_a.noconvert(), "sums"_a.noconvert(), "threads"_a);
    m.def("dual", &run_dual<T>, "X"_a.noconvert(), "y"_a.noconvert(), "p"_a.noconvert(), "pi"_a.noconvert(), "shift"_a.noconvert(),
          "sums"_a.noconvert(), "threads"_a);
}

}  // namespace

NB_MODULE(softmax, m) {
    define_options(m);
    nb::class_<HeldInverse>(m, "Inverse")
        .def("__init__", [](HeldInverse* self, Matrix<double> diagonal) { new (self) HeldInverse{{}, {}, {}, std::move(diagonal), {}, {}}; },
             "diagonal"_a.noconvert())
        .def("__init__",
             [](HeldInverse* self, Matrix<double> factor, Vector<double> unit) {
                 new (self) HeldInverse{{}, {}, {}, {}, std::move(factor), std::move(unit)};
             },
             "factor"_a.noconvert(), "unit"_a.noconvert())
        .def("__init__",
             [](HeldInverse* self, Matrix<double> vectors, Vector<std::int64_t> which, Cube matrices) {
                 new (self) HeldInverse{std::move(vectors), std::move(which), std::move(matrices), {}, {}, {}};
             },
             "vectors"_a.noconvert(), "which"_a.noconvert(), "matrices"_a.noconvert());
    define<double>(m);
    define<float>(m);
}
