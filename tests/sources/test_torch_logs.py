"""Records from real TORCH_TRACE logs: the parser of live records reads them, and the fold makes of them what is in them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tuimon import events as ev
from tuimon.model import Model
from tuimon.sources import carried
from tuimon.sources.trace_records import record_events

FOLDER = Path(__file__).parents[3] / "shared" / "files" / "tlparse" / "tests"
LINE = re.compile(r"^(?:\[rank\d+\]:)?[VI]\d{4} (\d\d):(\d\d):(\d\d)\.(\d{6}) \S+ [^\]]+\] ")
LARGEST = 2_000_000

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="no folder with public TORCH_TRACE logs beside this one")


def records(path: Path) -> Iterator[tuple[int, dict[str, Any], str | None]]:
    """(time in ns, metadata, payload) of each record; lines that are none are passed over."""
    current: tuple[int, dict[str, Any]] | None = None
    payload: list[str] = []
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        if line.startswith("\t") and current is not None:
            payload.append(line[1:])
            continue
        if current is not None:
            yield *current, "\n".join(payload) if payload else None
        current, payload = None, []
        match = LINE.match(line)
        if match is None:
            continue
        hours, minutes, seconds, micros = map(int, match.groups())
        try:
            metadata = json.loads(line[match.end() :])
        except ValueError:
            continue
        current = (((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + micros) * 1000, metadata
    if current is not None:
        yield *current, "\n".join(payload) if payload else None


def read(name: str) -> tuple[Model, Counter[str]]:
    """A model of a log, and its events by kind."""
    model, seen = Model(), Counter[str]()
    for t_ns, metadata, payload in records(FOLDER / name):
        for event in record_events(t_ns, "main", metadata, payload):
            seen[type(event).__name__] += 1
            model.apply([carried.checked(event)])
    return model, seen


ALL = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.log") if path.stat().st_size < LARGEST)


@pytest.mark.parametrize("name", [name for name in ALL if "multi_rank_runtime" not in name or "rank_0" in name])
def test_every_log_is_read(name: str) -> None:
    model, _ = read(name)
    assert all(compilation.compile_id != "None" for compilation in model.compilations)


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("inputs/comp_metrics.log", 3),
        ("inputs/simple.log", 1),
        ("inputs/autotune_with_compile_id.log", 1),
        ("inputs/multi_rank_logs/dedicated_log_torch_trace_rank_3.log", 7),
        ("graph_exec_order_tests/dedicated_log_torch_trace_rank_0_a74od7a1.log", 2),
    ],
)
def test_compile_ids_are_those_of_the_log(name: str, ids: int) -> None:
    model, seen = read(name)
    assert seen["CompileStarted"] >= ids
    assert len({c.compile_id for c in model.compilations if c.direction == "forward"}) == ids


def test_a_compilation_that_failed_in_a_log_is_known_as_failed() -> None:
    model, _ = read("inputs/comp_failure.log")
    assert [bool(c.failed) for c in model.compilations] == [True]
    assert all(not isinstance(event, ev.GraphBroke) for event in model.log)
