// certifit._native.boosting: histogram trees on gradients, and predictions of many trees.
#include "boosting/boosting.hpp"

#include <nanobind/stl/optional.h>

#include <optional>
#include <string>
#include <vector>

#include "boosting/leaves.hpp"
#include "boosting/predict.hpp"
#include "core/boundary.hpp"

using namespace certifit;
using namespace certifit::boosting;
using namespace certifit::boundary;

namespace {

// A vector of one of the types that kernels read as doubles.
using Numbers = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

Values numbers(const Numbers& v, Index wanted, const char* name) {
    expect_length(v, wanted, name);
    if (v.dtype() == nb::dtype<double>()) return {v.data(), Values::kDouble};
    if (v.dtype() == nb::dtype<float>()) return {v.data(), Values::kFloat};
    if (v.dtype() == nb::dtype<std::uint8_t>()) return {v.data(), Values::kByte};
    if (v.dtype() == nb::dtype<std::int32_t>()) return {v.data(), Values::kInt};
    refuse(std::string(name) + " must be float64, float32, int32 or uint8");
}

template <class T>
std::span<const T> span(const Vector<T>& v) {
    return {v.data(), v.size()};
}

// The table as bytes; keeps the arrays alive.
struct Table {
    Bins bins;
    nb::object owners;

    Table(Vector<std::uint8_t> data, Index rows, Index stride, Vector<std::int64_t> column, Vector<std::int64_t> n_bins,
          Vector<std::uint8_t> categorical, Index group)
        : owners(nb::make_tuple(data, column)) {
        const Index d = static_cast<Index>(column.size());
        expect_length(n_bins, d, "n_bins");
        expect_length(categorical, d, "categorical");
        if (rows < 1 || d < 1 || stride < 1 || group < 1 || group > kGroup) refuse("the table is empty or its layout is wrong");
        if (rows >= (Index{1} << 32)) refuse("at most 2^32 − 1 rows");
        for (Index j = 0; j < d; ++j) {
            if (n_bins.data()[j] < 1 || n_bins.data()[j] > 255) refuse("n_bins must lie in 1 … 255");
            const std::int64_t at = column.data()[j];
            if (at < 0 || at + (rows - 1) * stride + 8 > static_cast<Index>(data.size())) refuse("data is too small");
            if (j % group && at != column.data()[j - 1] + 1) refuse("the columns of a group must lie side by side");
            for (Index i = 0; i < rows; ++i)
                if (data.data()[at + i * stride] > n_bins.data()[j]) refuse("a bin is out of bounds");
        }
        bins.data = data.data(), bins.rows = rows, bins.features = d, bins.stride = stride, bins.group = group;
        bins.column = span(column);
        bins.values.assign(n_bins.data(), n_bins.data() + d);
        bins.categorical.assign(categorical.data(), categorical.data() + d);
    }
};

struct PyGrower {
    Grower grower;
    nb::object table;

    // One weight for all rows, or one for each.
    static std::span<const double> checked(const Vector<double>& w, Index n) {
        if (w.size() != 1) expect_length(w, n, "weight");
        for (const double each : span(w))
            if (!(each > 0) || !(each < HUGE_VAL)) refuse("weight must be finite and positive");
        return span(w);
    }

    PyGrower(nb::object held, Vector<double> weight, int threads)
        : grower(nb::cast<const Table&>(held).bins, checked(weight, nb::cast<const Table&>(held).bins.rows), checked(threads)),
          table(held) {}
    static int checked(int threads) {
        if (threads < 1 || threads > 1024) refuse("threads must lie in 1 … 1024");
        return threads;
    }

    void set_options(double l2, double min_samples_leaf, double min_curvature, double min_gain, Index max_leaves, Index max_depth,
                     double category_smoothing, double category_l2, double category_support, bool count_rows) {
        if (!(l2 >= 0) || !(min_samples_leaf >= 0) || !(min_curvature >= 0) || !(min_gain >= 0) || max_leaves < 1 ||
            max_depth < 0 || !(category_smoothing >= 0) || !(category_l2 >= 0) || !(category_support >= 0))
            refuse("an option is out of range");
        grower.options = {l2,          min_samples_leaf, min_curvature, min_gain, category_smoothing,
                          category_l2, category_support, max_leaves,    max_depth};
        grower.weights.count_rows = count_rows;
    }

