"""Files that lie beside those that tuimon reads, and what files cannot tell: said, with the next step, and never as a zero."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from tests.app.test_panels import draw, text
from tests.report.obeys import obeying
from tests.sources.logs import FILE, WALL, WHOLE, ids, line, metrics, model, start
from tests.sources.test_bad_files import report
from tests.sources.test_kineto import op
from tests.sources.test_kineto_steps import folded, region, step
from tests.sources.test_trace_file import OP, trace
from tuimon import cli
from tuimon.app.details.opening import open_page
from tuimon.app.panels.all import BY_ID
from tuimon.app.scene import Scene
from tuimon.commands.options import DONE
from tuimon.draw.glyphs import GLYPH_SETS
from tuimon.model import Model
from tuimon.report import build, render
from tuimon.sources.files import open_any
from tuimon.sources.trace_file import READS

TIMELINE = [{"name": "backend_compile", "ph": ph, "ts": WALL * 1e6, "cat": "dynamo_timed", "pid": 0, "tid": 0} for ph in "BE"]
"""What tlparse calls chromium_events.json."""
RAW = '{"string_table": ["/w/model.py"]}\n{"dynamo_start": {}}\n'
"""What tlparse calls raw.jsonl."""


def why(made: Model) -> dict[str, str]:
    return {row["what"]: row["why"] for row in build(made)["coverage"]["not_available"]}


def words(made: Model, form: str = "text") -> str:
    return " ".join(render(obeying(build(made)), form).replace("\\", "").split())


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_pickle_of_any_protocol_is_named(protocol: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "snapshot.pickle").write_bytes(pickle.dumps({"segments": []}, protocol=protocol))
    said = report(tmp_path / "snapshot.pickle", capsys)
    assert "is a Python pickle, which tuimon never opens" in said and "memory_viz" in said


@pytest.mark.parametrize(
    "data",
    [b"SQLite format 3\0", b"\x7fELF\2\1", b"\x89PNG\r\n\x1a\n\0\0\0", b"[1, 2]", b'{"a": 1}', b"12", b"<html></html>"],
)
def test_a_refusal_says_what_is_read(data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_bytes(data)
    assert READS.removeprefix("tuimon reads ") in report(tmp_path / "file", capsys)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (json.dumps(TIMELINE), "is a timeline of the compiler (tlparse draws it of a TORCH_TRACE log)"),
        (RAW, "is the raw.jsonl of tlparse"),
        ('{"traceEvents": []}', "torch.profiler was not asked for the activities"),
    ],
)
def test_what_is_nearly_a_trace_leads_on(data: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text(data)
    assert sentence in report(tmp_path / "file", capsys)


def test_a_folder_of_tlparse_is_its_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its timeline is a list of events, and no Kineto trace; all that was left out is told, not only the last of it."""
    (tmp_path / "chromium_events.json").write_text(json.dumps(TIMELINE))
    (tmp_path / "raw.jsonl").write_text(RAW)
    for name in "abcde":
        (tmp_path / f"{name}.html").write_text("<html></html>")
    (tmp_path / "raw.log").write_text(WHOLE)
    (opened,), left = open_any(tmp_path)
    assert opened.kind == "torch_trace" and opened.path.name == "raw.log"
    assert [one.partition(" is ")[0] for one in left] == [
        "left out: a.html, b.html, c.html and 2 more, each of which",
        "left out: chromium_events.json, which",
        "left out: raw.jsonl, which",
    ]
    told = report(tmp_path, capsys, DONE)
    assert all(one.split()[2] in told for one in left)


def test_a_folder_of_lists_of_events_is_read(tmp_path: Path) -> None:
    (tmp_path / "legacy.json").write_text(json.dumps([OP, OP]))
    (opened,), left = open_any(tmp_path)
    assert opened.kind == "kineto" and not left


def test_a_trace_of_a_folder_that_cannot_be_read_is_in_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rank0.json").write_bytes(trace(OP))
    (tmp_path / "rank1.json").write_bytes(trace())
    assert cli.main(["report", str(tmp_path)]) == DONE
    assert "left out: rank1.json, which is a trace of 0 events" in " ".join(capsys.readouterr().out.split())


