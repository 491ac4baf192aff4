// certifit._native.chain: inference and learning on chains and trees of labels.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "chain/margin.hpp"
#include "core/boundary.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace certifit;
using namespace certifit::chain;
using boundary::expect_length;
using boundary::expect_threads;
using boundary::refuse;
using boundary::without_gil;

namespace {

template <class T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Table = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Longs = Vector<const std::int64_t>;
using Ints = Vector<const std::int32_t>;
using Reals = Vector<const double>;

void expect_steps(const Longs& v, Index last, const char* name) {
    if (v.size() < 1 || v.data()[0] != 0) refuse(std::string(name) + " must begin with 0");
    for (std::size_t i = 1; i < v.size(); ++i)
        if (v.data()[i] < v.data()[i - 1]) refuse(std::string(name) + " must not fall");
    if (v.data()[v.size() - 1] != last) refuse(std::string(name) + " must end with " + std::to_string(last));
}

void expect_range(const Ints& v, Index from, Index to, const char* name) {
    const auto low = static_cast<std::int32_t>(from),
               high = static_cast<std::int32_t>(std::min<Index>(to, std::numeric_limits<std::int32_t>::max()));
    const auto outside = [=](std::int32_t x) { return (x < low) | (x >= high); };
    bool any = false;  // without leaving the loop early, so that it is vectorized
    for (std::size_t i = 0; i < v.size(); ++i) any |= outside(v.data()[i]);
    if (!any) return;
    const auto* at = std::find_if(v.data(), v.data() + v.size(), outside);
    refuse(std::string(name) + " is out of range at " + std::to_string(at - v.data()));
}

// Arrays and the view of them; the arrays stay alive with it.
struct PySequences {
    Sequences view;
    Index positions = 0, features = 0, edge_features = 0;
    nb::object owners;
};

Rows rows_of(const std::optional<Longs>& row, const std::optional<Ints>& feature, const std::optional<Reals>& value,
             Index positions, Index features, const char* name) {
    if (!row) return {};
    if (!feature) refuse(std::string(name) + " need their features");
    expect_length(*row, positions + 1, name);
    expect_steps(*row, static_cast<Index>(feature->size()), name);
    expect_range(*feature, 0, features, name);
    if (value) expect_length(*value, static_cast<Index>(feature->size()), name);
    return {row->data(), feature->data(), value ? value->data() : nullptr};
}

PySequences sequences(Longs offset, Index features, std::optional<Longs> row, std::optional<Ints> feature,
                      std::optional<Reals> value, std::optional<Table<const double>> given, Index edge_features,
                      std::optional<Longs> edge_row, std::optional<Ints> edge_feature, std::optional<Reals> edge_value,
                      std::optional<Ints> parent, std::optional<Ints> order) {
    PySequences made;
    if (offset.size() < 1) refuse("offset must begin with 0");
    const Index positions = static_cast<Index>(offset.data()[offset.size() - 1]);
    expect_steps(offset, positions, "offset");
    for (std::size_t i = 1; i < offset.size(); ++i)
        if (offset.data()[i] == offset.data()[i - 1]) refuse("a sequence is empty");
    if (!row && !given) refuse("rows of features or scores must be given");
    if (given && static_cast<Index>(given->shape(0)) != positions) refuse("given has the wrong number of rows");
    if (parent.has_value() != order.has_value()) refuse("parent and order go together");
    made.view.n = static_cast<Index>(offset.size()) - 1;
    made.view.offset = offset.data();
    made.view.unary = rows_of(row, feature, value, positions, features, "rows");
    made.view.edge = rows_of(edge_row, edge_feature, edge_value, positions, edge_features, "edge rows");
    made.view.given = given ? given->data() : nullptr;
    if (parent) {
        expect_length(*parent, positions, "parent");
        expect_length(*order, positions, "order");
        std::vector<std::uint8_t> seen(positions, 0);
        for (Index i = 0; i < made.view.n; ++i) {
            const std::int64_t from = offset.data()[i];
            const Index T = made.view.length(i);
            for (Index r = 0; r < T; ++r) {
                const std::int32_t t = order->data()[from + r];
                if (t < 0 || t >= T || seen[from + t]) refuse("order must be a permutation of each sequence");
                const std::int32_t p = parent->data()[from + t];
                if (p >= T || (p >= 0 && !seen[from + p])) refuse("order must put parents before their children");
                seen[from + t] = 1;
            }
        }
        made.view.parent = parent->data(), made.view.order = order->data();
    }
    made.positions = positions, made.features = features, made.edge_features = edge_features;
    made.owners = nb::make_tuple(offset, row, feature, value, given, edge_row, edge_feature, edge_value, parent, order);
    return made;
}

struct PyShape {
    Shape view;
    nb::object owners;
};

Layout layout_of(Index features, Index codes, const std::optional<Longs>& first, const std::optional<Ints>& code,
                 const char* name) {
    if (first.has_value() != code.has_value()) refuse(std::string(name) + ": first and code go together");
    Layout made{features, codes, nullptr, nullptr};
    if (!first) return made;
    expect_length(*first, features + 1, name);
    expect_steps(*first, static_cast<Index>(code->size()), name);
    expect_range(*code, 0, codes, name);
    for (Index f = 0; f < features; ++f)
        for (std::int64_t p = first->data()[f] + 1; p < first->data()[f + 1]; ++p)
            if (code->data()[p] <= code->data()[p - 1]) refuse(std::string(name) + ": codes must rise");
    made.first = first->data(), made.code = code->data();
    return made;
}

PyShape shape_of(Table<const std::uint8_t> allowed, Index features, std::optional<Longs> first, std::optional<Ints> code,
                 Index edge_features, std::optional<Longs> edge_first, std::optional<Ints> edge_code) {
    const Index K = static_cast<Index>(allowed.shape(0)) - 1;
    if (K < 1 || static_cast<Index>(allowed.shape(1)) != K + 1) refuse("allowed must be (labels + 1) × (labels + 1)");
    if (features < 0 || edge_features < 0) refuse("there cannot be fewer than no features");
    PyShape made;
    made.view.labels = K, made.view.width = padded(K), made.view.allowed = allowed.data();
    made.view.unary = layout_of(features, K, first, code, "weights");
    made.view.edge = layout_of(edge_features, K * K, edge_first, edge_code, "edge weights");
    made.owners = nb::make_tuple(allowed, first, code, edge_first, edge_code);
    return made;
}

void expect_match(const PySequences& data, const PyShape& shape, int threads) {
    if (!data.view.given && data.features != shape.view.unary.features) refuse("data and shape have different features");
    if (data.view.edge && data.edge_features != shape.view.edge.features) refuse("data and shape have different edge features");
    expect_threads(threads);
}

void expect_rows(const PySequences& data) {
    if (data.view.given) refuse("this method learns weights of features, not scores");
}

void expect_labels(const Ints& y, const PySequences& data, const PyShape& shape) {
    expect_length(y, data.positions, "y");
    expect_range(y, 0, shape.view.labels, "y");
}

void expect_weights(const Reals& p, Index n) {
    expect_length(p, n, "p");
    for (Index i = 0; i < n; ++i)
        if (!(p.data()[i] >= 0.0) || !std::isfinite(p.data()[i])) refuse("p must be finite and not negative");
}

void expect_order(const Vector<const std::uint32_t>& order, const PySequences& data) {
    for (std::size_t i = 0; i < order.size(); ++i)
        if (static_cast<Index>(order.data()[i]) >= data.view.n) refuse("order names a sequence that does not exist");
}

// Number of entries of (edge weights, transitions, start, end).
Index tail_of(const Shape& shape) { return shape.size() - shape.unary.size(); }

void expect_fixed(const Vector<const std::uint8_t>& fixed, const Shape& shape) {
    expect_length(fixed, tail_of(shape) - shape.edge.size(), "fixed");
}

double run_evaluate(const PySequences& data, const PyShape& shape, Reals w, Ints y, Reals p, Table<double> residual,
                    Vector<double> tail, Vector<double> loss, int threads) {
    expect_match(data, shape, threads);
    expect_length(w, shape.view.size(), "w");
    expect_labels(y, data, shape);
    expect_weights(p, data.view.n);
    expect_length(tail, tail_of(shape.view), "tail");
    expect_length(loss, data.view.n, "loss");
    const Index stride = static_cast<Index>(residual.shape(1));
    if (static_cast<Index>(residual.shape(0)) != data.positions || (stride != shape.view.width && stride != shape.view.labels))
        refuse("residual has the wrong shape");
    return without_gil([&] {
        return evaluate(data.view, shape.view, w.data(), y.data(), p.data(), residual.data(), stride, tail.data(), loss.data(),
                        threads);
    });
}

void run_pull(const PyShape& shape, Longs first, Ints position, std::optional<Reals> value, Table<double> residual,
              Vector<double> slope, int threads) {
    const Layout& at = shape.view.unary;
    expect_length(first, at.features + 1, "first");
    expect_steps(first, static_cast<Index>(position.size()), "first");
    expect_range(position, 0, static_cast<Index>(residual.shape(0)), "position");
    if (value) expect_length(*value, static_cast<Index>(position.size()), "value");
    expect_length(slope, at.size(), "slope");
    if (static_cast<Index>(residual.shape(1)) != shape.view.width) refuse("residual has the wrong shape");
    expect_threads(threads);
    if (at.features == 0) return;
    const Columns columns{first.data(), position.data(), value ? value->data() : nullptr};
    without_gil([&] { pull_all(columns, at, residual.data(), shape.view.width, slope.data(), threads); });
}

void run_infer(const PySequences& data, const PyShape& shape, Reals w, std::optional<Vector<double>> log_z,
               std::optional<Table<double>> marginals, std::optional<Table<double>> pairs,
               std::optional<Vector<std::int32_t>> path, std::optional<Vector<double>> best, std::optional<Ints> y,
               std::optional<Vector<double>> score, int threads) {
    expect_match(data, shape, threads);
    expect_length(w, shape.view.size(), "w");
    const Index K = shape.view.labels, n = data.view.n;
    Wanted wanted;
    if ((marginals || pairs) && !log_z) refuse("marginals come with log_z");
    if (log_z) expect_length(*log_z, n, "log_z"), wanted.log_z = log_z->data();
    if (marginals) {
        if (static_cast<Index>(marginals->shape(0)) != data.positions || static_cast<Index>(marginals->shape(1)) != K)
            refuse("marginals has the wrong shape");
        wanted.marginals = marginals->data();
    }
    if (pairs) {
        if (static_cast<Index>(pairs->shape(0)) != data.positions || static_cast<Index>(pairs->shape(1)) != K * K)
            refuse("pairs has the wrong shape");
        wanted.pairs = pairs->data();
    }
    if (path.has_value() != best.has_value() || y.has_value() != score.has_value()) refuse("path comes with best, y with score");
    if (path) {
        expect_length(*path, data.positions, "path");
        expect_length(*best, n, "best");
        wanted.path = path->data(), wanted.best = best->data();
    }
    if (y) {
        expect_labels(*y, data, shape);
        expect_length(*score, n, "score");
        wanted.y = y->data(), wanted.score = score->data();
    }
    without_gil([&] { infer(data.view, shape.view, w.data(), wanted, threads); });
}

// The n best labellings of one sequence of a chain: how many were found.
Index run_best_paths(const PySequences& data, const PyShape& shape, Reals w, Index i, Table<std::int32_t> paths,
                     Vector<double> scores) {
    expect_match(data, shape, 1);
    expect_length(w, shape.view.size(), "w");
    if (data.view.parent) refuse("the n best labellings are found on chains only");
    if (i < 0 || i >= data.view.n) refuse("there is no such sequence");
    if (static_cast<Index>(paths.shape(1)) != data.view.length(i) || paths.shape(0) < 1) refuse("paths has the wrong shape");
    expect_length(scores, static_cast<Index>(paths.shape(0)), "scores");
    return without_gil([&] {
        Transitions trans(shape.view, w.data());
        Work work(shape.view);
        score_sequence(data.view, shape.view, w.data(), 1.0, trans, i, work);
        return best_paths(data.view, trans, i, work, static_cast<Index>(paths.shape(0)), paths.data(), scores.data());
    });
}

nb::tuple run_perceptron(const PySequences& data, const PyShape& shape, Ints y, Vector<const std::uint32_t> order,
                         Vector<double> w, Vector<double> late, Vector<const std::uint8_t> fixed, double visits) {
    expect_match(data, shape, 1);
    expect_rows(data);
    expect_labels(y, data, shape);
    expect_order(order, data);
    expect_length(w, shape.view.size(), "w");
    expect_length(late, shape.view.size(), "late");
    expect_fixed(fixed, shape.view);
    Perceptron state{w.data(), late.data(), fixed.data(), visits};
    double mistakes[2];
    without_gil([&] {
        perceptron_epoch(data.view, shape.view, y.data(), order.data(), static_cast<Index>(order.size()), state, mistakes);
    });
    return nb::make_tuple(mistakes[0], mistakes[1], state.visits);
}

nb::tuple run_descent(const PySequences& data, const PyShape& shape, Ints y, Vector<const std::uint32_t> order, Vector<double> v,
                      Vector<const std::uint8_t> fixed, double scale, double alpha, double t0, double t) {
    expect_match(data, shape, 1);
    expect_rows(data);
    expect_labels(y, data, shape);
    expect_order(order, data);
    expect_length(v, shape.view.size(), "v");
    expect_fixed(fixed, shape.view);
    if (!(alpha > 0.0) || !(scale > 0.0) || !(t0 > 1.0) || !(t >= 0.0)) refuse("alpha and scale must be positive, t0 above 1");
    Descent state{v.data(), scale, alpha, t0, t, fixed.data()};
    const double loss = without_gil(
        [&] { return descent_epoch(data.view, shape.view, y.data(), order.data(), static_cast<Index>(order.size()), state); });
    return nb::make_tuple(loss, state.scale, state.t);
}

// Keeps the arrays it points into.
struct PyMargin {
    Margin view;
    nb::object owners;
};

PyMargin margin_of(const PySequences& data, const PyShape& shape, Ints y, Vector<double> w, Reals p, Table<const double> cost,
                   Vector<const std::uint8_t> fixed, double alpha) {
    expect_match(data, shape, 1);
    expect_rows(data);
    expect_labels(y, data, shape);
    const Index K = shape.view.labels;
    if (shape.view.unary.first || shape.view.edge.first) refuse("the margin needs a weight for every label");
    expect_length(w, shape.view.size(), "w");
    expect_weights(p, data.view.n);
    expect_fixed(fixed, shape.view);
    if (static_cast<Index>(cost.shape(0)) != K || static_cast<Index>(cost.shape(1)) != K) refuse("cost has the wrong shape");
    if (!(alpha > 0.0)) refuse("alpha must be positive");
    return {Margin(w.data(), p.data(), cost.data(), fixed.data(), alpha, data.view, y.data()), nb::make_tuple(w, p, cost, fixed)};
}

void expect_same(const PySequences& data, const PyShape& shape, const Ints& y, const PyMargin& state) {
    expect_match(data, shape, 1);
    expect_labels(y, data, shape);
    if (static_cast<Index>(state.view.mixtures.size()) != data.view.n) refuse("the margin was made for other sequences");
}

void run_frank_wolfe(const PySequences& data, const PyShape& shape, Ints y, Vector<const std::uint32_t> order, PyMargin& state) {
    expect_same(data, shape, y, state);
    expect_order(order, data);
    without_gil(
        [&] { frank_wolfe_epoch(data.view, shape.view, y.data(), order.data(), static_cast<Index>(order.size()), state.view); });
}

// Rebuilds w from the mixtures; the mean loss there and the mean cost of the mixtures.
nb::tuple run_margin_values(const PySequences& data, const PyShape& shape, Ints y, PyMargin& state, int threads) {
    expect_same(data, shape, y, state);
    expect_threads(threads);
    const double loss = without_gil([&] {
        rebuild(data.view, shape.view, y.data(), state.view);
        return margin_loss(data.view, shape.view, y.data(), state.view, threads);
    });
    return nb::make_tuple(loss, state.view.mean_cost());
}

}  // namespace

