// Every layout and precision that a binding takes: what is compiled for each of them is said once.
#pragma once

#include <cstdint>

#include "core/boundary.hpp"

namespace certifit::boundary {

// Dense matrices. Of a matrix that has both orders (one row, one column) the first that fits is taken.
template <class Define>
void for_dense(Define&& define) {
    define.template operator()<RowMajor<double>>();
    define.template operator()<ColumnMajor<double>>();
    define.template operator()<RowMajor<float>>();
    define.template operator()<ColumnMajor<float>>();
}

// Sparse ones: numbers and indices.
template <class Define>
void for_sparse(Define&& define) {
    define.template operator()<double, std::int32_t>();
    define.template operator()<double, std::int64_t>();
    define.template operator()<float, std::int32_t>();
    define.template operator()<float, std::int64_t>();
}

}  // namespace certifit::boundary
