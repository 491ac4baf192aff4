// What a closed form of few columns says, as Python reads it.
#pragma once

#include "core/boundary.hpp"
#include "products/squares.hpp"

namespace certifit::products {

inline boundary::nb::object told(Squares&& found, Index columns) {
    const auto d = static_cast<std::size_t>(columns);
    return boundary::nb::make_tuple(boundary::array(std::move(found.coef)), found.intercept, found.objective, found.gap, found.square, found.residual,
                          found.moved, found.lost(), boundary::array(std::move(found.mean)), boundary::array(std::move(found.unit)),
                          boundary::array(std::move(found.factor), {d, d}), found.exact);
}

}  // namespace certifit::products