STEPS = [step(n, 1000 * n, 900) for n in range(1, 5)]
WORK = [region("0/0", 1000 * n + 10, 300) for n in range(1, 5)]
COMPILER = [op(name, ts, dur) for name, ts, dur in (
    ("_compile.compile_inner (dynamo_timed)", 2400, 400), ("bytecode_tracing (dynamo_timed)", 2450, 100),
    ("backward._backward_impl (dynamo_timed)", 3500, 100),
)]  # fmt: skip
"""400 us with 100 of them once more within, and 100."""


def test_a_trace_claims_nothing_of_compilations(tmp_path: Path) -> None:
    made = folded(tmp_path, *STEPS, *WORK, baseTimeNanoseconds=10**18)
    found = obeying(build(made))
    assert found["steps"]["n"] == 4 and found["steps"]["without_compilation"] is None
    assert found["warmup"]["over"] is found["warmup"]["steps"] is None and set(found["warmup"]["caches"].values()) == {None}
    assert found["regions"][0]["initial"]["n"] is None and found["regions"][0]["steady"]["n"] == 4
    assert not {"compile", "boundary", "gc", "profiler"} & set(found["steps"]["breakdown"])
    assert sum(found["steps"]["breakdown_mean"].values()) == pytest.approx(900e-6)
    assert "compile_s" in found["aggregation"] and "all are counted" in found["aggregation"]["steady"]
    for form in ("text", "md"):
        told = words(made, form).partition("How numbers were made")[0]
        assert "without a compilation" not in told and "steady step" not in told and "warm-up" not in told
    assert "none seen: of fewer than 8 steps none is judged" in words(made)
    assert {"steps.without_compilation", "regions.initial", "warmup.over", "warmup.caches"} <= set(why(made))


def test_compilations_in_a_trace_are_told(tmp_path: Path) -> None:
    made = folded(tmp_path, *STEPS, *WORK, *COMPILER)
    said = "the compiler worked 2 times while this was recorded, 0.0005 s in all"
    assert why(made)["steps.compile"].startswith(said)
    for form in ("text", "md"):
        assert said in words(made, form).partition("Look at first" if form == "md" else "Slow steps")[0]
    assert "steps.compile" not in why(folded(tmp_path, *STEPS, *WORK))


@pytest.mark.parametrize("kind", ["log", "trace"])
def test_no_hook_no_samples(kind: str, tmp_path: Path) -> None:
    made = model(tmp_path, WHOLE) if kind == "log" else folded(tmp_path, *STEPS, *WORK)
    coverage = obeying(build(made))["coverage"]
    assert coverage["samples"] is coverage["dropped"] is coverage["hook_s"] is None
    known: dict[str, Any] = why(made)
    assert all(known[f"coverage.{name}"].startswith("not in this file") for name in ("samples", "dropped", "hook_s"))
    assert known["target.rank"] == "not in this file: it tells of no rank"
    for form in ("text", "md"):
        told = words(made, form)
        assert "command: not in this file" in told or form == "text"
        assert "dropped" not in told.replace("coverage.dropped", "") and "the hook took" not in told


def test_steps_of_a_log_are_not_none_seen(tmp_path: Path) -> None:
    steps = obeying(build(model(tmp_path, WHOLE)))["steps"]
    assert steps["n"] is steps["slow"] is steps["without_compilation"] is None


