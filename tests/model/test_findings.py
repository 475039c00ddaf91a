"""What is worth a look, and above all what is not."""

from __future__ import annotations

import pytest

from tests.model.script import US, added, broke, compiled, model_of, samples, target
from tuimon import events as ev
from tuimon.model import Model
from tuimon.model.findings import Finding, findings
from tuimon.model.findings.recompiles import _behind_a_limit
from tuimon.model.parts import Frame

SIZE = "tensor 'x' size mismatch at index 0. expected {}, actual {}"


def steps(count: int, first: int = 0, start: int = 1000) -> list[ev.Event]:
    """Steps of 100 us with one call of region 1 in each."""
    out: list[ev.Event] = []
    for at in range(first, first + count):
        t = start + 100 * at
        out.append(samples((1, t, t + 50), (9, t + 80, t + 90)))
    return out


def job(*more: ev.Event | list[ev.Event]) -> Model:
    """A frame with a region, an optimizer, twelve steps, and what follows."""
    begin: list[ev.Event | list[ev.Event]] = [
        compiled("0/0", 0, 500),
        [added(1, "forward", "0/0"), added(9, "optimizer", None)],
        steps(12),
    ]
    return model_of(*begin, *more)


def recompiled(entry: int, at: int, guard: str | None = None, **more: object) -> list[ev.Event]:
    """A recompile of `f` at this time, in us."""
    start, end = compiled(f"0/{entry}", at, at + 40, **more)
    text = guard if guard is not None else SIZE.format(entry, entry + 1)
    return [start, ev.GuardsFailed(at * US, f"0/{entry}", ((f"0/{entry - 1}", text),)), end]


def late(model: Model) -> None:
    """Mark the last compilation as what came after the warm-up (which fold does it is not asked here)."""
    model.compilations[-1].late = True


def kinds(model: Model) -> list[str]:
    return [finding.kind for finding in findings(model)]


def only(model: Model) -> Finding:
    (finding,) = findings(model)
    assert finding.title and "\n" not in finding.title and finding.evidence and finding.next_step
    return finding


# ------------------------------------------------------------------------------------------------- none


def test_a_clean_job_has_none() -> None:
    assert kinds(model_of()) == []
    assert kinds(job()) == []
    assert kinds(job([ev.TargetEnded(10**9, "exited", "exited with status 0", 0)])) == []


def test_first_compilations_that_come_late_are_none() -> None:
    model = job(compiled("1/0", 2500, 2540, function="inner"), steps(3, 16))
    late(model)
    assert kinds(model) == []
    backward = ev.CompileFinished(2700 * US, "0/0", "backward", None, None, None, "main", 2600 * US, 0.1)
    model = job([backward], steps(3, 18))
    late(model)
    assert kinds(model) == []


def test_one_recompile_that_is_over_is_a_row() -> None:
    model = job(recompiled(1, 2500), steps(20, 16))
    assert len(model.recompiles) == 1 and kinds(model) == []
    late(model)
    assert kinds(model) == []  # a first size that varies is expected, whenever it comes


def test_variants_are_none() -> None:
    model = job(
        recompiled(1, 2500, "mask is None"), recompiled(2, 2600, "mode == 'soft'"), recompiled(3, 2700, "s.training == True")
    )
    assert kinds(model) == []


def test_a_job_that_compiles_nothing_because_it_never_asked_is_none() -> None:
    model = model_of([added(9, "optimizer", None)], [samples((9, 100 * at, 100 * at + 50)) for at in range(40)])
    assert model.steps.n == 40 and kinds(model) == []


def test_a_late_attach_that_saw_no_call_yet_is_none() -> None:
    seen = ev.FrameSeen(0, "f", "/w/model.py", 10, ("0/0",))
    model = model_of([seen, added(9, "optimizer", None)], [samples((9, 100 * at, 100 * at + 50)) for at in range(40)])
    assert kinds(model) == []


# ------------------------------------------------------------------------------------------------- boundaries


