// The rows of X as Python gives them, dense or CSR, checked once.
#pragma once

#include <variant>

#include "core/boundary.hpp"
#include "core/rows.hpp"

namespace certifit::boundary {

// Keeps the arrays alive.
struct RowMatrix {
    std::variant<DenseRows<double>, DenseRows<float>, CsrRows<double, std::int32_t>, CsrRows<double, std::int64_t>,
                 CsrRows<float, std::int32_t>, CsrRows<float, std::int64_t>>
        view;
    nb::object owners;

    Index rows() const {
        return std::visit([](const auto& X) { return X.n; }, view);
    }
    Index columns() const {
        return std::visit([](const auto& X) { return X.d; }, view);
    }
};

template <class T>
RowMatrix dense_rows(RowMajor<T> X) {
    return {DenseRows<T>{X.data(), static_cast<Index>(X.shape(0)), static_cast<Index>(X.shape(1))}, nb::cast(X)};
}

template <class T, class I>
RowMatrix csr_rows(Vector<T> data, Vector<I> indices, Vector<I> indptr, Index d) {
    const Index n = check_compressed(data, indices, indptr, d, "column");
    return {CsrRows<T, I>{data.data(), indices.data(), indptr.data(), n, d}, nb::make_tuple(data, indices, indptr)};
}

template <class T, class I>
void define_csr(nb::module_& m) {
    using namespace nb::literals;
    m.def("csr", &csr_rows<T, I>, "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(), "d"_a);
}

// The class, and the functions dense(X) and csr(data, indices, indptr, d) that make it.
inline void define_rows(nb::module_& m, const char* name) {
    using namespace nb::literals;
    nb::class_<RowMatrix>(m, name).def_prop_ro("shape", [](const RowMatrix& X) { return nb::make_tuple(X.rows(), X.columns()); });
    m.def("dense", &dense_rows<double>, "X"_a.noconvert());
    m.def("dense", &dense_rows<float>, "X"_a.noconvert());
    define_csr<double, std::int32_t>(m);
    define_csr<double, std::int64_t>(m);
    define_csr<float, std::int32_t>(m);
    define_csr<float, std::int64_t>(m);
}

}  // namespace certifit::boundary