def test_ranks_of_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They were read, nobody was detached; a trace tells no breaks; where it ran is not made up."""
    for rank in (0, 1):
        info = {"rank": rank, "world_size": 2}
        (tmp_path / f"{rank}.json").write_bytes(trace(*STEPS, *WORK, distributedInfo=info))
    assert cli.main(["report", str(tmp_path), "--format", "json"]) == DONE
    found = obeying(json.loads(capsys.readouterr().out))
    for row in found["ranks"]:
        assert row["state"] == "read" and row["host"] is None and row["step"]["n"] == 4
        assert row["compile_s"] is row["breaks"] is row["recompiles"] is None
    known = {row["what"] for row in found["coverage"]["not_available"]}
    assert {"ranks[].host", "ranks[rank 0].breaks", "ranks[rank 1].recompiles"} <= known


def test_logs_of_ranks_say_why_they_are_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for rank in (0, 1):
        (tmp_path / f"dedicated_log_torch_trace_rank_{rank}.log").write_text(WHOLE)
    assert cli.main(["report", str(tmp_path), "--format", "json"]) == DONE
    found = obeying(json.loads(capsys.readouterr().out))
    known = {row["what"]: row["why"] for row in found["coverage"]["not_available"]}
    assert known["ranks[].lateness"].startswith("not in this file")
    assert [row["breaks"] for row in found["ranks"]] == [0, 0]


def test_logs_one_behind_the_other(tmp_path: Path) -> None:
    assert "the whole file" not in why(model(tmp_path, WHOLE))
    assert why(model(tmp_path, WHOLE * 3))["the whole file"].startswith("it holds 3 logs, one behind the other")


def test_lookups_without_a_result_are_not_none(tmp_path: Path) -> None:
    """As torch 2.4 wrote them: the key, and not whether it was there."""
    looked = line({"artifact": {"name": "fx_graph_cache_hash", "encoding": "json"}, **ids()}, {"key": "f00", "components": []})
    made = model(tmp_path, FILE + start() + looked + metrics())
    assert obeying(build(made))["warmup"]["caches"]["fx_graph"] is None
    assert "caches: not in this file: its torch wrote no result of 1 cache lookup" in words(made)
    assert "caches: no artifact cache was asked" in words(model(tmp_path, WHOLE))


def test_a_frame_that_failed_without_a_break_may_have_raised(tmp_path: Path) -> None:
    """Under fullgraph=True the job gets the error, and torch writes no record of a break: nothing ran in eager then."""
    more: dict[str, Any] = {
        "fail_type": "Unsupported",
        "fail_reason": "Failed to trace\nmore",
        "guard_count": None,
        "graph_op_count": None,
    }
    made = model(tmp_path, FILE + start() + metrics(**more) + start(at=36010.0, where=ids(1)) + metrics(36011.0, ids(1)))
    told = words(made)
    assert "f was not compiled: Unsupported: Failed to trace" in told and "every call" not in told
    assert "under fullgraph=True the job got this as an error" in told


def test_two_traces_in_one_file_are_not_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trace.json"
    for one in (trace(*[OP] * 50), json.dumps([OP] * 50).encode()):
        path.write_bytes(one + b"\n\0\0\0")
        assert "the whole file" not in report(path, capsys, DONE)
        path.write_bytes(one + b"\n" + one)
        assert "holds more behind the trace's end" in report(path, capsys, DONE)


@pytest.mark.parametrize("wrong", [{"dur": float("nan")}, {"dur": -5}, {"ts": "soon"}, {"dur": None}])
def test_events_that_cannot_be_are_counted(wrong: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(trace(OP, {**OP, **wrong}, OP))
    assert "holds an event without a name, a time or a duration that can be" in report(path, capsys, DONE)


def test_a_folder_of_folders_leads_into_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for rank in (0, 1):
        (tmp_path / f"rank{rank}").mkdir()
    assert "name one of them (rank0, rank1)" in report(tmp_path, capsys)


def test_gzip_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "trace.json.gz").write_bytes(gzip.compress(gzip.compress(trace(OP))))
    assert "packed with gzip twice" in report(tmp_path / "trace.json.gz", capsys)


def test_the_screen_of_a_trace_claims_nothing_of_compilations(tmp_path: Path) -> None:
    made = folded(tmp_path, *STEPS, *WORK)
    scene = Scene(made, GLYPH_SETS["ascii"], made.now_ns)
    told = text(draw(BY_ID["now"], scene, 200, 9))
    assert "compilations not in this file" in told and "compiled 0 times" not in told
    page = open_page("now", scene, None)
    assert page is not None
    told = text(page[1](scene, 100).lines)
    assert "no hook of tuimon ran in the job" in told and "dropped" not in told and "the latest compilations" not in told


@pytest.mark.parametrize("kind", ["BackendCompilerFailed", "InternalTorchDynamoError", "TorchRuntimeError"])
def test_a_compilation_that_failed_for_the_job_is_the_first_thing_told(kind: str, tmp_path: Path) -> None:
    config = json.dumps({"suppress_errors": False})
    more: dict[str, Any] = {"fail_type": kind, "fail_reason": "boom\nmore", "guard_count": None, "graph_op_count": None}
    made = model(tmp_path, FILE + start() + metrics(dynamo_config=config, **more))
    (found,) = obeying(build(made))["findings"]
    assert found["kind"] == "failed compilation" and found["where"] == "/w/model.py:12"
    assert found["title"] == f"f was not compiled, and the job got the error: {kind}: boom"
    suppressed = model(tmp_path, FILE + start() + metrics(**more))  # then it runs in eager
    assert "failed compilation" not in [one["kind"] for one in build(suppressed)["findings"]]
