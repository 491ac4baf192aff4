"""One contender in its own process: waiting BLAS or OpenMP threads of one library would slow the next.

Reads one JSON command a line, {"tolerance": …, "save": path or null}; answers with the seconds that the fit took, its
objective and the peak memory of the process. Started by run.py.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import time
import warnings


def main() -> None:
    module, task_name, contender = sys.argv[1:4]
    warnings.simplefilter("ignore")
    task = importlib.import_module(module).TASKS[task_name]
    fit = task.contenders[contender][0]
    answers, sys.stdout = os.fdopen(os.dup(1), "w"), sys.stderr  # libraries that print must not break the protocol
    data = task.make()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for line in sys.stdin:
        command = json.loads(line)
        try:
            started = time.perf_counter()
            coef, intercept = fit(data, command["tolerance"])
            seconds = time.perf_counter() - started
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
            answer = {"seconds": seconds, "objective": task.objective(data, coef, intercept), "extra_mib": peak / 1024}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"[:200]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
