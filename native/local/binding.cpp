// certifit._native.local: regression and logistic regression around each query.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>

#include "core/boundary.hpp"
#include "local/logistic.hpp"
#include "local/regression.hpp"

using namespace certifit;
using namespace certifit::boundary;
using namespace certifit::local;

namespace {

using Blocks = nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

// Arrays of Python's, block by block; n rows of them are real.
struct Table {
    Blocks X, y;
    RowMajor<double> s, low, high;
    Rows view;
    Table(Blocks X_, Blocks y_, RowMajor<double> s_, RowMajor<double> low_, RowMajor<double> high_, Index n, bool alike)
        : X(X_), y(y_), s(s_), low(low_), high(high_) {
        const std::size_t blocks = X.shape(0), d = X.shape(1);
        const bool full = X.shape(2) == kRows && y.shape(2) == kRows && s.shape(1) == kRows;
        if (!full || y.shape(0) != blocks || s.shape(0) != blocks) refuse("X, y and s must be blocks of 256 rows");
        if (low.shape(0) != blocks || high.shape(0) != blocks || low.shape(1) != d || high.shape(1) != d)
            refuse("every block needs a box");
        const auto most = static_cast<Index>(blocks) * kRows;
        if (n < 1 || n > most || n <= most - kRows) refuse("n does not fit the number of blocks");
        view = {X.data(), y.data(), s.data(), low.data(), high.data(), static_cast<Index>(blocks), n, static_cast<Index>(d),
                static_cast<Index>(y.shape(1)), alike};
    }
};

Lens lens_of(const std::string& shape, int degree, double width, double fraction) {
    if (shape != "gaussian" && shape != "tricube") refuse("no shape " + shape);
    if (degree < 0 || degree > 2) refuse("the degree must be 0, 1 or 2");
    if (!(width > 0.0) && !(fraction > 0.0 && fraction <= 1.0)) refuse("a width or a fraction is needed");
    return {shape == "gaussian" ? Shape::gaussian : Shape::tricube, degree, width > 0.0 ? width : 0.0, fraction};
}

void check_queries(const Table& table, const RowMajor<double>& queries) {
    if (static_cast<Index>(queries.shape(1)) != table.view.d) refuse("rows and queries differ in columns");
}

void run_regress(const Table& table, const Lens& lens, RowMajor<double> queries, OutputRows<double> value, Output<double> own,
                 std::optional<Output<double>> spread, Output<double> width, int threads) {
    check_queries(table, queries);
    const std::size_t m = queries.shape(0);
    if (value.shape(0) != m || static_cast<Index>(value.shape(1)) != table.view.targets)
        refuse("the answer must have a row for each query");
    expect_length(own, m, "own"), expect_length(width, m, "width");
    if (spread) expect_length(*spread, m, "spread");
    with_team(threads, [&](Team& team) {
        regress(table.view, lens, queries.data(), static_cast<Index>(m),
                {value.data(), own.data(), spread ? spread->data() : nullptr, width.data()}, team);
    });
}

// The objective of each local fit: its strength, and how near its minimum is near enough.
struct Objective {
    double alpha, tolerance;
};

void run_classify(const Table& table, const Lens& lens, const Objective& objective, Vector<double> base, RowMajor<double> queries,
                  std::optional<Vector<std::int64_t>> left, double copy, OutputRows<double> odds, Output<double> missing,
                  int threads) {
    check_queries(table, queries);
    const std::size_t m = queries.shape(0);
    if (odds.shape(0) != m || static_cast<Index>(odds.shape(1)) != table.view.targets)
        refuse("the answer must have a row for each query");
    expect_length(missing, m, "missing"), expect_length(base, odds.shape(1), "base");
    if (left) expect_length(*left, m, "left");
    with_team(threads, [&](Team& team) {
        classify(table.view, lens, base.data(), Newton(lens.terms(table.view.d), objective.alpha, objective.tolerance),
                 queries.data(), static_cast<Index>(m), {left ? left->data() : nullptr, copy}, {odds.data(), missing.data()},
                 team);
    });
}

}  // namespace

NB_MODULE(local, m) {
    m.attr("ROWS") = kRows;
    nb::class_<Table>(m, "Table")
        .def(nb::init<Blocks, Blocks, RowMajor<double>, RowMajor<double>, RowMajor<double>, Index, bool>(), "X"_a.noconvert(),
             "y"_a.noconvert(), "s"_a.noconvert(), "low"_a.noconvert(), "high"_a.noconvert(), "n"_a, "alike"_a);
    nb::class_<Lens>(m, "Lens").def(
        "__init__",
        [](Lens* self, const std::string& shape, int degree, double width, double fraction) {
            new (self) Lens(lens_of(shape, degree, width, fraction));
        },
        "shape"_a, "degree"_a, "width"_a, "fraction"_a);
    m.def("regress", &run_regress, "table"_a, "lens"_a, "queries"_a.noconvert(), "value"_a.noconvert(), "own"_a.noconvert(),
          "spread"_a.noconvert().none(), "width"_a.noconvert(), "threads"_a);
    nb::class_<Objective>(m, "Objective").def("__init__", [](Objective* self, double alpha, double tolerance) {
        if (!(alpha > 0.0) || !(tolerance >= 0.0)) refuse("alpha must be positive and the tolerance not negative");
        new (self) Objective{alpha, tolerance};
    }, "alpha"_a, "tolerance"_a);
    m.def("classify", &run_classify, "table"_a, "lens"_a, "objective"_a, "base"_a.noconvert(), "queries"_a.noconvert(),
          "left"_a.noconvert().none(), "copy"_a, "odds"_a.noconvert(), "missing"_a.noconvert(), "threads"_a);
}
