// certifit._native.interior_point: piecewise linear losses with an L2 penalty and few columns.
#include <cmath>

#include "core/boundary/options.hpp"
#include "core/boundary/row_matrix.hpp"
#include "interior_point/ridge.hpp"
#include "interior_point/tall.hpp"

using namespace certifit::boundary;
using certifit::Index;
using certifit::Options;
using namespace certifit::interior;
namespace dual = certifit::dual;

namespace {

struct LossArrays {
    Vector<double> lower, upper, slope_low, slope_high, p;

    LossArrays(Vector<double> lower_, Vector<double> upper_, Vector<double> slope_low_, Vector<double> slope_high_, Vector<double> p_)
        : lower(lower_), upper(upper_), slope_low(slope_low_), slope_high(slope_high_), p(p_) {
        const Index n = static_cast<Index>(lower.size());
        expect_length(upper, n, "upper");
        expect_length(slope_low, n, "slope_low");
        expect_length(slope_high, n, "slope_high");
        expect_length(p, n, "p");
    }
    dual::Terms view() const { return {lower.data(), upper.data(), slope_low.data(), slope_high.data(), p.data(), 0.0}; }
};

// (coef, intercept, theta, objective, bound, iterations, exact); None where there is no solution.
nb::object told(Found found) {
    if (found.w.empty()) return nb::none();
    return nb::make_tuple(array(std::move(found.w)), found.intercept, array(std::move(found.theta)), found.objective, found.bound, found.iterations,
                          found.exact);
}

// None where the problem is not one for this method.
template <class T>
nb::object ridge(const AnyLayout<T>& X, const LossArrays& loss, const Vector<double>& l2, const Options& options) {
    const Index n = static_cast<Index>(X.shape(0)), d = static_cast<Index>(X.shape(1));
    expect_length(loss.p, static_cast<std::size_t>(n), "the loss");
    expect_length(l2, static_cast<std::size_t>(d), "l2");
    const std::int64_t down = X.stride(0), right = X.stride(1);
    const T* data = X.data();
    const auto fill = [&](double* out) {
        for (Index i = 0; i < n; ++i)
            for (Index j = 0; j < d; ++j) out[j * n + i] = static_cast<double>(data[i * down + j * right]);
    };
    bool suited = false;
    Found found = without_gil([&] {
        Ridge solver(fill, n, d, loss.view(), l2.data(), options);
        suited = solver.suited();
        return suited ? solver.solve() : Found();
    });
    return suited ? told(std::move(found)) : nb::none();
}

// The same of rows that are many times the columns.
nb::object tall(const RowMatrix& X, const LossArrays& loss, const Vector<double>& l2, const Options& options) {
    const Index n = X.rows(), d = X.columns();
    expect_length(loss.p, static_cast<std::size_t>(n), "the loss");
    expect_length(l2, static_cast<std::size_t>(d), "l2");
    if (n == 0 || d == 0) return nb::none();
    return told(std::visit(
        [&](const auto& view) { return without_gil([&] { return Tall(view, loss.view(), l2.data(), options).solve(); }); }, X.view));
}

}  // namespace

NB_MODULE(interior_point, m) {
    nb::class_<LossArrays>(m, "Loss")
        .def(nb::init<Vector<double>, Vector<double>, Vector<double>, Vector<double>, Vector<double>>(), "lower"_a.noconvert(), "upper"_a.noconvert(),
             "slope_low"_a.noconvert(), "slope_high"_a.noconvert(), "p"_a.noconvert());
    define_options(m);
    m.def("ridge", &ridge<double>, "X"_a.noconvert(), "loss"_a, "l2"_a.noconvert(), "options"_a);
    m.def("ridge", &ridge<float>, "X"_a.noconvert(), "loss"_a, "l2"_a.noconvert(), "options"_a);
    RowMatrix::define(m, "RowMatrix");
    m.def("tall", &tall, "X"_a, "loss"_a, "l2"_a.noconvert(), "options"_a);
}
