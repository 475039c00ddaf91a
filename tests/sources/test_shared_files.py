"""Every file of the folder of real files opens, or is refused with a sentence that is right; counts are those of its README.

TUIMON_FILES names the folder; by default it lies beside the checkout.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from tuimon import events as ev
from tuimon.model import Model
from tuimon.report import build, render
from tuimon.sources.files import no_progress, open_any
from tuimon.sources.opened import Opened
from tuimon.sources.trace_file import Unreadable

_PLACES = (Path(__file__).parents[3] / "shared" / "files", Path("/work/shared/files"))
NAMED = os.environ.get("TUIMON_FILES")
FOLDER = Path(NAMED) if NAMED else next((one for one in _PLACES if one.is_dir()), _PLACES[0])
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"{FOLDER} is not there: TUIMON_FILES names the real files")

REFUSED = {
    "HolisticTraceAnalysis/LICENSE": "is no kind of file that tuimon reads",
    "HolisticTraceAnalysis/tests/data/execution_trace/benchmark_simple_add_et.json.gz": "is an execution trace of PyTorch",
    "HolisticTraceAnalysis/tests/data/memory_analysis/memory_timeline.raw.gz": "is a memory timeline of torch.profiler",
    "README.md": "is no kind of file that tuimon reads",
    "TraceLens/LICENSE": "is no kind of file that tuimon reads",
    "kineto/LICENSE": "is no kind of file that tuimon reads",
    "tlparse/LICENSE": "is no kind of file that tuimon reads",
    "tlparse/tests/inputs/multi_rank_messy_input/another.log": "is empty",
    "tlparse/tests/inputs/multi_rank_messy_input/some_other_file.txt": "is empty",
}


@dataclass(frozen=True)
class Counts:
    """A row of the README's table."""

    ids: int
    recompiles: int = 0
    restarts: int = 0
    failed: int = 0
    hits: int = 0


_LOG = "tlparse/tests/inputs"
_RANK = "dedicated_log_torch_trace_rank_{}.log"
_ONE = Counts(1)
_BROKEN = Counts(1, failed=1)
TABLE: dict[str, Counts] = {
    f"{_LOG}/comp_metrics.log": Counts(3, restarts=2),
    f"{_LOG}/artifacts.log": _ONE,
    f"{_LOG}/simple.log": _ONE,
    f"{_LOG}/simple_corrupted_json.log": _ONE,
    **{f"{_LOG}/multi_rank_messy_input/{_RANK.format(rank)}": _ONE for rank in (0, 1)},
    f"{_LOG}/chromium_events.log": _BROKEN,
    f"{_LOG}/comp_failure.log": _BROKEN,
    **{f"{_LOG}/multi_rank_logs/{_RANK.format(rank)}": _BROKEN for rank in (0, 2)},
    f"{_LOG}/autotune_with_compile_id.log": _ONE,
    f"{_LOG}/multi_rank_logs/{_RANK.format(3)}": Counts(7, 6, hits=7),
    **{f"{_LOG}/multi_rank_runtime/{_RANK.format(rank)}": Counts(4, 3) for rank in range(5)},
    f"{_LOG}/collectives_parity/{_RANK.format(0)}": Counts(4, 3),
    **{f"{_LOG}/multi_rank_runtime/{_RANK.format(rank)}": Counts(2, 1) for rank in (5, 6)},
    **{
        f"{_LOG}/multi_rank_schedule/dedicated_log_torch_trace_rank_{name}.log": Counts(2)
        for name in ("0_6u3fubwl", "1_n8zycf07", "2")
    },
    **{
        f"tlparse/tests/graph_exec_order_tests/dedicated_log_torch_trace_rank_{name}.log": Counts(2, 1)
        for name in ("0_a74od7a1", "1_fglwclht")
    },
    f"{_LOG}/export.log": Counts(0),
    f"{_LOG}/export_guard_added.log": Counts(0),
    # not in the table, counted from their lines: Inductor's provenance, just in time and ahead of time
    **{f"{_LOG}/inductor_provenance_jit{name}_log.txt": _ONE for name in ("", "_cuda", "_debug_handle")},
    **{
        f"{_LOG}/inductor_provenance_aot{name}.txt": Counts(0)
        for name in ("_log", "_cuda_log", "_debug_handle_log", "_log_old")
    },
    f"{_LOG}/inductor_provenance_extended_log.txt": Counts(0),
    f"{_LOG}/links.log": _ONE,
}


