"""Properties of the fold, on streams of real jobs and on random ones.

The streams in `streams/` are events as `tuimon run` and `tuimon attach` received them from small programs: a frame that is
skipped whole, one at its limit, a backward within the compiled step, a library's wrapper, an attach in the middle.
"""

from __future__ import annotations

import json
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model.dump import dump, negatives
from tests.roofline.jobs import HOST
from tuimon import events as ev
from tuimon.model import Model
from tuimon.model.findings import findings
from tuimon.report import build, render
from tuimon.sources import carried

STREAMS = sorted(path.stem for path in (Path(__file__).parent / "streams").glob("*.json"))
MOST = 200_000
"""Bytes of one recorded stream."""


@lru_cache
def recorded(name: str) -> tuple[ev.Event, ...]:
    """A recorded stream."""
    text = (Path(__file__).parent / "streams" / f"{name}.json").read_text(encoding="utf-8")
    return tuple(event for line in text.splitlines() for event in carried.decode(json.loads(line)))


def folded(*batches: tuple[ev.Event, ...]) -> Model:
    model = Model()
    for batch in batches:
        model.apply(batch)
    return model


def sound(model: Model) -> None:
    """Nothing below zero, and whatever is in there can be told."""
    assert list(negatives(dump(model))) == []
    findings(model)
    for form in ("json", "text", "md"):
        render(build(model, known=HOST), form)


def split(events: tuple[ev.Event, ...], at: list[int]) -> list[tuple[ev.Event, ...]]:
    """The stream in pieces, each batch of samples cut in the middle too."""
    finer: list[ev.Event] = []
    for event in events:
        if isinstance(event, ev.Samples) and len(event.rows) > 1:
            half = len(event.rows) // 2
            for rows in (event.rows[:half], event.rows[half:]):
                finer.append(ev.Samples(event.t_ns, rows))
        else:
            finer.append(event)
    cuts = [0, *sorted(number % (len(finer) + 1) for number in at), len(finer)]
    return [tuple(finer[begin:end]) for begin, end in pairwise(cuts)]


def test_there_are_streams_and_they_are_small() -> None:
    assert len(STREAMS) >= 4
    assert all((Path(__file__).parent / "streams" / f"{name}.json").stat().st_size < MOST for name in STREAMS)
    assert all(len(recorded(name)) > 20 for name in STREAMS)


@pytest.mark.parametrize("name", STREAMS)
def test_any_split_of_a_recorded_stream_gives_the_same_state(name: str) -> None:
    whole = dump(folded(recorded(name)))

    @settings(max_examples=10, deadline=None)
    @given(st.lists(st.integers(0, 10_000), max_size=8))
    def holds(at: list[int]) -> None:
        assert dump(folded(*split(recorded(name), at))) == whole

    holds()


@pytest.mark.parametrize("name", STREAMS)
def test_whatever_is_lost_of_a_recorded_stream_nothing_is_below_zero(name: str) -> None:
    events = recorded(name)

    @settings(max_examples=12, deadline=None)
    @given(st.randoms(use_true_random=False), st.sampled_from((0.02, 0.2, 0.6)))
    def holds(random: object, share: float) -> None:
        sound(folded(tuple(event for event in events if random.random() >= share)))  # type: ignore[attr-defined]

    holds()


@pytest.mark.parametrize("kind", sorted({type(event).__name__ for name in STREAMS for event in recorded(name)}))
def test_a_stream_without_one_kind_of_event(kind: str) -> None:
    for name in STREAMS:
        sound(folded(tuple(event for event in recorded(name) if type(event).__name__ != kind)))


# ------------------------------------------------------------------------------------------------- random streams

TIMES = st.integers(0, 10**12)
IDS = st.sampled_from(("0/0", "0/1", "0/2", "1/0", "1/1", "!0/2/0", "odd", "", "?"))
CODES = st.none() | st.integers(1, 4)
OFFSETS = st.none() | st.sampled_from((10, 20))
NAMES = st.sampled_from(("f", "forward", "torch_dynamo_resume_in_f_at_7", "?", ""))
FILES = st.sampled_from(("/w/model.py", "/lib/site-packages/torch/_dynamo/external_utils.py", ""))
LINES = st.integers(0, 5)
THREADS = st.sampled_from(("main", "autograd", ""))
OWNERS = st.sampled_from(("", "Block", "Sequential(Linear, Tanh)"))
STACKS = st.lists(st.tuples(FILES, LINES, NAMES), max_size=2).map(tuple)
TEXTS = st.sampled_from(("", "print", "x == 1", "[bold]\x1b[31m"))
GUARDS = st.lists(st.tuples(IDS, TEXTS), max_size=2).map(tuple)
SECONDS = st.none() | st.floats(0, 100)


def row(instrument: int, thread: int, flags: int, begin: int, took: int) -> tuple[int, int, int, int, int]:
    return instrument, thread, flags, begin, begin + took


