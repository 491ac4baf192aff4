// What the parts of certifit._native.tree share: the coded table, and who defines what.
#pragma once

#include <algorithm>
#include <cstdint>
#include <variant>
#include <vector>

#include "core/boundary.hpp"
#include "tree/table.hpp"

namespace certifit::tree {

// Columns as codes of one, two or four bytes, as many as the column with most values needs, or as rows in order.
struct EncodedTable {
    std::variant<CodedTable<std::uint8_t>, CodedTable<std::uint16_t>, CodedTable<std::uint32_t>> view;
    std::vector<std::vector<Place>> sorted;  // of the columns without codes; a single tree takes them away
    bool used_up = false;
    std::size_t n = 0;
    int d = 0;
    boundary::nb::ndarray<boundary::nb::ro> values;  // keeps X alive

    bool sorts() const {
        return std::any_of(sorted.begin(), sorted.end(), [](const auto& places) { return !places.empty(); });
    }
};

void define_table(boundary::nb::module_& m);
void define_growing(boundary::nb::module_& m);
void define_forest(boundary::nb::module_& m);

}  // namespace certifit::tree
