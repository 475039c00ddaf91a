"""Text and Markdown: what a person has to find is there, and nothing of the job's reaches the terminal or the ticket raw."""

from __future__ import annotations

import unicodedata

import pytest

from tests.report.jobs import FILE, compiled, model_of, reported, training
from tuimon import events as ev
from tuimon.draw.text import cells
from tuimon.report import render
from tuimon.report.phrases import gap_lines, guard_lines


def test_text_names_the_boundary_the_recompile_and_the_refusal_at_their_lines() -> None:
    text = render(reported(model_of(training())), "text")
    joined = " ".join(text.split())
    assert "model.py:41 Tensor.item()" in joined
    assert "20 crossings (1 a step); host 1.00 ms" in joined
    assert "forward [0/1] model.py:12, 2 of 2 entries used" in joined
    assert "REFUSED by the recompile limit: forward [0/2] model.py:12" in joined
    assert "steady 2.00 ms" in joined
    assert "rule: median [p10-p90] of the last 512" in joined
    assert "the program exited with status 0" in joined


@pytest.mark.parametrize("form", ["text", "md"])
def test_nothing_of_the_job_acts_on_the_terminal(form: str) -> None:
    events = training()
    events[0] = ev.TargetSeen(1, 1, "python \x1b]0;evil\x07 \u202e\x9b31m.py", "3.11", "2.13", "run", 0.0)
    written = render(reported(model_of(events)), form)
    bad = [character for character in written if unicodedata.category(character) in ("Cc", "Cf") and character != "\n"]
    assert bad == []


def test_text_fits_80_columns_whatever_the_job_is_called() -> None:
    events = training()
    events[0] = ev.TargetSeen(1, 1, "python " + "漢字" * 200 + "x" * 500, "3.11", "2.13", "run", 0.0)
    lines = render(reported(model_of(events)), "text").splitlines()
    assert max(cells(line) for line in lines) <= 80


def test_long_lists_say_how_much_they_leave_out() -> None:
    events = training()
    for number in range(3, 40):
        events.append(ev.GuardsFailed(10**11, f"0/{number}", (("0/0", "x"),)))
        events += compiled(f"0/{number}", 100_000 + number * 100, 0.05)
    report = reported(model_of(events))
    left_out = len(report["recompiles"]) - 20
    assert f"and {left_out} more" in render(report, "text")
    assert f"and {left_out} more" in render(report, "md")


def test_markdown_is_text_and_no_markup() -> None:
    written = render(reported(model_of(training())), "md")
    assert written.startswith("# tuimon report: python `train.py`\n")
    for row in (line for line in written.splitlines() if line.startswith("| ") and "model.py:41" in line):
        assert row.replace(r"\|", "").count("|") in (3, 6)  # cells are not split by a bar in a guard


def test_the_file_is_named_shortly_in_text_and_wholly_in_json() -> None:
    report = reported(model_of(training()))
    assert FILE not in render(report, "text")
    assert FILE in render(report, "json")


def recompile(*guards: tuple[str, str]) -> dict[str, object]:
    return {"failed": [{"entry": entry, "guard": guard} for entry, guard in guards]}


def test_guards_are_told_once_without_the_source_line_and_the_stack() -> None:
    text = "len(G['seen']) == {}  # seen.append(x)  # m.py:3 in f\nUser stack trace:\n  File m.py, line 3"
    lines = guard_lines(recompile(*((f"0/{at}", text.format(at)) for at in range(6, 0, -1))))
    assert lines == [*(f"0/{at}: len(G['seen']) == {at}" for at in (6, 5, 4)), "and 3 older entries"]
    gone = "Cache line invalidated because L['x'] got deallocated"
    assert guard_lines(recompile(("1/0", gone), ("1/1", gone))) == [f"1/0, 1/1: {gone}"]
    assert guard_lines(recompile(("", "x"))) == ["x"]


def test_what_is_not_known_for_one_reason_is_told_once() -> None:
    gaps = [{"what": f"frames[0:{at}].{what}", "why": "no timer"} for at in range(3) for what in ("calls", "eager_calls")]
    gaps += [{"what": "regions.ops", "why": "another"}, {"what": "boundaries.crossings", "why": "3.11"}]
    gaps += [{"what": "boundaries[skip@1:2].crossings", "why": "3.11"}]
    assert gap_lines(gaps) == [
        "frames[0:0].calls, frames[0:0].eager_calls, frames[0:1].calls, frames[0:1].eager_calls and 2 more: no timer",
        "regions.ops: another",
        "boundaries.crossings: 3.11",
    ]


def test_a_recompile_tells_the_entry_that_it_made_not_all_there_are() -> None:
    events = training()
    for number in range(3, 6):
        events.append(ev.GuardsFailed(10**11, f"0/{number}", (("0/0", "x"),)))
        events += compiled(f"0/{number}", 100_000 + number * 100, 0.05)
    report = reported(model_of(events))
    text = " ".join(render(report, "text").split())
    assert "forward [0/1] model.py:12, 2 of 2 entries used" in text and report["recompiles"][0]["entry"] == 2


def test_a_ticket_says_what_the_numbers_were_had_with_and_how_they_were_made() -> None:
    file = {"name": "run.tuimon", "kind": "recording", "ranks": 2}
    report = reported(model_of(training()), file=file)
    written = render(report, "md")
    environment = written.partition("## Environment")[2].partition("##")[0].replace("`", "")
    for part in ("command: python train.py", "Python 3.11.7, torch 2.13.0+cpu", "devices: cpu", "how: started by tuimon"):
        assert part in environment
    assert "file: run.tuimon (a recording, 2 ranks)" in environment and "2023-11-14 22:13:20 UTC" in environment
    rules = written.partition("## How numbers were made")[2].partition("##")[0]
    assert rules.count("\n- ") == len(report["aggregation"])
    assert report["target"]["file"] == file and report["recording"] == {"whole": True, "note": None, "gaps": []}


def test_a_recording_says_what_of_it_is_missing() -> None:
    model = model_of(training())
    begin = model.target.attached_ns or 0
    model.apply([
        ev.RecordingGap(model.now_ns, begin + 10**10, begin + 2 * 10**10, 1_200, "dropped to keep its size"),
        ev.NotAvailable(model.now_ns, "the end of the recording", "it ends in the middle of a block: shown up to 14:03:22"),
    ])  # fmt: skip
    report = reported(model)
    assert report["recording"]["whole"] is False and report["recording"]["gaps"][0]["rows"] == 1_200
    for form in ("text", "md"):
        written = " ".join(render(report, form).split())
        assert "it ends in the middle of a block" in written
        assert "not there: from 10 s to 20 s after its begin, 1200 samples: dropped to keep its size" in written
