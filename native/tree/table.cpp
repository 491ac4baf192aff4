// Coded tables.
#include <algorithm>
#include <vector>

#include "tree/module.hpp"

namespace certifit::tree {

using namespace boundary;
using namespace nb::literals;

namespace {

// Codes in groups.
template <class Narrow, class Code>
CodedTable<Narrow> grouped_table(const CodedTable<Code>& exact, std::uint32_t max_bins, Team& team) {
    CodedTable<Narrow> out;
    out.n = exact.n;
    out.d = exact.d;
    out.code.resize(exact.code.size());
    out.columns.resize(exact.d);
    team.run(exact.d, true, [&](std::ptrdiff_t f, int) {
        std::vector<std::uint32_t> group;
        out.columns[f] = grouped(exact.columns[f], max_bins, group);
        const Code* from = exact.column(static_cast<int>(f));
        Narrow* to = out.code.data() + static_cast<std::size_t>(f) * exact.n;
        for (Row i = 0; i < exact.n; ++i) to[i] = static_cast<Narrow>(group[from[i]]);
    });
    return out;
}

// Replaces an exact table by a binned one, if some column has more codes than there may be groups.
template <class Code>
void bin(EncodedTable& table, std::uint32_t max_bins, Team& team) {
    if constexpr (sizeof(Code) > 1) {  // a byte holds every code as it is
        const CodedTable<Code> exact = std::move(std::get<CodedTable<Code>>(table.view));
        // Many categories need more than a byte; everything else fits into one.
        const bool narrow = std::all_of(exact.columns.begin(), exact.columns.end(),
                                        [](const Column& c) { return !c.categorical || c.codes() < 256; });
        if (narrow)
            table.view = grouped_table<std::uint8_t>(exact, max_bins, team);
        else
            table.view = grouped_table<Code>(exact, max_bins, team);
    }
}

template <class Code>
void fill(EncodedTable& out, std::vector<Column>& columns, const std::vector<SortedColumn>& sorted, bool presort, Team& team) {
    CodedTable<Code>& table = out.view.emplace<CodedTable<Code>>();
    table.n = static_cast<Row>(out.n);
    table.d = out.d;
    table.columns = std::move(columns);
    table.code.resize(out.n * out.d);
    if (presort) table.sorted.resize(out.d);
    team.run(out.d, true, [&](std::ptrdiff_t f, int) {
        Code* code = table.code.data() + f * out.n;
        const SortedColumn& column = sorted[f];
        for (std::size_t k = 0; k < out.n; ++k) code[column.order[k]] = static_cast<Code>(column.code[k]);
        const Column& about = table.columns[f];
        if (!presort || about.categorical || about.codes() < 256) return;
        auto& entries = table.sorted[f];
        entries.resize(out.n);
        for (std::size_t k = 0; k < out.n; ++k) entries[k] = table.entry(column.code[k], column.order[k]);
    });
}

template <class T>
EncodedTable encode(ColumnMajor<T> X, Vector<double> weight, Vector<std::uint8_t> categorical, std::uint32_t max_bins, bool presort,
             int threads) {
    const std::size_t n = X.shape(0), d = X.shape(1);
    if (n < 1 || d < 1) refuse("X must have rows and columns");
    if (n > 0x7fffffffu || d > 0x3fffffffu) refuse("X has too many rows or columns");
    if (weight.size() != 0) expect_length(weight.size(), n, "weight");
    expect_length(categorical.size(), d, "categorical");
    EncodedTable out;
    out.n = n;
    out.d = static_cast<int>(d);
    if (max_bins == 1 || max_bins > 255) refuse("max_bins must be 0 or lie in 2 … 255");
    with_team(threads, [&](Team& team) {
        std::vector<Column> columns(d);
        std::vector<SortedColumn> sorted(d);
        std::vector<SortScratch<T>> scratch(team.size());
        const double* w = weight.size() ? weight.data() : nullptr;
        team.run(static_cast<std::ptrdiff_t>(d), true, [&](std::ptrdiff_t f, int worker) {
            columns[f].categorical = categorical.data()[f] != 0;
            code_column(X.data() + f * n, w, static_cast<Row>(n), scratch[worker], columns[f], sorted[f]);
        });
        std::uint32_t most = 0;
        for (const Column& c : columns) most = std::max(most, c.codes() + 1);
        if (most <= 256)
            fill<std::uint8_t>(out, columns, sorted, presort, team);
        else if (most <= 65536 && n <= 65536)
            fill<std::uint16_t>(out, columns, sorted, presort, team);
        else
            fill<std::uint32_t>(out, columns, sorted, presort, team);
        sorted.clear();
        if (max_bins > 0)
            std::visit([&](auto& view) { bin<typename std::decay_t<decltype(view)>::Code>(out, max_bins, team); }, out.view);
    });
    return out;
}

template <class T>
void define(nb::module_& m) {
    m.def("encode", &encode<T>, "X"_a.noconvert(), "weight"_a.noconvert(), "categorical"_a.noconvert(), "max_bins"_a, "presort"_a,
          "threads"_a);
}

}  // namespace

void define_table(nb::module_& m) {
    nb::class_<EncodedTable>(m, "Table");
    define<double>(m);
    define<float>(m);
}

}  // namespace certifit::tree
