"""Which boundaries there are: frames that are skipped whole, breaks from before the attach, accepted ones."""

from __future__ import annotations

from typing import Any

import pytest

from tests.model.script import added, broke, compiled, model_of, samples, target
from tuimon import events as ev
from tuimon.model import Model
from tuimon.model.parts import Boundary

HEADLINE = "Failed to handle graph break gracefully. Skipping the function and falling back to eager."
FAILED = "Unsupported: Tensor.item()"


def item(compile_id: str, line: int = 22, **more: Any) -> ev.GraphBroke:
    fields = {"kind": "Tensor.item()", "reason": "Tensor.item()", "headline": HEADLINE, "also": "graph break in loop", **more}
    return broke(compile_id, line, **fields)


def skipped(compile_id: str, at: int, *breaks: ev.GraphBroke, **more: Any) -> list[ev.Event]:
    """A compilation that ends with a failure, its breaks within it."""
    start, end = compiled(compile_id, at, at + 5, failed=FAILED, **more)
    return [start, *breaks, end]


def only(model: Model) -> Boundary:
    (boundary,) = model.boundaries.values()
    return boundary


def test_a_failed_compilation_makes_its_break_one_of_a_skipped_frame() -> None:
    model = model_of(skipped("0/0", 0, item("0/0", code=1, offset=230)))
    boundary = only(model)
    assert (boundary.key, boundary.frames, boundary.skipped_frame) == ("skip@1:230", ["0:0"], True)
    assert (boundary.headline, boundary.kind, boundary.also) == (HEADLINE, "Tensor.item()", "graph break in loop")
    assert boundary.crossings is None and boundary.breaks == 1
    frame = model.frames["0:0"]
    assert frame.skipped and frame.skipped_why == "Tensor.item() (graph break in loop)" and frame.entries == []


def test_where_the_instruction_is_not_known_the_key_is_the_ordinary_one() -> None:
    assert only(model_of(skipped("0/0", 0, item("0/0")))).key == "0:0@/w/model.py:22"


def test_two_frames_that_are_given_up_at_one_instruction_leave_one_boundary() -> None:
    model = model_of(
        skipped("0/0", 0, item("0/0", line=7, code=2, offset=34)),
        skipped("1/0", 10, item("1/0", line=7, code=2, offset=34), function="aligned"),
    )
    boundary = only(model)
    assert (boundary.key, boundary.frames, boundary.breaks) == ("skip@2:34", ["0:0", "0:1"], 2)


@pytest.mark.parametrize("told_first", [True, False])
def test_crossings_of_a_skipped_frame_are_counted_at_its_instruction(told_first: bool) -> None:
    """The hook says that it counts them before or after the compilation's own record."""
    start, gone, end = skipped("0/0", 0, item("0/0", code=1, offset=230))
    told = added(1, "crossing", "0/0", line=22, code=1, offset=230, counted="by line")
    rest: list[ev.Event] = [told, end] if told_first else [end, told]
    model = model_of([start, gone, *rest], samples((1, 10, 10), (1, 11, 11)))
    boundary = only(model)
    assert (boundary.key, boundary.crossings, boundary.counted, boundary.breaks) == ("skip@1:230", 2, "by line", 1)
    assert model.frames["0:0"].skipped


def test_where_the_break_was_lost_the_crossings_are_those_of_an_unknown_one() -> None:
    model = model_of(added(1, "crossing", "0/0", line=22, code=1, offset=230), samples((1, 10, 10)))
    boundary = only(model)
    assert (boundary.kind, boundary.line, boundary.crossings) == ("unknown", 22, 1)


def test_of_one_frame_given_up_the_words_are_those_that_say_so() -> None:
    """Dynamo first tries to go on behind the callee's break, and says of the same compilation twice that it is broken."""
    tried = item("0/0", code=1, offset=230, headline="Encountered graph break when attempting to trace CALL")
    boundary = only(model_of(skipped("0/0", 0, tried, item("0/0", code=1, offset=230))))
    assert (boundary.key, boundary.headline, boundary.breaks) == ("skip@1:230", HEADLINE, 2)


