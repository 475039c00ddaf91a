"""The list of processes as text and as JSON."""

from __future__ import annotations

import json

import pytest

from tuimon.attach.process import Target
from tuimon.commands import listing
from tuimon.commands.options import Options
from tuimon.draw.text import cells

JOB = Target(
    pid=4242, kind="job", rank=0, world_size=2, user="ann", started=1.0, age=3725.0, command=["python", "train.py", "\x1b[31m"],
    python="3.11", has_torch=True, attachable=True, how="injected", code=None, why=None,
)  # fmt: skip
OTHER = Target(
    pid=99, kind="worker", rank=None, world_size=None, user=None, started=1.0, age=3.0, command=["python", "漢" * 200],
    python=None, has_torch=None, attachable=False, how=None, code="other-user", why="it belongs to bob: use sudo",
)  # fmt: skip


def test_the_table_shows_what_can_be_attached_to_and_why_not() -> None:
    lines = listing.table([JOB, OTHER])
    assert lines[1].split()[:6] == ["4242", "0", "ann", "1h02m", "yes", "yes"]
    assert any("99: it belongs to bob" in line for line in lines[3:])
    assert all(cells(line) <= listing.WIDTH for line in lines)
    assert "\x1b" not in "".join(lines)


def test_nothing_there_is_a_sentence() -> None:
    assert listing.table([]) == ["no PyTorch process here that this user may see"]


def test_json_has_every_field(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(listing, "find_targets", lambda: [JOB, OTHER])
    assert listing.run(Options(format="json")) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "tuimon.list/1"
    assert [target["pid"] for target in found["targets"]] == [4242, 99]
    assert found["targets"][1]["code"] == "other-user"


def test_tuimon_alone_says_what_to_do_next(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(listing, "find_targets", list)
    assert listing.run(Options(), hints=True) == 0
    assert "tuimon attach PID" in capsys.readouterr().out
