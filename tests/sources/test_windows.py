"""What is taken of a profiler window's file: no more than its span, whatever the GPU did while the profiler was being ended."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.sources.test_kineto import STEPS
from tuimon import events as ev
from tuimon.sources import windows

WALL = 1_700_000_000_000_000_000
BEGIN = 5_000_000_000  # on the job's clock, at the same moment


@pytest.mark.parametrize(
    ("steps", "calls", "begin_ns", "end_ns"),
    [
        ({}, 3, BEGIN, BEGIN + 2_500_000),  # the fourth step ran when no operator was recorded any more
        ({"first_ns": BEGIN + 1_000_000, "last_ns": BEGIN + 2_000_000}, 1, BEGIN + 1_000_000, BEGIN + 2_000_000),
        ({"first_ns": "x", "last_ns": 7}, 3, BEGIN, BEGIN + 2_500_000),
    ],
)
def test_what_a_gpu_did_after_its_end_is_none_of_it(
    tmp_path: Path, steps: dict[str, Any], calls: int, begin_ns: int, end_ns: int
) -> None:
    file = tmp_path / "tuimon-window-1-2.json"
    file.write_text(json.dumps({"traceEvents": STEPS, "baseTimeNanoseconds": WALL}))
    message = {"t": BEGIN + 9_000_000, "window": 2, "state": "closed", "path": f"/elsewhere/{file.name}", "steps": 1}
    message |= {"begin_ns": BEGIN, "begin_wall_ns": WALL, "end_ns": BEGIN + 2_500_000, **steps}
    changed, seen = windows.events(message, lambda: os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY))[:2]
    assert isinstance(changed, ev.WindowChanged) and changed.end_ns == BEGIN + 2_500_000
    assert isinstance(seen, ev.KernelsSeen) and (seen.begin_ns, seen.end_ns) == (begin_ns, end_ns)
    assert [row[6] for row in seen.rows] == [calls] and not file.exists()