def test_a_frame_given_up_where_another_goes_on_is_one_more_break_there() -> None:
    """A stack of layers is given up because of a method that one of them calls; compiled by itself the method goes on."""
    code = ev.CodeSeen(0, 7, "note", "Layer.note", "/w/model.py", 20)
    start, end = compiled("1/0", 10, 15, function="note", line=20, code=7)
    broken = item("1/0", code=7, offset=80)
    model = model_of(
        code, skipped("0/0", 0, item("0/0", code=7, offset=80)), [start, broken, added(1, "resume", "1/0", line=22), end]
    )
    boundary = only(model)
    assert (boundary.frame, boundary.skipped_frame, boundary.breaks) == ("0:1", False, 2)
    model.apply(skipped("2/0", 20, item("2/0", code=7, offset=80)))
    assert only(model).breaks == 3


def test_a_break_with_nothing_behind_it_is_crossed_at_each_call_of_its_graph() -> None:
    start, end = compiled("0/0", 0, 5)
    model = model_of([start, item("0/0"), added(1, "forward", "0/0"), end])
    assert only(model).crossings is None  # never called
    model.apply([samples((1, 6, 7), (1, 8, 9))])
    raised = ev.Samples(10_000, ((1, 0, 1, 10_000, 11_000),))
    model.apply([raised])
    assert only(model).crossings == 2 and only(model).host.summary.n == 0


def test_without_a_graph_nothing_counts_a_break_with_nothing_behind_it() -> None:
    start, end = compiled("0/0", 0, 5)
    model = model_of([start, item("0/0"), end])
    assert only(model).crossings is None


def helper(at: int) -> list[ev.Event]:
    """A helper that is compiled on its own, breaks at its own instruction and goes on with a resume function."""
    start, end = compiled("1/0", at, at + 5, function="helper", code=2)
    begun = ev.CompileStarted(start.t_ns, "1/0", 0, "helper", "/w/model.py", 5, "main", code=2)
    return [begun, item("1/0", line=7, code=2, offset=34), added(5, "resume", "1/0", line=7), end]


@pytest.mark.parametrize("helper_first", [True, False])
def test_an_instruction_that_its_own_frame_resumes_behind_is_an_ordinary_boundary(helper_first: bool) -> None:
    outer = skipped("0/0", 50, item("0/0", line=7, code=2, offset=34))
    model = model_of(*([helper(0), outer] if helper_first else [outer, helper(100)]), samples((5, 200, 200)))
    boundary = only(model)
    assert not boundary.skipped_frame and boundary.frames == ["0:1"] and boundary.crossings == 1
    assert model.frames["0:0"].skipped and not model.frames["0:1"].skipped


def test_a_failure_that_went_to_the_job_skips_nothing() -> None:
    model = model_of(compiled("0/0", 0, 5, failed="BackendCompilerFailed: x"))
    assert not model.frames["0:0"].skipped
    model = Model()
    told = ev.TargetSeen(0, 1, "t", "3", "2.13", "run", 1.0, options=(("suppress_errors", "True"),))
    model.apply([told, *compiled("0/0", 0, 5, failed="BackendCompilerFailed: x")])
    assert model.frames["0:0"].skipped


def test_a_frame_that_is_compiled_after_all_is_not_skipped() -> None:
    model = model_of(skipped("0/0", 0, item("0/0")), compiled("0/1", 10, 20))
    assert not model.frames["0:0"].skipped and model.frames["0:0"].entries == ["0/1"]


