// One tree of a forest: its draw, its statistics, its final form.
#pragma once

#include <vector>

#include "tree/grow/grow.hpp"
#include "tree/predict.hpp"
#include "tree/grow/target.hpp"

namespace certifit::tree {

// One grown tree in its final form.
struct Grown {
    std::vector<PackedNode> nodes;
    std::vector<std::uint64_t> bits;
    std::vector<double> values, loss, weight;
    std::int32_t depth = 0;
};

template <class Statistics>
Grown pack(Tree<typename Statistics::Cell> tree, const Statistics& statistics, int width) {
    Grown out;
    const std::size_t count = tree.nodes.size();
    out.nodes.resize(count);
    out.loss.resize(count);
    out.weight.resize(count);
    out.values = std::move(tree.values);
    out.values.resize(count * width);
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
        const auto* cell = tree.cells.data() + k * statistics.width();
        if constexpr (requires { statistics.shares(cell, out.values.data()); }) statistics.shares(cell, out.values.data() + k * width);
    }
    return out;
}

// Weights of one tree: the counts of its bootstrap sample times the weights of the rows.
struct Draw {
    std::vector<std::int32_t> count;  // empty: every row once
    std::vector<Row> rows;
    std::vector<std::vector<Place>> order;  // these rows in the order of each column that is sorted
    double times(Row i) const { return count.empty() ? 1.0 : static_cast<double>(count[i]); }
};

struct Worker {
    const Target& target;
    const Growth& growth;
    const Entropies& entropies;
    const Crew& crew;

    template <class Code, class Statistics>
    Grown grown(const CodedTable<Code>& table, const Statistics& statistics, Draw& draw, const double* y) const {
        Grower<Code, Statistics> grower(table, statistics, growth, y, std::move(draw.rows), std::move(draw.order), crew);
        return pack(grower.grow(), statistics, target.width());
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
                                                                      target.counts.data()[0], target.size_of.data(), &entropies};
            return grown(table, statistics, draw, nullptr);
        };
        // The loops over two or three classes are unrolled where speed matters most.
        if constexpr (criterion == Criterion::gini && std::is_integral_v<Cell>) {
            if (target.counts.data()[0] == 2) return with.template operator()<2>();
            if (target.counts.data()[0] == 3) return with.template operator()<3>();
        }
        return with.template operator()<0>();
    }

    template <class Code, Criterion criterion>
    Grown moments(const CodedTable<Code>& table, Draw& draw) const {
        using Statistics = MomentStatistics<criterion>;
        std::vector<typename Statistics::Pair> moment(table.n);
        for (Row i : draw.rows) {
            const double times = draw.times(i);
            moment[i] = {times * target.weight.data()[i], times * target.fixed.data()[i]};
        }
        return grown(table, Statistics{moment.data(), target.size_of.data()[0]}, draw, target.y.data());
    }

    template <class Code>
    Grown medians(const CodedTable<Code>& table, Draw& draw) const {
        std::vector<double> mass(table.n);
        for (Row i : draw.rows) mass[i] = draw.times(i) * target.weight.data()[i];
        const MedianStatistics statistics{mass.data(), target.fixed.data(), target.size_of.data()[0], table.n, target.targets(), target.scale.data()};
        return grown(table, statistics, draw, target.y.data());
    }

    template <class Code, Criterion criterion>
    Grown classes(const CodedTable<Code>& table, Draw& draw) const {
        return target.integral ? classes<Code, std::int32_t, criterion>(table, draw) : classes<Code, double, criterion>(table, draw);
    }

    // Several targets at once, compiled in a file of their own: beside them the loops over one target would be inlined less.
    template <class Code>
    Grown several(const CodedTable<Code>& table, Draw& draw) const;

    template <class Code>
    Grown operator()(const CodedTable<Code>& table, Draw& draw) const {
        if (target.targets() > 1 && target.criterion != Criterion::absolute) return several(table, draw);
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

// The loops of growth are compiled once for each type of codes, each in a file of its own.
extern template Grown Worker::operator()(const CodedTable<std::uint8_t>&, Draw&) const;
extern template Grown Worker::operator()(const CodedTable<std::uint16_t>&, Draw&) const;
extern template Grown Worker::operator()(const CodedTable<std::uint32_t>&, Draw&) const;
extern template Grown Worker::several(const CodedTable<std::uint8_t>&, Draw&) const;
extern template Grown Worker::several(const CodedTable<std::uint16_t>&, Draw&) const;
extern template Grown Worker::several(const CodedTable<std::uint32_t>&, Draw&) const;

}  // namespace certifit::tree
