// How many threads OpenMP would use: what the environment and threadpoolctl grant this process now.
#include <nanobind/nanobind.h>
#ifdef _OPENMP
#include <omp.h>
#endif

NB_MODULE(threads, m) {
    m.def("max_threads", [] {
#ifdef _OPENMP
        return omp_get_max_threads();
#else
        return 1;
#endif
    });
}