def test_entries_that_break_at_two_instructions_of_one_line_are_two_boundaries() -> None:
    model = model_of(
        compiled("0/0", 0, 1), item("0/0", code=1, offset=10), compiled("0/1", 2, 3), item("0/1", code=1, offset=20),
        compiled("0/2", 4, 5), item("0/2", code=1, offset=20),
    )  # fmt: skip
    assert [(b.key, b.breaks) for b in model.boundaries.values()] == [
        ("0:0@/w/model.py:22+10", 1),
        ("0:0@/w/model.py:22+20", 2),
    ]


def test_who_asked_for_it() -> None:
    library = "/usr/lib/python3.12/site-packages/torch/optim/optimizer.py"
    stack = (("/w/train.py", 14, "update"), (library, 79, "wrapper"))
    model = model_of(
        broke("0/0", 79, file=library, requested=True, stack=stack),
        broke("1/0", 12, requested=True),
        broke("2/0", 13),
    )
    asked = [(b.asked_by, b.requested, b.user_line) for b in model.boundaries.values()]
    assert asked == [("library", False, 14), ("user", True, 12), (None, False, 13)]


# ------------------------------------------------------------------------------------------- from before the attach

PAST: dict[str, Any] = {"before_attach": True}


def attached(*events: ev.Event | list[ev.Event]) -> Model:
    model = Model()
    model.apply([target("injected")])
    for event in events:
        model.apply(event if isinstance(event, list) else [event])
    return model


def test_past_breaks_find_their_boundaries_by_the_line_that_the_entry_breaks_at() -> None:
    library = "/usr/lib/python3.12/site-packages/torch/optim/optimizer.py"
    model = attached(
        ev.FrameSeen(0, "f", "/w/model.py", 10, ("0/0", "0/1"), code=1, breaks=(("0/0", 13), ("0/1", 16))),
        [added(n, "resume", f"0/{n}", function="torch_dynamo_resume_in_f_at_30", line=30, **PAST) for n in (0, 1)],
        broke(None, 79, file=library, stack=(("/w/model.py", 16, "f"), (library, 79, "wrapper")), **PAST),
        broke(None, 13, kind="item", **PAST),
        samples((0, 5, 5), (1, 6, 6), (1, 7, 7)),
    )
    found = {(b.file, b.line): (b.user_line, b.kind, b.crossings) for b in model.boundaries.values()}
    assert found == {("/w/model.py", 13): (13, "item", 1), (library, 79): (16, "print", 2)}


def test_past_breaks_of_two_frames_on_one_line_go_to_the_boundary_that_lacks_one() -> None:
    seen = [ev.FrameSeen(0, "f", "/w/model.py", 10, ("0/0",), breaks=(("0/0", 16),)),
            ev.FrameSeen(0, "g", "/w/model.py", 16, ("1/0", "1/1"), breaks=(("1/0", 16), ("1/1", 16)))]  # fmt: skip
    model = attached(
        [*seen],
        [added(n, "resume", c, line=16, **PAST) for n, c in ((1, "0/0"), (2, "1/0"), (3, "1/1"))],
        [broke(None, 16, **PAST) for _ in range(3)],
    )
    assert sorted((b.frame, b.breaks) for b in model.boundaries.values()) == [("0:0", 1), ("0:1", 2)]


def test_a_live_break_at_a_past_one_is_the_same_boundary() -> None:
    model = attached(
        ev.FrameSeen(0, "f", "/w/model.py", 10, ("0/0",), code=1, breaks=(("0/0", 22),)),
        added(1, "resume", "0/0", line=22, **PAST),
        broke(None, 22, **PAST),
        compiled("0/1", 10, 20, code=1),
        item("0/1", code=1, offset=10),
        added(2, "resume", "0/1", line=22),
        samples((1, 30, 30), (2, 31, 31)),
    )
    boundary = only(model)
    assert (boundary.breaks, boundary.crossings, boundary.offset) == (2, 2, 10)


