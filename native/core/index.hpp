// How rows, columns and entries are counted.
#pragma once

#include <cstddef>

namespace certifit {

using Index = std::ptrdiff_t;

}  // namespace certifit
