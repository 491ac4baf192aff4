// Ctrl-C inside a kernel that runs without the GIL.
#pragma once

#include <Python.h>

#include <chrono>
#include <exception>

namespace certifit {

// Thrown when a Python signal handler raised; the Python error is already set.
struct Interrupted : std::exception {
    const char* what() const noexcept override { return "interrupted"; }
};

// Call `poll()` in an outer loop: it looks for pending signals at most every 50 ms and throws Interrupted.
// Only the thread that entered the kernel may poll.
class SignalPoll {
  public:
    void poll() {
        const auto now = std::chrono::steady_clock::now();
        if (now - last_ < std::chrono::milliseconds(50)) return;
        last_ = now;
        PyGILState_STATE state = PyGILState_Ensure();
        const bool raised = PyErr_CheckSignals() != 0;
        PyGILState_Release(state);
        if (raised) throw Interrupted();
    }

  private:
    std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace certifit
