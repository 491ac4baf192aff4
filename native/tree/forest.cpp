// Fitted forests: predictions, out-of-bag estimates, importance, pruning.
#include <algorithm>
#include <vector>

#include "tree/forest.hpp"
#include "tree/module.hpp"
#include "tree/prune.hpp"

namespace certifit::tree {

using namespace boundary;

namespace {

// The arrays of a fitted forest, checked once, so that no walk leaves them.
struct Forest {
    RowMajor<std::int64_t> packed;
    Vector<std::uint64_t> bits;
    Vector<std::int64_t> start, bits_start;
    Vector<std::uint32_t> categories;

    Forest(RowMajor<std::int64_t> packed_, Vector<std::uint64_t> bits_, Vector<std::int64_t> start_, Vector<std::int64_t> bits_start_,
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
    void check(std::size_t d) const { expect_length(d, categories.size(), "a row of X"); }
};

template <class T>
nb::object forest_predict(const Forest& forest, RowMajor<double> values, RowMajor<T> X, int threads) {
    const std::size_t n = X.shape(0), width = values.shape(1);
    forest.check(X.shape(1));
    expect_length(values.shape(0), forest.nodes(), "values");
    std::vector<double> out(n * width);
    with_team(threads, [&](Team& team) {
        predict(forest.view(), values.data(), static_cast<int>(width), X.data(), static_cast<std::int64_t>(n),
                static_cast<std::int64_t>(X.shape(1)), team, out.data());
    });
    return array(std::move(out), {n, width});
}

template <class T>
nb::object forest_apply(const Forest& forest, RowMajor<T> X, int threads) {
    const std::size_t n = X.shape(0), trees = forest.start.size() - 1;
    forest.check(X.shape(1));
    std::vector<std::int32_t> out(n * trees);
    with_team(threads, [&](Team& team) {
        certifit::tree::apply(forest.view(), X.data(), static_cast<std::int64_t>(n), static_cast<std::int64_t>(X.shape(1)), team,
                              out.data());
    });
    return array(std::move(out), {n, trees});
}

// The targets and weights of rows of which some were drawn, checked against what the trees predict.
Truth truth_of(const Forest& forest, const RowMajor<double>& values, const RowMajor<std::uint8_t>& bags, std::size_t n,
               const RowMajor<double>& y, const Vector<std::int32_t>& counts, const Vector<double>& weight) {
    expect_length(values.shape(0), forest.nodes(), "values");
    expect_length(bags.shape(0), forest.start.size() - 1, "bags");
    expect_length(bags.shape(1), (n + 7) / 8, "a row of bags");
    expect_length(y.shape(0), n, "y");
    expect_length(weight.size(), n, "weight");
    const std::span<const std::int32_t> classes(counts.data(), counts.size());
    std::size_t width = 0;
    for (std::int32_t count : classes) {
        if (count < 1) refuse("every target has a class");
        width += static_cast<std::size_t>(count);
    }
    if (classes.empty()) width = y.shape(1);
    else expect_length(counts.size(), y.shape(1), "counts");
    expect_length(values.shape(1), width, "a row of values");
    return {y.data(), static_cast<int>(y.shape(1)), classes, weight.data()};
}

template <class T>
nb::tuple forest_out_of_bag(const Forest& forest, RowMajor<double> values, RowMajor<T> X, RowMajor<std::uint8_t> bags, RowMajor<double> y,
                            Vector<std::int32_t> classes, Vector<double> weight, int threads) {
    const std::size_t n = X.shape(0), width = values.shape(1);
    forest.check(X.shape(1));
    const Truth truth = truth_of(forest, values, bags, n, y, classes, weight);
    std::vector<double> sums(n * width, 0.0), curve(forest.start.size() - 1);
    std::vector<std::int64_t> counts(n, 0);
    with_team(threads, [&](Team& team) {
        out_of_bag(forest.view(), values.data(), static_cast<int>(width), X.data(), static_cast<std::int64_t>(n),
                   static_cast<std::int64_t>(X.shape(1)), bags.data(), static_cast<std::int64_t>(bags.shape(1)), truth, team,
                   sums.data(), counts.data(), curve.data());
    });
    return nb::make_tuple(array(std::move(sums), {n, width}), array(std::move(counts)), array(std::move(curve)));
}

template <class T>
nb::object forest_importance(const Forest& forest, RowMajor<double> values, RowMajor<T> X, RowMajor<std::uint8_t> bags, RowMajor<double> y,
                             Vector<std::int32_t> classes, Vector<double> weight, std::uint64_t seed, int threads) {
    const std::size_t n = X.shape(0), d = X.shape(1), trees = forest.start.size() - 1;
    forest.check(d);
    const Truth truth = truth_of(forest, values, bags, n, y, classes, weight);
    std::vector<double> out(trees * d);
    with_team(threads, [&](Team& team) {
        permutation_importance(forest.view(), values.data(), static_cast<int>(values.shape(1)), X.data(), static_cast<std::int64_t>(n),
                               static_cast<std::int64_t>(d), bags.data(), static_cast<std::int64_t>(bags.shape(1)), truth,
                               seed, team, out.data());
    });
    return array(std::move(out), {trees, d});
}

nb::object prune(Vector<std::int32_t> left, Vector<double> risk) {
    expect_length(risk.size(), left.size(), "risk");
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
    m.def("predict", &forest_predict<T>, "forest"_a, "values"_a.noconvert(), "X"_a.noconvert(), "threads"_a);
    m.def("apply", &forest_apply<T>, "forest"_a, "X"_a.noconvert(), "threads"_a);
    m.def("out_of_bag", &forest_out_of_bag<T>, "forest"_a, "values"_a.noconvert(), "X"_a.noconvert(), "bags"_a.noconvert(),
          "y"_a.noconvert(), "classes"_a.noconvert(), "weight"_a.noconvert(), "threads"_a);
    m.def("permutation_importance", &forest_importance<T>, "forest"_a, "values"_a.noconvert(), "X"_a.noconvert(),
          "bags"_a.noconvert(), "y"_a.noconvert(), "classes"_a.noconvert(), "weight"_a.noconvert(), "seed"_a, "threads"_a);
}

}  // namespace

void define_forest(nb::module_& m) {
    nb::class_<Forest>(m, "Forest")
        .def(nb::init<RowMajor<std::int64_t>, Vector<std::uint64_t>, Vector<std::int64_t>, Vector<std::int64_t>, Vector<std::uint32_t>>(),
             "nodes"_a.noconvert(), "bits"_a.noconvert(), "start"_a.noconvert(), "bits_start"_a.noconvert(),
             "categories"_a.noconvert());
    m.def("weakest_links", &prune, "left"_a.noconvert(), "risk"_a.noconvert());
    define<double>(m);
    define<float>(m);
}

}  // namespace certifit::tree