def crossed(requested: bool = False, took: int = 20) -> Model:
    events: list[ev.Event | list[ev.Event]] = [
        compiled("0/0", 0, 500),
        [broke("0/0", 14, kind="Unsupported Tensor.item() call", hints=("Move it out.",), requested=requested)],
        [added(1, "forward", "0/0"), added(2, "resume", "0/0", line=14), added(9, "optimizer", None)],
    ]
    for at in range(20):
        t = 1000 + 1000 * at
        events.append([samples((1, t, t + 50), (2, t + 50 + took, t + 50 + took), (9, t + 900, t + 950))])
    return model_of(*events)


def test_a_boundary_by_its_share() -> None:
    found = only(crossed())
    assert found.kind == "boundary" and found.where == "/w/model.py:14" and found.next_step == "Move it out."
    assert found.title == "the boundary in f at model.py:14 takes 2% of a step: Unsupported Tensor.item() call"
    assert "20 crossings, 1 a step" in found.evidence[0]
    assert any("reads a value" in line for line in found.evidence)


def test_cheap_requested_and_accepted_boundaries_are_none() -> None:
    assert kinds(crossed(took=5)) == []
    assert kinds(crossed(requested=True)) == []
    model = crossed()
    next(iter(model.boundaries.values())).accepted = "known, the sampler needs it"
    assert kinds(model) == []


# ------------------------------------------------------------------------------------------------- eager without a word


def skipped(frame: Frame, model: Model, **more: object) -> Frame:
    frame.skipped, frame.skipped_why, frame.eager_calls = True, "Failed to handle graph break gracefully.", 30
    frame.entries.clear()
    for boundary in model.boundaries.values():
        boundary.skipped_frame, boundary.crossings, boundary.also = True, 180, "graph break in loop"
        boundary.frames = [frame.key]
    return frame


def with_skipped_frame() -> tuple[Model, Frame]:
    events = [*compiled("1/0", 600, 700, function="forward", failed="Unsupported: ..")]
    events.insert(1, broke("1/0", 22, kind="Unsupported Tensor.item() call", function="forward"))
    model = job(events, steps(3, 12))
    return model, skipped(model.frames["0:1"], model)


def test_a_frame_that_is_skipped_whole() -> None:
    model, frame = with_skipped_frame()
    found = only(model)
    assert found.kind == "skipped frame" and found.calls == 30
    assert found.title == "forward runs in eager whole, all 30 calls: Unsupported Tensor.item() call at model.py:22"
    assert found.where == "/w/model.py:22" and "loop" in found.next_step
    assert any("180 crossings" in line and "graph break in loop" in line for line in found.evidence)
    frame.eager_calls, frame.eager_why_not = None, "Python 3.11 cannot watch one function alone"
    assert "every call" in only(model).title and any("3.11" in line for line in only(model).evidence)


def test_a_skipped_frame_that_was_asked_for_accepted_or_is_a_librarys_is_none() -> None:
    model, frame = with_skipped_frame()
    (boundary,) = (one for one in model.boundaries.values() if one.skipped_frame)
    boundary.requested, boundary.kind = True, "Call to `torch._dynamo.skip_frame()`"
    assert kinds(model) == []
    # who asks for a break in a loop has asked for the break alone, and nobody tells him that the frame is lost
    boundary.kind = "Call to `torch._dynamo.graph_break()`"
    assert kinds(model) == ["skipped frame"]
    boundary.requested, boundary.accepted = False, ""
    assert kinds(model) == []
    boundary.accepted = None
    frame.file = "/venv/lib/python3.11/site-packages/torch/optim/optimizer.py"
    assert kinds(model) == []
    frame.owners.append("Sequential(Linear, Tanh)")
    assert kinds(model) == ["skipped frame"]


def test_a_frame_that_was_compiled_before_it_was_given_up() -> None:
    model, frame = with_skipped_frame()
    frame.entries.append("1/0")
    frame.compiled_calls, frame.eager_calls = 5, 16
    assert only(model).title.startswith("16 of 21 calls of forward ran in eager, since Dynamo gave it up: ")
    frame.eager_calls = 0
    assert kinds(model) == []