    void set_constraints(Vector<std::int8_t> monotone, nb::ndarray<const std::uint8_t, nb::ndim<2>, nb::c_contig> sets) {
        const Index d = grower.bins.features;
        if (monotone.size()) expect_length(monotone, d, "monotone");
        grower.monotone.assign(monotone.data(), monotone.data() + monotone.size());
        grower.interactions.clear();
        if (sets.shape(0) && static_cast<Index>(sets.shape(1)) != d) refuse("interactions must have one column for each feature");
        for (std::size_t s = 0; s < sets.shape(0); ++s)
            grower.interactions.emplace_back(sets.data() + s * d, sets.data() + (s + 1) * d);
    }

    void set(Source source) {
        without_gil([&] { grower.gradients.set(source, grower.weights); });
    }
    void set_gradients(Vector<double> g, std::optional<Vector<double>> h) {
        expect_length(g, grower.bins.rows, "g");
        if (h) expect_length(*h, grower.bins.rows, "h");
        set({Source::kArrays, {g.data()}, {h ? h->data() : nullptr}});
    }
    void set_logistic(Numbers f, Numbers y) {
        set({Source::kLogistic, numbers(f, grower.bins.rows, "f"), numbers(y, grower.bins.rows, "y")});
    }
    void set_squared(Numbers f, Numbers y) {
        set({Source::kSquared, numbers(f, grower.bins.rows, "f"), numbers(y, grower.bins.rows, "y")});
    }
    void set_softmax(Numbers f, Numbers y, Numbers total, int output) {
        const Index n = grower.bins.rows;
        set({Source::kSoftmax, numbers(f, n, "f"), numbers(y, n, "y"), numbers(total, n, "total"), output});
    }
    template <class T>
    void log_sum_exp(ColumnMajor<T> scores, Output<T> out) {
        const Index n = grower.bins.rows;
        if (static_cast<Index>(scores.shape(0)) != n) refuse("scores must have one row for each row of the table");
        expect_length(out, n, "out");
        without_gil(
            [&] { boosting::log_sum_exp(scores.data(), n, static_cast<Index>(scores.shape(1)), out.data(), *grower.team); });
    }

    void grow(std::optional<Vector<std::uint32_t>> rows, Vector<std::uint8_t> active) {
        expect_length(active, grower.bins.features, "active");
        if (!grower.gradients.ready()) refuse("set the gradients first");
        if (rows)
            for (std::size_t k = 0; k < rows->size(); ++k)
                if (static_cast<Index>(rows->data()[k]) >= grower.bins.rows) refuse("a row is out of bounds");
        if (rows && rows->size() == 0) refuse("rows is empty");
        std::vector<std::uint8_t> mask(active.data(), active.data() + active.size());
        without_gil([&] {
            grower.grow(rows ? rows->data() : nullptr, rows ? static_cast<Index>(rows->size()) : grower.bins.rows, mask);
        });
    }

    nb::dict tree() const {
        const std::size_t n = grower.nodes.size();
        std::vector<std::int32_t> feature(n, -1), left(n, -1), right(n, -1), category(n, -1);
        std::vector<std::uint8_t> bin(n, 0), missing_left(n, 0);
        std::vector<double> value(n), gain(n, 0.0), count(n), curvature(n), gradient(n);
        std::vector<std::int64_t> begin(n), end(n);
        std::vector<std::uint64_t> sets;
        for (std::size_t v = 0; v < n; ++v) {
            const Node& node = grower.nodes[v];
            value[v] = node.value, begin[v] = node.begin, end[v] = node.end;
            count[v] = grower.gradients.units.c(node.sums[1]);
            gradient[v] = grower.gradients.units.g(node.sums[0]), curvature[v] = grower.gradients.units.h(node.sums[1]);
            if (node.left < 0) continue;
            feature[v] = static_cast<std::int32_t>(node.split.feature), left[v] = node.left, right[v] = node.right;
            bin[v] = static_cast<std::uint8_t>(node.split.bin), missing_left[v] = node.split.missing_left;
            gain[v] = 0.5 * node.split.gain;
            if (node.split.categorical) {
                category[v] = static_cast<std::int32_t>(sets.size() / 4);
                sets.insert(sets.end(), node.split.left_set.begin(), node.split.left_set.end());
            }
        }
        nb::dict result;
        result["feature"] = array(std::move(feature)), result["left"] = array(std::move(left)),
        result["right"] = array(std::move(right));
        result["category"] = array(std::move(category)), result["bin"] = array(std::move(bin));
        result["missing_left"] = array(std::move(missing_left)), result["value"] = array(std::move(value));
        result["gain"] = array(std::move(gain)), result["count"] = array(std::move(count));
        result["gradient"] = array(std::move(gradient)), result["curvature"] = array(std::move(curvature));
        result["begin"] = array(std::move(begin)), result["end"] = array(std::move(end)), result["sets"] = array(std::move(sets));
        return result;
    }

