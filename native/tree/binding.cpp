// certifit._native.tree: coded tables, decision trees and forests.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "tree/forest.hpp"
#include "tree/prune.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace certifit;
using namespace certifit::tree;

namespace {

template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Fortran = nb::ndarray<const T, nb::ndim<2>, nb::f_contig, nb::device::cpu>;
template <class T>
using Rows = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

[[noreturn]] void refuse(const std::string& message) { throw nb::value_error(message.c_str()); }

void expect(std::size_t found, std::size_t wanted, const char* name) {
    if (found != wanted)
        refuse(std::string(name) + " has length " + std::to_string(found) + ", wanted " + std::to_string(wanted));
}

template <class F>
auto without_gil(F&& work) {
    try {
        nb::gil_scoped_release release;
        return work();
    } catch (const Interrupted&) {
        throw nb::python_error();
    }
}

// work(team) without the GIL.
template <class F>
void with_team(int threads, F&& work) {
    if (threads < 1) refuse("threads must be at least 1");
    without_gil([&] {
        SignalPoll signals;
        Team team(threads, &signals);
        work(team);
        return 0;
    });
}

template <class T>
nb::object array(std::vector<T> values, std::initializer_list<std::size_t> shape) {
    auto* held = new std::vector<T>(std::move(values));
    nb::capsule owner(held, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T>(held->data(), shape.size(), shape.begin(), owner));
}
template <class T>
nb::object array(std::vector<T> values) {
    const std::size_t size = values.size();
    return array(std::move(values), {size});
}

// ---- tables -------------------------------------------------------------------------------------------------------------

struct Table {
    std::variant<CodedTable<std::uint8_t>, CodedTable<std::uint16_t>, CodedTable<std::uint32_t>> view;
    std::size_t n = 0;
    int d = 0;
};

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
void bin(Table& table, std::uint32_t max_bins, Team& team) {
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
void fill(Table& out, std::vector<Column>& columns, const std::vector<SortedColumn>& sorted, bool presort, Team& team) {
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
Table encode(Fortran<T> X, Vector<double> weight, Vector<std::uint8_t> categorical, std::uint32_t max_bins, bool presort,
             int threads) {
    const std::size_t n = X.shape(0), d = X.shape(1);
    if (n < 1 || d < 1) refuse("X must have rows and columns");
    if (n > 0x7fffffffu || d > 0x3fffffffu) refuse("X has too many rows or columns");
    if (weight.size() != 0) expect(weight.size(), n, "weight");
    expect(categorical.size(), d, "categorical");
    Table out;
    out.n = n;
    out.d = static_cast<int>(d);
    if (max_bins == 1 || max_bins > 255) refuse("max_bins must be 0 or lie in 2 … 255");
    with_team(threads, [&](Team& team) {
        std::vector<Column> columns(d);
        std::vector<SortedColumn> sorted(d);
        const double* w = weight.size() ? weight.data() : nullptr;
        team.run(static_cast<std::ptrdiff_t>(d), true, [&](std::ptrdiff_t f, int) {
            columns[f].categorical = categorical.data()[f] != 0;
            code_column(X.data() + f * n, w, static_cast<Row>(n), columns[f], sorted[f]);
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

// ---- growing ------------------------------------------------------------------------------------------------------------

Criterion criterion_named(const std::string& name) {
    if (name == "gini") return Criterion::gini;
    if (name == "entropy") return Criterion::entropy;
    if (name == "misclassification") return Criterion::misclassification;
    if (name == "squared") return Criterion::squared;
    if (name == "absolute") return Criterion::absolute;
    if (name == "poisson") return Criterion::poisson;
    refuse("unknown criterion " + name);
}

// What is to be predicted, checked once. Weights and sums are in fixed point: integers held in doubles.
struct Target {
    Criterion criterion;
    Vector<std::uint16_t> label;  // classes
    int classes;
    Vector<double> y, fixed;  // real targets, and what one draw of a row adds to the sum of its node (absolute: y in fixed point)
    Vector<double> weight;    // what one draw of a row adds to the weight of its node
    Vector<double> size_of;   // rows counted by a unit of weight, for each class (regression: one number)
    bool integral;            // small integer weights
    double worth_unit;

    Target(const std::string& name, Vector<std::uint16_t> label_, int classes_, Vector<double> y_, Vector<double> fixed_,
           Vector<double> weight_, Vector<double> size_of_, bool integral_, double worth_unit_)
        : criterion(criterion_named(name)), label(label_), classes(classes_), y(y_), fixed(fixed_), weight(weight_),
          size_of(size_of_), integral(integral_), worth_unit(worth_unit_) {
        const std::size_t n = weight.size();
        for (std::size_t i = 0; i < n; ++i) {
            const double w = weight.data()[i];
            if (!(w >= 0) || !(w <= 0x1p53)) refuse("weight must be finite and not negative");
            if (integral && (w != std::floor(w) || w > 0x1p26)) refuse("integral weights must be small integers");
        }
        if (classification()) {
            if (classes < 1 || classes > 65535) refuse("classes must lie in 1 … 65535");
            expect(label.size(), n, "label");
            expect(size_of.size(), classes, "size_of");
            for (std::size_t i = 0; i < n; ++i)
                if (label.data()[i] >= classes) refuse("a label is out of range");
        } else {
            expect(y.size(), n, "y");
            expect(fixed.size(), n, "fixed");
            expect(size_of.size(), 1, "size_of");
            for (std::size_t i = 0; i < n; ++i)
                if (!std::isfinite(y.data()[i]) || !std::isfinite(fixed.data()[i])) refuse("targets must be finite");
            if (!(worth_unit > 0)) refuse("worth_unit must be positive");
        }
    }
    bool classification() const {
        return criterion == Criterion::gini || criterion == Criterion::entropy || criterion == Criterion::misclassification;
    }
    int width() const { return classification() ? classes : 1; }
};

struct Options {
    Growth growth;
    Vector<std::int8_t> monotone;
    int threads;

    Options(int max_depth, double min_split, double min_leaf, double min_fraction, std::int64_t max_leaves, double min_decrease, int max_features,
            Vector<std::int8_t> monotone_, int threads_)
        : monotone(monotone_), threads(threads_) {
        if (max_depth < 0 || max_leaves < 0 || max_features < 1 || threads < 1) refuse("an option is out of range");
        growth.max_depth = max_depth;
        growth.min_split = min_split;
        growth.min_leaf = min_leaf;
        growth.min_fraction = min_fraction;
        growth.max_leaves = max_leaves;
        growth.min_decrease = min_decrease;
        growth.max_features = max_features;
        growth.monotone = monotone.size() ? monotone.data() : nullptr;
    }
};

// One grown tree in its final form.
struct Grown {
    std::vector<PackedNode> nodes;
    std::vector<std::uint64_t> bits;
    std::vector<double> values, loss, weight;
    std::int32_t depth = 0;
};

template <class Cell>
Grown pack(const Tree<Cell>& tree, int width, bool classification) {
    Grown out;
    const std::size_t count = tree.nodes.size();
    out.nodes.resize(count);
    out.loss.resize(count);
    out.weight.resize(count);
    out.values.resize(count * (classification ? width : 1));
    out.bits = tree.bits;
    out.depth = tree.depth;
    for (std::size_t k = 0; k < count; ++k) {
        const Node& node = tree.nodes[k];
        PackedNode& packed = out.nodes[k];
        if (node.left < 0) {  // a leaf keeps every row, missing or not
            packed = {std::bit_cast<std::uint64_t>(kInf), kMissingLeft, static_cast<std::int32_t>(k)};
        } else {
            packed.feature = static_cast<std::uint32_t>(node.feature) | (node.missing_left ? kMissingLeft : 0);
            packed.left = node.left;
            packed.first = std::bit_cast<std::uint64_t>(node.threshold);
            if (node.bits >= 0) packed.first = static_cast<std::uint64_t>(node.bits), packed.feature |= kCategorical;
        }
        out.loss[k] = node.loss;
        out.weight[k] = node.weight;
        if (classification) {
            double total = 0;
            for (int c = 0; c < width; ++c) total += static_cast<double>(tree.cells[k * width + c]);
            for (int c = 0; c < width; ++c) out.values[k * width + c] = static_cast<double>(tree.cells[k * width + c]) / total;
        } else {
            out.values[k] = node.value;
        }
    }
    return out;
}

// Weights of one tree: the counts of its bootstrap sample times the weights of the rows.
struct Draw {
    std::vector<std::int32_t> count;  // empty: every row once
    std::vector<Row> rows;
    double times(Row i) const { return count.empty() ? 1.0 : static_cast<double>(count[i]); }
};

struct Worker {
    const Target& target;
    const Growth& growth;
    const Entropies& entropies;
    const Crew& crew;

    template <class Code, class Statistics>
    Grown grown(const CodedTable<Code>& table, const Statistics& statistics, Draw& draw, const double* y, const double* mass) const {
        Grower<Code, Statistics> grower(table, statistics, growth, y, mass, std::move(draw.rows), crew);
        return pack(grower.grow(), statistics.width(), target.classification());
    }

    template <class Code, class Cell, Criterion criterion>
    Grown classes(const CodedTable<Code>& table, Draw& draw) const {
        std::vector<Cell> weight;
        bool ones = true;
        for (Row i : draw.rows) ones = ones && draw.times(i) * target.weight.data()[i] == 1.0;
        if (!ones) {
            weight.resize(table.n);
            for (Row i : draw.rows) weight[i] = static_cast<Cell>(draw.times(i) * target.weight.data()[i]);
        }
        auto with = [&]<int kFixed>() {
            const ClassStatistics<Cell, criterion, kFixed> statistics{target.label.data(), ones ? nullptr : weight.data(),
                                                                      target.classes, target.size_of.data(), &entropies};
            return grown(table, statistics, draw, nullptr, nullptr);
        };
        // The loops over two or three classes are unrolled where speed matters most.
        if constexpr (criterion == Criterion::gini && std::is_integral_v<Cell>) {
            if (target.classes == 2) return with.template operator()<2>();
            if (target.classes == 3) return with.template operator()<3>();
        }
        return with.template operator()<0>();
    }

    template <class Code, Criterion criterion>
    Grown moments(const CodedTable<Code>& table, Draw& draw) const {
        using Statistics = MomentStatistics<criterion>;
        std::vector<typename Statistics::Pair> moment(table.n);
        std::vector<double> mass(table.n);
        for (Row i : draw.rows) {
            const double times = draw.times(i);
            mass[i] = times * target.weight.data()[i];
            moment[i] = {mass[i], times * target.fixed.data()[i]};
        }
        return grown(table, Statistics{moment.data(), target.size_of.data()[0]}, draw, target.y.data(), mass.data());
    }

    template <class Code>
    Grown medians(const CodedTable<Code>& table, Draw& draw) const {
        std::vector<double> mass(table.n);
        for (Row i : draw.rows) mass[i] = draw.times(i) * target.weight.data()[i];
        const MedianStatistics statistics{mass.data(), target.fixed.data(), target.size_of.data()[0]};
        return grown(table, statistics, draw, target.y.data(), mass.data());
    }

    template <class Code, Criterion criterion>
    Grown classes(const CodedTable<Code>& table, Draw& draw) const {
        return target.integral ? classes<Code, std::int32_t, criterion>(table, draw) : classes<Code, double, criterion>(table, draw);
    }

    template <class Code>
    Grown operator()(const CodedTable<Code>& table, Draw& draw) const {
        switch (target.criterion) {
            case Criterion::gini: return classes<Code, Criterion::gini>(table, draw);
            case Criterion::entropy: return classes<Code, Criterion::entropy>(table, draw);
            case Criterion::misclassification: return classes<Code, Criterion::misclassification>(table, draw);
            case Criterion::squared: return moments<Code, Criterion::squared>(table, draw);
            case Criterion::poisson: return moments<Code, Criterion::poisson>(table, draw);
            default: return medians<Code>(table, draw);
        }
    }
};

// One tree for each seed. draws = 0: every tree sees all rows; otherwise as many draws with probabilities `chances` (empty: alike)
// from the rows in the order `order`.
nb::tuple grow(const Table& table, const Target& target, const Options& options, Vector<std::uint64_t> seeds, std::int64_t draws,
               Vector<double> chances, Vector<std::uint32_t> order) {
    const std::size_t n = table.n, trees = seeds.size();
    expect(target.weight.size(), n, "weight");
    if (options.monotone.size()) expect(options.monotone.size(), table.d, "monotone");
    if (chances.size()) expect(chances.size(), n, "chances");
    if (draws) {
        expect(order.size(), n, "order");
        for (std::size_t k = 0; k < n; ++k)
            if (order.data()[k] >= n) refuse("order holds a row that does not exist");
    }
    if (draws < 0 || draws > (std::int64_t{1} << 40)) refuse("draws is out of range");
    std::vector<Grown> grown(trees);
    const std::size_t stride = draws ? (n + 7) / 8 : 0;
    std::vector<std::uint8_t> bags(trees * stride, 0);
    with_team(options.threads, [&](Team& team) {
        const Urn urn(std::span(order.data(), order.size()), chances.size() ? chances.data() : nullptr);
        double total = 0;
        for (std::size_t i = 0; i < n; ++i) total += target.weight.data()[i];
        const Entropies entropies(target.criterion == Criterion::entropy && target.integral
                                      ? static_cast<std::int64_t>(draws ? static_cast<double>(draws) : total)
                                      : 0);
        Growth growth = options.growth;
        growth.worth_unit = target.classification() ? 1.0 : target.worth_unit;
        auto one = [&](std::ptrdiff_t t, const Crew& crew) {
            Draw draw;
            if (draws) {
                draw.count.resize(n);
                bootstrap(seeds.data()[t], draws, urn, draw.count);
            }
            draw.rows.reserve(n);
            for (std::size_t i = 0; i < n; ++i) {
                if (!draw.count.empty() && draw.count[i] == 0) continue;
                if (draws) bags[t * stride + (i >> 3)] |= static_cast<std::uint8_t>(1u << (i & 7));
                if (target.weight.data()[i] > 0) draw.rows.push_back(static_cast<Row>(i));
            }
            Growth own = growth;
            own.seed = seeds.data()[t];
            const Worker worker{target, own, entropies, crew};
            grown[t] = std::visit([&](const auto& view) { return worker(view, draw); }, table.view);
        };
        if (trees == 1) {
            one(0, {team, team});
        } else {
            team.run(static_cast<std::ptrdiff_t>(trees), true, [&](std::ptrdiff_t t, int worker) {
                Team alone(1);
                one(t, {alone, team, worker});
            });
        }
    });
    std::vector<std::int64_t> start(trees + 1, 0), bits_start(trees + 1, 0);
    for (std::size_t t = 0; t < trees; ++t) {
        start[t + 1] = start[t] + static_cast<std::int64_t>(grown[t].nodes.size());
        bits_start[t + 1] = bits_start[t] + static_cast<std::int64_t>(grown[t].bits.size());
    }
    const std::size_t nodes = start[trees], width = target.width();
    std::vector<std::int64_t> packed(2 * nodes);
    std::vector<std::uint64_t> bits(bits_start[trees]);
    std::vector<double> values(nodes * width), loss(nodes), weight(nodes);
    std::vector<std::int32_t> depth(trees);
    for (std::size_t t = 0; t < trees; ++t) {
        const Grown& g = grown[t];
        std::memcpy(packed.data() + 2 * start[t], g.nodes.data(), g.nodes.size() * sizeof(PackedNode));
        std::copy(g.bits.begin(), g.bits.end(), bits.begin() + bits_start[t]);
        std::copy(g.values.begin(), g.values.end(), values.begin() + start[t] * width);
        std::copy(g.loss.begin(), g.loss.end(), loss.begin() + start[t]);
        std::copy(g.weight.begin(), g.weight.end(), weight.begin() + start[t]);
        depth[t] = g.depth;
    }
    return nb::make_tuple(array(std::move(packed), {nodes, 2}), array(std::move(bits)), array(std::move(start)),
                          array(std::move(bits_start)), array(std::move(values), {nodes, width}), array(std::move(loss)),
                          array(std::move(weight)), array(std::move(depth)), array(std::move(bags), {trees, stride}));
}

// ---- predicting ---------------------------------------------------------------------------------------------------------

// The arrays of a fitted forest, checked once, so that no walk leaves them.
struct Forest {
    Rows<std::int64_t> packed;
    Vector<std::uint64_t> bits;
    Vector<std::int64_t> start, bits_start;
    Vector<std::uint32_t> categories;

    Forest(Rows<std::int64_t> packed_, Vector<std::uint64_t> bits_, Vector<std::int64_t> start_, Vector<std::int64_t> bits_start_,
           Vector<std::uint32_t> categories_)
        : packed(packed_), bits(bits_), start(start_), bits_start(bits_start_), categories(categories_) {
        if (packed.shape(1) != 2) refuse("nodes must have two words each");
        if (start.size() < 1 || bits_start.size() != start.size()) refuse("start must not be empty");
        const std::int64_t trees = static_cast<std::int64_t>(start.size()) - 1;
        if (start.data()[0] != 0 || start.data()[trees] != static_cast<std::int64_t>(packed.shape(0)) || bits_start.data()[0] != 0 ||
            bits_start.data()[trees] != static_cast<std::int64_t>(bits.size()))
            refuse("start must run from 0 to the number of nodes");
        // Both ends are right; with steps that never go back, so is everything between.
        for (std::int64_t t = 0; t < trees; ++t)
            if (start.data()[t + 1] <= start.data()[t] || bits_start.data()[t + 1] < bits_start.data()[t]) refuse("a tree has no nodes");
        const ForestView forest = view();
        for (std::int64_t t = 0; t < trees; ++t) {
            const std::int64_t count = start.data()[t + 1] - start.data()[t], words = bits_start.data()[t + 1] - bits_start.data()[t];
            for (std::int64_t k = 0; k < count; ++k) {
                const PackedNode& node = forest.tree(t).nodes[k];
                const std::uint32_t feature = node.feature & kFeatureMask;
                // Children lie behind their parent, so every walk ends.
                const bool leaf = node.left == k, inner = node.left > k && node.left + 1 < count;
                if ((!leaf && !inner) || feature >= categories.size()) refuse("a node points outside of its tree");
                if (leaf && (node.feature != kMissingLeft || std::bit_cast<double>(node.first) != kInf)) refuse("a leaf is not a leaf");
                if (node.feature & kCategorical && (node.first > static_cast<std::uint64_t>(words) ||
                                                    node.first + categories.data()[feature] / 64 + 1 > static_cast<std::uint64_t>(words)))
                    refuse("a set of categories lies outside of its tree");
            }
        }
    }
    ForestView view() const {
        return {reinterpret_cast<const PackedNode*>(packed.data()), bits.data(), start.data(), bits_start.data(), categories.data(),
                static_cast<std::int64_t>(start.size()) - 1,
                std::all_of(categories.data(), categories.data() + categories.size(), [](std::uint32_t c) { return c == 0; })};
    }
    std::size_t nodes() const { return packed.shape(0); }
    void check(std::size_t d) const { expect(d, categories.size(), "a row of X"); }
};

template <class T>
nb::object forest_predict(const Forest& forest, Rows<double> values, Rows<T> X, int threads) {
    const std::size_t n = X.shape(0), width = values.shape(1);
    forest.check(X.shape(1));
    expect(values.shape(0), forest.nodes(), "values");
    std::vector<double> out(n * width);
    with_team(threads, [&](Team& team) {
        predict(forest.view(), values.data(), static_cast<int>(width), X.data(), static_cast<std::int64_t>(n),
                static_cast<std::int64_t>(X.shape(1)), team, out.data());
    });
    return array(std::move(out), {n, width});
}

template <class T>
nb::object forest_apply(const Forest& forest, Rows<T> X, int threads) {
    const std::size_t n = X.shape(0), trees = forest.start.size() - 1;
    forest.check(X.shape(1));
    std::vector<std::int32_t> out(n * trees);
    with_team(threads, [&](Team& team) {
        certifit::tree::apply(forest.view(), X.data(), static_cast<std::int64_t>(n), static_cast<std::int64_t>(X.shape(1)), team,
                              out.data());
    });
    return array(std::move(out), {n, trees});
}

void check_bags(const Forest& forest, const Rows<std::uint8_t>& bags, std::size_t n, const Vector<double>& y, const Vector<double>& w) {
    expect(bags.shape(0), forest.start.size() - 1, "bags");
    expect(bags.shape(1), (n + 7) / 8, "a row of bags");
    expect(y.size(), n, "y");
    expect(w.size(), n, "weight");
}

template <class T>
nb::tuple forest_out_of_bag(const Forest& forest, Rows<double> values, Rows<T> X, Rows<std::uint8_t> bags, Vector<double> y,
                            Vector<double> weight, int threads) {
    const std::size_t n = X.shape(0), width = values.shape(1);
    forest.check(X.shape(1));
    expect(values.shape(0), forest.nodes(), "values");
    check_bags(forest, bags, n, y, weight);
    std::vector<double> sums(n * width, 0.0), curve(forest.start.size() - 1);
    std::vector<std::int64_t> counts(n, 0);
    with_team(threads, [&](Team& team) {
        out_of_bag(forest.view(), values.data(), static_cast<int>(width), X.data(), static_cast<std::int64_t>(n),
                   static_cast<std::int64_t>(X.shape(1)), bags.data(), static_cast<std::int64_t>(bags.shape(1)), y.data(),
                   weight.data(), team, sums.data(), counts.data(), curve.data());
    });
    return nb::make_tuple(array(std::move(sums), {n, width}), array(std::move(counts)), array(std::move(curve)));
}

template <class T>
nb::object forest_importance(const Forest& forest, Rows<double> values, Rows<T> X, Rows<std::uint8_t> bags, Vector<double> y,
                             Vector<double> weight, std::uint64_t seed, int threads) {
    const std::size_t n = X.shape(0), d = X.shape(1), trees = forest.start.size() - 1;
    forest.check(d);
    expect(values.shape(0), forest.nodes(), "values");
    check_bags(forest, bags, n, y, weight);
    std::vector<double> out(trees * d);
    with_team(threads, [&](Team& team) {
        permutation_importance(forest.view(), values.data(), static_cast<int>(values.shape(1)), X.data(), static_cast<std::int64_t>(n),
                               static_cast<std::int64_t>(d), bags.data(), static_cast<std::int64_t>(bags.shape(1)), y.data(),
                               weight.data(), seed, team, out.data());
    });
    return array(std::move(out), {trees, d});
}

nb::object prune(Vector<std::int32_t> left, Vector<double> risk) {
    expect(risk.size(), left.size(), "risk");
    const auto n = static_cast<std::int64_t>(left.size());
    for (std::int64_t t = 0; t < n; ++t) {
        const std::int64_t l = left.data()[t];
        if (l != t && (l <= t || l + 1 >= n)) refuse("children must lie behind their parent");
    }
    return array(without_gil([&] {
        return weakest_links(std::span(left.data(), left.size()), std::span(risk.data(), risk.size()));
    }));
}

template <class T>
void define(nb::module_& m) {
    m.def("encode", &encode<T>, "X"_a.noconvert(), "weight"_a.noconvert(), "categorical"_a.noconvert(), "max_bins"_a, "presort"_a,
          "threads"_a);
    m.def("predict", &forest_predict<T>, "forest"_a, "values"_a.noconvert(), "X"_a.noconvert(), "threads"_a);
    m.def("apply", &forest_apply<T>, "forest"_a, "X"_a.noconvert(), "threads"_a);
    m.def("out_of_bag", &forest_out_of_bag<T>, "forest"_a, "values"_a.noconvert(), "X"_a.noconvert(), "bags"_a.noconvert(),
          "y"_a.noconvert(), "weight"_a.noconvert(), "threads"_a);
    m.def("permutation_importance", &forest_importance<T>, "forest"_a, "values"_a.noconvert(), "X"_a.noconvert(),
          "bags"_a.noconvert(), "y"_a.noconvert(), "weight"_a.noconvert(), "seed"_a, "threads"_a);
}

}  // namespace

NB_MODULE(tree, m) {
    nb::set_leak_warnings(false);  // a model that lives as long as the interpreter is no leak
    nb::class_<Table>(m, "Table");
    nb::class_<Target>(m, "Target")
        .def(nb::init<const std::string&, Vector<std::uint16_t>, int, Vector<double>, Vector<double>, Vector<double>, Vector<double>,
                      bool, double>(),
             "criterion"_a, "label"_a.noconvert(), "classes"_a, "y"_a.noconvert(), "fixed"_a.noconvert(), "weight"_a.noconvert(),
             "size_of"_a.noconvert(), "integral"_a, "worth_unit"_a);
    nb::class_<Options>(m, "Options")
        .def(nb::init<int, double, double, double, std::int64_t, double, int, Vector<std::int8_t>, int>(), "max_depth"_a, "min_split"_a,
             "min_leaf"_a, "min_fraction"_a, "max_leaves"_a, "min_decrease"_a, "max_features"_a, "monotone"_a.noconvert(), "threads"_a);
    nb::class_<Forest>(m, "Forest")
        .def(nb::init<Rows<std::int64_t>, Vector<std::uint64_t>, Vector<std::int64_t>, Vector<std::int64_t>, Vector<std::uint32_t>>(),
             "nodes"_a.noconvert(), "bits"_a.noconvert(), "start"_a.noconvert(), "bits_start"_a.noconvert(),
             "categories"_a.noconvert());
    m.def("grow", &grow, "table"_a, "target"_a, "options"_a, "seeds"_a.noconvert(), "draws"_a, "chances"_a.noconvert(),
          "order"_a.noconvert());
    m.def("weakest_links", &prune, "left"_a.noconvert(), "risk"_a.noconvert());
    define<double>(m);
    define<float>(m);
}
