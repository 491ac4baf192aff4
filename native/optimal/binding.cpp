// certifit._native.optimal: the best tree of few levels.
#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "core/boundary.hpp"
#include "optimal/search.hpp"

using namespace certifit;
using namespace certifit::boundary;

namespace {

struct Limits {
    int depth;
    double price, slack, seconds;
    int threads;
    nb::object told;  // called now and then with what `optimal::best_tree` tells, or None
    Limits(int depth_, double price_, double slack_, double seconds_, int threads_, nb::object told_)
        : depth(depth_), price(price_), slack(slack_), seconds(seconds_), threads(threads_), told(std::move(told_)) {
        if (depth < 0 || depth > optimal::kMostDepth) refuse("depth must lie in 0 … 4");
        if (!(price >= 0.0) || !(slack >= 0.0) || !(seconds >= 0.0)) refuse("price, slack and seconds must not be negative");
        expect_threads(threads);
    }
};

// Hands what a search tells to Python, at most ten times a second; an error there ends the search as an interrupt does.
class Teller {
  public:
    explicit Teller(const nb::object& told) : told_(told), silent_(told.is_none()) {}
    void operator()(std::int64_t looked_at, std::int64_t open, double value, double bound) {
        if (silent_) return;
        const auto now = std::chrono::steady_clock::now();
        if (now - last_ < std::chrono::milliseconds(100)) return;
        last_ = now;
        nb::gil_scoped_acquire held;
        told_(looked_at, open, value, bound);
    }

  private:
    const nb::object& told_;
    const bool silent_;
    std::chrono::steady_clock::time_point last_{};
};

template <class Kind>
void sort_columns(optimal::Node<Kind>& node, const ColumnMajor<std::uint32_t>& codes) {
    const auto n = static_cast<Index>(codes.shape(0)), d = static_cast<Index>(codes.shape(1));
    std::vector<std::uint32_t> count;
    for (Index f = 0; f < d; ++f) {
        const std::uint32_t* const code = codes.data() + f * n;
        count.assign(static_cast<std::size_t>(*std::max_element(code, code + n)) + 2, 0);
        for (Index i = 0; i < n; ++i) ++count[code[i] + 1];
        std::partial_sum(count.begin(), count.end(), count.begin());
        for (Index i = 0; i < n; ++i) node.column(f)[count[code[i]]++] = {static_cast<std::uint32_t>(i), code[i]};
    }
}

template <class Kind, class Fill>
nb::tuple searched(const Kind& kind, const ColumnMajor<std::uint32_t>& codes, const Limits& limits, Fill&& fill) {
    optimal::Best best;
    Teller teller(limits.told);
    with_team(limits.threads, [&](Team& team) {
        optimal::Node<Kind> root;
        root.resize(static_cast<Index>(codes.shape(0)), static_cast<Index>(codes.shape(1)));
        fill(root.rows);
        sort_columns(root, codes);
        std::atomic<bool> late{false};
        optimal::Terms terms;
        terms.price = limits.price, terms.slack = limits.slack, terms.late = &late;
        if (limits.seconds < 1e9)
            terms.end =
                std::chrono::steady_clock::now() + std::chrono::microseconds(static_cast<std::int64_t>(1e6 * limits.seconds));
        best = optimal::best_tree(kind, root, limits.depth, terms, team, teller);
    });
    const optimal::Tree& tree = best.found.tree;
    return nb::make_tuple(array(std::vector<std::int32_t>(tree.feature.begin(), tree.feature.end())),
                          array(std::vector<std::uint32_t>(tree.cut.begin(), tree.cut.end())), best.found.value, best.found.lower,
                          best.trees);
}

std::size_t checked_rows(const ColumnMajor<std::uint32_t>& codes) {
    const std::size_t n = codes.shape(0);
    if (n < 1 || n >= (std::size_t{1} << 31) || codes.shape(1) < 1) refuse("codes must have rows and columns");
    for (std::size_t i = 0; i < codes.size(); ++i)
        if (codes.data()[i] >= n) refuse("codes must be ranks below the number of rows");
    return n;
}

// Weights are whole numbers held in doubles.
nb::tuple classes(ColumnMajor<std::uint32_t> codes, Vector<std::uint32_t> label, int count, Vector<double> weight,
                  const Limits& limits) {
    const std::size_t n = checked_rows(codes);
    expect_length(label, n, "label"), expect_length(weight, n, "weight");
    if (count < 1 || count > 65535) refuse("classes must lie in 1 … 65535");
    double total = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
        const double w = weight.data()[i];
        if (label.data()[i] >= static_cast<std::uint32_t>(count)) refuse("a label is out of range");
        if (!(w >= 0.0) || w != std::floor(w)) refuse("weights must be whole numbers and not negative");
        total += w;
    }
    if (!(total <= 0x1p53)) refuse("weights must have an exact sum");
    const auto fill = [&](auto& rows) {
        for (std::size_t i = 0; i < n; ++i) {
            rows.label[i] = label.data()[i], rows.reach[i] = weight.data()[i];
            rows.weight[i] = static_cast<typename std::decay_t<decltype(rows.weight)>::value_type>(weight.data()[i]);
        }
    };
    if (count == 2 && total < 0x1p15) return searched(optimal::FewTwoClasses{2}, codes, limits, fill);
    if (count == 2 && total < 0x1p30) return searched(optimal::TwoClasses{2}, codes, limits, fill);
    if (count == 2) return searched(optimal::HeavyTwoClasses{2}, codes, limits, fill);
    return searched(optimal::ManyClasses{count}, codes, limits, fill);
}

// Of each row: weight s, s·y, s·y², and what it can cost at most.
nb::tuple numbers(ColumnMajor<std::uint32_t> codes, RowMajor<double> rows, const Limits& limits) {
    const std::size_t n = checked_rows(codes);
    if (rows.shape(0) != n || rows.shape(1) != 4) refuse("rows must have weight, sum, square and reach of every row");
    for (std::size_t i = 0; i < rows.size(); ++i)
        if (!std::isfinite(rows.data()[i])) refuse("rows must be finite");
    return searched(optimal::Numbers{}, codes, limits, [&](optimal::Numbers::Rows& out) {
        for (std::size_t i = 0; i < n; ++i) {
            const double* const row = rows.data() + 4 * i;
            out.weight[i] = row[0], out.sum[i] = row[1], out.square[i] = row[2], out.reach[i] = row[3];
        }
    });
}

}  // namespace

NB_MODULE(optimal, m) {
    nb::class_<Limits>(m, "Limits")
        .def(nb::init<int, double, double, double, int, nb::object>(), "depth"_a, "price"_a, "slack"_a, "seconds"_a, "threads"_a,
             "told"_a = nb::none());
    m.def("classes", &classes, "codes"_a.noconvert(), "label"_a.noconvert(), "count"_a, "weight"_a.noconvert(), "limits"_a);
    m.def("numbers", &numbers, "codes"_a.noconvert(), "rows"_a.noconvert(), "limits"_a);
}
