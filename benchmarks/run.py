"""Certifit beside its peers: same data, same threads, one run, best of several interleaved rounds.

    python benchmarks/run.py [task …]        writes benchmarks/results.md

Each contender runs in its own process. First it is asked for its loosest tolerance that reaches the wanted objective; then all
contenders take turns, and the best round of each counts.
"""

from __future__ import annotations

import importlib.metadata
import json
import math
import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import worker

HERE = Path(__file__).parent
MODULES = ("linear_tasks", "logistic")
ROUNDS = 7
THREADS = "2"
CLOCK = "seconds"  # or "processor": what the fit takes of the processor, for machines on which others work too
PATIENCE = float(
    "inf"
)  # times our seconds: a peer that is slower and not yet there is not asked for a tighter tolerance
SLOW = 3.0  # seconds; slower contenders get fewer rounds
WORTH_A_PROCESS = 2.0  # seconds; a fit that may last longer runs where it can be ended
OWN_ENVIRONMENT = {"adelie": HERE.parent / ".venv-adelie"}  # needs NumPy 1
PACKAGES = (
    "numpy", "scipy", "scikit-learn", "celer", "skglm", "glum", "statsmodels", "scikit-learn-intelex", "adelie",
)  # fmt: skip


@dataclass
class Contender:
    """A worker process and what it has shown."""

    name: str
    process: subprocess.Popen[str] | None
    tolerance: float = 0.0
    seconds: float = float("inf")
    objective: float = float("inf")
    extra_mib: float = 0.0
    error: str = ""
    slow: bool = False
    """Whether it was given up before it reached the goal: `seconds` is then the least that it needs."""

    def ask(self, tolerance: float, trim: bool = False) -> dict[str, Any]:
        assert self.process is not None
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"tolerance": tolerance, "trim": trim}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": "the process ended"}

    def end(self) -> None:
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=60)


@dataclass
class Here(Contender):
    """A contender in this process: enough where nobody has threads that would be in the next one's way."""

    fit: Any = None
    task: Any = None
    data: Any = None

    limit: float = math.inf
    """Seconds after which it is ended."""
    harmless: bool = False
    """Whether it ended by itself at its loosest tolerance, of a task too short for a process."""

    def ask(self, tolerance: float, trim: bool = False) -> dict[str, Any]:
        command = {"tolerance": tolerance, "trim": trim}
        if self.limit < math.inf and not self.harmless:
            self.harmless = self.limit < WORTH_A_PROCESS
            limit = max(self.limit, WORTH_A_PROCESS)
            return worker.answer_within(limit, command, self.task, self.fit, self.data)
        return worker.answer_to(command, self.task, self.fit, self.data)

    def end(self) -> None:
        self.data = None


def python_of(contender: str) -> Path | None:
    for name, environment in OWN_ENVIRONMENT.items():
        if name in contender:
            python = environment / "bin" / "python"
            return python if python.exists() else None
    return Path(sys.executable)


def start(module: str, task: str, contender: str) -> Contender | None:
    python = python_of(contender)
    if python is None:
        return None
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": THREADS,
        "OPENBLAS_NUM_THREADS": THREADS,
        "MKL_NUM_THREADS": THREADS,
    }
    command = [str(python), str(HERE / "worker.py"), module, task, contender]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=HERE,
        env=environment,
    )  # fmt: skip
    return Contender(contender, process)


def calibrate(contender: Contender, tolerances: Any, goal: float, slowest: float = float("inf")) -> None:
    """The loosest tolerance that reaches the goal, or takes longer than `slowest`; also warms up just-in-time compilers."""
    for tolerance in tolerances:
        contender.tolerance = tolerance
        answer = contender.ask(tolerance)
        if "error" in answer:
            contender.error = answer["error"]
            return
        if "ended" in answer:
            contender.slow, contender.seconds, contender.extra_mib = True, slowest, math.nan
            return
        contender.objective = answer["objective"]
        if contender.objective <= goal:
            return
        # Asked twice, since the first time a just-in-time compiler may have been at work.
        if answer[CLOCK] > slowest and (again := contender.ask(tolerance, trim=True)).get(CLOCK, slowest) >= slowest:
            contender.slow, contender.seconds = True, slowest
            contender.extra_mib = again.get("extra_mib", math.nan)
            return


def run_task(module: str, task: Any) -> list[Contender]:
    found = [start(module, task.name, name) for name in task.contenders]
    return race(task, [c for c in found if c is not None])


def race(task: Any, contenders: list[Contender]) -> list[Contender]:
    ours = contenders[0]
    calibrate(ours, [1e-9], -1.0)  # the goal is relative to the best objective known
    best, slowest = ours.objective, float("inf")
    for c in contenders:
        calibrate(c, task.contenders[c.name][1], task.goal(best), slowest)
        if c is ours and math.isfinite(PATIENCE):
            ours.seconds = ours.ask(ours.tolerance).get(CLOCK, float("inf"))
            slowest = PATIENCE * ours.seconds
            for peer in contenders[1:]:
                if isinstance(peer, Here):
                    peer.limit = 1.2 * slowest + 0.2  # the objective takes a moment too
    for k in range(ROUNDS):
        for c in contenders:
            if c.error or c.slow or (k > 1 and c.seconds > SLOW):
                continue
            if c is not ours and PATIENCE * ours.seconds < c.seconds < math.inf:
                continue
            answer = c.ask(c.tolerance)
            if "error" in answer:
                c.error = answer["error"]
                continue
            c.seconds = min(c.seconds, answer.get(CLOCK, c.seconds))
            c.objective = answer.get("objective", c.objective)
    for c in contenders:
        if not (c.error or c.slow):
            c.extra_mib = c.ask(c.tolerance, trim=True).get("extra_mib", float("nan"))
        c.end()
    return contenders


def report(task: Any, contenders: list[Contender]) -> str:
    ours = contenders[0]
    best = min(c.objective for c in contenders if not c.error)
    peers = [c.seconds for c in contenders[1:] if not c.error]
    ratio = min(peers) / ours.seconds if peers else float("nan")
    lines = [
        f"## {task.title}",
        "",
        f"best peer / certifit: **{ratio:.2f}** (wanted {task.wanted_ratio})",
        "",
        "| contender | seconds (best round) | peer / ours | objective | relative excess | extra memory, MiB |",
        "|---|---|---|---|---|---|",
    ]
    for c in contenders:
        if c.error:
            lines.append(f"| {c.name} | failed: {c.error} | | | | |")
            continue
        excess = (c.objective - best) / abs(best)
        lines.append(
            f"| {c.name} | {c.seconds:.4f} | {c.seconds / ours.seconds:.2f} | {c.objective:.12g} | {excess:.1e} "
            f"| {c.extra_mib:.0f} |"
        )
    return "\n".join(lines) + "\n"


def versions() -> str:
    shown = []
    for package in PACKAGES:
        try:
            shown.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return ", ".join(shown)


def main() -> None:
    wanted = sys.argv[1:]
    parts = [
        "# Certifit beside its peers\n",
        f"Python {platform.python_version()}, {platform.machine()}, {THREADS} threads; {versions()}.\n",
        "Same data and same threads for all, each contender in a process of its own, best of interleaved rounds. Peers "
        "run at their loosest tolerance that reaches the wanted objective.\n",
    ]
    for module in MODULES:
        sys.path.insert(0, str(HERE))
        for name, task in __import__(module).TASKS.items():
            if wanted and name not in wanted:
                continue
            text = report(task, run_task(module, task))
            print(text, flush=True)
            parts.append(text)
    if not wanted:
        (HERE / "results.md").write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
