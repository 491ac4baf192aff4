// When a solver of one problem stops, and on how many threads it runs.
#pragma once

#include "core/vector.hpp"

namespace certifit {

struct Options {
    bool intercept;
    double tolerance;  // absolute gap
    double scale;      // of the objective: that of the best constant
    vec::Index max_iter;
    int threads;
};

}  // namespace certifit
