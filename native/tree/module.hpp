// What the parts of certifit._native.tree share: the coded table, and who defines what.
#pragma once

#include <cstdint>
#include <variant>

#include "core/boundary.hpp"
#include "tree/table.hpp"

namespace certifit::tree {

// Columns as codes of one, two or four bytes, as many as the column with most values needs.
struct EncodedTable {
    std::variant<CodedTable<std::uint8_t>, CodedTable<std::uint16_t>, CodedTable<std::uint32_t>> view;
    std::size_t n = 0;
    int d = 0;
};

void define_table(boundary::nb::module_& m);
void define_growing(boundary::nb::module_& m);
void define_forest(boundary::nb::module_& m);

}  // namespace certifit::tree
