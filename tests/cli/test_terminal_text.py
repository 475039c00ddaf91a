"""What leaves tuimon for a terminal: nothing in it acts on the terminal, whoever made it up."""

from __future__ import annotations

import io
import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests.cli.test_feed import FakeSession
from tests.cli.test_listing import JOB
from tests.support.fake_feed import Job
from tests.support.monitor import Driven, drive
from tuimon import events as ev
from tuimon.app.widgets.line_widget import LineWidget
from tuimon.commands import doctor, listing, run, screen
from tuimon.commands.options import Options, deliver, say
from tuimon.draw.text import harmless, harmless_json, harmless_line, line_cells
from tuimon.feed import LiveFeed

EVIL = "a\x1b]0;evil\x07\x9b31m\u202eb\x7f\u2066\ud800"
SAFE = "a?]0;evil??31m?b???"


def test_every_form_of_harmless_text() -> None:
    assert harmless(f"{EVIL}\n\tä漢─") == f"{SAFE}\n\tä漢─"
    assert harmless_line(f"{EVIL}\n\tä漢─") == f"{SAFE}??ä漢─"
    assert line_cells([(harmless_line(EVIL), "text")]) == line_cells([(EVIL, "text")])
    written = harmless_json(json.dumps([EVIL, "ä漢"], ensure_ascii=False))
    assert json.loads(written) == [EVIL, "ä漢"]
    assert harmless(written) == written and "ä漢" in written


def test_what_a_locale_cannot_show_is_a_question_mark_and_json_is_utf_8(monkeypatch: pytest.MonkeyPatch) -> None:
    def printed(text: str) -> bytes:
        raw = io.BytesIO()
        monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, encoding="iso-8859-1"))
        assert deliver(text, None) == 0
        return raw.getvalue()

    assert printed("学 ä\n") == b"? \xe4\n"
    assert printed('{"学": "ä"}\n') == '{"学": "ä"}\n'.encode()


def test_what_is_said_and_delivered(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    say(EVIL)
    assert capsys.readouterr().err == f"tuimon: {SAFE}\n"
    assert deliver(f"{EVIL}\n", None) == 0
    assert capsys.readouterr().out == f"{SAFE}\n"
    assert deliver(f"{EVIL}\n", tmp_path / "report") == 0
    assert (tmp_path / "report").read_text(encoding="utf-8") == f"{SAFE}\n"


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_list_of_a_hostile_host(form: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    evil = replace(JOB, python=EVIL, user=EVIL, job=EVIL, command=[EVIL], container=EVIL, attachable=False, code=EVIL, why=EVIL)
    monkeypatch.setattr(listing, "find_targets", lambda: [evil])
    assert listing.run(Options(format=form)) == 0
    out = capsys.readouterr().out
    assert harmless(out) == out
    if form == "json":
        assert json.loads(out)["targets"][0]["python"] == EVIL
    else:
        assert "?" in out.splitlines()[1]


def test_doctor_as_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    found = [doctor.Check("process", "command", "ok", EVIL, None)]
    monkeypatch.setattr(doctor.process, "checks", lambda pid: (found, True))
    assert doctor.run(1, Options(format="json")) == 0
    out = capsys.readouterr().out
    assert harmless(out) == out and json.loads(out)["checks"][0]["what"] == EVIL


def test_what_the_hook_left_and_how_a_job_ended(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    feed = LiveFeed(FakeSession(1, {"detached": True, "left": [EVIL]}), "x")  # type: ignore[arg-type]
    monkeypatch.setattr(screen, "run_monitor", lambda *_args, **_named: 0)
    screen.show(feed, Options())
    feed.model.apply([ev.TargetEnded(1, "exited", EVIL)])
    monkeypatch.setattr(run, "watch", lambda *_: "ended")
    run._headless(feed, cast("subprocess.Popen[bytes]", SimpleNamespace(pid=os.getpid())), Options(), None)  # type: ignore[arg-type]
    captured = capsys.readouterr()
    for line in captured.err.splitlines():
        assert harmless_line(line) == line
    assert captured.err.count("evil") == 2


def test_no_panel_gets_anything_onto_the_screen_that_acts_on_it() -> None:
    job = Job()
    job.steps(3)

    async def body(on: Driven) -> None:
        widget = next(iter(on.app.screen.query(LineWidget)))
        widget.show([[("left ", "text"), (EVIL + "\n\t", "number"), (" ─漢 right", "text")]])
        strip = widget.render_line(0)
        assert strip.text.rstrip() == f"left {SAFE}?? ─漢 right"
        assert strip.cell_length == widget.size.width

    drive(job.script.events, (120, 40), body)
