// certifit._native.dual: dual coordinate descent for support vector machines, and Pegasos.
#include <cmath>
#include <vector>

#include "core/boundary/row_matrix.hpp"
#include "dual/hinge.hpp"
#include "dual/multiclass.hpp"
#include "dual/pegasos.hpp"

using namespace certifit;
using namespace certifit::boundary;
using namespace certifit::dual;

namespace {

using Buffer = Output<double>;

void expect_weights(const Vector<double>& p, Index n) {
    expect_length(p, n, "p");
    for (Index i = 0; i < n; ++i)
        if (!(p.data()[i] >= 0) || !(p.data()[i] < kInfinity)) refuse("p must be finite and not negative");
}

Options make_options(double alpha, double constant, double tolerance, Index max_iter, std::uint64_t seed, bool hopeful) {
    if (!(alpha > 0) || !std::isfinite(alpha)) refuse("alpha must be positive and finite");
    if (!(constant >= 0) || !std::isfinite(constant)) refuse("constant must be finite and not negative");
    if (!(tolerance >= 0)) refuse("tolerance must not be negative");
    if (max_iter < 1) refuse("max_iter must be at least 1");
    return {alpha, constant, tolerance, max_iter, seed, hopeful};
}

struct LossArrays {
    Vector<double> lower, upper, slope_low, slope_high, p;
    double curvature;

    LossArrays(Vector<double> lower_, Vector<double> upper_, Vector<double> slope_low_, Vector<double> slope_high_,
               Vector<double> p_, double curvature_)
        : lower(lower_), upper(upper_), slope_low(slope_low_), slope_high(slope_high_), p(p_), curvature(curvature_) {
        const Index n = static_cast<Index>(lower.size());
        expect_length(upper, n, "upper");
        expect_length(slope_low, n, "slope_low");
        expect_length(slope_high, n, "slope_high");
        expect_weights(p, n);
        if (!(curvature >= 0) || !std::isfinite(curvature)) refuse("curvature must be finite and not negative");
        for (Index i = 0; i < n; ++i) {
            if (!(lower.data()[i] <= upper.data()[i])) refuse("lower must not exceed upper");
            if (!(slope_low.data()[i] >= 0) || !(slope_high.data()[i] >= 0)) refuse("slopes must not be negative");
        }
    }
    Terms view() const {
        return {lower.data(), upper.data(), slope_low.data(), slope_high.data(), p.data(), curvature};
    }
};

nb::tuple hinge(const RowMatrix& X, const LossArrays& loss, Vector<double> theta, double centre, const Options& options) {
    const Index n = X.rows();
    expect_length(loss.p, n, "the loss");
    expect_length(theta, n, "theta");
    if (!std::isfinite(centre)) refuse("centre must be finite");
    for (Index i = 0; i < n; ++i)
        if (!(theta.data()[i] >= -loss.slope_low.data()[i] && theta.data()[i] <= loss.slope_high.data()[i]))
            refuse("theta must lie between -slope_low and slope_high");
    return std::visit(
        [&](const auto& view) {
            std::vector<double> w, dual(theta.data(), theta.data() + n);
            const Result result = without_gil([&] {
                HingeDual solver(view, loss.view(), options, std::move(dual), centre);
                const Result found = solver.solve();
                w = std::move(solver.w);
                dual = std::move(solver.theta);
                return found;
            });
            return nb::make_tuple(array(std::move(w)), result.intercept, array(std::move(dual)), result.objective,
                                  result.bound, result.iterations);
        },
        X.view);
}

nb::tuple multiclass(const RowMatrix& X, Vector<std::int64_t> label, Vector<double> p, RowMajor<double> delta,
                     const Options& options) {
    const Index n = X.rows(), K = static_cast<Index>(delta.shape(0));
    expect_length(label, n, "label");
    expect_weights(p, n);
    if (K < 1 || static_cast<Index>(delta.shape(1)) != K) refuse("delta must be square");
    for (Index k = 0; k < K * K; ++k)
        if (!(delta.data()[k] >= 0) || !std::isfinite(delta.data()[k])) refuse("delta must be finite and not negative");
    std::vector<Index> codes(n);
    for (Index i = 0; i < n; ++i) {
        if (label.data()[i] < 0 || label.data()[i] >= K) refuse("a label is out of bounds");
        codes[i] = static_cast<Index>(label.data()[i]);
    }
    return std::visit(
        [&](const auto& view) {
            std::vector<double> W, b, beta;
            const Result result = without_gil([&] {
                MulticlassDual solver(view, codes.data(), p.data(), delta.data(), K, options);
                const Result found = solver.solve();
                W = std::move(solver.W), b = std::move(solver.intercept), beta = std::move(solver.beta);
                return found;
            });
            return nb::make_tuple(array(std::move(W)), array(std::move(b)), array(std::move(beta)), result.objective,
                                  result.bound, result.iterations);
        },
        X.view);
}

// V, U, count and early are updated in place; returns the steps taken, the harmonic number and the intercept.
nb::tuple pegasos_steps(const RowMatrix& X, Vector<double> sign, Vector<std::int64_t> draws, double alpha, bool intercept,
                        Buffer V, Buffer U, Buffer count, Buffer early, nb::tuple position) {
    const Index n = X.rows(), d = X.columns();
    expect_length(sign, n, "sign");
    expect_length(V, d, "V");
    expect_length(U, d, "U");
    expect_length(count, n, "count");
    expect_length(early, n, "early");
    if (!(alpha > 0) || !std::isfinite(alpha)) refuse("alpha must be positive and finite");
    if (position.size() != 3) refuse("position must be (steps, harmonic, intercept)");
    std::vector<Index> order(draws.size());
    for (std::size_t k = 0; k < draws.size(); ++k) {
        if (draws.data()[k] < 0 || draws.data()[k] >= n) refuse("a draw is out of bounds");
        order[k] = static_cast<Index>(draws.data()[k]);
    }
    PegasosState state{{V.data(), V.size()},
                       {U.data(), U.size()},
                       {count.data(), count.size()},
                       {early.data(), early.size()},
                       nb::cast<double>(position[0]),
                       nb::cast<double>(position[1]),
                       nb::cast<double>(position[2])};
    std::visit(
        [&](const auto& view) {
            without_gil([&] {
                pegasos(view, sign.data(), std::span<const Index>(order), alpha, intercept, state);
                return 0;
            });
        },
        X.view);
    return nb::make_tuple(state.steps, state.harmonic, state.intercept);
}

}  // namespace

