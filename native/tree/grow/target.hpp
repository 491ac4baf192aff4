// What is to be predicted and when to stop growing, checked once.
#pragma once

#include <cmath>
#include <string>

#include "core/boundary.hpp"
#include "tree/grow/statistics.hpp"
#include "tree/table.hpp"

namespace certifit::tree {

using boundary::expect_length, boundary::refuse, boundary::Vector;

inline Criterion criterion_named(const std::string& name) {
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
    Vector<std::uint16_t> label;  // classes of a row side by side
    Vector<std::int32_t> counts;  // classes of each target; of numbers: one of each
    Vector<double> y, fixed;      // real targets one after the other, and what one draw of a row adds to the sum of its node (absolute: y in
                                  // fixed point)
    Vector<double> weight;        // what one draw of a row adds to the weight of its node
    Vector<double> size_of;       // rows counted by a unit of weight, for each class (regression: one number; several targets of classes:
                                  // rows counted by one draw of each row)
    Vector<double> scale;         // what the impurity of each target counts for, in the unit of all of them
    bool integral;                // small integer weights
    double worth_unit;

    Target(const std::string& name, Vector<std::uint16_t> label_, Vector<std::int32_t> counts_, Vector<double> y_, Vector<double> fixed_,
           Vector<double> weight_, Vector<double> size_of_, Vector<double> scale_, bool integral_, double worth_unit_)
        : criterion(criterion_named(name)), label(label_), counts(counts_), y(y_), fixed(fixed_), weight(weight_),
          size_of(size_of_), scale(scale_), integral(integral_), worth_unit(worth_unit_) {
        const std::size_t n = weight.size();
        if (counts.size() < 1 || counts.size() > 65535) refuse("targets must lie in 1 … 65535");
        expect_length(scale.size(), counts.size(), "scale");
        for (std::size_t k = 0; k < counts.size(); ++k)
            if (!(scale.data()[k] >= 0) || !(scale.data()[k] <= 1)) refuse("scale must lie in [0, 1]");
        if (!(worth_unit > 0)) refuse("worth_unit must be positive");
        for (std::size_t i = 0; i < n; ++i) {
            const double w = weight.data()[i];
            if (!(w >= 0) || !(w <= 0x1p53)) refuse("weight must be finite and not negative");
            if (integral && (w != std::floor(w) || w > 0x1p26)) refuse("integral weights must be small integers");
        }
        if (classification()) {
            const std::size_t K = counts.size();
            for (std::size_t k = 0; k < K; ++k)
                if (counts.data()[k] < 1 || counts.data()[k] > 65535) refuse("classes must lie in 1 … 65535");
            expect_length(label.size(), n * K, "label");
            expect_length(size_of.size(), K == 1 ? static_cast<std::size_t>(counts.data()[0]) : n, "size_of");
            for (std::size_t i = 0; i < n * K; ++i)
                if (label.data()[i] >= counts.data()[i % K]) refuse("a label is out of range");
        } else {
            expect_length(y.size(), n * counts.size(), "y");
            expect_length(fixed.size(), y.size(), "fixed");
            expect_length(size_of.size(), 1, "size_of");
            for (std::size_t i = 0; i < y.size(); ++i)
                if (!std::isfinite(y.data()[i]) || !std::isfinite(fixed.data()[i])) refuse("targets must be finite");
        }
    }
    int targets() const { return static_cast<int>(counts.size()); }
    bool classification() const {
        return criterion == Criterion::gini || criterion == Criterion::entropy || criterion == Criterion::misclassification;
    }
    // Numbers that a leaf holds: the shares of all classes, or a value for each target.
    int width() const {
        int sum = 0;
        for (std::size_t k = 0; k < counts.size(); ++k) sum += classification() ? counts.data()[k] : 1;
        return sum;
    }
};

struct Options {
    Growth growth;
    Vector<std::int8_t> monotone;
    int threads;

    Options(int max_depth, double min_split, double min_leaf, double min_fraction, std::int64_t max_leaves, double min_decrease, int max_features,
            bool drawn, Vector<std::int8_t> monotone_, int threads_)
        : monotone(monotone_), threads(threads_) {
        if (max_depth < 0 || max_leaves < 0 || max_features < 1 || threads < 1) refuse("an option is out of range");
        growth.max_depth = max_depth;
        growth.min_split = min_split;
        growth.min_leaf = min_leaf;
        growth.min_fraction = min_fraction;
        growth.max_leaves = max_leaves;
        growth.min_decrease = min_decrease;
        growth.max_features = max_features;
        growth.drawn = drawn;
        growth.monotone = monotone.size() ? monotone.data() : nullptr;
    }
};

}  // namespace certifit::tree
