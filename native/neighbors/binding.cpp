// certifit._native.neighbors: the k nearest rows, and the rows within a radius.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>

#include "core/boundary.hpp"
#include "neighbors/direct.hpp"
#include "neighbors/panels.hpp"
#include "neighbors/tree.hpp"

using namespace certifit;
using namespace certifit::boundary;
using namespace certifit::neighbors;

namespace {

constexpr Index kBlock = 8;  // queries of a task

using Distances = OutputRows<double>;
using Rows = OutputRows<std::int64_t>;
using Except = std::optional<Vector<std::int64_t>>;

Norm norm_of(const std::string& name, double p) {
    if (name == "squared") return {Kind::squared, 2.0};
    if (name == "absolute") return {Kind::absolute, 1.0};
    if (name == "maximum") return {Kind::maximum, 1.0};
    if (name == "missing") return {Kind::missing, 2.0};
    if (name != "power" || !(p > 0.0)) refuse("no norm " + name);
    return {Kind::power, p};
}

Answer answer_of(const Distances& distance, const Rows& row, const Except& except, std::size_t queries, Index n) {
    const auto k = static_cast<Index>(distance.shape(1));
    if (distance.shape(0) != queries || row.shape(0) != queries || row.shape(1) != distance.shape(1))
        refuse("the answer must have a row for each query");
    if (except) expect_length(*except, queries, "except");
    if (k < 1 || k > n - (except ? 1 : 0)) refuse("k must be from 1 to the number of rows");
    return {distance.data(), row.data(), except ? except->data() : nullptr, k};
}

Dense dense_of(const RowMajor<double>& X) { return {X.data(), static_cast<Index>(X.shape(0)), static_cast<Index>(X.shape(1))}; }

Sparse sparse_of(const Vector<double>& data, const Vector<std::int64_t>& indices, const Vector<std::int64_t>& indptr,
                 Index columns) {
    return {data.data(), indices.data(), indptr.data(), check_compressed(data, indices, indptr, columns, "column")};
}

template <class T>
void run_panels(RowMajor<T> X, RowMajor<T> Q, Vector<double> center, double scale, Distances distance, Rows row, Except except,
                int threads) {
    const auto n = static_cast<Index>(X.shape(0)), d = static_cast<Index>(X.shape(1)), m = static_cast<Index>(Q.shape(0));
    if (static_cast<Index>(Q.shape(1)) != d) refuse("rows and queries differ in columns");
    expect_length(center, X.shape(1), "center");
    const Answer answer = answer_of(distance, row, except, Q.shape(0), n);
    with_team(threads, [&](Team& team) { Panels<T>(X.data(), n, d, {center.data(), scale}).nearest(Q.data(), m, answer, team); });
}

// The nearest, or all within a radius, of anything that `scan` takes.
template <class RowsIn, class QueriesIn>
void nearest_of(const RowsIn& rows, const QueriesIn& queries, const Norm& norm, const Answer& answer, int threads) {
    with_team(threads, [&](Team& team) {
        team.blocks(queries.n, kBlock, true, [&](Index from, Index to, int) {
            scan(rows, queries, norm, from, to, [&](Index q) {
                Nearest nearest = answer.of(q);
                nearest.clear();
                return nearest;
            });
        });
    });
}

template <class RowsIn, class QueriesIn>
nb::tuple within_of(const RowsIn& rows, const QueriesIn& queries, const Norm& norm, double radius, const Except& except,
                    int threads) {
    if (except) expect_length(*except, static_cast<std::size_t>(queries.n), "except");
    std::vector<std::vector<Entry>> found(static_cast<std::size_t>(queries.n));
    with_team(threads, [&](Team& team) {
        team.blocks(queries.n, kBlock, true, [&](Index from, Index to, int) {
            scan(rows, queries, norm, from, to,
                 [&](Index q) { return Within(radius, found[static_cast<std::size_t>(q)], except ? except->data()[q] : -1); });
        });
    });
    std::vector<std::int64_t> start{0}, row;
    std::vector<double> distance;
    for (auto& one : found) {
        for (const auto& [away, i] : one) distance.push_back(away), row.push_back(i);
        start.push_back(static_cast<std::int64_t>(row.size()));
        std::vector<Entry>().swap(one);
    }
    return nb::make_tuple(array(std::move(start)), array(std::move(distance)), array(std::move(row)));
}

void run_dense(RowMajor<double> X, RowMajor<double> Q, const std::string& norm, double p, Distances distance, Rows row,
               Except except, int threads) {
    if (Q.shape(1) != X.shape(1)) refuse("rows and queries differ in columns");
    nearest_of(dense_of(X), dense_of(Q), norm_of(norm, p),
               answer_of(distance, row, except, Q.shape(0), static_cast<Index>(X.shape(0))), threads);
}

nb::tuple within_dense(RowMajor<double> X, RowMajor<double> Q, const std::string& norm, double p, double radius, Except except,
                       int threads) {
    if (Q.shape(1) != X.shape(1)) refuse("rows and queries differ in columns");
    return within_of(dense_of(X), dense_of(Q), norm_of(norm, p), radius, except, threads);
}

struct SparseRows {
    Vector<double> data;
    Vector<std::int64_t> indices, indptr;
    Index columns;
    Sparse view;
    SparseRows(Vector<double> data_, Vector<std::int64_t> indices_, Vector<std::int64_t> indptr_, Index columns_)
        : data(data_), indices(indices_), indptr(indptr_), columns(columns_), view(sparse_of(data, indices, indptr, columns)) {}
};

void run_sparse(const SparseRows& X, const SparseRows& Q, const std::string& norm, double p, Distances distance, Rows row,
                Except except, int threads) {
    const Answer answer = answer_of(distance, row, except, static_cast<std::size_t>(Q.view.n), X.view.n);
    nearest_of(X.view, Q.view, norm_of(norm, p), answer, threads);
}

nb::tuple within_sparse(const SparseRows& X, const SparseRows& Q, const std::string& norm, double p, double radius, Except except,
                        int threads) {
    return within_of(X.view, Q.view, norm_of(norm, p), radius, except, threads);
}

// A tree in arrays of Python's, which model files can hold.
struct TreeArrays {
    Vector<std::int64_t> order;
    RowMajor<double> points;
    Vector<std::int32_t> column;
    Vector<double> left, right;
    Tree view;
    TreeArrays(Vector<std::int64_t> order_, RowMajor<double> points_, Vector<std::int32_t> column_, Vector<double> left_,
               Vector<double> right_)
        : order(order_), points(points_), column(column_), left(left_), right(right_) {
        const auto n = static_cast<Index>(points.shape(0)), d = static_cast<Index>(points.shape(1));
        // Trees in model files may have smaller leaves than those that are built today.
        const int depth = std::bit_width(column.size());
        if ((n >> depth) + 1 > kLeaf || (depth > 0 && (n >> depth) < 1)) refuse("the nodes do not fit the number of rows");
        expect_length(order, points.shape(0), "order");
        for (const auto size : {column.size(), left.size(), right.size()})
            expect_length(size, static_cast<std::size_t>(nodes_of(depth)), "a column of the nodes");
        for (std::size_t i = 0; i < column.size(); ++i)
            if (column.data()[i] < 0 || column.data()[i] >= d) refuse("a node cuts a column that is not there");
        view = {n, d, depth, order.data(), points.data(), column.data(), left.data(), right.data()};
    }
};

nb::tuple build_tree(RowMajor<double> X, int threads) {
    const Dense rows = dense_of(X);
    const auto nodes = static_cast<std::size_t>(nodes_of(depth_of(rows.n)));
    std::vector<std::int64_t> order(static_cast<std::size_t>(rows.n));
    std::vector<double> points(static_cast<std::size_t>(rows.n * rows.d)), left(nodes), right(nodes);
    std::vector<std::int32_t> column(nodes);
    with_team(threads,
              [&](Team& team) { build(rows, {order.data(), points.data(), column.data(), left.data(), right.data()}, team); });
    return nb::make_tuple(array(std::move(order)), array(std::move(points), {X.shape(0), X.shape(1)}), array(std::move(column)),
                          array(std::move(left)), array(std::move(right)));
}

void run_tree(const TreeArrays& tree, RowMajor<double> Q, const std::string& norm, double p, Distances distance, Rows row,
              Except except, int threads) {
    if (static_cast<Index>(Q.shape(1)) != tree.view.d) refuse("rows and queries differ in columns");
    nearest_of(tree.view, dense_of(Q), norm_of(norm, p), answer_of(distance, row, except, Q.shape(0), tree.view.n), threads);
}

nb::tuple within_tree(const TreeArrays& tree, RowMajor<double> Q, const std::string& norm, double p, double radius, Except except,
                      int threads) {
    if (static_cast<Index>(Q.shape(1)) != tree.view.d) refuse("rows and queries differ in columns");
    return within_of(tree.view, dense_of(Q), norm_of(norm, p), radius, except, threads);
}

// Distances that somebody else computed, queries × rows.
void run_given(RowMajor<double> D, Distances distance, Rows row, Except except, int threads) {
    const auto m = static_cast<Index>(D.shape(0)), n = static_cast<Index>(D.shape(1));
    const Answer answer = answer_of(distance, row, except, D.shape(0), n);
    with_team(threads, [&](Team& team) {
        team.blocks(m, kBlock, true, [&](Index from, Index to, int) {
            for (Index q = from; q < to; ++q) {
                Nearest nearest = answer.of(q);
                nearest.clear();
                for (Index i = 0; i < n; ++i)
                    if (D.data()[q * n + i] <= nearest.bound()) nearest.offer(D.data()[q * n + i], i);
                nearest.finish();
            }
        });
    });
}

}  // namespace

