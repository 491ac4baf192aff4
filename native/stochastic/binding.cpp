// certifit._native.stochastic: stochastic gradient descent and perceptrons.
#include <nanobind/stl/string.h>

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "core/boundary/row_matrix.hpp"
#include "stochastic/dense.hpp"
#include "stochastic/evaluation.hpp"
#include "stochastic/order.hpp"
#include "stochastic/perceptron.hpp"
#include "stochastic/sparse.hpp"

using namespace certifit;
using namespace certifit::boundary;
using namespace certifit::sgd;

namespace {

using Square = OutputRows<double>;

void expect_order(const Vector<std::uint32_t>& order, Index n) {
    for (std::size_t k = 0; k < order.size(); ++k)
        if (static_cast<Index>(order.data()[k]) >= n) refuse("the order names a row that does not exist");
}

Loss make_loss(const std::string& name, double a, double c) {
    if (const auto kind = kind_of(name)) return {*kind, a, c};
    refuse("no such loss: " + name);
}

Plan make_plan(const Loss& loss, nb::tuple schedule, double l1, double l2, bool intercept, bool average, Index batch) {
    if (schedule.size() != 4) refuse("schedule must be (size, offset, slope, power)");
    const Schedule s{nb::cast<double>(schedule[0]), nb::cast<double>(schedule[1]), nb::cast<double>(schedule[2]),
                     nb::cast<double>(schedule[3])};
    if (!(s.size > 0 && s.size < kInfinity)) refuse("the step size must be positive and finite");
    if (!(l1 >= 0 && l1 < kInfinity && l2 >= 0 && l2 < kInfinity)) refuse("l1 and l2 must be finite and not negative");
    if (batch < 1) refuse("the batch must have at least one row");
    return {loss, s, l1, l2, intercept, average, batch, 0, 1, batch};
}

// The iterate lives in arrays that Python owns: w, w_sum of length d, scalars = (b, b_sum, averaged, t), and, if they are
// not empty, dual and visits of length n. Returns (loss of the watched rows, their number, diverged).
nb::tuple epoch(const RowMatrix& X, Vector<double> y, Vector<std::uint32_t> order, Plan plan, Index average_from, Index watch,
                Output<double> w, Output<double> w_sum, Output<double> scalars, Output<double> dual, Output<double> visits) {
    const Index n = X.rows(), d = X.columns(), count = static_cast<Index>(order.size());
    expect_length(y.size(), n, "y");
    expect_order(order, n);
    expect_length(w.size(), d, "w");
    expect_length(w_sum.size(), d, "w_sum");
    expect_length(scalars.size(), 4, "scalars");
    if (dual.size()) {
        expect_length(dual.size(), n, "dual");
        expect_length(visits.size(), n, "visits");
    }
    if (watch < 1) refuse("watch must be at least 1");
    plan.average_from = average_from, plan.watch = watch, plan.full = std::max<Index>(1, std::min(plan.batch, count));
    double* s = scalars.data();
    State state{w.data(), s[0], w_sum.data(), s[1], s[2], s[3], dual.size() ? dual.data() : nullptr, visits.data()};
    std::visit(
        [&](const auto& view) {
            using View = std::decay_t<decltype(view)>;
            constexpr bool is_dense = std::is_same_v<View, DenseRows<double>> || std::is_same_v<View, DenseRows<float>>;
            if constexpr (is_dense) {
                if (d < 8) refuse("a dense matrix needs at least 8 columns: add columns of zeros");
                without_gil([&] { dense_epoch(view, y.data(), order.data(), count, plan, state); });
            } else {
                without_gil([&] { LazyRows(d, plan, state).run(view, y.data(), order.data(), count); });
            }
        },
        X.view);
    s[0] = state.b, s[1] = state.b_sum, s[2] = state.averaged, s[3] = state.t;
    return nb::make_tuple(state.loss_sum, state.watched, state.diverged);
}

nb::tuple evaluate_rows(const RowMatrix& X, Vector<double> y, Vector<double> p, const Loss& loss, Vector<double> w, double b,
                        int threads) {
    const Index n = X.rows();
    expect_length(y.size(), n, "y");
    expect_length(p.size(), n, "p");
    expect_length(w.size(), X.columns(), "w");
    expect_threads(threads);
    if (!loss.smooth()) refuse("the evaluation needs a smooth loss");
    return std::visit(
        [&](const auto& view) -> nb::tuple {
            using View = std::decay_t<decltype(view)>;
            if constexpr (std::is_same_v<View, DenseRows<double>> || std::is_same_v<View, DenseRows<float>>) {
                std::vector<double> f(static_cast<std::size_t>(n));
                Evaluation found = without_gil(
                    [&] { return evaluate(view, y.data(), p.data(), loss, w.data(), b, f.data(), threads); });
                return nb::make_tuple(found.risk, found.slope, found.curvature, array(std::move(found.g)),
                                      array(std::move(found.h)), array(std::move(f)));
            } else {
                refuse("the evaluation needs dense rows");
            }
        },
        X.view);
}

double conjugate(Vector<double> y, Vector<double> p, Vector<double> f, const Loss& loss, double shift, double scale,
                 int threads) {
    const Index n = static_cast<Index>(y.size());
    expect_length(p.size(), n, "p");
    expect_length(f.size(), n, "f");
    expect_threads(threads);
    return without_gil([&] { return conjugate_sum(y.data(), p.data(), f.data(), n, loss, shift, scale, threads); });
}

void expect_scalars(const Output<double>& scalars) { expect_length(scalars.size(), 3, "scalars"); }

// scalars = (b, b_late, steps); late may be empty. Returns the number of mistakes.
Index perceptron(const RowMatrix& X, Vector<double> sign, Vector<std::uint32_t> order, double unit, Output<double> w,
                 Output<double> late, Output<double> scalars) {
    expect_length(sign.size(), X.rows(), "sign");
    expect_order(order, X.rows());
    expect_length(w.size(), X.columns(), "w");
    if (late.size()) expect_length(late.size(), X.columns(), "late");
    expect_scalars(scalars);
    double* s = scalars.data();
    double* later = late.size() ? late.data() : nullptr;
    const Index count = static_cast<Index>(order.size());
    return std::visit(
        [&](const auto& view) {
            return without_gil([&] {
                return perceptron_epoch(view, sign.data(), order.data(), count, unit, w.data(), s[0], later, s[1], s[2]);
            });
        },
        X.view);
}

// scalars = (b, run, pocket's b, pocket's error, pocket's run, replacements).
void pocket(const RowMatrix& X, Vector<double> sign, Vector<double> p, Vector<std::uint32_t> order, double unit, Output<double> w,
            Output<double> best, Output<double> scalars) {
    expect_length(sign.size(), X.rows(), "sign");
    expect_length(p.size(), X.rows(), "p");
    expect_order(order, X.rows());
    expect_length(w.size(), X.columns(), "w");
    expect_length(best.size(), X.columns(), "best");
    expect_length(scalars.size(), 6, "scalars");
    double* s = scalars.data();
    Pocket kept{{best.data(), best.data() + best.size()}, s[2], s[3], static_cast<Index>(s[4]), static_cast<Index>(s[5])};
    Index run = static_cast<Index>(s[1]);
    const Index count = static_cast<Index>(order.size());
    std::visit(
        [&](const auto& view) {
            without_gil(
                [&] { pocket_epoch(view, sign.data(), p.data(), order.data(), count, unit, w.data(), s[0], run, kept); });
        },
        X.view);
    std::copy(kept.w.begin(), kept.w.end(), best.data());
    s[1] = static_cast<double>(run), s[2] = kept.b, s[3] = kept.error;
    s[4] = static_cast<double>(kept.run), s[5] = static_cast<double>(kept.changes);
}

// W, late: K × d; B, b_late: K; steps: length 1. late and b_late may be empty.
Index multiclass(const RowMatrix& X, Vector<std::int64_t> label, Vector<std::uint32_t> order, double unit, Square W,
                 Output<double> B, Square late, Output<double> b_late, Output<double> steps) {
    const Index K = static_cast<Index>(W.shape(0));
    expect_length(label.size(), X.rows(), "label");
    expect_order(order, X.rows());
    if (K < 2) refuse("W needs a row for each of at least two classes");
    expect_length(W.shape(1), X.columns(), "a row of W");
    expect_length(B.size(), K, "B");
    expect_length(steps.size(), 1, "steps");
    if (late.size()) {
        expect_length(late.size(), K * X.columns(), "late");
        expect_length(b_late.size(), K, "b_late");
    }
    for (std::size_t i = 0; i < label.size(); ++i)
        if (label.data()[i] < 0 || label.data()[i] >= K) refuse("a label is out of bounds");
    double* later = late.size() ? late.data() : nullptr;
    return std::visit(
        [&](const auto& view) {
            return without_gil([&] {
                return multiclass_epoch(view, label.data(), order.data(), static_cast<Index>(order.size()), unit, K, W.data(),
                                        B.data(), later, b_late.data(), steps.data()[0]);
            });
        },
        X.view);
}

// block = 1 shuffles all rows; a larger one keeps neighbors together, see shuffle_blocks.
void shuffle_rows(Output<std::uint32_t> order, Output<std::uint64_t> state, Index block, Index group) {
    expect_length(state.size(), 4, "state");
    if (block < 1 || group < 1) refuse("block and group must be at least 1");
    Random random{{state.data()[0], state.data()[1], state.data()[2], state.data()[3]}};
    const Index n = static_cast<Index>(order.size());
    if (block == 1)
        shuffle(order.data(), n, random);
    else
        shuffle_blocks(order.data(), n, block, group, random);
    for (int k = 0; k < 4; ++k) state.data()[k] = random.s[k];
}

}  // namespace