def test_nothing_compiled() -> None:
    events = [*compiled("0/0", 600, 700, function="norm", failed="Unsupported: ..")]
    events.insert(1, broke("0/0", 7, kind="Observed exception", function="norm"))
    model = model_of(events, [added(9, "optimizer", None)])
    skipped(model.frames["0:0"], model)
    assert "compiled nothing" not in kinds(model)  # it has only begun
    model.apply(samples((9, 1000 + 100 * at, 1050 + 100 * at)) for at in range(3))
    found = only(model)
    assert found.kind == "compiled nothing" and "Observed exception at model.py:7" in found.title
    assert found.calls == 30 and any("30 calls in eager" in line for line in found.evidence)


def test_nothing_compiled_in_a_job_without_steps() -> None:
    events = [*compiled("0/0", 600, 700, failed="Unsupported: ..")]
    events.insert(1, broke("0/0", 7))
    model = model_of(events)
    skipped(model.frames["0:0"], model)
    assert "compiled nothing" not in kinds(model)
    model.apply([ev.Line(model.now_ns + 11 * 10**9, "goes on", "job")])
    assert kinds(model) == ["compiled nothing"]  # no optimizer tells of steps, but it has had its time


def test_nothing_compiled_in_a_job_that_ended() -> None:
    events = [*compiled("0/0", 600, 700, failed="Unsupported: ..")]
    events.insert(1, broke("0/0", 7))
    model = model_of(events, [ev.TargetEnded(10**9, "exited", "exited with status 0", 0)])
    skipped(model.frames["0:0"], model)
    assert kinds(model) == ["compiled nothing"]


def test_ddp_around_a_librarys_module() -> None:
    file = "/v/lib/python3.11/site-packages/torch/nn/parallel/distributed.py"
    events = [*compiled("0/0", 600, 700, function="forward", file=file)]
    events.insert(1, broke("0/0", 1757, kind="Unsupported method call", file=file))
    model = model_of(events, [added(9, "optimizer", None)], [samples((9, 1000 + 100 * at, 1050 + 100 * at)) for at in range(3)])
    model.frames["0:0"].without_graph.append("0/0")
    found = only(model)
    assert found.kind == "compiled nothing" and "DDP(torch.compile(module))" in found.next_step


@pytest.mark.parametrize(
    ("option", "kind", "says"),
    [
        (("dynamo", "disabled by TORCH_COMPILE_DISABLE"), "disabled", "TORCH_COMPILE_DISABLE"),
        (("stance", "force_eager"), "stance", "every compiled function runs in eager"),
        (("stance", "eager_on_recompile"), "stance", "no cache entry fits"),
        (("guards", "off"), "guards off", "says nothing"),
        (("suppress_errors", "True"), "suppress_errors", "swallowed"),
        (("compile_threads", "2"), None, ""),
        (("stance", "fail_on_recompile"), None, ""),
        (("suppress_errors", "False"), None, ""),
    ],
)
def test_settings_that_make_it_void(option: tuple[str, str], kind: str | None, says: str) -> None:
    model = job()
    model.target.options = (option,)
    assert kinds(model) == ([kind] if kind else [])
    if kind:
        assert says in only(model).title


# ------------------------------------------------------------------------------------------------- recompiles and the limit


def at_limit(eager: int | None = 20) -> Model:
    model = job(*(recompiled(entry, 2500 + 100 * entry) for entry in range(1, 8)))
    model.apply(recompiled(8, 4000, failed=None, refused=True))
    frame = model.frames["0:0"]
    frame.eager_calls, frame.compiled_calls = eager, 40
    return model


def test_past_the_limit_the_share_of_calls_in_eager_is_told() -> None:
    found = only(at_limit())
    assert found.kind == "limit" and found.calls == 20
    assert (
        found.title == "20 of 60 calls of f ran in eager, past its limit of 8 entries; its 8 entries go on serving the others"
    )
    assert any("x.size(0) is 9, was 8" in line for line in found.evidence) and "mark_dynamic(x, 0)" in found.next_step
    assert "calls that fit none of them run in eager" in only(at_limit(None)).title
    model = at_limit()
    model.frames["0:0"].without_graph.append("0/3")
    assert only(model).title.startswith("20 calls of f ran in eager")


