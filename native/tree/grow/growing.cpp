// Growing trees and forests.
#include <nanobind/stl/string.h>

#include <cstring>
#include <vector>

#include "tree/forest.hpp"
#include "tree/module.hpp"
#include "tree/grow/worker.hpp"

namespace certifit::tree {

using namespace boundary;

namespace {

void check_drawing(std::size_t n, std::int64_t draws, const Vector<double>& chances, const Vector<std::uint32_t>& order) {
    if (chances.size()) expect_length(chances.size(), n, "chances");
    if (draws) {
        expect_length(order.size(), n, "order");
        for (std::size_t k = 0; k < n; ++k)
            if (order.data()[k] >= n) refuse("order holds a row that does not exist");
    }
    if (draws < 0 || draws > (std::int64_t{1} << 40)) refuse("draws is out of range");
}

// Some rows in the order of each column. The last tree that needs the order of all of them takes it.
std::vector<std::vector<Place>> order_of(const std::vector<Row>& rows, std::size_t n, std::vector<std::vector<Place>>& sorted, bool last) {
    if (rows.size() == n) return last ? std::move(sorted) : sorted;
    std::vector<bool> used(n, false);
    for (Row i : rows) used[i] = true;
    std::vector<std::vector<Place>> out(sorted.size());
    for (std::size_t f = 0; f < sorted.size(); ++f) {
        if (sorted[f].empty()) continue;
        out[f].reserve(rows.size());
        Place greater = 0;  // whether the value rose since the last row that is used
        for (const Place place : sorted[f]) {
            greater |= place & kGreater;
            if (!used[row_at(place)]) continue;
            out[f].push_back(row_at(place) | greater);
            greater = 0;
        }
        if (last) sorted[f] = {};
    }
    return out;
}

// One tree for each seed. draws = 0: every tree sees all rows; otherwise as many draws with probabilities `chances` (empty: alike)
// from the rows in the order `order`.
nb::tuple grow(EncodedTable& table, const Target& target, const Options& options, Vector<std::uint64_t> seeds, std::int64_t draws,
               Vector<double> chances, Vector<std::uint32_t> order) {
    const std::size_t n = table.n, trees = seeds.size();
    expect_length(target.weight.size(), n, "weight");
    if (options.monotone.size()) expect_length(options.monotone.size(), table.d, "monotone");
    if (options.monotone.size() && target.targets() > 1) refuse("monotone is for one target");
    check_drawing(n, draws, chances, order);
    const bool sorts = table.sorts();
    if (table.used_up) refuse("the order of the rows of this table was used up by another tree");
    if (sorts && (options.growth.max_features < table.d || options.growth.drawn)) refuse("a sorted table is for trees that search every feature");
    table.used_up = sorts && trees == 1;
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
        growth.worth_unit = target.worth_unit;
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
            if (sorts) draw.order = order_of(draw.rows, n, table.sorted, trees == 1);
            Growth own = growth;
            own.seed = static_cast<std::uint32_t>(seeds.data()[t]);  // what fits a `random_state`: the tree can be grown alone
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
        const Grown g = std::move(grown[t]);  // gone before the next one is copied
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

// How often the tree of a seed draws each row: what `grow` drew.
nb::object drawn_counts(std::uint64_t seed, std::int64_t draws, Vector<double> chances, Vector<std::uint32_t> order) {
    const std::size_t n = order.size();
    check_drawing(n, draws, chances, order);
    std::vector<std::int32_t> counts(n);
    bootstrap(seed, draws, Urn(std::span(order.data(), n), chances.size() ? chances.data() : nullptr), counts);
    return array(std::move(counts));
}

}  // namespace

void define_growing(nb::module_& m) {
    nb::class_<Target>(m, "Target")
        .def(nb::init<const std::string&, Vector<std::uint16_t>, Vector<std::int32_t>, Vector<double>, Vector<double>, Vector<double>,
                      Vector<double>, Vector<double>, bool, double>(),
             "criterion"_a, "label"_a.noconvert(), "counts"_a.noconvert(), "y"_a.noconvert(), "fixed"_a.noconvert(),
             "weight"_a.noconvert(), "size_of"_a.noconvert(), "scale"_a.noconvert(), "integral"_a, "worth_unit"_a);
    nb::class_<Options>(m, "Options")
        .def(nb::init<int, double, double, double, std::int64_t, double, int, bool, Vector<std::int8_t>, int>(), "max_depth"_a, "min_split"_a,
             "min_leaf"_a, "min_fraction"_a, "max_leaves"_a, "min_decrease"_a, "max_features"_a, "drawn"_a, "monotone"_a.noconvert(), "threads"_a);
    m.def("grow", &grow, "table"_a, "target"_a, "options"_a, "seeds"_a.noconvert(), "draws"_a, "chances"_a.noconvert(),
          "order"_a.noconvert());
    m.def("drawn", &drawn_counts, "seed"_a, "draws"_a, "chances"_a.noconvert(), "order"_a.noconvert());
}

}  // namespace certifit::tree
