"""The faults, some tries of each; `python -m tests.faults --full` takes hundreds. What a room's own tests show is not here."""

from __future__ import annotations

import pytest

from tests.attach.conftest import needs_tracing

from . import attaching, clocks, connection, disk, instruments, monitors, screen
from .table import Fault, attempt

FEW = (
    pytest.param(connection.torn_on_the_way_here, 60, id="torn on the way here"),
    pytest.param(connection.flipped, 120, id="flipped"),
    pytest.param(connection.torn_on_the_way_there, 4, id="torn on the way there"),
    pytest.param(instruments.raising, 2, id="an instrument raises"),
    pytest.param(attaching.exits, 3, id="exits", marks=needs_tracing),
    pytest.param(attaching.execs, 2, id="execs", marks=needs_tracing),
    pytest.param(attaching.begins, 6, id="has only just begun", marks=needs_tracing),
    pytest.param(monitors.windows, 3, id="profiler windows", marks=needs_tracing),
    pytest.param(disk.of_the_job, 1, id="the job's disk is full", marks=needs_tracing),
    pytest.param(clocks.jumps, 1, id="the clock jumps", marks=needs_tracing),
    pytest.param(screen.resized, 40, id="resized"),
)


@pytest.mark.parametrize(("fault", "tries"), FEW)
def test_a_fault(fault: object, tries: int) -> None:
    result = attempt(Fault("", tries, tries, fault), tries, seed=1)  # type: ignore[arg-type]
    if result.not_tried:
        pytest.skip(result.not_tried)
    assert result.tries and not result.wrong, result.wrong
