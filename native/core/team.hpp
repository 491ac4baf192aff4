// Threads that help with loops, long or short: the only threads of the native kernels.
//
// The caller works through the tasks of a loop and waits only for tasks that a helper has taken; a helper that is not running
// costs nothing. (An OpenMP loop ends when every thread has arrived, also those that had nothing to do: on a machine that
// runs something else too, a loop of microseconds then waits for the scheduler, a thousand times longer than the loop itself.)
// Between loops the helpers spin for a moment, then sleep.
//
// A team lives as long as the call, or the fit, that made it, and its helpers start with the first loop that wants them. So
// nothing waits beside Python when no kernel runs, and a process may fork at any time: a forked child has none of the
// helpers, and a team that was alive during the fork notices it and starts its own.
//
// Tasks are handed out as they are asked for. Results must not depend on who does a task: a task writes what is its own, and sums
// over tasks are added by the caller in the order of the tasks.
#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/interrupt.hpp"

namespace certifit {

// How often this process was forked off, counted in the child.
inline unsigned forks() {
    static std::atomic<unsigned> count{0};
    static const int registered = pthread_atfork(nullptr, nullptr, [] { count.fetch_add(1); });
    (void)registered;
    return count.load(std::memory_order_relaxed);
}

// Another task of the loop has failed or was interrupted: leave quietly.
struct Stopped {};

class Team {
  public:
    // With `signals`, the caller polls them between its tasks and while it waits: Ctrl-C ends a loop like an exception.
    explicit Team(int threads, SignalPoll* signals = nullptr)
        : size_(threads < 1 ? 1 : threads), signals_(signals), born_(forks()) {}
    ~Team() {
        abandon_after_fork();
        stop_.store(true);
        announce();
        for (std::thread& helper : *helpers_) helper.join();
    }
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    // Workers are numbered from 0, the caller, to size() − 1.
    int size() const { return size_; }

    // For tasks that take long: looks for signals, where that is allowed, and leaves the task if another one has failed.
    void check(int worker) {
        if (signals_ && worker == 0) signals_->poll();
        if (failed_.load(std::memory_order_relaxed)) throw Stopped();
    }

    // work(task, worker) for every task; no two tasks that run at the same time have the same worker. An exception of a task
    // ends the loop: tasks that have not begun are left out, and the caller gets the first exception.
    // Without `together` the caller does all, in order.
    template <class Work>
    void run(std::ptrdiff_t tasks, bool together, Work&& work) {
        if (!together || size_ < 2 || tasks < 2) {
            for (std::ptrdiff_t task = 0; task < tasks; ++task) {
                if (signals_) signals_->poll();
                work(task, 0);
            }
            return;
        }
        abandon_after_fork();
        using Type = std::remove_reference_t<Work>;
        // The round is part of the ticket: a helper that comes late cannot take a task of another loop, and while the loop is
        // being described there is nothing to take.
        ticket_.store((++round_ & 0xFFFFFFFFu) << 32 | 0xFFFFFFFFu);
        call_.store([](void* context, std::ptrdiff_t task, int worker) { (*static_cast<Type*>(context))(task, worker); });
        context_.store(const_cast<void*>(static_cast<const void*>(std::addressof(work))));
        tasks_.store(static_cast<std::uint32_t>(tasks));
        done_.store(0);
        ticket_.store((++round_ & 0xFFFFFFFFu) << 32);
        announce();
        recruit(tasks);
        take(0);
        wait(static_cast<std::uint32_t>(tasks));
        if (failed_.load()) {
            failed_.store(false), claimed_.store(false);
            std::rethrow_exception(std::exchange(failure_, nullptr));
        }
    }

    // work(from, to, worker) for blocks of `count` items; the blocks depend on `count` and `block` alone.
    template <class Work>
    void blocks(std::ptrdiff_t count, std::ptrdiff_t block, bool together, Work&& work) {
        run((count + block - 1) / block, together, [&](std::ptrdiff_t b, int worker) {
            work(b * block, (b + 1) * block < count ? (b + 1) * block : count, worker);
        });
    }

  private:
    static constexpr int kPatience = 12000;  // some 0.3 ms: longer than what lies between two loops of a fit
    using Call = void (*)(void*, std::ptrdiff_t, int);
    const int size_;
    SignalPoll* const signals_;
    std::unique_ptr<std::vector<std::thread>> helpers_ = std::make_unique<std::vector<std::thread>>();
    unsigned born_;
    std::atomic<Call> call_{nullptr};
    std::atomic<void*> context_{nullptr};
    std::atomic<std::uint32_t> tasks_{0}, done_{0}, bell_{0};
    std::atomic<std::uint64_t> ticket_{0};
    std::atomic<int> asleep_{0};
    std::atomic<bool> stop_{false}, failed_{false}, claimed_{false};
    std::exception_ptr failure_;
    std::uint64_t round_ = 0;

    static void relax() {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }

    // The threads of the parent do not exist here: they can neither be joined nor detached, only forgotten.
    void abandon_after_fork() {
        if (born_ == forks()) return;
        born_ = forks();
        (void)helpers_.release();
        helpers_ = std::make_unique<std::vector<std::thread>>();
        asleep_.store(0);
    }

    // As many helpers as the loop can use. Where no more threads are to be had, those that started do the work.
    void recruit(std::ptrdiff_t tasks) {
        try {
            while (static_cast<int>(helpers_->size()) + 1 < size_ && static_cast<std::ptrdiff_t>(helpers_->size()) + 1 < tasks)
                helpers_->emplace_back([this, worker = static_cast<int>(helpers_->size()) + 1] { help(worker); });
        } catch (const std::system_error&) {
        }
    }

    void announce() {
        bell_.fetch_add(1);
        if (asleep_.load() > 0) bell_.notify_all();
    }

    void fail() {
        if (!claimed_.exchange(true)) failure_ = std::current_exception(), failed_.store(true);
    }

    void poll() {
        if (!signals_ || claimed_.load(std::memory_order_relaxed)) return;
        try {
            signals_->poll();
        } catch (...) {
            fail();
        }
    }

    // Takes tasks until none is left.
    void take(int worker) {
        std::uint64_t ticket = ticket_.load();
        for (;;) {
            const Call call = call_.load();
            void* const context = context_.load();
            const auto task = static_cast<std::uint32_t>(ticket);
            if (task >= tasks_.load()) return;
            // Success means that the loop has not changed since it was read.
            if (!ticket_.compare_exchange_weak(ticket, ticket + 1)) continue;
            if (worker == 0) poll();
            if (!failed_.load(std::memory_order_relaxed)) {
                try {
                    call(context, static_cast<std::ptrdiff_t>(task), worker);
                } catch (...) {
                    fail();
                }
            }
            done_.fetch_add(1, std::memory_order_release);
            ticket = ticket_.load();
        }
    }

    void wait(std::uint32_t tasks) {
        for (int spins = 0; done_.load(std::memory_order_acquire) < tasks; ++spins) {
            if (spins < 4096) {
                relax();
                continue;
            }
            poll();
            spins < 4352 ? std::this_thread::yield() : std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
    }

    void help(int worker) {
        std::uint32_t heard = 0;
        while (!stop_.load()) {
            take(worker);
            for (int spins = 0; spins < kPatience && bell_.load(std::memory_order_relaxed) == heard; ++spins) relax();
            if (bell_.load() == heard) {
                asleep_.fetch_add(1);
                bell_.wait(heard);
                asleep_.fetch_sub(1);
            }
            heard = bell_.load();
        }
    }
};

}  // namespace certifit
