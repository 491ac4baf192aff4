// certifit._native.bayes: counting by class.
#include "bayes/bayes.hpp"
#include "core/boundary.hpp"
#include "core/boundary/layouts.hpp"

using namespace certifit::bayes;
using certifit::Index;
using namespace certifit::boundary;

namespace {

using Codes = Vector<std::int64_t>;
using Table = RowMajor<double>;
using Sums = OutputRows<double>;

template <class Array>
void expect_shape(const Array& a, Index rows, Index columns, const char* name) {
    if (static_cast<Index>(a.shape(0)) != rows || static_cast<Index>(a.shape(1)) != columns)
        refuse(std::string(name) + " must have shape (" + std::to_string(rows) + ", " + std::to_string(columns) + ")");
}

template <class Array>
Index rows_of(const Array& a) { return static_cast<Index>(a.shape(0)); }
template <class Array>
Index columns_of(const Array& a) { return static_cast<Index>(a.shape(1)); }

Labels labels(const Codes& group, const Vector<double>& weight, Index n, Index K) {
    expect_length(group, static_cast<std::size_t>(n), "group");
    expect_length(weight, static_cast<std::size_t>(n), "weight");
    for (Index i = 0; i < n; ++i)
        if (group.data()[i] < 0 || group.data()[i] >= K) refuse("group must hold classes from 0");
    return {group.data(), weight.data(), n, K};
}

void expect_offset(const Codes& offset, Index d, Index total) {
    expect_length(offset, static_cast<std::size_t>(d) + 1, "offset");
    if (offset.data()[0] != 0 || offset.data()[d] != total) refuse("offset must run from 0 to the number of categories");
    for (Index j = 0; j < d; ++j)
        if (offset.data()[j + 1] < offset.data()[j]) refuse("offset must not fall");
}

template <class T>
void run_moments(RowMajor<T> X, Codes group, Vector<double> weight, Sums held, Sums mean, Sums scatter, int threads) {
    const Index d = columns_of(X), K = rows_of(held);
    const Labels rows = labels(group, weight, rows_of(X), K);
    expect_shape(held, K, d, "held"), expect_shape(mean, K, d, "mean"), expect_shape(scatter, K, d, "scatter");
    expect_threads(threads);
    without_gil([&] { moments(X.data(), d, rows, held.data(), mean.data(), scatter.data(), threads); });
}

template <class T>
void run_gaussian(RowMajor<T> X, Table mean, Table a, Table c, Sums out, int threads) {
    const Index n = rows_of(X), d = columns_of(X), K = rows_of(mean);
    expect_shape(mean, K, d, "mean"), expect_shape(a, K, d, "a"), expect_shape(c, K, d, "c"), expect_shape(out, n, K, "out");
    expect_threads(threads);
    without_gil([&] { gaussian(X.data(), n, d, K, mean.data(), a.data(), c.data(), out.data(), threads); });
}

template <class T>
void run_count(RowMajor<T> X, Codes group, Vector<double> weight, Codes offset, Sums count, int threads) {
    const Index d = columns_of(X);
    const Labels rows = labels(group, weight, rows_of(X), columns_of(count));
    expect_offset(offset, d, rows_of(count));
    expect_threads(threads);
    without_gil([&] { count_categories(X.data(), d, rows, offset.data(), count.data(), threads); });
}

template <class T>
void run_look_up(RowMajor<T> X, Codes offset, Table table, Sums out, int threads) {
    const Index n = rows_of(X), d = columns_of(X), K = columns_of(table);
    expect_offset(offset, d, rows_of(table));
    expect_shape(out, n, K, "out");
    expect_threads(threads);
    without_gil([&] { look_up(X.data(), n, d, K, offset.data(), table.data(), out.data(), threads); });
}

template <class T, class I>
certifit::CsrRows<T, I> sparse(const Vector<T>& data, const Vector<I>& indices, const Vector<I>& indptr, Index d) {
    return {data.data(), indices.data(), indptr.data(), check_compressed(data, indices, indptr, d, "column"), d};
}

template <class T, class I>
void run_sparse_sums(Vector<T> data, Vector<I> indices, Vector<I> indptr, Codes group, Vector<double> weight, Sums out) {
    const auto X = sparse(data, indices, indptr, rows_of(out));
    const Labels rows = labels(group, weight, X.n, columns_of(out));
    without_gil([&] { sparse_sums(X, rows, out.data()); });
}

template <class T, class I>
void run_sparse_scores(Vector<T> data, Vector<I> indices, Vector<I> indptr, Table slope, Vector<double> constant, Sums out,
                       int threads) {
    const auto X = sparse(data, indices, indptr, rows_of(slope));
    const Index K = columns_of(slope);
    expect_length(constant, static_cast<std::size_t>(K), "constant");
    expect_shape(out, X.n, K, "out");
    expect_threads(threads);
    without_gil([&] { sparse_scores(X, K, slope.data(), constant.data(), out.data(), threads); });
}

template <class T, class I>
void define_sparse(nb::module_& m) {
    m.def("sparse_sums", &run_sparse_sums<T, I>, "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(),
          "group"_a.noconvert(), "weight"_a.noconvert(), "out"_a.noconvert());
    m.def("sparse_scores", &run_sparse_scores<T, I>, "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(),
          "slope"_a.noconvert(), "constant"_a.noconvert(), "out"_a.noconvert(), "threads"_a);
}

template <class T>
void define_numbers(nb::module_& m) {
    m.def("moments", &run_moments<T>, "X"_a.noconvert(), "group"_a.noconvert(), "weight"_a.noconvert(), "held"_a.noconvert(),
          "mean"_a.noconvert(), "scatter"_a.noconvert(), "threads"_a);
    m.def("gaussian", &run_gaussian<T>, "X"_a.noconvert(), "mean"_a.noconvert(), "a"_a.noconvert(), "c"_a.noconvert(),
          "out"_a.noconvert(), "threads"_a);
}

template <class T>
void define_codes(nb::module_& m) {
    m.def("count_categories", &run_count<T>, "X"_a.noconvert(), "group"_a.noconvert(), "weight"_a.noconvert(),
          "offset"_a.noconvert(), "count"_a.noconvert(), "threads"_a);
    m.def("look_up", &run_look_up<T>, "X"_a.noconvert(), "offset"_a.noconvert(), "table"_a.noconvert(), "out"_a.noconvert(),
          "threads"_a);
}

}  // namespace

NB_MODULE(bayes, m) {
    define_numbers<double>(m);
    define_numbers<float>(m);
    define_codes<double>(m);
    define_codes<float>(m);
    define_codes<std::int64_t>(m);
    for_sparse([&]<class T, class I>() { define_sparse<T, I>(m); });
}
