// certifit._native.subset: the best subsets of columns for least squares.
#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>

#include <cstdint>
#include <limits>
#include <tuple>
#include <vector>

#include "core/boundary.hpp"
#include "subset/subset.hpp"

using namespace certifit;
using namespace certifit::boundary;

namespace {

// gram of (y, X) with unit diagonal; returns RSS, bound of what was left aside, support and the number of nodes.
nb::tuple best_subsets(RowMajor<double> gram, Vector<double> delta, std::ptrdiff_t most, double least_pivot, double slack,
                       std::int64_t limit, double seconds) {
    const auto n = static_cast<Index>(gram.shape(0)), d = n - 1;
    if (d < 1 || static_cast<Index>(gram.shape(1)) != n) refuse("gram must be square, with y and at least one column");
    expect_length(delta, static_cast<std::size_t>(d), "delta");
    if (most < 0 || most > d) refuse("most must be between 0 and the number of columns");
    if (!(least_pivot > 0.0)) refuse("least_pivot must be positive");
    if (!(seconds >= 0.0)) refuse("seconds must not be negative");
    subset::Tableau t;
    t.stride = n;
    t.entries.assign(gram.data(), gram.data() + n * n);
    t.column.resize(static_cast<std::size_t>(n)), t.basic.assign(static_cast<std::size_t>(n), 0);
    t.column[0] = -1, t.dependent = d;
    for (Index i = 1; i < n; ++i) t.column[i] = i - 1;
    subset::Search search;
    search.d = d, search.most = most, search.least_pivot = least_pivot, search.slack = slack, search.limit = limit;
    search.seconds = seconds;
    search.delta.assign(delta.data(), delta.data() + d);
    const auto sizes = static_cast<std::size_t>(most) + 1;
    search.best.assign(sizes, std::numeric_limits<double>::infinity());
    search.left = search.best;
    search.support.assign(sizes * static_cast<std::size_t>(d), 0);
    without_gil([&] {
        SignalPoll signals;
        search.signals = &signals;
        subset::greedy(t, search);
        subset::Explorer(t, search).run();
    });
    return nb::make_tuple(array(std::move(search.best)), array(std::move(search.left)),
                          array(std::move(search.support), {sizes, static_cast<std::size_t>(d)}), search.nodes);
}

}  // namespace

NB_MODULE(subset, m) {
    m.def("best_subsets", &best_subsets, "gram"_a.noconvert(), "delta"_a.noconvert(), "most"_a, "least_pivot"_a, "slack"_a,
          "limit"_a, "seconds"_a);
}
