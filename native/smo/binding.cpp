// certifit._native.smo: sequential minimal optimization over large blocks of variables.
#include <nanobind/stl/vector.h>

#include "core/boundary.hpp"
#include "smo/solver.hpp"

using namespace certifit;
using namespace certifit::boundary;
using namespace certifit::smo;

namespace {

using Numbers = Vector<std::int64_t>;

// The arrays of one dual problem, as Python gives them.
struct Task {
    Numbers rows;
    RowMajor<double> lower, upper, low, high;
    OutputRows<double> beta;
    Output<double> g;

    Dual dual(Index limit) const {
        const auto n = rows.size();
        const auto groups = beta.shape(0);
        if (groups < 1) refuse("beta needs a group");
        const auto fits = [&](const auto& v) { return v.shape(0) == groups && v.shape(1) == n; };
        if (!fits(lower) || !fits(upper) || !fits(low) || !fits(high) || !fits(beta))
            refuse("lower, upper, low, high and beta must be groups × rows");
        expect_length(g, n, "g");
        for (std::size_t i = 0; i < n; ++i)
            if (rows.data()[i] < 0 || rows.data()[i] >= limit) refuse("rows must be numbers of rows");
        for (std::size_t v = 0; v < n * groups; ++v)
            if (!(low.data()[v] <= 0.0 && high.data()[v] >= 0.0 && low.data()[v] <= beta.data()[v] &&
                  beta.data()[v] <= high.data()[v]))
                refuse("0 and beta must be between low and high");
        return {static_cast<Index>(n), static_cast<int>(groups), lower.data(), upper.data(), low.data(), high.data(),
                beta.data(), g.data()};
    }
};

Options checked(double target, double bytes, std::int64_t max_rounds, std::int64_t block, bool single) {
    if (!(target >= 0.0) || !(bytes > 0.0)) refuse("target must not be negative, and bytes positive");
    if (block < 2) refuse("a block needs two variables");
    return {target, bytes, static_cast<Index>(max_rounds), static_cast<Index>(block), single};
}

nb::tuple told(const Outcome& out) { return nb::make_tuple(out.rounds, out.steps, out.gap); }

// One problem after the other with all threads, or many problems at a time with one thread each: the result is the same.
nb::list solve_features(RowMajor<double> X, Vector<double> square, int form, double offset, int degree,
                        const std::vector<Task>& tasks, Vector<double> targets, double bytes, std::int64_t max_rounds,
                        std::int64_t block, bool single, int threads) {
    expect_threads(threads);
    expect_length(square, X.shape(0), "square");
    expect_length(targets, tasks.size(), "targets");
    if (form < 0 || form > 2 || degree < 1) refuse("form must be 0, 1 or 2, and degree at least 1");
    const Shape shape{static_cast<Form>(form), offset, degree};
    const Index d = static_cast<Index>(X.shape(1)), count = static_cast<Index>(tasks.size());
    std::vector<Dual> duals;
    for (const Task& task : tasks) duals.push_back(task.dual(static_cast<Index>(X.shape(0))));
    std::vector<Outcome> outcomes(count);
    const bool many = count >= threads;
    without_gil([&] {
        SignalPoll signals;
        Team team(threads, &signals);
        const auto one = [&](Index k, Team& inside, const Poll& poll) {
            const Options how = checked(targets.data()[k], bytes / (many ? threads : 1), max_rounds, block, single);
            const std::vector<Index> rows(tasks[k].rows.data(), tasks[k].rows.data() + tasks[k].rows.size());
            const Features features(X.data(), square.data(), d, rows.data(), static_cast<Index>(rows.size()), shape);
            outcomes[k] = solve(features, duals[k], how, inside, poll);
        };
        if (many)
            team.run(count, true, [&](Index k, int worker) {
                Team alone(1);
                one(k, alone, [&] { team.check(worker); });
            });
        else
            for (Index k = 0; k < count; ++k) one(k, team, [&] { signals.poll(); });
    });
    nb::list out;
    for (const Outcome& outcome : outcomes) out.append(told(outcome));
    return out;
}

// make(rows) returns K[rows, :] as an array of doubles.
nb::tuple solve_rows(nb::callable make, Vector<double> diagonal, const Task& task, double target, double bytes,
                     std::int64_t max_rounds, std::int64_t block, int threads) {
    const Index n = static_cast<Index>(diagonal.size());
    const Dual dual = task.dual(n);
    expect_threads(threads);
    expect_length(task.rows, diagonal.size(), "rows");
    const Options how = checked(target, bytes, max_rounds, block, false);
    Outcome out;
    without_gil([&] {
        SignalPoll signals;
        Team team(threads, &signals);
        const auto call = [&](const Index* rows, Index m, double* const* to, Team&) {
            nb::gil_scoped_acquire acquire;
            const auto found = nb::cast<RowMajor<double>>(make(array(std::vector<std::int64_t>(rows, rows + m))));
            if (static_cast<Index>(found.shape(0)) != m || static_cast<Index>(found.shape(1)) != n)
                refuse("make must return one row of K for each number");
            for (Index r = 0; r < m; ++r) std::copy(found.data() + r * n, found.data() + (r + 1) * n, to[r]);
        };
        CachedRows<double> rows(n, bytes, std::min(how.block, n), std::vector<double>(diagonal.data(), diagonal.data() + n),
                                call);
        out = solve(rows, dual, how, team, [&] { signals.poll(); });
    });
    return told(out);
}

}  // namespace

NB_MODULE(smo, m) {
    nb::class_<Task>(m, "Task").def(
        "__init__",
        [](Task* self, Numbers rows, RowMajor<double> lower, RowMajor<double> upper, RowMajor<double> low, RowMajor<double> high,
           OutputRows<double> beta, Output<double> g) { new (self) Task{rows, lower, upper, low, high, beta, g}; },
        "rows"_a.noconvert(), "lower"_a.noconvert(), "upper"_a.noconvert(), "low"_a.noconvert(), "high"_a.noconvert(),
        "beta"_a.noconvert(), "g"_a.noconvert());
    m.def("solve_features", &solve_features, "X"_a.noconvert(), "square"_a.noconvert(), "form"_a, "offset"_a, "degree"_a,
          "tasks"_a, "targets"_a.noconvert(), "bytes"_a, "max_rounds"_a, "block"_a, "single"_a, "threads"_a);
    m.def("solve_rows", &solve_rows, "make"_a, "diagonal"_a.noconvert(), "task"_a, "target"_a, "bytes"_a, "max_rounds"_a,
          "block"_a, "threads"_a);
}
