"""Every event comes back from JSON as it was; what is malformed does not become one."""

from __future__ import annotations

import dataclasses
import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuimon import events as ev
from tuimon.hook import wire
from tuimon.sources import carried
from tuimon.sources.live import LiveDecoder

PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    int: st.integers(-(2**63), 2**64 - 1),
    float: st.floats(-(2.0**63), 2.0**63),
    str: st.text(max_size=20),
    bool: st.booleans(),
    type(None): st.none(),
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a field's type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return st.one_of([values(one) for one in arguments])
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return st.lists(values(arguments[0]), max_size=3).map(tuple)
        return st.tuples(*[values(one) for one in arguments])
    if isinstance(hint, type) and issubclass(hint, tuple):  # a NamedTuple
        return st.builds(hint, *[values(one) for one in get_type_hints(hint).values()])
    return PLAIN[hint]


def events(cls: type[ev.Event]) -> st.SearchStrategy[ev.Event]:
    """Any event of a class."""
    hints = get_type_hints(cls)
    return st.builds(cls, **{field.name: of_a_field(field.name, hints[field.name]) for field in dataclasses.fields(cls)})


def of_a_field(name: str, hint: Any) -> st.SearchStrategy[Any]:
    """Values of a field: times, and numbers that are measured, have a range of their own."""
    if name.endswith("_ns"):
        return st.integers(-(2**63), 2**63 - 1)
    return st.floats(0, carried.LATEST_WALL_S) if name == "wall_s" else values(hint)


def test_all_events_are_known() -> None:
    assert {"Samples", "TargetSeen", "GpuSampled", "HostSampled"} <= set(carried.CLASSES)
    assert "Event" not in carried.CLASSES


@pytest.mark.parametrize("name", sorted(carried.CLASSES))
def test_round_trip(name: str) -> None:
    @settings(max_examples=30, deadline=None)
    @given(events(carried.CLASSES[name]))
    def holds(event: ev.Event) -> None:
        ((kind, body),) = wire.Decoder().feed(wire.json_frame(carried.encode(event)))
        assert carried.decode(wire.read_json(body)) == [event]
        assert LiveDecoder(1, "", "injected").frame(kind, body) == [event]

    holds()


@pytest.mark.parametrize("name", sorted(carried.CLASSES))
def test_what_is_malformed_is_no_event(name: str) -> None:
    cls = carried.CLASSES[name]
    hints = get_type_hints(cls)

    @settings(max_examples=30, deadline=None)
    @given(events(cls), st.sampled_from(sorted(hints)), JSON)
    def holds(event: ev.Event, field: str, value: Any) -> None:
        message = carried.encode(event)
        message[field] = value
        try:
            (found,) = carried.decode(message)
        except ValueError:
            return
        # a value that was let through has the type that the field is to have
        assert isinstance(getattr(found, field), (int, float, str, bool, tuple, type(None)))

    holds()


def test_missing_unknown_and_newer() -> None:
    message = carried.encode(ev.NotAvailable(1, "gpu", "none"))
    assert carried.decode({**message, "invented_later": [1]}) == [ev.NotAvailable(1, "gpu", "none")]
    assert carried.decode({**message, "type": "InventedLater"}) == []
    del message["why"]
    with pytest.raises(ValueError, match=r"NotAvailable\.why is missing"):
        carried.decode(message)
    with pytest.raises(wire.WireError):
        LiveDecoder(1, "", "injected").frame(wire.JSON_FRAME, wire.json_frame(message)[wire.HEADER.size :])
    host = carried.encode(ev.HostSampled(1, 5.0, 1, 1, 5.0, 1, 1))
    del host["major_faults"]
    assert carried.decode({**host, "cpu_percent": 5}) == [ev.HostSampled(1, 5.0, 1, 1, 5.0, 1, 1)]


@pytest.mark.parametrize("value", [float("inf"), float("nan"), -float("inf"), 2.0**64, 2**64, True, "1"])
def test_a_number_that_nothing_measures_is_none(value: object) -> None:
    host = carried.encode(ev.HostSampled(1, 5.0, 1, 1, 5.0, 1, 1))
    with pytest.raises(ValueError, match="cpu_percent"):
        carried.decode({**host, "cpu_percent": value})


def test_long_texts_are_cut_and_seen_to_be() -> None:
    (line,) = carried.decode(carried.encode(ev.Line(1, "x" * 10_000)))
    assert isinstance(line, ev.Line) and len(line.text) == carried.LONGEST_TEXT and line.text.endswith("x..")
