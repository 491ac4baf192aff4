// Loops over sequences or features, shared by a team (core/team.hpp) that polls signals.
#pragma once

#include <cstddef>

#include "core/index.hpp"
#include "core/team.hpp"

namespace certifit::chain {

// work(task, worker) for every task; worker < threads tells apart what runs at the same time.
template <class Work>
void over_tasks(Index tasks, int threads, Work&& work) {
    SignalPoll signals;
    Team(threads, &signals).run(tasks, true, work);
}

}  // namespace certifit::chain