def files() -> list[str]:
    return sorted(str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*") if path.is_file())


def folded(opened: Opened) -> Model:
    model = Model()
    for batch in opened.events(no_progress):
        model.apply(batch)
    return model


@pytest.mark.parametrize("name", files())
def test_it_opens_or_is_refused(name: str) -> None:
    try:
        found, left_out = open_any(FOLDER / name)
        assert left_out == [] and found
        for one in found:
            model = folded(one)
            assert model.target.how == "file" and model.target.ended == "detached"
            assert one.kind == ("torch_trace" if "tlparse" in name else "kineto")
    except Unreadable as error:
        assert REFUSED.get(name, "should be read") in str(error)
    else:
        assert name not in REFUSED


@pytest.mark.parametrize("name", sorted(TABLE))
def test_counts_are_those_of_the_table(name: str) -> None:
    if not (FOLDER / name).is_file():
        pytest.skip("the file is not there")
    (opened,), _ = open_any(FOLDER / name)
    model = folded(opened)
    compiled = [one for one in model.compilations if one.direction == "forward"]
    counted = Counts(
        ids=len({one.compile_id for one in compiled}),
        recompiles=len(model.recompiles),
        restarts=sum(one.restarts for one in compiled),
        failed=sum(one.failed is not None for one in compiled),
        hits=sum(one.caches.get("fx_graph", {}).get("hit", 0) for one in compiled),
    )
    assert counted == TABLE[name]
    assert len(model.regions) == counted.ids - counted.failed
    assert not model.boundaries


def test_every_log_has_a_row() -> None:
    logs = {name for name in files() if name.startswith("tlparse/") and name not in REFUSED}
    assert logs == set(TABLE)


def test_a_broken_line_is_told_and_costs_nothing_else() -> None:
    models = [folded(open_any(FOLDER / _LOG / name)[0][0]) for name in ("simple.log", "simple_corrupted_json.log")]
    whole, broken = ([(one.compile_id, one.total_s, one.caches) for one in model.compilations] for model in models)
    assert whole == broken
    assert "the whole file" not in models[0].coverage.not_available
    assert models[1].coverage.not_available["the whole file"] == "the text behind 1 of 76 records could not be read (line 13)"


def test_the_break_restarts_of_torch_24_are_told() -> None:
    model = folded(open_any(FOLDER / _LOG / "comp_metrics.log")[0][0])
    resumed = [one.function for one in model.compilations if "torch_dynamo_resume" in one.function]
    assert len(resumed) == 2 and model.compilations[0].function == "fn"
    assert "2 compilations began anew" in model.coverage.not_available["boundaries"]


def test_a_failed_compilation_has_its_reason() -> None:
    model = folded(open_any(FOLDER / _LOG / "comp_failure.log")[0][0])
    assert model.compilations[0].failed == "BackendCompilerFailed: backend='broken_backend' raised"


@pytest.mark.parametrize(
    ("name", "ranks", "left_out"),
    [
        (f"{_LOG}/multi_rank_messy_input", 2, ["2 of the files are empty and were left out"]),
        (f"{_LOG}/multi_rank_logs", 3, []),
        (f"{_LOG}/multi_rank_runtime", 7, []),
        (f"{_LOG}/multi_rank_schedule", 3, []),
        ("tlparse/tests/graph_exec_order_tests", 2, []),
    ],
)
def test_folders_of_ranks(name: str, ranks: int, left_out: list[str]) -> None:
    found, left = open_any(FOLDER / name)
    assert left == left_out and len(found) == ranks
    numbers = [one.rank for one in found]
    assert numbers == sorted(set(numbers), key=lambda rank: (rank is None, rank)) and [one.label for one in found] == [
        f"rank {rank}" for rank in numbers
    ]


def test_the_order_of_graphs_differs_between_two_ranks() -> None:
    found, _ = open_any(FOLDER / "tlparse/tests/graph_exec_order_tests")
    first, second = (folded(one).recorded.executed for one in found)
    assert len(first) == len(second) == 6 and first != second
    found, _ = open_any(FOLDER / _LOG / "multi_rank_runtime")
    fifth, sixth = (folded(one).recorded.executed for one in found[-2:])
    assert fifth == sixth == ("graph_0", "graph_1", "graph_1", "graph_0", "graph_1", "graph_0")


@pytest.mark.parametrize("name", ["simple_corrupted_json.log", "export.log", "comp_failure.log", "comp_metrics.log"])
def test_reports_say_what_is_not_in_the_file(name: str) -> None:
    report = build(folded(open_any(FOLDER / _LOG / name)[0][0]))
    for form in ("text", "md"):
        assert "steps: not in this file: a TORCH_TRACE log tells what was compiled" in " ".join(
            render(report, form).replace("`", "").split()
        )
    assert all(region["calls"] is None for region in report["regions"])
    assert all(frame["calls"] is None for frame in report["frames"])
    assert {row["what"] for row in report["coverage"]["not_available"]} >= {"regions.calls", "steps.source", "gpu", "host"}


def test_the_graphs_of_a_log_have_their_operations() -> None:
    (opened,), _ = open_any(FOLDER / _LOG / "multi_rank_logs" / _RANK.format(3))
    seen = [event for batch in opened.events(no_progress) for event in batch if isinstance(event, ev.GraphSeen)]
    assert {one.compile_id for one in seen} == {f"0/{entry}" for entry in range(7)}
    assert all(one.rows and one.level == "aten" for one in seen)