    nb::object rows() const { return array(grower.rows()); }
    nb::object rows_between(Index begin, Index end) const {
        const auto& rows = grower.rows();
        if (begin < 0 || begin > end || end > static_cast<Index>(rows.size())) refuse("rows out of bounds");
        return array(std::vector<std::uint32_t>(rows.begin() + begin, rows.begin() + end));
    }

    void set_values(Vector<double> values) {
        expect_length(values, static_cast<Index>(grower.nodes.size()), "values");
        for (std::size_t v = 0; v < values.size(); ++v) grower.nodes[v].value = values.data()[v];
    }

    template <class T>
    void add_to(Output<T> score, double step) const {
        expect_length(score, grower.bins.rows, "score");
        without_gil([&] { grower.add_to(score.data(), step); });
    }

    nb::object route(Vector<std::uint32_t> rows) const {
        std::vector<std::int32_t> leaf(rows.size());
        for (std::size_t k = 0; k < rows.size(); ++k)
            if (static_cast<Index>(rows.data()[k]) >= grower.bins.rows) refuse("a row is out of bounds");
        without_gil([&] {
            const Index n = static_cast<Index>(rows.size());
            constexpr Index kPiece = 4096;
            grower.team->run((n + kPiece - 1) / kPiece, true, [&](Index p, int) {
                for (Index k = p * kPiece; k < std::min((p + 1) * kPiece, n); ++k) leaf[k] = grower.route(rows.data()[k]);
            });
        });
        return array(std::move(leaf));
    }

    // Exact minimizers for the listed nodes, in place of Newton's values.
    nb::object hinge_values(Vector<double> a, Vector<double> b, Vector<double> down, Vector<double> up,
                            Vector<std::int32_t> wanted, double l2) const {
        const Index n = grower.bins.rows, count = static_cast<Index>(wanted.size());
        expect_length(a, n, "a"), expect_length(b, n, "b"), expect_length(down, n, "down"), expect_length(up, n, "up");
        std::vector<double> values(count);
        for (Index k = 0; k < count; ++k)
            if (wanted.data()[k] < 0 || wanted.data()[k] >= static_cast<Index>(grower.nodes.size()))
                refuse("a node is out of bounds");
        without_gil([&] {
            const Hinges hinges{a.data(), b.data(), down.data(), up.data()};
            std::vector<std::vector<std::pair<double, double>>> points(grower.team->size());
            for (auto& p : points) p.reserve(2 * grower.rows().size());  // so that no task allocates
            grower.team->run(count, n > 8192, [&](Index k, int worker) {
                const Node& node = grower.nodes[wanted.data()[k]];
                values[k] = hinge_minimizer(hinges, {grower.rows().data() + node.begin, grower.rows().data() + node.end}, l2,
                                            points[worker]);
            });
        });
        return array(std::move(values));
    }
};

// Many trees, checked once; keeps the arrays alive.
struct PyForest {
    Forest forest;
    Index features;
    nb::object owners;

    PyForest(Vector<std::int64_t> start, Vector<std::int32_t> feature, Vector<std::int32_t> left, Vector<std::int32_t> right,
             Vector<std::int32_t> category, Vector<std::uint8_t> bin, Vector<std::uint8_t> missing_left, Vector<double> value,
             Vector<std::uint64_t> sets, Vector<std::uint8_t> missing, Index outputs)
        : features(static_cast<Index>(missing.size())),
          owners(nb::make_tuple(start, feature, left, right, category, bin, missing_left, nb::make_tuple(value, sets, missing))) {
        const Index n = static_cast<Index>(feature.size());
        expect_length(left, n, "left"), expect_length(right, n, "right"), expect_length(category, n, "category"),
            expect_length(bin, n, "bin");
        expect_length(missing_left, n, "missing_left"), expect_length(value, n, "value");
        if (start.size() < 1 || start.data()[0] != 0 || start.data()[start.size() - 1] != n)
            refuse("start must run from 0 to the number of nodes");
        if (outputs < 1) refuse("outputs must be at least 1");
        // Both ends are right; with steps that never go back, so is everything between.
        for (std::size_t t = 0; t + 1 < start.size(); ++t)
            if (start.data()[t + 1] <= start.data()[t]) refuse("a tree is empty");
        for (std::size_t t = 0; t + 1 < start.size(); ++t) {
            const Index base = start.data()[t], size = start.data()[t + 1] - base;
            std::vector<std::uint8_t> seen(size, 0);
            for (Index v = 0; v < size; ++v) {
                const Index at = base + v;
                if (feature.data()[at] < 0) continue;
                const Index l = left.data()[at], r = right.data()[at];
                if (feature.data()[at] >= features) refuse("a feature is out of bounds");
                // Children come after their parent and have only one, so there are no cycles.
                if (l <= v || r <= v || l >= size || r >= size || l == r || seen[l]++ || seen[r]++)
                    refuse("a tree is not a tree");
                if (category.data()[at] >= 0 && 4 * (static_cast<std::size_t>(category.data()[at]) + 1) > sets.size())
                    refuse("a category is out of bounds");
            }
        }
        forest = {span(start),        span(feature), span(left), span(right),   span(category), span(bin),
                  span(missing_left), span(value),   span(sets), span(missing), outputs};
    }