def past_skip(compile_id: str, **more: Any) -> list[ev.Event]:
    gone = broke(compile_id, 7, kind="Observed exception", skipped_frame=True, function="", **PAST)
    end = ev.CompileFinished(9, compile_id, "forward", "f", "/w/model.py", 5, "", 5, 4e-9, failed="Unsupported: x", **PAST)
    return [gone, end]


def test_frames_skipped_before_the_attach_are_known_and_counted_by_line() -> None:
    model = attached(
        past_skip("0/0"),
        past_skip("1/0"),
        ev.FrameSeen(10, "f", "/w/model.py", 5, (), code=3),
        [added(n, "crossing", f"{n}/0", line=7, code=3, offset=34, counted="by line", **PAST) for n in (0, 1)],
        samples((0, 20, 20), (0, 21, 21)),
    )
    boundary = only(model)
    assert (boundary.key, boundary.frames, boundary.crossings) == ("skip@3:34", ["0:0", "0:1"], 2)
    assert boundary.before_attach and (boundary.kind, boundary.function) == ("Observed exception", "f")
    assert [frame.skipped for frame in model.frames.values()] == [True, True]
    assert 3 in {frame.code for frame in model.frames.values()}


# ------------------------------------------------------------------------------------------------- accepted, syncs


def accepted(note: str | None = "fine", **more: Any) -> ev.BoundaryAccepted:
    fields: dict[str, Any] = {"file": "model.py", "function": "f", "kind": "print", "source": "print(x)", **more}
    return ev.BoundaryAccepted(0, note=note, **fields)


def test_an_accepted_boundary_is_known_again_by_what_survives_edits() -> None:
    model = model_of(accepted(), broke("0/0", 13, source="print(x)"), broke("1/0", 99, source="print(y)"), broke("2/0", 17))
    assert [b.accepted for b in model.boundaries.values()] == ["fine", None, "fine"]  # of the last the text is not known
    model.apply([accepted(None)])
    assert [b.accepted for b in model.boundaries.values()] == [None, None, None]


@pytest.mark.parametrize("other", [{"file": "other.py"}, {"file": "v/model.py"}, {"function": "g"}, {"kind": "item"}])
def test_what_differs_in_file_function_or_kind_is_another(other: dict[str, str]) -> None:
    model = model_of(broke("0/0", 13, source="print(x)"), accepted(**other))
    assert only(model).accepted is None


def test_a_note_may_be_empty() -> None:
    assert only(model_of(broke("0/0", 13), accepted("", file="w/model.py"))).accepted == ""


def test_waits_for_the_device_are_totals_of_each_resume_function() -> None:
    model = model_of(
        broke("0/0", 13),
        broke("0/1", 13),
        [added(n, "resume", f"0/{n}") for n in (0, 1)],
        [ev.SyncLooked(1, 0, 3, 1), ev.SyncLooked(1, 1, 2, 2), ev.SyncLooked(2, 0, 5, 9), ev.SyncLooked(2, 77, 5, 5)],
    )
    assert (only(model).sync_looked, only(model).sync_waited) == (7, 7)


@pytest.mark.parametrize("raised", [True, False])
def test_a_failure_that_goes_to_the_job_leaves_no_frame_to_eager(raised: bool) -> None:
    """fullgraph=True: the same failure that otherwise makes Dynamo skip the frame is an error of the job's."""
    model = model_of(skipped("0/0", 0, item("0/0", code=1, offset=230), raised=raised))
    assert model.frames["0:0"].skipped is not raised


def test_of_a_log_the_line_is_the_boundary_of_all_frames_that_are_given_up_there() -> None:
    told = [ev.NotInFile(0, ("calls", "crossings"), "a log")]
    rest = (skipped("0/0", 0, item("0/0", line=7)), skipped("1/0", 10, item("1/0", line=7), function="aligned"))
    boundary = only(model_of(told, *rest))
    assert (boundary.frames, boundary.breaks, boundary.crossings) == (["0:0", "0:1"], 2, None)