ROWS = st.lists(
    st.builds(row, st.integers(0, 6), st.integers(0, 2), st.integers(0, 1), TIMES, st.integers(0, 10**9)), max_size=6
).map(tuple)
EVENTS: st.SearchStrategy[ev.Event] = st.one_of(
    st.builds(ev.CodeSeen, TIMES, st.integers(1, 4), NAMES, NAMES, FILES, LINES),
    st.builds(
        ev.CompileStarted, TIMES, IDS, st.integers(0, 2), NAMES, FILES, LINES, THREADS,
        st.sampled_from(("forward", "backward")), STACKS, CODES, OWNERS, st.booleans(), st.booleans(),
    ),
    st.builds(ev.PhaseBegan, TIMES, IDS, st.sampled_from(("entire_frame_compile", "build_guards")), THREADS),
    st.builds(ev.PhaseEnded, TIMES, IDS, st.sampled_from(("entire_frame_compile", "build_guards")), THREADS),
    st.builds(
        ev.GraphBroke, TIMES, st.none() | IDS, st.integers(0, 2), TEXTS, TEXTS, st.none(), NAMES, FILES, LINES,
        requested=st.booleans(), skipped_frame=st.booleans(), stack=STACKS, before_attach=st.booleans(), code=CODES,
        offset=OFFSETS,
    ),
    st.builds(ev.GuardsFailed, TIMES, IDS, GUARDS, st.booleans(), GUARDS, OWNERS),
    st.builds(ev.CacheLooked, TIMES, st.none() | IDS, st.just("fx_graph"), st.sampled_from(("hit", "miss", "bypass")), THREADS),
    st.builds(
        ev.CompileFinished, TIMES, IDS, st.sampled_from(("forward", "backward")), st.none() | NAMES, st.none() | FILES,
        st.none() | LINES, THREADS, TIMES, SECONDS, ops=st.none() | st.integers(0, 3),
        failed=st.sampled_from((None, "Unsupported: print", "BackendCompilerFailed: x")), refused=st.booleans(),
        restarts=st.integers(0, 2), before_attach=st.booleans(), code=CODES, empty=st.booleans(),
        entries_before=st.none() | st.integers(0, 2),
    ),
    st.builds(
        ev.FrameSeen, TIMES, NAMES, FILES, LINES, st.lists(IDS, max_size=2).map(tuple), st.just(True), CODES,
        st.lists(st.tuples(IDS, st.none() | LINES), max_size=2).map(tuple),
    ),
    st.builds(ev.BoundaryAccepted, TIMES, FILES, NAMES, TEXTS, TEXTS, st.none() | TEXTS),
    st.builds(
        ev.InstrumentAdded, TIMES, st.integers(0, 6),
        st.sampled_from(("forward", "backward", "resume", "optimizer", "eager", "crossing")), st.none() | IDS, NAMES, NAMES,
        FILES, LINES, before_attach=st.booleans(), code=CODES, offset=OFFSETS,
        why=st.sampled_from(("", "limit", "skipped", "stance")), variant_of=st.none() | st.integers(0, 6),
        sizes=st.sampled_from(((), (("s0", 3),), (("s0", 4),))),
    ),
    st.builds(
        ev.GraphSeen, TIMES, IDS, st.sampled_from(("forward", "backward")), st.integers(0, 2), st.integers(0, 2),
        st.sampled_from(("aten", "torch")),
        st.sampled_from((
            (), (("mm", (("f32", ("s0", "3")), ("f32", ("3", "4"))), (("f32", ("s0", "4")),), "", 2),),
            (("odd", (), (), "{", 1),),
        )),
        st.sampled_from(((), (("f32", ("s0", "3"), 1),), (("odd", ("1/0",), 1),))),
        st.sampled_from(((), (("f32", ("s0**99999",), 1),))), cut=st.booleans(),
    ),
    st.builds(
        ev.WindowChanged, TIMES, st.integers(0, 3),
        st.sampled_from(("waiting", "open", "closed", "refused", "cancelled")), TEXTS, st.integers(0, 5), SECONDS, SECONDS,
    ),
    st.builds(
        ev.KernelsSeen, TIMES, st.integers(0, 3),
        st.lists(
            st.tuples(
                NAMES, st.sampled_from(("", "aten::mm", "aten::add", "odd")),
                st.sampled_from(((), (("float", (2, 3)), ("float", (3, 4))), (("odd", ()),))), st.sampled_from(("", "{}", "[")),
                st.none() | IDS, st.integers(0, 1), st.integers(0, 9), st.integers(0, 10**9), st.integers(0, 9),
                st.integers(0, 9),
            ),
            max_size=3,
        ).map(tuple),
        TIMES, TIMES, regions=st.lists(st.tuples(IDS, st.integers(0, 9), st.integers(0, 10**9)), max_size=2).map(tuple),
        device=st.sampled_from(("", "NVIDIA H100 80GB HBM3")),
    ),
    st.lists(st.tuples(st.integers(0, 6), TIMES, st.integers(-5, 10**9)), max_size=3).map(
        lambda rows: ev.DeviceSamples(0, tuple(rows))
    ),
    st.builds(ev.ThreadSeen, TIMES, st.integers(0, 2), THREADS),
    ROWS.map(lambda rows: ev.Samples(rows[-1][4] if rows else 0, rows)),
    st.builds(ev.SyncLooked, TIMES, st.integers(0, 6), st.integers(0, 9), st.integers(0, 9)),
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(st.lists(EVENTS, max_size=25), st.lists(st.integers(0, 100), max_size=4))
def test_any_stream_is_folded_soundly_and_alike_however_it_is_split(events: list[ev.Event], at: list[int]) -> None:
    whole = folded(tuple(events))
    sound(whole)
    assert dump(folded(*split(tuple(events), at))) == dump(whole)
    for key, boundary in whole.boundaries.items():
        assert boundary.key == key and boundary.breaks >= 0
        assert boundary.sync_waited <= boundary.sync_looked
    assert all(frame.key == key for key, frame in whole.frames.items())
