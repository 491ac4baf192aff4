// How many threads a kernel may start: what the environment and threadpoolctl grant this process now.
//
// Kernels have threads of their own, but users steer them as they steer everything else: by OMP_NUM_THREADS (which joblib sets
// in its workers) and threadpoolctl. OpenMP is asked for its number; none of its threads is ever started.
#include <nanobind/nanobind.h>

#ifdef _OPENMP
#include <omp.h>
#else
#include <algorithm>
#include <cstdlib>
#include <thread>
#endif

NB_MODULE(threads, m) {
    m.def("max_threads", [] {
#ifdef _OPENMP
        return omp_get_max_threads();
#else
        const char* granted = std::getenv("OMP_NUM_THREADS");
        const int wanted = granted ? std::atoi(granted) : 0;
        return wanted > 0 ? wanted : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
#endif
    });
}