    void check(Index rows, Index columns, Index first, Index last, Index out, int threads) const {
        if (columns != features) refuse("X and the trees differ in their number of columns");
        if (first < 0 || first > last || last > forest.trees()) refuse("trees out of bounds");
        if (out != rows * forest.outputs) refuse("out has the wrong size");
        expect_threads(threads);
    }

    template <class T>
    void predict(AnyLayout<T> X, Vector<std::int64_t> offsets, Vector<double> values, Vector<std::uint8_t> codes,
                 Vector<std::uint8_t> categorical, Vector<std::uint8_t> missing, Index first, Index last, Output<double> out,
                 int threads) const {
        check(X.shape(0), X.shape(1), first, last, out.size(), threads);
        expect_length(missing, features, "missing"), expect_length(categorical, features, "categorical"),
            expect_length(offsets, features + 1, "offsets");
        expect_length(codes, values.size(), "codes");
        for (Index j = 0; j < features; ++j) {
            const std::int64_t size = offsets.data()[j + 1] - offsets.data()[j];
            if (offsets.data()[0] != 0 || size < 0 || size > 255) refuse("a column has at most 255 edges or categories");
        }
        if (offsets.data()[features] != static_cast<std::int64_t>(values.size()))
            refuse("offsets must end at the number of values");
        const binning::View<T> view{X.data(), static_cast<Index>(X.shape(0)), static_cast<Index>(X.shape(1)),
                                    static_cast<Index>(X.stride(0)), static_cast<Index>(X.stride(1))};
        const binning::Table table{span(offsets), span(values), span(codes), span(categorical), span(missing)};
        nb::gil_scoped_release release;
        boosting::predict(view, table, forest, first, last, out.data(), threads);
    }

    void predict_bins(ColumnMajor<std::uint8_t> bins, Index first, Index last,
                      Output<double> out, int threads) const {
        check(bins.shape(0), bins.shape(1), first, last, out.size(), threads);
        nb::gil_scoped_release release;
        boosting::predict_bins(bins.data(), bins.shape(0), bins.shape(1), forest, first, last, out.data(), threads);
    }

    // Node of every row in every tree.
    void apply(ColumnMajor<std::uint8_t> bins, Output<std::int32_t> out, int threads) const {
        const Index n = bins.shape(0), trees = forest.trees();
        if (static_cast<Index>(bins.shape(1)) != features) refuse("bins and the trees differ in their number of columns");
        expect_length(out, n * trees, "out");
        expect_threads(threads);
        nb::gil_scoped_release release;
        const std::uint8_t* data = bins.data();
        Team(threads).blocks(n, 1024, n > 4096, [&](Index from, Index to, int) {
            for (Index i = from; i < to; ++i)
                for (Index t = 0; t < trees; ++t)
                    out.data()[i * trees + t] =
                        static_cast<std::int32_t>(forest.leaf(t, [&](Index j) { return data[j * n + i]; }) - forest.start[t]);
        });
    }
};

}  // namespace

