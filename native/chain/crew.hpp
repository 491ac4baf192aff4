// The one place where the kernels of this family start threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>

#include "core/interrupt.hpp"

namespace certifit::chain {

using Index = std::ptrdiff_t;

// work(task, worker) for every task; worker < threads tells apart what runs at the same time. Tasks are taken in any order, so each
// writes to a place of its own. The caller polls signals between its tasks; an interrupt lets the others end the task they are at.
template <class Work>
void over_tasks(Index tasks, int threads, Work&& work) {
    std::atomic<Index> next{0};
    SignalPoll signals;
    const auto take = [&](int worker, bool caller) {
        for (Index task = next++; task < tasks; task = next++) {
            if (caller) signals.poll();
            work(task, worker);
        }
    };
    std::vector<std::jthread> others;
    try {
        for (int worker = 1; worker < std::min<Index>(threads, tasks); ++worker) others.emplace_back(take, worker, false);
    } catch (const std::system_error&) {  // no more threads to be had: those that started do the work
    }
    try {
        take(0, true);
    } catch (...) {
        next.store(tasks);
        throw;
    }
}

}  // namespace certifit::chain
