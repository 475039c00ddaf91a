"""Compilations and frames: who is who, what an end means, what compiles now."""

from __future__ import annotations

from typing import Any

import pytest

from tests.model.script import US, added, broke, compiled, model_of, samples, target
from tuimon import events as ev
from tuimon.model import Model
from tuimon.model.identity import Generations, display_name, same_tail
from tuimon.model.warmup import WARM_STEPS

WRAPPER = "/usr/lib/python3.12/site-packages/torch/_dynamo/external_utils.py"


def started(compile_id: str, at: int = 0, **more: Any) -> ev.CompileStarted:
    fields: dict[str, Any] = {"attempt": 0, "function": "f", "file": "/w/model.py", "line": 10, "thread": "main", **more}
    return ev.CompileStarted(at * US, compile_id, **fields)


def ended(compile_id: str, at: int = 9, **more: Any) -> ev.CompileFinished:
    fields: dict[str, Any] = {"direction": "forward", "function": "f", "file": "/w/model.py", "line": 10, "thread": "main"}
    return ev.CompileFinished(at * US, compile_id, began_ns=(at - 5) * US, total_s=5e-6, **{**fields, **more})


# -------------------------------------------------------------------------------------------------------- identity


def test_a_frame_number_for_other_code_opens_a_generation() -> None:
    model = model_of(
        [started("0/0", code=1), ended("0/0", code=1)],
        # of the second generation the first compilation was lost
        [started("0/1", 20, code=2), ended("0/1", 29, code=2)],
    )
    assert [(key, frame.code, frame.entries) for key, frame in model.frames.items()] == [
        ("0:0", 1, ["0/0"]),
        ("1:0", 2, ["0/1"]),
    ]


def test_code_objects_are_told_apart_by_number_and_not_by_name() -> None:
    seen = [ev.CodeSeen(0, number, "f", "make.<locals>.f", "/w/model.py", 10) for number in (1, 2)]
    model = model_of(
        [*seen], started("0/0", code=1), ended("0/0", code=1), started("1/0", 20, code=2), ended("1/0", 29, code=2)
    )
    assert [(frame.code, frame.name, frame.generation) for frame in model.frames.values()] == [(1, "f", 0), (2, "f", 0)]


def test_what_ends_after_a_reset_belongs_to_the_generation_that_it_began_in() -> None:
    model = model_of(
        started("0/0", code=1, thread="a"),
        started("0/0", 5, code=2, thread="b"),
        ended("0/0", 9, code=1, thread="a"),
        ended("0/0", 11, code=2, thread="b"),
    )
    assert [(c.generation, c.thread) for c in model.compilations] == [(0, "a"), (1, "b")]
    assert model.running == {}


def test_no_id_ends_twice_between_two_resets() -> None:
    model = model_of(ended("0/0"), ended("0/0", 20))
    assert [c.generation for c in model.compilations] == [0, 1]


def test_a_compilation_that_ends_during_the_attach_is_told_twice_and_counted_once() -> None:
    model = Model()
    model.apply([target("injected"), started("0/0"), ended("0/0"), ended("0/0", 10, thread="", before_attach=True)])
    model.apply([ev.FrameSeen(0, "f", "/w/model.py", 10, ("0/0",))])
    assert len(model.compilations) == 1 and list(model.frames) == ["0:0"] and model.frames["0:0"].entries == ["0/0"]


