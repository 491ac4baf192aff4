// certifit._native.binning: columns of numbers as bytes.
#include "binning/binning.hpp"

#include <nanobind/stl/optional.h>

#include <optional>
#include <vector>

#include "core/boundary.hpp"

using namespace certifit::binning;
using certifit::Index;
using namespace certifit::boundary;

namespace {

template <class T>
View<T> view(const AnyLayout<T>& X) {
    return {X.data(), static_cast<Index>(X.shape(0)), static_cast<Index>(X.shape(1)), static_cast<Index>(X.stride(0)),
            static_cast<Index>(X.stride(1))};
}

template <class T>
nb::list quantile_edges(AnyLayout<T> X, std::optional<Vector<double>> weight, Vector<std::int64_t> columns, int max_bins,
                        std::optional<Vector<double>> shares, int threads) {
    if (max_bins < 2 || max_bins > 255) refuse("max_bins must lie in 2 … 255");
    expect_threads(threads);
    if (weight && weight->size() != X.shape(0)) refuse("weight must have one entry for each row");
    if (X.shape(0) >= (std::size_t{1} << 32)) refuse("at most 2^32 − 1 rows");
    for (std::size_t k = 0; k < columns.size(); ++k)
        if (columns.data()[k] < 0 || columns.data()[k] >= static_cast<std::int64_t>(X.shape(1)))
            refuse("a column is out of bounds");
    if (shares) expect_length(*shares, max_bins - 1, "shares");
    for (std::size_t k = 0; shares && k < shares->size(); ++k)
        if (!(shares->data()[k] > 0 && shares->data()[k] < 1 && (k == 0 || shares->data()[k] > shares->data()[k - 1])))
            refuse("shares must increase between 0 and 1");
    // Sums of weights are rounded, numbers of rows are not.
    const Placing placing{shares ? shares->data() : nullptr, weight ? std::numeric_limits<double>::epsilon() : 0.0};
    std::vector<std::vector<double>> edges;
    // What sorting takes is what the bytes and the gradients will take later, when it has been given back.
    const Index budget = static_cast<Index>(X.shape(1)) + 12;
    {
        nb::gil_scoped_release release;
        edges = quantiles(view(X), weight ? weight->data() : nullptr,
                          std::span<const std::int64_t>(columns.data(), columns.size()), max_bins, placing, threads, budget);
    }
    nb::list result;
    for (auto& e : edges) result.append(array(std::move(e)));
    return result;
}

Table checked_table(const Vector<std::int64_t>& offsets, const Vector<double>& values, const Vector<std::uint8_t>& codes,
                    const Vector<std::uint8_t>& categorical, const Vector<std::uint8_t>& missing) {
    const std::size_t d = missing.size();
    if (offsets.size() != d + 1 || categorical.size() != d) refuse("offsets, categorical and missing differ in length");
    if (codes.size() != values.size()) refuse("values and codes differ in length");
    if (offsets.data()[0] != 0 || offsets.data()[d] != static_cast<std::int64_t>(values.size()))
        refuse("offsets must run from 0 to the number of values");
    for (std::size_t j = 0; j < d; ++j) {
        const std::int64_t size = offsets.data()[j + 1] - offsets.data()[j];
        if (size < 0 || size > 255) refuse("a column has at most 255 edges or categories");
    }
    return {{offsets.data(), d + 1},
            {values.data(), values.size()},
            {codes.data(), codes.size()},
            {categorical.data(), d},
            {missing.data(), d}};
}

template <class T>
void transform_into(AnyLayout<T> X, Vector<std::int64_t> offsets, Vector<double> values, Vector<std::uint8_t> codes,
                    Vector<std::uint8_t> categorical, Vector<std::uint8_t> missing, Index row_stride,
                    Vector<std::int64_t> column, Output<std::uint8_t> out,
                    int threads) {
    const Table table = checked_table(offsets, values, codes, categorical, missing);
    if (static_cast<Index>(X.shape(1)) != table.columns()) refuse("X and the rules differ in their number of columns");
    if (column.size() != X.shape(1)) refuse("column must have one entry for each column");
    if (threads < 1 || row_stride < 1) refuse("threads and row_stride must be at least 1");
    const Index reach = X.shape(0) ? (static_cast<Index>(X.shape(0)) - 1) * row_stride : 0;
    for (std::size_t j = 0; j < column.size(); ++j)
        if (column.data()[j] < 0 || column.data()[j] + reach >= static_cast<Index>(out.size())) refuse("out is too small");
    nb::gil_scoped_release release;
    transform(view(X), table, Layout{row_stride, {column.data(), column.size()}}, out.data(), threads);
}

template <class T>
void define(nb::module_& m) {
    m.def("quantile_edges", &quantile_edges<T>, "X"_a.noconvert(), "weight"_a.noconvert().none(), "columns"_a.noconvert(),
          "max_bins"_a, "shares"_a.noconvert().none(), "threads"_a);
    m.def("transform_into", &transform_into<T>, "X"_a.noconvert(), "offsets"_a.noconvert(), "values"_a.noconvert(),
          "codes"_a.noconvert(), "categorical"_a.noconvert(), "missing"_a.noconvert(), "row_stride"_a,
          "column"_a.noconvert(), "out"_a.noconvert(), "threads"_a);
}

}  // namespace

NB_MODULE(binning, m) {
    define<double>(m);
    define<float>(m);
}