def test_near_the_limit_before_it_is_reached() -> None:
    model = job(*(recompiled(entry, 2500 + 100 * entry) for entry in range(1, 6)))
    found = only(model)
    assert found.kind == "near limit" and "6 of 8 entries" in found.title and found.cost_s is not None
    model.apply(steps(150, 20))
    assert kinds(model) == ["recompile"]  # it does not grow any more; but it took six


def test_a_storm() -> None:
    model = job(*(recompiled(entry, 2500 + 100 * entry) for entry in range(1, 4)))
    found = only(model)
    assert found.kind == "recompile" and "compiled again 3 times" in found.title and "x.size(0)" in found.title
    assert found.cost_s == pytest.approx(3 * 40e-6)
    assert kinds(job(recompiled(1, 2500), recompiled(2, 2600, "m == 1"))) == []


def test_recompiles_that_go_on_after_the_warm_up() -> None:
    model = job(recompiled(1, 2500), recompiled(2, 2600))
    late(model)
    assert kinds(model) == ["recompile"]
    model.apply(steps(150, 20))
    assert kinds(model) == []


def test_a_late_recompile_is_told_with_its_step_and_cost() -> None:
    model = job(recompiled(1, 2500, "tensor 'x' dtype mismatch. expected Float, actual Double"))
    late(model)
    found = only(model)
    assert found.kind == "late compile"
    assert found.title == "f was compiled again in step 12, after the warm-up, 40 us: x.dtype is float64, was float32"


def test_the_order() -> None:
    model = at_limit()
    model.target.options = (("suppress_errors", "True"), ("stance", "force_eager"))
    assert kinds(model) == ["stance", "limit", "suppress_errors"]


def test_recompiles_before_the_attach_are_said_to_be() -> None:
    events: list[ev.Event] = [ev.FrameSeen(0, "f", "/w/model.py", 10, ("0/0", "0/1", "0/2", "0/3"))]
    for entry in range(4):
        events += (
            [ev.GuardsFailed(0, f"0/{entry}", ((f"0/{entry - 1}", SIZE.format(entry, entry + 1)),), True)] if entry else []
        )
        _, end = compiled(f"0/{entry}", 0, 40, before_attach=True, entries_before=entry)
        events.append(end)
    model = model_of([target("injected")], events)
    assert [finding.title for finding in findings(model)] == [
        "f was compiled again 3 times before the attach: x.size(0) is 4, was 3"
    ]


def test_recompiles_that_say_the_same_share_a_line() -> None:
    gone = "Cache line invalidated because L['___stack0'] got deallocated"
    finding = only(job(*(recompiled(entry, 3000 + 100 * entry, gone) for entry in range(1, 5))))
    assert [line for line in finding.evidence if line.startswith("[0/1], [0/2], [0/3], [0/4]")]
    assert "a line of its own" in finding.next_step and "wait" in finding.title


def test_a_full_frame_is_told_what_comes_next() -> None:
    model = job(*(recompiled(entry, 3000 + 100 * entry) for entry in range(1, 8)))
    frame = next(iter(model.frames.values()))
    frame.limit = 8
    assert "8 of 8 entries in use, the next recompile is refused" in only(model).title


def test_what_follows_a_break_in_a_frame_past_its_limit_is_not_near_its_own() -> None:
    model = at_limit()
    refused = next(frame for frame in model.frames.values() if frame.refused_compile_id is not None)
    rest = Frame("5:0", 5, 0, f"torch_dynamo_resume_in_{refused.function}_at_9", refused.file, 9)
    assert _behind_a_limit(model, rest) and not _behind_a_limit(model, refused)
    assert not _behind_a_limit(model, Frame("6:0", 6, 0, "torch_dynamo_resume_in_other_at_9", refused.file, 9))
