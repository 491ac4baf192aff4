// certifit._native.mixture: expectation and maximization of a mixture of Gaussians.
#include "core/boundary.hpp"
#include "mixture/mixture.hpp"

using namespace certifit;
using namespace certifit::boundary;
using certifit::mixture::Gaussians;
using certifit::mixture::Step;

namespace {

// Means K × d, factors K × d² (or K × d), constants K.
Gaussians gaussians(const RowMajor<double>& X, const RowMajor<double>& mean, const RowMajor<double>& A,
                    const Vector<double>& constant) {
    const auto d = X.shape(1);
    if (d < 1 || mean.shape(1) != d || mean.shape(0) < 1) refuse("means must have the columns of X");
    expect_length(constant, mean.shape(0), "constant");
    if (A.shape(0) != mean.shape(0) || (A.shape(1) != d && A.shape(1) != d * d))
        refuse("A must have a matrix or a diagonal for each mean");
    // Of one column the matrix is its diagonal.
    return {mean.data(), A.data(), constant.data(), static_cast<Index>(mean.shape(0)), static_cast<Index>(d), A.shape(1) == d};
}

nb::tuple run_step(RowMajor<double> X, Vector<double> weight, RowMajor<double> mean, RowMajor<double> A, Vector<double> constant,
                   int threads) {
    const Gaussians model = gaussians(X, mean, A, constant);
    expect_length(weight, X.shape(0), "weight");
    std::vector<double> sums(static_cast<std::size_t>(model.sums()));
    double total = 0.0;
    with_team(threads, [&](Team& team) {
        total = Step(X.data(), weight.data(), static_cast<Index>(X.shape(0)), model, team).run(sums.data());
    });
    return nb::make_tuple(total, array(std::move(sums), {mean.shape(0), static_cast<std::size_t>(model.sums() / model.K)}));
}

nb::object run_densities(RowMajor<double> X, RowMajor<double> mean, RowMajor<double> A, Vector<double> constant, int threads) {
    const Gaussians model = gaussians(X, mean, A, constant);
    std::vector<double> out(X.shape(0) * mean.shape(0));
    with_team(threads,
              [&](Team& team) { Step(X.data(), nullptr, static_cast<Index>(X.shape(0)), model, team).densities(out.data()); });
    return array(std::move(out), {X.shape(0), mean.shape(0)});
}

}  // namespace

NB_MODULE(mixture, m) {
    m.def("step", &run_step, "X"_a.noconvert(), "weight"_a.noconvert(), "mean"_a.noconvert(), "A"_a.noconvert(),
          "constant"_a.noconvert(), "threads"_a);
    m.def("densities", &run_densities, "X"_a.noconvert(), "mean"_a.noconvert(), "A"_a.noconvert(), "constant"_a.noconvert(),
          "threads"_a);
}
