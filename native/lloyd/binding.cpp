// certifit._native.lloyd: k-means on dense rows: starts, Lloyd's iteration, nearest centers.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>

#include "core/boundary.hpp"
#include "lloyd/lloyd.hpp"
#include "lloyd/seeding.hpp"

using namespace certifit;
using namespace certifit::boundary;
using namespace certifit::lloyd;

namespace {

// Rows with their weights, in panels, for as many runs as are wanted.
template <class T>
class Prepared {
  public:
    Prepared(RowMajor<T> X, Vector<double> weight, int threads) : X_(X), weight_(weight) {
        if (X.shape(0) < 1 || X.shape(1) < 1) refuse("X must have rows and columns");
        expect_length(weight, X.shape(0), "weight");
        with_team(threads, [&](Team& team) {
            panels_ = std::make_unique<Panels<T>>(X.data(), static_cast<Index>(X.shape(0)), static_cast<Index>(X.shape(1)),
                                                  weight.data(), team);
        });
    }

    nb::object seed(RowMajor<double> uniform, int threads) const {
        const auto k = static_cast<Index>(uniform.shape(0)), trials = static_cast<Index>(uniform.shape(1));
        if (k < 1 || trials < 1) refuse("uniform must have a row for each center");
        std::vector<std::int64_t> rows(static_cast<std::size_t>(k));
        with_team(threads,
                  [&](Team& team) { Seeding<T>(*panels_, weight_.data()).draw(uniform.data(), k, trials, rows.data(), team); });
        return array(std::move(rows));
    }

    nb::tuple run(OutputRows<double> centers, Output<std::int32_t> labels, std::int64_t most, double still, int threads) const {
        check(centers, labels);
        Run out;
        with_team(threads, [&](Team& team) { out = of(centers, labels).run(most, still, team); });
        return nb::make_tuple(out.iterations, out.fixed, out.inertia);
    }

    double nearest(OutputRows<double> centers, Output<std::int32_t> labels, int threads) const {
        check(centers, labels);
        double inertia = 0.0;
        with_team(threads, [&](Team& team) { inertia = of(centers, labels).nearest(team); });
        return inertia;
    }

  private:
    RowMajor<T> X_;
    Vector<double> weight_;
    std::unique_ptr<Panels<T>> panels_;

    void check(const OutputRows<double>& centers, const Output<std::int32_t>& labels) const {
        if (centers.shape(0) < 1 || centers.shape(1) != X_.shape(1)) refuse("centers must have the columns of X");
        expect_length(labels, X_.shape(0), "labels");
    }
    Lloyd<T> of(const OutputRows<double>& centers, const Output<std::int32_t>& labels) const {
        return Lloyd<T>(*panels_, weight_.data(), static_cast<Index>(centers.shape(0)), centers.data(), labels.data());
    }
};

template <class T>
void bind(nb::module_& m, const char* name) {
    using Rows = Prepared<T>;
    nb::class_<Rows>(m, name)
        .def(nb::init<RowMajor<T>, Vector<double>, int>(), "X"_a.noconvert(), "weight"_a.noconvert(), "threads"_a)
        .def("seed", &Rows::seed, "uniform"_a.noconvert(), "threads"_a)
        .def("run", &Rows::run, "centers"_a.noconvert(), "labels"_a.noconvert(), "most"_a, "still"_a, "threads"_a)
        .def("nearest", &Rows::nearest, "centers"_a.noconvert(), "labels"_a.noconvert(), "threads"_a);
}

}  // namespace

NB_MODULE(lloyd, m) {
    bind<double>(m, "Rows64");
    bind<float>(m, "Rows32");
}
