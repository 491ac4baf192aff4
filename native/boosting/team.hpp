// Threads that help with many short loops.
//
// Growing a tree is some hundred parallel loops of a few microseconds each. An OpenMP loop ends when every thread has arrived,
// also those that had nothing to do: on a machine that runs something else too, each loop then waits for the scheduler, a thousand
// times longer than the loop itself. Here the caller works through the tasks and waits only for tasks that a helper has
// taken; a helper that is not running costs nothing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace certifit::boosting {

class Team {
  public:
    explicit Team(int threads) {
        for (int worker = 1; worker < threads; ++worker) helpers_.emplace_back([this, worker] { help(worker); });
    }
    ~Team() {
        stop_.store(true);
        announce();
        for (std::thread& helper : helpers_) helper.join();
    }
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    int size() const { return static_cast<int>(helpers_.size()) + 1; }

    // work(task, worker) for every task; worker < size() tells apart what runs at the same time. Must not throw.
    template <class Work>
    void run(std::ptrdiff_t tasks, bool together, Work&& work) {
        if (!together || helpers_.empty() || tasks < 2) {
            for (std::ptrdiff_t task = 0; task < tasks; ++task) work(task, 0);
            return;
        }
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
        take(0);
        for (int spins = 0; done_.load(std::memory_order_acquire) < static_cast<std::uint32_t>(tasks); ++spins)
            spins < 4096 ? relax() : std::this_thread::yield();
    }

  private:
    static constexpr int kPatience = 12000;  // some 0.3 ms: longer than what lies between two loops of a fit
    using Call = void (*)(void*, std::ptrdiff_t, int);
    std::vector<std::thread> helpers_;
    std::atomic<Call> call_{nullptr};
    std::atomic<void*> context_{nullptr};
    std::atomic<std::uint32_t> tasks_{0}, done_{0}, bell_{0};
    std::atomic<std::uint64_t> ticket_{0};
    std::atomic<int> asleep_{0};
    std::atomic<bool> stop_{false};
    std::uint64_t round_ = 0;

    static void relax() {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }

    void announce() {
        bell_.fetch_add(1);
        if (asleep_.load() > 0) bell_.notify_all();
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
            call(context, static_cast<std::ptrdiff_t>(task), worker);
            done_.fetch_add(1, std::memory_order_release);
            ticket = ticket_.load();
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

}  // namespace certifit::boosting
