"""Settings of the property tests, and which tests go to the same worker."""

from __future__ import annotations

import re
import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# a busy machine is no failure: no test may depend on how long something takes; and what is tried is the same in each run, so
# that a change is judged by what it changes
settings.register_profile("tests", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")

OTHER_PYTHON = re.compile(r"\[(?:[^\]]*-)?(/[^\]]*/python[\d.]*)(?:-[^\]]*)?\]$")
"""In the name of a test, the path of the Python that it is for."""


def together(nodeid: str) -> str:
    """Tests of which this is the same share a worker: those of a file, for its fixtures; those of another Python, since each
    worker that has one of them has that Python import torch once (`support/imported.py`)."""
    other = OTHER_PYTHON.search(nodeid)
    is_other = other is not None and "/live/" in nodeid and other[1] != sys.executable
    return other[1] if other is not None and is_other else nodeid.split("::", 1)[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Where several workers are asked for with `--dist loadfile`."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Together(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return together(nodeid)

    return Together(config, log)
