// certifit._native.medoids: k medoids of a matrix of dissimilarities, and a bound on the cost of every other choice.
#include "core/boundary.hpp"
#include "medoids/medoids.hpp"

using namespace certifit;
using namespace certifit::boundary;
using certifit::medoids::Medoids;

namespace {

Index check(const RowMajor<double>& D, const Vector<double>& weight, const Output<std::int64_t>& medoid) {
    if (D.shape(0) != D.shape(1)) refuse("D must be square");
    expect_length(weight, D.shape(0), "weight");
    const auto n = static_cast<Index>(D.shape(0)), k = static_cast<Index>(medoid.size());
    if (k < 1 || k > n) refuse("there must be from 1 to n medoids");
    for (Index c = 0; c < k; ++c)
        if (medoid.data()[c] < 0 || medoid.data()[c] >= n) refuse("a medoid is not a row");
    return n;
}

nb::tuple run_swap(RowMajor<double> D, Vector<double> weight, Output<std::int64_t> medoid, Output<std::int32_t> label,
                   std::int64_t most, int threads) {
    const Index n = check(D, weight, medoid), k = static_cast<Index>(medoid.size());
    expect_length(label, D.shape(0), "label");
    std::pair<Index, bool> made;
    double cost = 0.0;
    with_team(threads, [&](Team& team) {
        Medoids problem(D.data(), weight.data(), n, team);
        made = problem.swap(medoid.data(), k, most);
        cost = problem.cost(medoid.data(), k, label.data());
    });
    return nb::make_tuple(made.first, made.second, cost);
}

nb::tuple run_center(RowMajor<double> D, Vector<double> weight, int threads) {
    if (D.shape(0) != D.shape(1) || D.shape(0) < 1) refuse("D must be square");
    expect_length(weight, D.shape(0), "weight");
    std::pair<Index, double> found;
    with_team(threads,
              [&](Team& team) { found = Medoids(D.data(), weight.data(), static_cast<Index>(D.shape(0)), team).center(); });
    return nb::make_tuple(found.first, found.second);
}

double run_bound(RowMajor<double> D, Vector<double> weight, Output<std::int64_t> medoid, std::int64_t steps, double wanted,
                 int threads) {
    const Index n = check(D, weight, medoid);
    double found = 0.0;
    with_team(threads, [&](Team& team) {
        found = Medoids(D.data(), weight.data(), n, team).bound(medoid.data(), static_cast<Index>(medoid.size()), steps, wanted);
    });
    return found;
}

}  // namespace

NB_MODULE(medoids, m) {
    m.def("swap", &run_swap, "D"_a.noconvert(), "weight"_a.noconvert(), "medoid"_a.noconvert(), "label"_a.noconvert(), "most"_a,
          "threads"_a);
    m.def("center", &run_center, "D"_a.noconvert(), "weight"_a.noconvert(), "threads"_a);
    m.def("bound", &run_bound, "D"_a.noconvert(), "weight"_a.noconvert(), "medoid"_a.noconvert(), "steps"_a, "wanted"_a,
          "threads"_a);
}
