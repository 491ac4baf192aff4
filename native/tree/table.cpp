// Coded tables.
#include <algorithm>
#include <vector>

#include "tree/module.hpp"

namespace certifit::tree {

using namespace boundary;

namespace {

// Codes of a column before it is known how wide those of the others are: bytes where they suffice.
struct Codes {
    std::vector<std::uint8_t> bytes;
    std::vector<std::uint32_t> words;

    template <class Code>
    std::vector<Code> taken() {
        std::vector<Code> out;
        if constexpr (sizeof(Code) == 1)
            out = std::move(bytes);
        else if constexpr (sizeof(Code) == 4)
            out = std::move(words);
        if (out.empty()) bytes.empty() ? out.assign(words.begin(), words.end()) : out.assign(bytes.begin(), bytes.end());
        bytes = {}, words = {};
        return out;
    }
};

template <class Code>
void fill(EncodedTable& out, std::vector<Column>& columns, std::vector<Codes>& codes, const Values& values) {
    CodedTable<Code>& table = out.view.emplace<CodedTable<Code>>();
    table.n = static_cast<Row>(out.n);
    table.d = out.d;
    table.columns = std::move(columns);
    table.values = values;
    table.code.reserve(codes.size());
    for (Codes& column : codes) table.code.push_back(column.template taken<Code>());
}

constexpr std::uint32_t kFew = 256;  // codes that fit into a byte, with that of missing values

// What is kept of a column that was sorted.
template <class T>
void keep(const Sorter<T>& sorter, const double* weight, std::uint32_t max_bins, bool presort, Column& column, std::vector<Place>& places,
          Codes& codes) {
    column.missing = sorter.missing();
    const std::uint32_t distinct = sorter.distinct();
    column.sorted = presort && max_bins == 0 && !column.categorical && distinct >= kFew;
    if (column.sorted) {
        places = sorter.places();
        return;
    }
    const bool grouped = max_bins > 0 && !column.categorical && distinct > max_bins;
    const std::vector<double> edges = grouped ? sorter.edges(weight, max_bins) : std::vector<double>{};
    if (grouped || distinct < kFew)
        sorter.code(grouped ? &edges : nullptr, column, codes.bytes);
    else
        sorter.code(nullptr, column, codes.words);
}

template <class T>
EncodedTable encode(AnyLayout<T> X, Vector<double> weight, Vector<std::uint8_t> categorical, std::uint32_t max_bins, bool presort,
                    int threads) {
    const std::size_t n = X.shape(0), d = X.shape(1);
    if (n < 1 || d < 1) refuse("X must have rows and columns");
    if (n > 0x7fffffffu || d > 0x3fffffffu) refuse("X has too many rows or columns");
    if (weight.size() != 0) expect_length(weight.size(), n, "weight");
    expect_length(categorical.size(), d, "categorical");
    if (max_bins == 1 || max_bins > 255) refuse("max_bins must be 0 or lie in 2 … 255");
    EncodedTable out;
    out.n = n;
    out.d = static_cast<int>(d);
    out.sorted.resize(d);
    out.values = nb::ndarray<nb::ro>(X);
    const binning::View<T> view{X.data(), static_cast<std::ptrdiff_t>(n), static_cast<std::ptrdiff_t>(d), X.stride(0), X.stride(1)};
    with_team(threads, [&](Team& team) {
        std::vector<Column> columns(d);
        std::vector<Codes> codes(d);
        struct Scratch {
            std::vector<T> values;
            Sorter<T> sorter;
        };
        std::vector<Scratch> scratch(team.size());
        const double* w = weight.size() ? weight.data() : nullptr;
        // Of rows that lie one after the other two columns are read at a time: one alone would fetch every cache line of X, and more would be felt
        // in the memory that the fit takes.
        const std::ptrdiff_t together = view.row_stride == 1 ? 1 : std::clamp<std::ptrdiff_t>(view.columns / team.size(), 1, 2);
        team.blocks(view.columns, together, true, [&](std::ptrdiff_t first, std::ptrdiff_t last, int worker) {
            auto& [values, sorter] = scratch[worker];
            if (view.row_stride != 1) {
                values.resize(static_cast<std::size_t>(last - first) * n);
                for (std::ptrdiff_t i = 0; i < view.rows; ++i)
                    for (std::ptrdiff_t f = first; f < last; ++f) values[(f - first) * n + i] = view.at(i, f);
            }
            for (std::ptrdiff_t f = first; f < last; ++f) {
                columns[f].categorical = categorical.data()[f] != 0;
                sorter.sort(view.row_stride == 1 ? &view.at(0, f) : values.data() + (f - first) * n, static_cast<Row>(n));
                keep(sorter, w, max_bins, presort, columns[f], out.sorted[f], codes[f]);
            }
        });
        scratch.clear();
        std::uint32_t most = 0;
        for (const Column& c : columns) most = std::max(most, c.codes() + 1);
        const Values values{X.data(), std::is_same_v<T, float>, view.row_stride, view.column_stride};
        if (most <= kFew)
            fill<std::uint8_t>(out, columns, codes, values);
        else if (most <= 65536 && n <= 65536)
            fill<std::uint16_t>(out, columns, codes, values);
        else
            fill<std::uint32_t>(out, columns, codes, values);
    });
    return out;
}

// Which columns have missing values.
nb::object missing(const EncodedTable& table) {
    std::vector<std::uint8_t> out;
    std::visit([&](const auto& view) { for (const Column& column : view.columns) out.push_back(column.missing); }, table.view);
    return array(std::move(out));
}

template <class T>
void define(nb::module_& m) {
    m.def("encode", &encode<T>, "X"_a.noconvert(), "weight"_a.noconvert(), "categorical"_a.noconvert(), "max_bins"_a, "presort"_a,
          "threads"_a);
}

}  // namespace

void define_table(nb::module_& m) {
    nb::class_<EncodedTable>(m, "Table").def_prop_ro("missing", &missing);
    define<double>(m);
    define<float>(m);
}

}  // namespace certifit::tree
