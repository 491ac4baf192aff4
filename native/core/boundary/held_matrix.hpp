// A matrix as Python gives it, dense or compressed, of either precision and index, checked once: the one holder of all layouts.
#pragma once

#include <cstdint>
#include <variant>

#include "core/boundary.hpp"
#include "core/index.hpp"

namespace certifit::boundary {

// Keeps the arrays alive. `Dense` is a view {data, n, d} of one layout, `Compressed` a view {data, indices, start, n, d} by rows
// (CSR) or, without `ByRow`, by columns (CSC).
template <template <class> class Dense, template <class, class> class Compressed, bool ByRow>
struct HeldMatrix {
    template <class T>
    using Array = std::conditional_t<ByRow, RowMajor<T>, ColumnMajor<T>>;
    std::variant<Dense<double>, Dense<float>, Compressed<double, std::int32_t>, Compressed<double, std::int64_t>,
                 Compressed<float, std::int32_t>, Compressed<float, std::int64_t>>
        view;
    nb::object owners;

    Index rows() const {
        return std::visit([](const auto& X) { return X.n; }, view);
    }
    Index columns() const {
        return std::visit([](const auto& X) { return X.d; }, view);
    }

    template <class T>
    static HeldMatrix dense(Array<T> X) {
        return {Dense<T>{X.data(), static_cast<Index>(X.shape(0)), static_cast<Index>(X.shape(1))}, nb::cast(X)};
    }
    template <class T, class I>
    static HeldMatrix compressed(Vector<T> data, Vector<I> indices, Vector<I> indptr, Index minors) {
        const Index majors = check_compressed(data, indices, indptr, minors, ByRow ? "column" : "row");
        return {Compressed<T, I>{data.data(), indices.data(), indptr.data(), ByRow ? majors : minors, ByRow ? minors : majors},
                nb::make_tuple(data, indices, indptr)};
    }

    // The class, and the functions that make it: dense(X), and csr(data, indices, indptr, d) or csc(data, indices, indptr, n).
    static void define(nb::module_& m, const char* name) {
        nb::class_<HeldMatrix>(m, name).def_prop_ro("shape",
                                                    [](const HeldMatrix& X) { return nb::make_tuple(X.rows(), X.columns()); });
        m.def("dense", &HeldMatrix::dense<double>, "X"_a.noconvert());
        m.def("dense", &HeldMatrix::dense<float>, "X"_a.noconvert());
        define_compressed<double, std::int32_t>(m);
        define_compressed<double, std::int64_t>(m);
        define_compressed<float, std::int32_t>(m);
        define_compressed<float, std::int64_t>(m);
    }

  private:
    template <class T, class I>
    static void define_compressed(nb::module_& m) {
        m.def(ByRow ? "csr" : "csc", &HeldMatrix::compressed<T, I>, "data"_a.noconvert(), "indices"_a.noconvert(),
              "indptr"_a.noconvert(), nb::arg(ByRow ? "d" : "n"));
    }
};

}  // namespace certifit::boundary
