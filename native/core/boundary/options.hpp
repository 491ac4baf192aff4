// The options of a solver, checked, as a class of a module.
#pragma once

#include "core/boundary.hpp"
#include "core/options.hpp"

namespace certifit::boundary {

inline void define_options(nb::module_& m) {
    nb::class_<Options>(m, "Options")
        .def("__init__",
             [](Options* self, bool intercept, double tolerance, double scale, vec::Index max_iter, int threads) {
                 if (!(tolerance >= 0)) refuse("tolerance must not be negative");
                 if (!(scale >= 0)) refuse("scale must not be negative");
                 expect_threads(threads);
                 new (self) Options{intercept, tolerance, scale, max_iter, threads};
             },
             "intercept"_a, "tolerance"_a, "scale"_a, "max_iter"_a, "threads"_a);
}

}  // namespace certifit::boundary
