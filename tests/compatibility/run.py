"""Run scikit-learn's own tests with the drop-ins in place: ``python -m tests.compatibility.run [files…]``.

The tests ship inside scikit-learn's wheel. A test counts for every drop-in that it fits; one that fits none does not count.
What fails must be explained by a row of `differences`, and what passed before (``passed.txt``) must pass again. The
outcome is written to docs/compatibility.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from tests.compatibility.differences import DIFFERENCES, NOT_APPLICABLE, explanation, idle

ROOT = Path(__file__).resolve().parents[2]
PASSED = Path(__file__).with_name("passed.txt")
PAGE = ROOT / "docs" / "compatibility.md"
FILES = (
    "linear_model/tests/test_base.py",
    "linear_model/tests/test_common.py",
    "linear_model/tests/test_coordinate_descent.py",
    "linear_model/tests/test_sparse_coordinate_descent.py",
    "linear_model/tests/test_ridge.py",
    "linear_model/tests/test_huber.py",
    "linear_model/tests/test_quantile.py",
    "linear_model/_glm/tests/test_glm.py",
    "linear_model/tests/test_logistic.py",
    "linear_model/tests/test_perceptron.py",
    "linear_model/tests/test_sgd.py",
    "svm/tests/test_svm.py",
    "tree/tests/test_tree.py",
    "tree/tests/test_export.py",
    "ensemble/tests/test_forest.py",
    "ensemble/tests/test_bagging.py",
    "ensemble/tests/test_weight_boosting.py",
    "ensemble/_hist_gradient_boosting/tests/test_gradient_boosting.py",
    "tests/test_multiclass.py",
    "tests/test_naive_bayes.py",
    "tests/test_discriminant_analysis.py",
    "tests/test_kernel_ridge.py",
    "tests/test_kernel_approximation.py",
    "neighbors/tests/test_neighbors.py",
    "neighbors/tests/test_kde.py",
    "neighbors/tests/test_nearest_centroid.py",
    "neural_network/tests/test_mlp.py",
    "tests/test_calibration.py",
    "cluster/tests/test_k_means.py",
    "cluster/tests/test_hierarchical.py",
    "decomposition/tests/test_pca.py",
    "decomposition/tests/test_incremental_pca.py",
    "decomposition/tests/test_truncated_svd.py",
    "cluster/tests/test_spectral.py",
    "mixture/tests/test_gaussian_mixture.py",
    "mixture/tests/test_mixture.py",
    "manifold/tests/test_mds.py",
    "manifold/tests/test_classical_mds.py",
    "preprocessing/tests/test_data.py",
    "preprocessing/tests/test_discretization.py",
    "preprocessing/tests/test_polynomial.py",
    "feature_extraction/tests/test_text.py",
    "feature_selection/tests/test_feature_select.py",
    "feature_selection/tests/test_chi2.py",
    "feature_selection/tests/test_rfe.py",
    "feature_selection/tests/test_sequential.py",
)
TIMEOUT = 600
"""Seconds by the clock after which a test hangs, also on a busy machine."""
HUGE = "test_csr_polynomial_expansion_index_overflow"
"""Monomials of three billion columns: ours lays out a table of them, of 24 GB."""


def run(files: list[str], jobs: int) -> list[dict[str, Any]]:
    """The outcome of every test of some files: its name, "passed", "failed" or "skipped", what it fitted, the last line."""
    import sklearn

    home = Path(sklearn.__file__).parent
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "outcomes.jsonl"
        command = [
            sys.executable, "-m", "pytest", "-q", "-p", "tests.compatibility.plugin", "-p", "tests.compatibility.outcomes",
            "-p", "no:cacheprovider", "-c", str(Path(__file__).with_name("pytest.ini")), "--rootdir", str(home.parent),
            "--outcomes", str(out), "-n", str(jobs), "--timeout", str(TIMEOUT), "-k", f"not {HUGE}",
            *(str(home / file) for file in files),
        ]  # fmt: skip
        subprocess.run(command, check=False, cwd=ROOT, stdout=subprocess.DEVNULL)
        return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


def judged(outcomes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that fitted a drop-in and were not skipped, each failure with its explanation, if there is one."""
    counted = [one for one in outcomes if one["fitted"] and one["outcome"] != "skipped"]
    for one in counted:
        one["reason"] = explanation(one["name"]) if one["outcome"] == "failed" else None
    return counted


