// The rows of X as Python gives them, dense or CSR, checked once.
#pragma once

#include "core/boundary/held_matrix.hpp"
#include "core/rows.hpp"

namespace certifit::boundary {

using RowMatrix = HeldMatrix<DenseRows, CsrRows, true>;

}  // namespace certifit::boundary
