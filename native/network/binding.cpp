// certifit._native.network: multilayer perceptrons.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/boundary/row_matrix.hpp"
#include "network/network.hpp"

using namespace certifit;
using namespace certifit::boundary;
using namespace certifit::network;

namespace {

// Rows of X as the network sees them: (x − center)·factor of each column, within ±1e12; computed when they are read, or once.
struct Inputs {
    RowMatrix X;
    std::vector<double> center, factor;
    std::shared_ptr<const Kept> kept = nullptr;

    Index rows() const { return X.rows(); }
    Index columns() const { return X.columns(); }
    Source source() const { return kept ? kept->source(columns()) : Source{gather()}; }

    Gather gather() const {
        return std::visit(
            [this](const auto& view) -> Gather {
                if constexpr (requires { view.row(Index{0}); }) {
                    using T = std::remove_cvref_t<decltype(*view.row(0))>;
                    if constexpr (std::is_same_v<T, float>) {
                        if (center.empty())
                            return [view](Index i, float* to, Index stride) {
                                const float* row = view.row(i);
                                for (Index j = 0; j < view.d; j += kWide, to += stride)
                                    std::memcpy(to, row + j,
                                                static_cast<std::size_t>(std::min(kWide, view.d - j)) * sizeof(float));
                            };
                    }
                    return [this, view](Index i, float* to, Index stride) {
                        const T* row = view.row(i);
                        for (Index j = 0; j < view.d; j += kWide, to += stride)
                            seen(row + j, center.data() + j, factor.data() + j, to, std::min(kWide, view.d - j));
                    };
                } else {
                    return [this, view](Index i, float* to, Index stride) {
                        constexpr double zeros[kWide] = {};
                        for (Index j = 0; j < view.d; j += kWide)
                            seen(zeros, center.data() + j, factor.data() + j, to + j / kWide * stride,
                                 std::min(kWide, view.d - j));
                        for (Index e = static_cast<Index>(view.start[i]); e < static_cast<Index>(view.start[i + 1]); ++e) {
                            const auto j = static_cast<Index>(view.indices[e]);
                            seen(view.data + e, center.data() + j, factor.data() + j, to + j / kWide * stride + j % kWide, 1);
                        }
                    };
                }
            },
            X.view);
    }
};

// Without center and factor the rows are taken as they are, and must be dense and of single precision.
Inputs make_inputs(const RowMatrix& X, std::optional<Vector<double>> center, std::optional<Vector<double>> factor) {
    if (center.has_value() != factor.has_value()) refuse("center and factor must be given together");
    if (!center) {
        if (!std::holds_alternative<DenseRows<float>>(X.view))
            refuse("rows without center and factor must be dense and of single precision");
        return {X, {}, {}};
    }
    expect_length(center->size(), static_cast<std::size_t>(X.columns()), "center");
    expect_length(factor->size(), static_cast<std::size_t>(X.columns()), "factor");
    return {X, {center->data(), center->data() + center->size()}, {factor->data(), factor->data() + factor->size()}};
}

// Computed once, for many passes, unless that would fill a sparse matrix: where the network does not see most of its zeros as
// zeros.
Inputs keep_inputs(const RowMatrix& X, std::optional<Vector<double>> center, std::optional<Vector<double>> factor, int threads) {
    Inputs inputs = make_inputs(X, center, factor);
    const bool dense = std::holds_alternative<DenseRows<double>>(X.view) || std::holds_alternative<DenseRows<float>>(X.view);
    std::size_t moved = 0;  // columns whose zeros the network does not see as zeros
    for (std::size_t j = 0; j < inputs.center.size(); ++j) moved += inputs.center[j] * inputs.factor[j] != 0.0;
    if (!dense && static_cast<double>(moved) >= Kept::kFull * static_cast<double>(X.columns())) return inputs;
    with_team(threads,
              [&](Team& team) { inputs.kept = std::make_shared<const Kept>(inputs.gather(), X.rows(), X.columns(), team); });
    inputs.X.owners = nb::none();  // what was kept needs X no longer, only its shape
    return inputs;
}

// A loss with a formula here, or a function of Python: (row numbers, scores, slopes to be filled) → summed loss.
struct LossHere {
    network::Output output;
    nb::object function;
};

std::vector<double> copied(const Vector<double>& v) { return {v.data(), v.data() + v.size()}; }

LossHere make_loss(const std::string& name, double a, double c, Vector<double> offset) {
    if (name == "softmax") return {{true, {sgd::Kind::squared}, {}}, nb::none()};
    if (const auto kind = sgd::kind_of(name)) return {{false, {*kind, a, c}, copied(offset)}, nb::none()};
    refuse("no such loss: " + name);
}

Elsewhere elsewhere_of(const LossHere& loss, Index K) {
    if (loss.function.is_none()) return nullptr;
    return [&loss, K](const std::uint32_t* rows, Index count, const double* scores, double* slopes) {
        nb::gil_scoped_acquire gil;
        const std::size_t one[1] = {static_cast<std::size_t>(count)}, two[2] = {one[0], static_cast<std::size_t>(K)};
        nb::ndarray<nb::numpy, const std::uint32_t> order(rows, 1, one, nb::none());
        nb::ndarray<nb::numpy, const double> f(scores, 2, two, nb::none());
        nb::ndarray<nb::numpy, double> g(slopes, 2, two, nb::none());
        return nb::cast<double>(loss.function(order, f, g));
    };
}

Activation activation_of(const std::string& name) {
    const std::pair<const char*, Activation> known[] = {{"identity", Activation::identity}, {"sigmoid", Activation::sigmoid},
        {"tanh", Activation::tanh}, {"relu", Activation::relu}, {"leaky_relu", Activation::leaky},
        {"prelu", Activation::learned}};
    for (const auto& [word, kind] : known)
        if (name == word) return kind;
    refuse("no such activation: " + name);
}

Network make_network(const std::vector<Index>& sizes, const std::string& activation, float leak) {
    if (sizes.size() < 2) refuse("a network needs the number of its inputs and of its scores");
    for (const Index size : sizes)
        if (size < 1) refuse("every layer needs at least one unit");
    return Network(sizes, {activation_of(activation), leak});
}

Plan make_plan(const std::string& rule, double rate, double momentum, nb::tuple adam, double decay, Index batch, nb::tuple draws,
               double clip, std::uint64_t seed) {
    const std::pair<const char*, Rule> known[] = {
        {"sgd", Rule::momentum}, {"nesterov", Rule::nesterov}, {"adam", Rule::adam}, {"adamw", Rule::adamw}};
    Plan plan;
    bool found = false;
    for (const auto& [word, kind] : known)
        if (rule == word) plan.step.rule = kind, found = true;
    if (!found) refuse("no such optimizer: " + rule);
    if (batch < 1) refuse("the batch must have at least one row");
    if (adam.size() != 3 && adam.size() != 4) refuse("adam must be (beta1, beta2, epsilon) or (beta1, beta2, epsilon, unscaled)");
    if (draws.size() != 3) refuse("draws must be (dropout, noise, attack)");
    plan.step.rate = static_cast<float>(rate), plan.step.momentum = static_cast<float>(momentum);
    plan.step.beta1 = nb::cast<float>(adam[0]), plan.step.beta2 = nb::cast<float>(adam[1]);
    plan.step.epsilon = nb::cast<float>(adam[2]), plan.step.decay = static_cast<float>(decay);
    if (adam.size() == 4) plan.step.unscaled = nb::cast<bool>(adam[3]);
    plan.dropout = nb::cast<float>(draws[0]), plan.noise = nb::cast<float>(draws[1]), plan.attack = nb::cast<float>(draws[2]);
    if (!(plan.dropout >= 0.0f && plan.dropout < 1.0f)) refuse("dropout must be in [0, 1)");
    plan.batch = batch, plan.clip = clip, plan.seed = seed;
    return plan;
}

// What every call on rows checks: they fit the network, the targets fit the scores, the order names rows that exist.
Targets check_rows(Network& net, const Inputs& X, const RowMajor<double>& y, const Vector<std::uint32_t>& order,
                   const LossHere& loss) {
    if (X.columns() != net.inputs()) refuse("X has another number of columns than the network has inputs");
    expect_length(y.shape(0), static_cast<std::size_t>(X.rows()), "y");
    for (std::size_t k = 0; k < order.size(); ++k)
        if (static_cast<Index>(order.data()[k]) >= X.rows()) refuse("the order names a row that does not exist");
    const auto columns = static_cast<Index>(y.shape(1));
    if (!loss.output.softmax) expect_length(loss.output.offset.size(), static_cast<std::size_t>(net.scores()), "offset");
    if (loss.function.is_none()) {
        if (columns != (loss.output.softmax ? 1 : net.scores())) refuse("y has another number of columns than the loss wants");
        if (loss.output.softmax)
            for (std::size_t i = 0; i < y.shape(0); ++i)
                if (!(y.data()[i] >= 0 && y.data()[i] < static_cast<double>(net.scores())))
                    refuse("y names a class that has no score");
    }
    return {y.data(), columns};
}

// clock = (steps so far), which goes on. Returns (summed loss, whether it stayed finite).
nb::tuple train(Network& net, const Inputs& X, RowMajor<double> y, Vector<std::uint32_t> order, const LossHere& loss,
                const Plan& plan, boundary::Output<double> clock, int threads) {
    const Targets targets = check_rows(net, X, y, order, loss);
    expect_length(clock, 1, "clock");
    if (order.size() == 0) refuse("the order must name at least one row");
    std::pair<double, bool> found;
    const Elsewhere elsewhere = elsewhere_of(loss, net.scores());
    const Source source = X.source();
    with_team(threads, [&](Team& team) {
        found = net.train(source, targets, order.data(), static_cast<Index>(order.size()), loss.output, elsewhere, plan,
                          clock.data()[0], team);
    });
    return nb::make_tuple(found.first, found.second);
}

double differentiate(Network& net, const Inputs& X, RowMajor<double> y, Vector<std::uint32_t> order, const LossHere& loss,
                     boundary::Output<float> gradient, int threads) {
    const Targets targets = check_rows(net, X, y, order, loss);
    expect_length(gradient, static_cast<std::size_t>(net.parameters()), "gradient");
    double sum = 0.0;
    const Elsewhere elsewhere = elsewhere_of(loss, net.scores());
    const Source source = X.source();
    with_team(threads, [&](Team& team) {
        sum = net.differentiate(source, targets, order.data(), static_cast<Index>(order.size()), loss.output, elsewhere, team);
        net.save(Network::Part::gradient, gradient.data());
    });
    return sum;
}

void input_slopes(Network& net, const Inputs& X, RowMajor<double> y, Vector<std::uint32_t> order, const LossHere& loss,
                  OutputRows<float> slopes, int threads) {
    const Targets targets = check_rows(net, X, y, order, loss);
    expect_length(slopes.shape(0), order.size(), "slopes");
    expect_length(slopes.shape(1), static_cast<std::size_t>(net.inputs()), "a row of slopes");
    const Elsewhere elsewhere = elsewhere_of(loss, net.scores());
    const Source source = X.source();
    with_team(threads, [&](Team& team) {
        net.input_slopes(source, targets, order.data(), static_cast<Index>(order.size()), loss.output, elsewhere, slopes.data(),
                         team);
    });
}

void evaluate(Network& net, const Inputs& X, std::size_t layer, OutputRows<float> out, int threads) {
    if (X.columns() != net.inputs()) refuse("X has another number of columns than the network has inputs");
    if (layer > net.depth()) refuse("the network has no such layer");
    expect_length(out.shape(0), static_cast<std::size_t>(X.rows()), "out");
    expect_length(out.shape(1), static_cast<std::size_t>(net.width_of(layer)), "a row of out");
    const Source source = X.source();
    with_team(threads, [&](Team& team) { net.evaluate(source, X.rows(), layer, out.data(), team); });
}

Network::Part part_of(const std::string& name) {
    if (name == "weights") return Network::Part::weights;
    if (name == "first") return Network::Part::first;
    if (name == "second") return Network::Part::second;
    refuse("no such part: " + name);
}

}  // namespace