def test_generations_bound_what_they_remember(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuimon.model.identity.MOST_IDS", 3)
    generations = Generations()
    assert [generations.enter(f"{number}/0", number) for number in range(9)] == [0] * 9
    assert generations.enter("0/0", 0) == 1


@pytest.mark.parametrize(
    ("function", "qualname", "file", "owners", "name"),
    [
        ("inner", "f.<locals>.inner", WRAPPER, ["Sequential(Linear, Tanh)"], "Sequential(Linear, Tanh)"),
        ("inner", "", WRAPPER, ["Linear"], "Linear"),
        ("inner", "", WRAPPER, ["A", "B", "C", "D", "E"], "A | B | C | 2 more"),
        ("forward", "Base.forward", "/w/model.py", ["Block"], "Block.forward"),
        ("forward", "Base.forward", "/w/model.py", [], "Base.forward"),
        ("wrapper", "x.<locals>.wrapper", "/site-packages/torch/optim/optimizer.py", ["SGD.step"], "SGD.step (wrapper)"),
        ("torch_dynamo_resume_in_forward_at_12", "Block.x", "/w/model.py", ["Block"], "Block.forward from line 12 on"),
        ("torch_dynamo_resume_in_forward_at_12", "", "/w/model.py", [], None),
        ("f", "f", "/w/model.py", [], None),
        ("f", "make.<locals>.f", "/w/model.py", [], None),
        ("inner", "C.inner", WRAPPER, [], None),
    ],
)
def test_names(function: str, qualname: str, file: str, owners: list[str], name: str | None) -> None:
    assert display_name(function, qualname, file, owners) == name


def test_a_wrapper_serves_several_modules_and_each_compilation_bears_the_name_of_its_own() -> None:
    stack = (("/w/train.py", 13, "<module>"), (WRAPPER, 67, "inner"))
    wrapper: dict[str, Any] = {"function": "inner", "file": WRAPPER, "line": 67, "code": 1}
    model = model_of(
        [started("0/0", owner="Linear", stack=stack, **wrapper), ended("0/0", **wrapper)],
        [started("0/1", 20, owner="Sequential(Tanh)", stack=stack, **wrapper), ended("0/1", 29, **wrapper)],
    )
    frame = model.frames["0:0"]
    assert (frame.name, frame.owners) == ("Linear | Sequential(Tanh)", ["Linear", "Sequential(Tanh)"])
    assert (frame.user_file, frame.user_line) == ("/w/train.py", 13)
    assert [(c.function, c.owner) for c in model.compilations] == [
        ("Linear", "Linear"),
        ("Sequential(Tanh)", "Sequential(Tanh)"),
    ]


def test_paths_are_compared_from_their_ends() -> None:
    assert same_tail("model.py", "/w/src/model.py") and same_tail("/v/src/model.py", "src/model.py")
    assert not same_tail("a/model.py", "/w/b/model.py") and not same_tail("odel.py", "/w/model.py")
    assert not same_tail("", "/w/model.py") and not same_tail("", "")


# ------------------------------------------------------------------------------------------------------------ ends


def test_the_refusal_says_which_limit() -> None:
    model = model_of(compiled("0/0", 0, 1), ended("0/1", function=None, file=None, refused=True, limit="recompile_limit"))
    frame = model.frames["0:0"]
    assert (frame.refused_compile_id, frame.refused_limit, frame.skipped) == ("0/1", "recompile_limit", False)
    assert model.coverage.not_available == {}


def test_restarts_are_counted_on_their_compilation() -> None:
    model = model_of(
        started("0/0"),
        broke("0/0", 13, attempt=0),
        broke("0/0", 13, attempt=2),
        ended("0/0", restarts=1, restart_reasons=("x",)),
    )
    (compilation,) = model.compilations
    assert (compilation.why, compilation.restarts, compilation.restart_reasons) == ("first", 2, ("x",))


def test_lookups_in_caches_are_counted_each_way() -> None:
    def looked(result: Any, thread: str = "main") -> ev.CacheLooked:
        return ev.CacheLooked(1, "0/0", "fx_graph", result, thread)

    model = model_of(
        [started("0/0"), looked("hit"), looked("miss"), looked("miss"), ended("0/0", caches=(("fx_graph", "hit", 9),))],
        [started("0/0", 20, direction="backward"), looked("bypass"), ended("0/0", 29, direction="backward")],
        # in its own time a backward is compiled on any thread, and tuimon may have missed its begin
        [started("1/0", 40), ended("1/0", 49), ev.CacheLooked(1, "1/0", "fx_graph", "hit")],
        ended("1/0", 59, direction="backward"),
        ended("2/0", 69, before_attach=True, caches=(("aot_autograd", "miss", 1), ("fx_graph", "hit", 0))),
    )
    assert [(c.caches, c.cache) for c in model.compilations] == [
        ({"fx_graph": {"hit": 1, "miss": 2}}, {"fx_graph": "miss"}),
        ({"fx_graph": {"bypass": 1}}, {"fx_graph": "bypass"}),
        ({}, {}),
        ({"fx_graph": {"hit": 1}}, {"fx_graph": "hit"}),
        ({"aot_autograd": {"miss": 1}}, {"aot_autograd": "miss"}),
    ]


def test_a_compilation_after_the_warm_up_is_late() -> None:
    ends = [(3, n * 100 - 10, n * 100) for n in range(1, WARM_STEPS + 3)]
    model = model_of(
        compiled("0/0", 0, 5), added(3, "optimizer", None), samples(*ends), compiled("1/0", 5000, 5005),
        ended("2/0", 1, before_attach=True)
    )  # fmt: skip
    assert [c.late for c in model.compilations] == [False, True, False]
    assert model.compilations[1].steady_before >= WARM_STEPS


def test_an_entry_without_a_graph_is_told_apart_from_one_with() -> None:
    model = model_of(
        [started("0/0"), ended("0/0", ops=0, guard_count=9)],
        [started("1/0", 20), added(1, "forward", "1/0"), ended("1/0", 29, ops=0, guard_count=9)],
        [started("2/0", 40), ended("2/0", 49, ops=3, guard_count=9)],
        [started("3/0", 60), ended("3/0", 69, ops=0, guard_count=9), added(2, "forward", "3/0")],
    )
    assert [frame.without_graph for frame in model.frames.values()] == [["0/0"], [], [], []]


def test_a_frame_with_nothing_in_it_has_no_entry() -> None:
    model = model_of(started("0/0"), ended("0/0", empty=True))
    frame = model.frames["0:0"]
    assert frame.entries == [] and not frame.skipped and "nothing in it to compile" in frame.eager_why_not


def test_values_of_the_failed_call_come_with_the_recompile() -> None:
    model = model_of(
        compiled("0/0", 0, 1),
        ev.GuardsFailed(2, "0/1", (("0/0", "x == 1"),), now=(("x", "2"),), owner="Block"),
        compiled("0/1", 3, 4),
    )
    (recompile,) = model.recompiles
    assert recompile.now == (("x", "2"),) and recompile.compilation.owner == "Block"
    assert model.frames["0:0"].name == "Block.f"


def test_an_end_without_a_begin_is_counted() -> None:
    model = model_of(ended("7/0"))
    assert "of 1 compilations" in model.coverage.not_available["compilations.begin"]


def test_phases_and_caches_of_an_id_that_never_started_change_nothing() -> None:
    model = model_of(
        ev.PhaseBegan(1, "5/0", "x", "main"),
        ev.PhaseEnded(2, "5/0", "x", "main"),
        ev.CacheLooked(1, "5/0", "triton", "hit"),
        ev.GuardsFailed(1, "5/0", ()),
    )
    assert model.running == {} and model.compilations == [] and model.frames == {}


# ------------------------------------------------------------------------------------------------------------- now


def test_a_compilation_whose_begin_is_not_known_says_so_and_ends() -> None:
    cold = started("3/0", 50, before_attach=True, since_known=False, owner="Block")
    model = model_of(cold, ev.PhaseBegan(50_000, "3/0", "build kernels", "main"))
    running = model.running["main"]
    assert (running.since_known, running.owner, running.function) == (False, "Block", "Block.f")
    assert running.phases == [("build kernels", 50_000)]
    model.apply([ended("3/0", 90)])
    assert model.running == {} and "1 compilations" in model.coverage.not_available["compilations.begin"]


def test_a_compilation_is_over_where_only_its_last_record_is_lost() -> None:
    model = model_of(started("3/0"), ev.PhaseEnded(9, "3/0", "entire_frame_compile", "main"))
    assert model.running == {}


def test_a_backward_that_ends_is_not_the_forward_that_runs() -> None:
    model = model_of(started("3/0"), ended("3/0", direction="backward"))
    assert list(model.running) == ["main"]


def test_a_refusal_before_the_attach_is_known() -> None:
    model = Model()
    model.apply([target("injected")])
    model.apply([ended("0/0", before_attach=True, thread="")])
    model.apply([ended("0/1", 20, refused=True, limit="recompile_limit", before_attach=True)])
    model.apply([ev.FrameSeen(0, "f", "/w/model.py", 10, ("0/0",), code=1)])
    (frame,) = model.frames.values()
    assert (frame.refused_compile_id, frame.entries, frame.code, frame.skipped) == ("0/1", ["0/0"], 1, False)
    assert [c.why for c in model.compilations] == ["first", "refused"] and model.recompiles[0].compilation.before_attach


def test_the_limit_of_a_frame_that_is_refused_earlier_is_its_own() -> None:
    """`torch.compile(recompile_limit=2)`, or the accumulated limit: the setting's number is not the one in force."""
    first, second = compiled("0/0", 0, 5), compiled("0/1", 10, 15)
    refused = compiled("0/2", 20, 25, refused=True, limit="recompile_limit")
    model = model_of([*first, *second, *refused], target(limit=8))
    frame = model.frames["0:0"]
    assert (frame.limit, frame.refused_compile_id, frame.entries) == (2, "0/2", ["0/0", "0/1"])