NB_MODULE(chain, m) {
    nb::class_<PySequences>(m, "Sequences").def_ro("positions", &PySequences::positions);
    nb::class_<PyShape>(m, "Shape")
        .def_prop_ro("size", [](const PyShape& s) { return s.view.size(); })
        .def_prop_ro("width", [](const PyShape& s) { return s.view.width; });
    nb::class_<PyMargin>(m, "Margin");
    m.def("sequences", &sequences, "offset"_a.noconvert(), "features"_a, "row"_a.noconvert() = nb::none(),
          "feature"_a.noconvert() = nb::none(), "value"_a.noconvert() = nb::none(), "given"_a.noconvert() = nb::none(),
          "edge_features"_a = 0, "edge_row"_a.noconvert() = nb::none(), "edge_feature"_a.noconvert() = nb::none(),
          "edge_value"_a.noconvert() = nb::none(), "parent"_a.noconvert() = nb::none(), "order"_a.noconvert() = nb::none());
    m.def("shape", &shape_of, "allowed"_a.noconvert(), "features"_a, "first"_a.noconvert() = nb::none(),
          "code"_a.noconvert() = nb::none(), "edge_features"_a = 0, "edge_first"_a.noconvert() = nb::none(),
          "edge_code"_a.noconvert() = nb::none());
    m.def("evaluate", &run_evaluate, "data"_a, "shape"_a, "w"_a.noconvert(), "y"_a.noconvert(), "p"_a.noconvert(),
          "residual"_a.noconvert(), "tail"_a.noconvert(), "loss"_a.noconvert(), "threads"_a);
    m.def("pull", &run_pull, "shape"_a, "first"_a.noconvert(), "position"_a.noconvert(), "value"_a.noconvert() = nb::none(),
          "residual"_a.noconvert(), "slope"_a.noconvert(), "threads"_a);
    m.def("infer", &run_infer, "data"_a, "shape"_a, "w"_a.noconvert(), "log_z"_a.noconvert() = nb::none(),
          "marginals"_a.noconvert() = nb::none(), "pairs"_a.noconvert() = nb::none(), "path"_a.noconvert() = nb::none(),
          "best"_a.noconvert() = nb::none(), "y"_a.noconvert() = nb::none(), "score"_a.noconvert() = nb::none(), "threads"_a = 1);
    m.def("best_paths", &run_best_paths, "data"_a, "shape"_a, "w"_a.noconvert(), "i"_a, "paths"_a.noconvert(),
          "scores"_a.noconvert());
    m.def("perceptron", &run_perceptron, "data"_a, "shape"_a, "y"_a.noconvert(), "order"_a.noconvert(), "w"_a.noconvert(),
          "late"_a.noconvert(), "fixed"_a.noconvert(), "visits"_a);
    m.def("descent", &run_descent, "data"_a, "shape"_a, "y"_a.noconvert(), "order"_a.noconvert(), "v"_a.noconvert(),
          "fixed"_a.noconvert(), "scale"_a, "alpha"_a, "t0"_a, "t"_a);
    m.def("margin", &margin_of, "data"_a, "shape"_a, "y"_a.noconvert(), "w"_a.noconvert(), "p"_a.noconvert(),
          "cost"_a.noconvert(), "fixed"_a.noconvert(), "alpha"_a);
    m.def("frank_wolfe", &run_frank_wolfe, "data"_a, "shape"_a, "y"_a.noconvert(), "order"_a.noconvert(), "state"_a);
    m.def("margin_values", &run_margin_values, "data"_a, "shape"_a, "y"_a.noconvert(), "state"_a, "threads"_a);
}
