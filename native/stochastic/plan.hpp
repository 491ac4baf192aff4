// What an epoch of stochastic gradient descent is to do, and what it changes.
#pragma once

#include <cmath>
#include <cstddef>

#include "core/index.hpp"
#include "stochastic/loss.hpp"

namespace certifit::sgd {

// η_t = size / (offset + slope·t)^power, with t counting batches from 1.
struct Schedule {
    double size, offset, slope, power;

    double at(double t) const {
        if (power == 0.0) return size;
        const double x = offset + slope * t;
        if (power == 1.0) return size / x;
        const double root = std::sqrt(x);
        if (power == 0.5) return size / root;
        return power == 0.75 ? size / (root * std::sqrt(root)) : size * std::pow(x, -power);
    }
};

struct Plan {
    Loss loss;
    Schedule schedule;
    double l1, l2;
    bool intercept, average;
    Index batch;
    Index average_from;  // batches of this epoch that are not averaged yet
    Index watch;         // every how many rows the running loss looks at one
    Index full;          // rows of a full batch: the batch size, or all rows if they are fewer
};

// What an epoch reads and changes. `w_sum` and `b_sum` add up the iterates that are averaged, `dual` the derivatives of
// each row (with `visits` counting them), when they are wanted.
struct State {
    double* w;
    double b;
    double* w_sum;
    double b_sum;
    double averaged;
    double t;
    double* dual;
    double* visits;
    double loss_sum = 0.0;  // of watched rows, each before the step that used it: an honest running loss
    double watched = 0.0;
    bool diverged = false;
};

inline double soft(double z, double t) { return z > t ? z - t : z < -t ? z + t : 0.0; }

}  // namespace certifit::sgd