NB_MODULE(boosting, m) {
    nb::set_leak_warnings(false);  // a model that lives as long as the interpreter is no leak
    nb::class_<Table>(m, "Table")
        .def(nb::init<Vector<std::uint8_t>, Index, Index, Vector<std::int64_t>, Vector<std::int64_t>, Vector<std::uint8_t>,
                      Index>(),
             "data"_a.noconvert(), "rows"_a, "stride"_a, "column"_a.noconvert(), "n_bins"_a.noconvert(),
             "categorical"_a.noconvert(), "group"_a);
    nb::class_<PyGrower>(m, "Grower")
        .def(nb::init<nb::object, Vector<double>, int>(), "table"_a, "weight"_a.noconvert(), "threads"_a)
        .def("set_options", &PyGrower::set_options, "l2"_a, "min_samples_leaf"_a, "min_curvature"_a, "min_gain"_a, "max_leaves"_a,
             "max_depth"_a, "category_smoothing"_a, "category_l2"_a, "category_support"_a, "count_rows"_a = false)
        .def("set_constraints", &PyGrower::set_constraints, "monotone"_a.noconvert(), "interactions"_a.noconvert())
        .def("set_gradients", &PyGrower::set_gradients, "g"_a.noconvert(), "h"_a.noconvert().none())
        .def("set_logistic", &PyGrower::set_logistic, "f"_a.noconvert(), "y"_a.noconvert())
        .def("set_squared", &PyGrower::set_squared, "f"_a.noconvert(), "y"_a.noconvert())
        .def("set_softmax", &PyGrower::set_softmax, "f"_a.noconvert(), "y"_a.noconvert(), "total"_a.noconvert(), "output"_a)
        .def("log_sum_exp", &PyGrower::log_sum_exp<double>, "scores"_a.noconvert(), "out"_a.noconvert())
        .def("log_sum_exp", &PyGrower::log_sum_exp<float>, "scores"_a.noconvert(), "out"_a.noconvert())
        .def("grow", &PyGrower::grow, "rows"_a.noconvert().none(), "active"_a.noconvert())
        .def("tree", &PyGrower::tree)
        .def("rows", &PyGrower::rows)
        .def("set_values", &PyGrower::set_values, "values"_a.noconvert())
        .def("rows_between", &PyGrower::rows_between, "begin"_a, "end"_a)
        .def("add_to", &PyGrower::add_to<double>, "score"_a.noconvert(), "step"_a)
        .def("add_to", &PyGrower::add_to<float>, "score"_a.noconvert(), "step"_a)
        .def("route", &PyGrower::route, "rows"_a.noconvert())
        .def("hinge_values", &PyGrower::hinge_values, "a"_a.noconvert(), "b"_a.noconvert(), "down"_a.noconvert(),
             "up"_a.noconvert(), "nodes"_a.noconvert(), "l2"_a)
        .def_prop_ro("n_rows", [](const PyGrower& g) { return g.grower.rows().size(); })
        .def_prop_ro("by_lists", [](const PyGrower& g) { return g.grower.by_lists(); })
        .def_prop_ro("narrow", [](const PyGrower& g) { return g.grower.gradients.narrow; });
    nb::class_<PyForest>(m, "Forest")
        .def(nb::init<Vector<std::int64_t>, Vector<std::int32_t>, Vector<std::int32_t>, Vector<std::int32_t>,
                      Vector<std::int32_t>, Vector<std::uint8_t>, Vector<std::uint8_t>, Vector<double>, Vector<std::uint64_t>,
                      Vector<std::uint8_t>, Index>(),
             "start"_a.noconvert(), "feature"_a.noconvert(), "left"_a.noconvert(), "right"_a.noconvert(),
             "category"_a.noconvert(), "bin"_a.noconvert(), "missing_left"_a.noconvert(), "value"_a.noconvert(),
             "sets"_a.noconvert(), "missing"_a.noconvert(), "outputs"_a)
        .def("predict", &PyForest::predict<double>, "X"_a.noconvert(), "offsets"_a.noconvert(), "values"_a.noconvert(),
             "codes"_a.noconvert(), "categorical"_a.noconvert(), "missing"_a.noconvert(), "first"_a, "last"_a,
             "out"_a.noconvert(), "threads"_a)
        .def("predict", &PyForest::predict<float>, "X"_a.noconvert(), "offsets"_a.noconvert(), "values"_a.noconvert(),
             "codes"_a.noconvert(), "categorical"_a.noconvert(), "missing"_a.noconvert(), "first"_a, "last"_a,
             "out"_a.noconvert(), "threads"_a)
        .def("predict_bins", &PyForest::predict_bins, "bins"_a.noconvert(), "first"_a, "last"_a, "out"_a.noconvert(), "threads"_a)
        .def("apply", &PyForest::apply, "bins"_a.noconvert(), "out"_a.noconvert(), "threads"_a);
}