NB_MODULE(stochastic, m) {
    m.doc() = "Stochastic gradient descent over rows, and the perceptron family.";
    RowMatrix::define(m, "Rows");
    nb::class_<Loss>(m, "Loss")
        .def_prop_ro("smooth", &Loss::smooth)
        .def("value", &Loss::value, "y"_a, "f"_a)
        .def("derivative", [](const Loss& loss, double y, double f) { return loss.derivative(y, f); }, "y"_a, "f"_a)
        .def("curvature", &Loss::curvature, "y"_a, "f"_a)
        .def("conjugate", &Loss::conjugate, "y"_a, "u"_a);
    nb::class_<Plan>(m, "Plan");
    m.def("loss", &make_loss, "name"_a, "a"_a = 0.0, "c"_a = 0.0);
    m.def("plan", &make_plan, "loss"_a, "schedule"_a, "l1"_a, "l2"_a, "intercept"_a, "average"_a, "batch"_a);
    m.def("shuffle", &shuffle_rows, "order"_a.noconvert(), "state"_a.noconvert(), "block"_a = 1, "group"_a = 128);
    m.def("epoch", &epoch, "X"_a, "y"_a.noconvert(), "order"_a.noconvert(), "plan"_a, "average_from"_a, "watch"_a,
          "w"_a.noconvert(), "w_sum"_a.noconvert(), "scalars"_a.noconvert(), "dual"_a.noconvert(), "visits"_a.noconvert());
    m.def("evaluate", &evaluate_rows, "X"_a, "y"_a.noconvert(), "p"_a.noconvert(), "loss"_a, "w"_a.noconvert(), "b"_a,
          "threads"_a);
    m.def("conjugate_sum", &conjugate, "y"_a.noconvert(), "p"_a.noconvert(), "f"_a.noconvert(), "loss"_a, "shift"_a, "scale"_a,
          "threads"_a);
    m.def("perceptron", &perceptron, "X"_a, "sign"_a.noconvert(), "order"_a.noconvert(), "unit"_a, "w"_a.noconvert(),
          "late"_a.noconvert(), "scalars"_a.noconvert());
    m.def("pocket", &pocket, "X"_a, "sign"_a.noconvert(), "p"_a.noconvert(), "order"_a.noconvert(), "unit"_a,
          "w"_a.noconvert(), "best"_a.noconvert(), "scalars"_a.noconvert());
    m.def("multiclass", &multiclass, "X"_a, "label"_a.noconvert(), "order"_a.noconvert(), "unit"_a, "W"_a.noconvert(),
          "B"_a.noconvert(), "late"_a.noconvert(), "b_late"_a.noconvert(), "steps"_a.noconvert());
}
