// certifit._native.softmax: one pass of softmax regression over a dense matrix.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "softmax/softmax.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace certifit::softmax;

namespace {

template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Output = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

[[noreturn]] void refuse(const char* message) { throw nb::value_error(message); }

void expect(const Output& out, Index rows, Index columns) {
    if (static_cast<Index>(out.shape(0)) != rows || static_cast<Index>(out.shape(1)) != columns) refuse("an output has the wrong shape");
}

template <class T>
Rows checked(const Matrix<T>& X, const Vector<std::int64_t>& y, const Vector<double>& p, Index K, const Output& sums, int threads) {
    const Index n = static_cast<Index>(X.shape(0)), d = static_cast<Index>(X.shape(1));
    if (static_cast<Index>(y.size()) != n || static_cast<Index>(p.size()) != n) refuse("y and p must have one entry for each row of X");
    if (K < 1) refuse("there must be a class");
    if (threads < 1) refuse("threads must be at least 1");
    expect(sums, K, d + 1);
    for (Index i = 0; i < n; ++i)
        if (y.data()[i] < 0 || y.data()[i] >= K) refuse("y must hold classes from 0");
    return {y.data(), p.data(), n, K};
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

template <class T>
void define(nb::module_& m) {
    m.def("evaluate", &run_evaluate<T>, "X"_a.noconvert(), "y"_a.noconvert(), "p"_a.noconvert(), "W"_a.noconvert(), "b"_a.noconvert(),
          "f"_a.noconvert(), "pi"_a.noconvert(), "sums"_a.noconvert(), "threads"_a);
    m.def("dual", &run_dual<T>, "X"_a.noconvert(), "y"_a.noconvert(), "p"_a.noconvert(), "pi"_a.noconvert(), "shift"_a.noconvert(),
          "sums"_a.noconvert(), "threads"_a);
}

}  // namespace

NB_MODULE(softmax, m) {
    define<double>(m);
    define<float>(m);
}