NB_MODULE(neighbors, m) {
    nb::class_<SparseRows>(m, "Sparse")
        .def(nb::init<Vector<double>, Vector<std::int64_t>, Vector<std::int64_t>, Index>(), "data"_a.noconvert(),
             "indices"_a.noconvert(), "indptr"_a.noconvert(), "columns"_a);
    nb::class_<TreeArrays>(m, "Tree").def(
        nb::init<Vector<std::int64_t>, RowMajor<double>, Vector<std::int32_t>, Vector<double>, Vector<double>>(),
        "order"_a.noconvert(), "points"_a.noconvert(), "column"_a.noconvert(), "left"_a.noconvert(), "right"_a.noconvert());
    m.def("build", &build_tree, "X"_a.noconvert(), "threads"_a);
    m.def("panels", &run_panels<double>, "X"_a.noconvert(), "Q"_a.noconvert(), "center"_a.noconvert(), "scale"_a,
          "distance"_a.noconvert(), "row"_a.noconvert(), "skip"_a.noconvert().none(), "threads"_a);
    m.def("panels", &run_panels<float>, "X"_a.noconvert(), "Q"_a.noconvert(), "center"_a.noconvert(), "scale"_a,
          "distance"_a.noconvert(), "row"_a.noconvert(), "skip"_a.noconvert().none(), "threads"_a);
    m.def("nearest", &run_dense, "X"_a.noconvert(), "Q"_a.noconvert(), "norm"_a, "p"_a, "distance"_a.noconvert(),
          "row"_a.noconvert(), "skip"_a.noconvert().none(), "threads"_a);
    m.def("nearest", &run_sparse, "X"_a, "Q"_a, "norm"_a, "p"_a, "distance"_a.noconvert(), "row"_a.noconvert(),
          "skip"_a.noconvert().none(), "threads"_a);
    m.def("nearest", &run_tree, "tree"_a, "Q"_a.noconvert(), "norm"_a, "p"_a, "distance"_a.noconvert(), "row"_a.noconvert(),
          "skip"_a.noconvert().none(), "threads"_a);
    m.def("within", &within_dense, "X"_a.noconvert(), "Q"_a.noconvert(), "norm"_a, "p"_a, "radius"_a, "skip"_a.noconvert().none(),
          "threads"_a);
    m.def("within", &within_sparse, "X"_a, "Q"_a, "norm"_a, "p"_a, "radius"_a, "skip"_a.noconvert().none(), "threads"_a);
    m.def("within", &within_tree, "tree"_a, "Q"_a.noconvert(), "norm"_a, "p"_a, "radius"_a, "skip"_a.noconvert().none(),
          "threads"_a);
    m.def("given", &run_given, "D"_a.noconvert(), "distance"_a.noconvert(), "row"_a.noconvert(), "skip"_a.noconvert().none(),
          "threads"_a);
}