NB_MODULE(dual, m) {
    RowMatrix::define(m, "RowMatrix");
    nb::class_<LossArrays>(m, "Loss")
        .def(nb::init<Vector<double>, Vector<double>, Vector<double>, Vector<double>, Vector<double>, double>(),
             "lower"_a.noconvert(), "upper"_a.noconvert(), "slope_low"_a.noconvert(), "slope_high"_a.noconvert(),
             "p"_a.noconvert(), "curvature"_a);
    nb::class_<Options>(m, "Options")
        .def("__init__",
             [](Options* self, double alpha, double constant, double tolerance, Index max_iter, std::uint64_t seed, bool hopeful) {
                 new (self) Options(make_options(alpha, constant, tolerance, max_iter, seed, hopeful));
             },
             "alpha"_a, "constant"_a, "tolerance"_a, "max_iter"_a, "seed"_a, "hopeful"_a = false);
    m.def("hinge", &hinge, "X"_a, "loss"_a, "theta"_a.noconvert(), "centre"_a, "options"_a);
    m.def("multiclass", &multiclass, "X"_a, "label"_a.noconvert(), "p"_a.noconvert(), "delta"_a.noconvert(), "options"_a);
    m.def("pegasos", &pegasos_steps, "X"_a, "sign"_a.noconvert(), "draws"_a.noconvert(), "alpha"_a, "intercept"_a,
          "V"_a.noconvert(), "U"_a.noconvert(), "count"_a.noconvert(), "early"_a.noconvert(), "position"_a);
    // The pieces, for tests.
    m.def("project_simplex", [](Vector<double> v) {
        if (v.size() == 0) refuse("the vector is empty");
        std::vector<double> x(v.data(), v.data() + v.size()), scratch;
        project_simplex(x, scratch);
        return array(std::move(x));
    }, "v"_a.noconvert());
    m.def("classes", [](const LossArrays& loss, Vector<double> theta, Vector<double> scores, double unit) {
        const Index n = static_cast<Index>(scores.size());
        expect_length(loss.p, n, "the loss");
        expect_length(theta, n, "theta");
        std::vector<std::int8_t> found(n);
        for (Index i = 0; i < n; ++i) found[i] = class_of(loss.view(), i, theta.data()[i], scores.data()[i], unit);
        return array(std::move(found));
    }, "loss"_a, "theta"_a.noconvert(), "scores"_a.noconvert(), "unit"_a);
    m.def("best_intercept", [](const LossArrays& loss, Vector<double> scores) {
        expect_length(scores, static_cast<Index>(loss.p.size()), "scores");
        return best_intercept(loss.view(), {scores.data(), scores.size()});
    }, "loss"_a, "scores"_a.noconvert());
}
