// certifit._native.bayes: counting by class.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "bayes/bayes.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace certifit::bayes;

namespace {

template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Output = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

[[noreturn]] void refuse(const char* message) { throw nb::value_error(message); }

template <class A>
void expect(const A& out, Index rows, Index columns) {
    if (static_cast<Index>(out.shape(0)) != rows || static_cast<Index>(out.shape(1)) != columns) refuse("an array has the wrong shape");
}

Labels checked(const Vector<std::int64_t>& group, const Vector<double>& weight, Index n, Index K, int threads) {
    if (static_cast<Index>(group.size()) != n || static_cast<Index>(weight.size()) != n) refuse("group and weight must have one entry for each row");
    if (threads < 1) refuse("threads must be at least 1");
    for (Index i = 0; i < n; ++i)
        if (group.data()[i] < 0 || group.data()[i] >= K) refuse("group must hold classes from 0");
    return {group.data(), weight.data(), n, K};
}

void check_offset(const Vector<std::int64_t>& offset, Index d, Index total) {
    if (static_cast<Index>(offset.size()) != d + 1 || offset.data()[0] != 0 || offset.data()[d] != total) refuse("offset must run from 0 to the number of categories");
    for (Index j = 0; j < d; ++j)
        if (offset.data()[j + 1] < offset.data()[j]) refuse("offset must not fall");
}

template <class T>
void run_moments(Matrix<T> X, Vector<std::int64_t> group, Vector<double> weight, Output held, Output mean, Output scatter, int threads) {
    const Index n = static_cast<Index>(X.shape(0)), d = static_cast<Index>(X.shape(1)), K = static_cast<Index>(held.shape(0));
    const Labels rows = checked(group, weight, n, K, threads);
    expect(held, K, d), expect(mean, K, d), expect(scatter, K, d);
    nb::gil_scoped_release release;
    moments(X.data(), d, rows, held.data(), mean.data(), scatter.data(), threads);
}

template <class T>
void run_gaussian(Matrix<T> X, Matrix<double> mean, Matrix<double> a, Matrix<double> c, Output out, int threads) {
    const Index n = static_cast<Index>(X.shape(0)), d = static_cast<Index>(X.shape(1)), K = static_cast<Index>(mean.shape(0));
    expect(mean, K, d), expect(a, K, d), expect(c, K, d), expect(out, n, K);
    if (threads < 1) refuse("threads must be at least 1");
    nb::gil_scoped_release release;
    gaussian(X.data(), n, d, K, mean.data(), a.data(), c.data(), out.data(), threads);
}

template <class T>
void run_count(Matrix<T> X, Vector<std::int64_t> group, Vector<double> weight, Vector<std::int64_t> offset, Output count, int threads) {
    const Index n = static_cast<Index>(X.shape(0)), d = static_cast<Index>(X.shape(1)), K = static_cast<Index>(count.shape(1));
    const Labels rows = checked(group, weight, n, K, threads);
    check_offset(offset, d, static_cast<Index>(count.shape(0)));
    nb::gil_scoped_release release;
    count_categories(X.data(), d, rows, offset.data(), count.data(), threads);
}

template <class T>
void run_look_up(Matrix<T> X, Vector<std::int64_t> offset, Matrix<double> table, Output out, int threads) {
    const Index n = static_cast<Index>(X.shape(0)), d = static_cast<Index>(X.shape(1)), K = static_cast<Index>(table.shape(1));
    check_offset(offset, d, static_cast<Index>(table.shape(0)));
    expect(out, n, K);
    if (threads < 1) refuse("threads must be at least 1");
    nb::gil_scoped_release release;
    look_up(X.data(), n, d, K, offset.data(), table.data(), out.data(), threads);
}

template <class T>
void define_numbers(nb::module_& m) {
    m.def("moments", &run_moments<T>, "X"_a.noconvert(), "group"_a.noconvert(), "weight"_a.noconvert(), "held"_a.noconvert(), "mean"_a.noconvert(),
          "scatter"_a.noconvert(), "threads"_a);
    m.def("gaussian", &run_gaussian<T>, "X"_a.noconvert(), "mean"_a.noconvert(), "a"_a.noconvert(), "c"_a.noconvert(), "out"_a.noconvert(), "threads"_a);
}

template <class T>
void define_codes(nb::module_& m) {
    m.def("count_categories", &run_count<T>, "X"_a.noconvert(), "group"_a.noconvert(), "weight"_a.noconvert(), "offset"_a.noconvert(), "count"_a.noconvert(),
          "threads"_a);
    m.def("look_up", &run_look_up<T>, "X"_a.noconvert(), "offset"_a.noconvert(), "table"_a.noconvert(), "out"_a.noconvert(), "threads"_a);
}

}  // namespace

NB_MODULE(bayes, m) {
    define_numbers<double>(m);
    define_numbers<float>(m);
    define_codes<double>(m);
    define_codes<float>(m);
    define_codes<std::int64_t>(m);
}
