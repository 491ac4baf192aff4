// certifit._native.softmax: one pass of softmax regression over a dense matrix.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "softmax.hpp"

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
double run_evaluate(Matrix<T> X, Vector<std::int64_t> y, Vector<double> p, Matrix<double> W, Vector<double> b, Output f, Output pi,
                    Output sums, int threads) {
    const Index n = static_cast<Index>(X.shape(0)), d = static_cast<Index>(X.shape(1)), K = static_cast<Index>(W.shape(0));
    if (static_cast<Index>(y.size()) != n || static_cast<Index>(p.size()) != n) refuse("y and p must have one entry for each row of X");
    if (static_cast<Index>(W.shape(1)) != d || static_cast<Index>(b.size()) != K || K < 1) refuse("W must be classes × columns, b one for each class");
    if (threads < 1) refuse("threads must be at least 1");
    expect(f, K, n), expect(pi, K, n), expect(sums, K, d + 1);
    for (Index i = 0; i < n; ++i)
        if (y.data()[i] < 0 || y.data()[i] >= K) refuse("y must hold classes from 0");
    Found found{f.data(), pi.data(), sums.data(), 0.0};
    nb::gil_scoped_release release;
    evaluate(X.data(), d, {y.data(), p.data(), n, K}, W.data(), b.data(), found, threads);
    return found.value;
}

template <class T>
void define(nb::module_& m) {
    m.def("evaluate", &run_evaluate<T>, "X"_a.noconvert(), "y"_a.noconvert(), "p"_a.noconvert(), "W"_a.noconvert(), "b"_a.noconvert(),
          "f"_a.noconvert(), "pi"_a.noconvert(), "sums"_a.noconvert(), "threads"_a);
}

}  // namespace

NB_MODULE(softmax, m) {
    define<double>(m);
    define<float>(m);
}
