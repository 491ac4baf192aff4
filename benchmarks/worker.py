"""One contender in its own process: waiting BLAS or OpenMP threads of one library would slow the next.

Reads one JSON command a line, {"tolerance": …, "trim": …}; answers with the seconds that the fit took, on the clock and of
the processor, its objective and the memory that it needed on top of what the process held before: data and imported libraries
do not count, once the first fit has imported them. With `trim` the allocator first gives back what it keeps of earlier fits,
which is right for measuring memory and wrong for measuring time. Started by run.py.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import signal
import sys
import time
import warnings
from typing import Any


def memory(what: str) -> float:
    """VmRSS (held now) or VmHWM (the most since the last reset), in MiB."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(float(line.split()[1]) / 1024 for line in status if line.startswith(what))


def reset_peak() -> None:
    with open("/proc/self/clear_refs", "w", encoding="ascii") as control:
        control.write("5")


def answer_to(command: dict[str, Any], task: Any, fit: Any, data: Any) -> dict[str, Any]:
    """One fit, and what is said of it."""
    try:
        if command["trim"]:
            ctypes.CDLL(None).malloc_trim(0)
        reset_peak()
        before = memory("VmRSS")
        started, worked = time.perf_counter(), time.process_time()
        coef, intercept = fit(data, command["tolerance"])
        processor, seconds = time.process_time() - worked, time.perf_counter() - started
        extra = memory("VmHWM") - before
        return {
            "seconds": seconds,
            "processor": processor,
            "objective": task.objective(data, coef, intercept),
            "extra_mib": extra,
        }
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:200]}


def answer_within(seconds: float, command: dict[str, Any], task: Any, fit: Any, data: Any) -> dict[str, Any]:
    """The same from a child that is ended after so many seconds of the processor, which is then all that is said."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        os.write(write, json.dumps(answer_to(command, task, fit, data)).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answers:
        answer = answers.read()
    os.waitpid(child, 0)
    return json.loads(answer) if answer else {"ended": seconds}


def main() -> None:
    module, task_name, contender = sys.argv[1:4]
    warnings.simplefilter("ignore")
    task = importlib.import_module(module).TASKS[task_name]
    fit = task.contenders[contender][0]
    answers, sys.stdout = os.fdopen(os.dup(1), "w"), sys.stderr  # libraries that print must not break the protocol
    data = task.make()
    for line in sys.stdin:
        command = json.loads(line)
        answer = answer_to(command, task, fit, data)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
