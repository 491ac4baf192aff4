// What every binding says at the boundary to Python: arrays as kernels take them, refusals, and work without the GIL.
//
// Python coerces, C++ refuses: arrays arrive with `.noconvert()`, and what does not fit is a ValueError that names it.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "core/interrupt.hpp"
#include "core/team.hpp"

namespace certifit::boundary {

// With `using namespace certifit::boundary` a binding has these two as well.
namespace nb = nanobind;
using namespace nb::literals;

template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using RowMajor = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using ColumnMajor = nb::ndarray<const T, nb::ndim<2>, nb::f_contig, nb::device::cpu>;
template <class T>
using AnyLayout = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;
template <class T>
using Output = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using OutputRows = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

[[noreturn]] inline void refuse(const std::string& message) { throw nb::value_error(message.c_str()); }

inline void expect_length(std::size_t found, std::size_t wanted, const char* name) {
    if (found != wanted)
        refuse(std::string(name) + " has length " + std::to_string(found) + ", wanted " + std::to_string(wanted));
}
template <class Array>
    requires requires(const Array& v) { v.ndim(); }
void expect_length(const Array& v, std::size_t wanted, const char* name) {
    expect_length(v.size(), wanted, name);
}
inline void expect_threads(int threads) {
    if (threads < 1) refuse("threads must be at least 1");
}

// Runs without the GIL; a pending KeyboardInterrupt leaves as itself.
template <class F>
auto without_gil(F&& work) {
    try {
        nb::gil_scoped_release release;
        return work();
    } catch (const Interrupted&) {
        throw nb::python_error();
    }
}

// work(team) without the GIL.
template <class F>
void with_team(int threads, F&& work) {
    expect_threads(threads);
    without_gil([&] {
        SignalPoll signals;
        Team team(threads, &signals);
        work(team);
    });
}

// The values as a NumPy array that owns them.
template <class T>
nb::object array(std::vector<T> values, std::initializer_list<std::size_t> shape) {
    auto* held = new std::vector<T>(std::move(values));
    nb::capsule owner(held, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T>(held->data(), shape.size(), shape.begin(), owner));
}
template <class T>
nb::object array(std::vector<T> values) {
    const std::size_t size = values.size();
    return array(std::move(values), {size});
}

// The arrays of a compressed sparse matrix: `majors` rows (CSR) or columns (CSC) with indices below `minors`.
template <class T, class I>
std::ptrdiff_t check_compressed(const Vector<T>& data, const Vector<I>& indices, const Vector<I>& indptr, std::ptrdiff_t minors,
                                const char* minor) {
    const auto majors = static_cast<std::ptrdiff_t>(indptr.size()) - 1, stored = static_cast<std::ptrdiff_t>(data.size());
    if (majors < 0 || minors < 0) refuse("indptr must not be empty and the number of " + std::string(minor) + "s not negative");
    if (indices.size() != data.size()) refuse("indices and data differ in length");
    const I* start = indptr.data();
    if (start[0] != 0 || static_cast<std::ptrdiff_t>(start[majors]) != stored)
        refuse("indptr must run from 0 to the number of values");
    for (std::ptrdiff_t i = 0; i < majors; ++i)
        if (start[i + 1] < start[i]) refuse("indptr must not decrease");
    for (std::ptrdiff_t k = 0; k < stored; ++k)
        if (indices.data()[k] < 0 || static_cast<std::ptrdiff_t>(indices.data()[k]) >= minors)
            refuse("a " + std::string(minor) + " index is out of bounds");
    return majors;
}

}  // namespace certifit::boundary
