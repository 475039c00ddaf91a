"""No line of the model's source is in a recording that was not asked for it, and nothing else is missing."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from tests.model.dump import dump
from tests.model.guard_texts import TORCH_2_9, TORCH_2_13, Case
from tests.sources.recorded_streams import STREAMS, batches, fold, record, replayed, stream
from tuimon import events as ev
from tuimon.model.reading import reading
from tuimon.sources.recording import Recording
from tuimon.sources.redact import guard_text, redacted, without_code

SECRET = "secret_of_mine"
TRACE = (
    'AttributeError: no such thing\n\nfrom user code:\n   File "/w/model.py", line 9, in forward\n'
    f'    {SECRET}(x)\n    ~~~~^^^\n  File "/w/other.py", line 3, in call\n    return {SECRET}\n\nSet TORCH_LOGS'
)


@pytest.mark.parametrize("case", [*TORCH_2_13, *TORCH_2_9], ids=range(len(TORCH_2_13) + len(TORCH_2_9)))
def test_a_guard_reads_the_same_without_its_line_of_code(case: Case) -> None:
    text = case[0]
    kept = guard_text(text)
    assert reading(kept) == reading(text)
    assert "return x" not in kept and "for k in d" not in kept
    assert ("model.py:" in kept) == ("model.py:" in text)
    assert guard_text(kept) == kept


def test_a_comment_in_the_line_of_code_goes_too() -> None:
    text = f"0/0: x == 1      # y = x  # {SECRET}  # w/model.py:3 in f (HINT: look)"
    assert guard_text(text) == "0/0: x == 1  # w/model.py:3 in f (HINT: look)"
    assert guard_text(f"0/0: x == 1  # {SECRET}") == "0/0: x == 1"
    stack = f'0/0: x == 1  # {SECRET}  # w/model.py:3 in f\nUser stack trace:\n  File "/w/model.py", line 3, in f\n    {SECRET}'
    assert guard_text(stack) == '0/0: x == 1  # w/model.py:3 in f\nUser stack trace:\n  File "/w/model.py", line 3, in f'


@pytest.mark.parametrize("end", ["\n", "\\n"])
def test_a_traceback_keeps_its_places_only(end: str) -> None:
    text = TRACE.replace("\n", end)
    kept = without_code(text)
    assert SECRET not in kept and "~~" not in kept
    assert all(one in kept for one in ("AttributeError", "/w/model.py", "line 9", "/w/other.py", "Set TORCH_LOGS"))
    assert without_code(kept) == kept


def with_source() -> list[ev.Event]:
    """One of each event that holds source text."""
    guard = f"0/0: x == 1      # return {SECRET}  # w/model.py:3 in f"
    finished = ev.CompileFinished(
        4, "0/0", "forward", "f", "/w/model.py", 3, "t", 1, 0.1, failed=TRACE, restart_reasons=(TRACE,)
    )
    return [
        ev.SourceSeen(1, "/w/model.py", 3, SECRET),
        ev.GraphBroke(
            2, "0/0", 0, TRACE, "kind", "GB1", "f", "/w/model.py", 3, explanation=TRACE, headline=TRACE, source=SECRET
        ),
        ev.GuardsFailed(3, "0/1", (("0/0", guard),), now=(("x", "2"),)),
        dataclasses.replace(finished, restart_reasons=(TRACE,)),
        ev.BoundaryAccepted(5, "model.py", "f", "kind", SECRET, "a note"),
        ev.Line(6, SECRET, "job"),
    ]


def test_it_is_not_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "run.tuimon"
    told = with_source()
    record(file, [told, [ev.Line(7, "tuimon says")]], source=False)
    kept = [event for batch in replayed(file) for event in batch]
    assert SECRET not in json.dumps([dataclasses.asdict(event) for event in kept])
    assert [type(event) for event in kept] == [
        ev.GraphBroke, ev.GuardsFailed, ev.CompileFinished, ev.BoundaryAccepted, ev.Line,
    ]  # fmt: skip
    assert not Recording(file).head.source
    other = tmp_path / "source.tuimon"
    record(other, [told], source=True)
    assert replayed(other) == [told] and Recording(other).head.source


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_what_is_replayed_is_what_was_watched_without_the_source(path: Path, tmp_path: Path) -> None:
    told = batches(stream(path))
    file = tmp_path / "run.tuimon"
    record(file, told, source=False)
    expected = [[kept for event in batch if (kept := redacted(event)) is not None] for batch in told]
    assert json.dumps(dump(fold(replayed(file)))) == json.dumps(dump(fold(expected)))
    assert all(redacted(event) == event for batch in expected for event in batch)
