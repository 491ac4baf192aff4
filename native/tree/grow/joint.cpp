// Growth for several targets.
#include "tree/grow/joint.hpp"

#include "tree/grow/worker.hpp"

namespace certifit::tree {

namespace {

template <class Code, Criterion criterion>
Grown joint(const Worker& worker, const CodedTable<Code>& table, Draw& draw) {
    const Target& target = worker.target;
    using Statistics = JointStatistics<criterion>;
    const int K = target.targets();
    std::vector<int> first{0}, order;
    std::vector<double> scale;
    for (int k = 0; k < K; ++k) {
        const int sums = Statistics::kClasses ? target.counts.data()[k] : 1;
        // The mean of one of two classes orders categories as that of the other one does.
        for (int c = sums == 2 ? 1 : 0; c < sums; ++c) order.push_back(first[k] + c);
        scale.insert(scale.end(), sums, target.scale.data()[k]);
        first.push_back(first[k] + sums);
    }
    const auto wide = static_cast<std::size_t>(K);
    std::vector<double> mass(table.n), moment(Statistics::kClasses ? 0 : table.n * wide), rows(Statistics::kClasses ? table.n : 0);
    for (Row i : draw.rows) {
        const double times = draw.times(i);
        mass[i] = times * target.weight.data()[i];
        if constexpr (Statistics::kClasses)
            rows[i] = times * target.size_of.data()[i];
        else
            for (std::size_t k = 0; k < wide; ++k) moment[i * wide + k] = times * target.fixed.data()[k * table.n + i];
    }
    const Statistics statistics{K, first.back(), first.data(), scale.data(), order.data(), static_cast<int>(order.size()),
                                mass.data(), moment.data(), target.label.data(), rows.data(), target.size_of.data()[0]};
    return worker.grown(table, statistics, draw, target.y.data());
}

}  // namespace

template <class Code>
Grown Worker::several(const CodedTable<Code>& table, Draw& draw) const {
    switch (target.criterion) {
        case Criterion::gini: return joint<Code, Criterion::gini>(*this, table, draw);
        case Criterion::entropy: return joint<Code, Criterion::entropy>(*this, table, draw);
        case Criterion::misclassification: return joint<Code, Criterion::misclassification>(*this, table, draw);
        case Criterion::squared: return joint<Code, Criterion::squared>(*this, table, draw);
        default: return joint<Code, Criterion::poisson>(*this, table, draw);
    }
}

template Grown Worker::several(const CodedTable<std::uint8_t>&, Draw&) const;
template Grown Worker::several(const CodedTable<std::uint16_t>&, Draw&) const;
template Grown Worker::several(const CodedTable<std::uint32_t>&, Draw&) const;

}  // namespace certifit::tree