NB_MODULE(network, m) {
    RowMatrix::define(m, "Rows");
    nb::class_<Inputs>(m, "Inputs")
        .def_prop_ro("shape", [](const Inputs& X) { return nb::make_tuple(X.rows(), X.columns()); })
        .def_prop_ro("compact", [](const Inputs& X) { return X.kept && X.kept->sparse; });
    m.def("inputs", &make_inputs, "X"_a, "center"_a.noconvert().none(), "factor"_a.noconvert().none());
    m.def("kept", &keep_inputs, "X"_a, "center"_a.noconvert().none(), "factor"_a.noconvert().none(), "threads"_a);
    nb::class_<LossHere>(m, "Loss");
    m.def("loss", &make_loss, "name"_a, "a"_a, "c"_a, "offset"_a.noconvert());
    m.def(
        "loss",
        [](nb::callable function, Vector<double> offset) {
            return LossHere{{false, {sgd::Kind::squared}, copied(offset)}, nb::object(function)};
        },
        "function"_a, "offset"_a.noconvert());
    nb::class_<Plan>(m, "Plan");
    m.def("plan", &make_plan, "rule"_a, "rate"_a, "momentum"_a, "adam"_a, "decay"_a, "batch"_a, "draws"_a, "clip"_a, "seed"_a);
    nb::class_<Network>(m, "Network")
        .def_prop_ro("size", &Network::parameters)
        .def(
            "load",
            [](Network& net, const std::string& part, Vector<float> plain) {
                expect_length(plain, static_cast<std::size_t>(net.parameters()), "plain");
                net.load(part_of(part), plain.data());
            },
            "part"_a, "plain"_a.noconvert())
        .def(
            "save",
            [](Network& net, const std::string& part, boundary::Output<float> plain) {
                expect_length(plain, static_cast<std::size_t>(net.parameters()), "plain");
                net.save(part_of(part), plain.data());
            },
            "part"_a, "plain"_a.noconvert())
        .def("train", &train, "X"_a, "y"_a.noconvert(), "order"_a.noconvert(), "loss"_a, "plan"_a, "clock"_a.noconvert(),
             "threads"_a)
        .def("differentiate", &differentiate, "X"_a, "y"_a.noconvert(), "order"_a.noconvert(), "loss"_a, "gradient"_a.noconvert(),
             "threads"_a)
        .def("input_slopes", &input_slopes, "X"_a, "y"_a.noconvert(), "order"_a.noconvert(), "loss"_a, "slopes"_a.noconvert(),
             "threads"_a)
        .def("evaluate", &evaluate, "X"_a, "layer"_a, "out"_a.noconvert(), "threads"_a);
    m.def("network", &make_network, "sizes"_a, "activation"_a, "leak"_a);
}
