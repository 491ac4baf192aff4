"""What all tests share: the repository on the import path, so that they can use `tests.oracles`."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

# A shell starts what it puts in the background with Ctrl-C ignored, and then no test of an interrupt can interrupt anything.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Examples are drawn from the test's own code, not from a clock: a failure on one machine is a failure on all.
settings.register_profile("certifit", derandomize=True, deadline=None, max_examples=50)
settings.load_profile("certifit")


@pytest.fixture(scope="session")
def root() -> Path:
    """The top of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data sets that lies beside the repository; tests that need it are skipped only where it is absent."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no real data beside the repository: {folder} is absent")
    return folder