def page(counted: list[dict[str, Any]]) -> str:
    """docs/compatibility.md"""
    import sklearn

    by_class: dict[str, Counter[str]] = defaultdict(Counter)
    for one in counted:
        outcome = one["outcome"]
        if outcome == "failed" and one["reason"] in NOT_APPLICABLE:
            outcome = "not applicable"
        for name in one["fitted"]:
            by_class[name][outcome] += 1
    lines = [
        "# Scikit-learn's own tests",
        "",
        f"`make test-sklearn` runs the test files of scikit-learn {sklearn.__version__} with `certifit.sklearn.patch()` in place "
        "and writes this page.",
        "A test counts for every class of ours that it fits. Each failure is explained below.",
        f"Left out for its memory: `{HUGE}`, with three billion columns.",
        "",
        "| class | passed | failed | not applicable | passed of applicable |",
        "|---|---|---|---|---|",
    ]
    for name, found in sorted(by_class.items()):
        applicable = found["passed"] + found["failed"]
        share = f"{100 * found['passed'] / applicable:.1f} %" if applicable else ""
        lines.append(f"| `{name}` | {found['passed']} | {found['failed']} | {found['not applicable']} | {share} |")
    reasons: dict[str, list[str]] = defaultdict(list)
    for one in counted:
        if one["outcome"] == "failed":
            reasons[one["reason"] or "Not explained yet."].append(one["name"])
    lines += ["", "## Why tests fail", ""]
    for reason, names in sorted(reasons.items(), key=lambda item: (-len(item[1]), item[0])):
        mark = " (not applicable)" if reason in NOT_APPLICABLE else ""
        lines += [f"### {reason}{mark}", ""]
        lines += [f"- `{name}`{f' ({count} settings)' if count > 1 else ''}" for name, count in _merged(names)]
        lines.append("")
    return "\n".join(lines)


def _merged(names: list[str]) -> list[tuple[str, int]]:
    """Tests without their settings, and how many settings."""
    return sorted(Counter(name.partition("[")[0] for name in names).items())


def main() -> int:
    """Run, write the page and the list of passes, and say what got worse."""
    parser = argparse.ArgumentParser(description="Run scikit-learn's tests with the drop-ins in place.")
    parser.add_argument("files", nargs="*", help="such as linear_model/tests/test_ridge.py; all by default")
    parser.add_argument("-n", "--jobs", type=int, default=2)
    options = parser.parse_args()
    start = time.perf_counter()
    outcomes = run(options.files or list(FILES), options.jobs)
    counted = judged(outcomes)
    passed = {one["name"] for one in counted if one["outcome"] == "passed"}
    known = set(PASSED.read_text(encoding="utf-8").split("\n")) - {""} if PASSED.exists() else set()
    ran = {one["name"] for one in outcomes}
    lost = sorted((known & ran if options.files else known) - passed)
    failed = [one for one in counted if one["outcome"] == "failed"]
    for name, count in _merged([one["name"] for one in failed if one["reason"] is None]):
        first = next(one for one in failed if one["name"].partition("[")[0] == name and one["reason"] is None)
        print(f"{name} ({count} settings, such as {first['name'].partition('[')[2]}: {first['message']}", flush=True)
    print(f"{len(passed)} passed, {len(failed)} failed, {time.perf_counter() - start:.0f} s")
    unexplained = [one["name"] for one in failed if one["reason"] is None]
    for name in lost:
        print("passed before, does not now:", name)
    if not lost:
        PASSED.write_text("\n".join(sorted(known - ran | passed)) + "\n", encoding="utf-8")
    if not options.files:
        for pattern in idle(one["name"] for one in failed):
            print("explains nothing any more:", pattern)
        PAGE.write_text(page(counted), encoding="utf-8")
    print(f"{len(unexplained)} not explained; {len(DIFFERENCES)} rows of differences")
    return 1 if lost or unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
