// certifit._native.linkage: hierarchies of clusters, as SciPy's linkage matrix.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include "core/boundary.hpp"
#include "linkage/chain.hpp"
#include "linkage/spanning.hpp"

using namespace certifit;
using namespace certifit::boundary;
using namespace certifit::linkage;

namespace {

// work(team, signals) gives the merges of n points.
template <class F>
nb::object rows_of(Index n, int threads, F&& work) {
    expect_threads(threads);
    if (n < 1) refuse("there must be a row");
    std::vector<double> rows;
    without_gil([&] {
        SignalPoll signals;
        Team team(threads, &signals);
        rows = as_rows(work(team, &signals), n);
    });
    const std::size_t merges = rows.size() / 4;
    return array(std::move(rows), {merges, 4});
}

nb::object single(RowMajor<double> X, bool by_tree, int threads) {
    const auto n = static_cast<Index>(X.shape(0)), d = static_cast<Index>(X.shape(1));
    return rows_of(n, threads, [&](Team& team, SignalPoll* signals) {
        if (by_tree) return Boruvka(X.data(), n, d).tree(team);
        Outside points(X.data(), n, d);
        return prim(points, n, team, signals);
    });
}

Index side_of(std::size_t rows, std::size_t columns) {
    if (rows != columns) refuse("D must be square");
    return static_cast<Index>(rows);
}

nb::object single_given(RowMajor<double> D, int threads) {
    const Index n = side_of(D.shape(0), D.shape(1));
    return rows_of(n, threads, [&](Team& team, SignalPoll* signals) {
        OutsideGiven points(D.data(), n);
        return prim(points, n, team, signals);
    });
}

nb::object ward(RowMajor<double> X, int threads) {
    const auto n = static_cast<Index>(X.shape(0)), d = static_cast<Index>(X.shape(1));
    return rows_of(n, threads, [&](Team& team, SignalPoll* signals) {
        Means means(X.data(), n, d);
        return chain(means, team, signals);
    });
}

// D is overwritten.
nb::object square(OutputRows<double> D, const std::string& method, int threads) {
    const Index n = side_of(D.shape(0), D.shape(1));
    if (method != "average" && method != "complete") refuse("no method " + method);
    return rows_of(n, threads, [&](Team& team, SignalPoll* signals) {
        Square distances(D.data(), n, method == "average");
        return chain(distances, team, signals);
    });
}

void distances(RowMajor<double> X, OutputRows<double> D, int threads) {
    const auto n = static_cast<Index>(X.shape(0)), d = static_cast<Index>(X.shape(1));
    if (side_of(D.shape(0), D.shape(1)) != n) refuse("D must have a row for each row of X");
    with_team(threads, [&](Team& team) {
        std::vector<double> columns(static_cast<std::size_t>(n * d));
        for (Index i = 0; i < n; ++i)
            for (Index j = 0; j < d; ++j) columns[static_cast<std::size_t>(j * n + i)] = X.data()[i * d + j];
        team.blocks(n, kStrip, n * n * d > 100'000,
                    [&](Index from, Index to, int) { strip_of_distances(columns.data(), n, d, from, to - from, D.data()); });
    });
}

}  // namespace

NB_MODULE(linkage, m) {
    m.def("single", &single, "X"_a.noconvert(), "by_tree"_a, "threads"_a);
    m.def("single_given", &single_given, "D"_a.noconvert(), "threads"_a);
    m.def("ward", &ward, "X"_a.noconvert(), "threads"_a);
    m.def("square", &square, "D"_a.noconvert(), "method"_a, "threads"_a);
    m.def("distances", &distances, "X"_a.noconvert(), "D"_a.noconvert(), "threads"_a);
}
