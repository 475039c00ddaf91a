"""The frames that tell where steps turn: sites, looks, loops, a thread's id in the kernel."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tuimon import events as ev
from tuimon.hook import wire
from tuimon.sources.live import LiveDecoder


def decoded(*messages: dict[str, Any]) -> list[ev.Event]:
    decoder = LiveDecoder(1, "train.py", "run")
    return [event for one in messages for event in decoder.frame(wire.JSON_FRAME, json.dumps(one).encode())]


def test_each_is_an_event() -> None:
    site = {"k": "site", "t": 9, "thread": 5, "instrument": 2, "code": 7, "line": 15, "lasti": 40}
    assert decoded(
        {"k": "thread", "t": 1, "thread": 5, "name": "main", "native": 77},
        {"k": "thread", "t": 1, "thread": 6, "name": "old"},
        site | {"stack": [["/w/a.py", 15, "<module>"]]},
        site | {"path": [[6, 20], [7, 40]]},
        {"k": "loops", "t": 3, "thread": 5, "anchor": 2, "heads": [[0, 7, 20, 80]], "site": [[7, 40]]},
    ) == [
        ev.ThreadSeen(1, 5, "main", 77),
        ev.ThreadSeen(1, 6, "old"),
        ev.SiteSeen(9, 2, 7, 15, 40, (("/w/a.py", 15, "<module>"),), 5),
        ev.SiteSeen(9, 2, 7, 15, 40, (), 5, ((6, 20), (7, 40))),
        ev.LoopsSeen(3, 5, 2, ((0, 7, 20, 80),), ((7, 40),)),
    ]


def test_a_look_that_shows_the_same_has_the_rows_of_the_one_before_on_its_thread() -> None:
    first, second, other = decoded(
        {"k": "look", "t": 10, "thread": 5, "since": 4, "rows": [[7, 15, 40, 0], [8, 3, 12, True]]},
        {"k": "look", "t": 30, "thread": 5, "since": 4, "same": True},
        {"k": "look", "t": 30, "thread": 6, "since": 4, "same": True},
    )
    assert first == ev.StackSeen(10, 5, 4, ((7, 15, 40, 0), (8, 3, 12, 1)))
    assert second == ev.StackSeen(30, 5, 4, ((7, 15, 40, 0), (8, 3, 12, 1)))
    assert other == ev.StackSeen(30, 6, 4, ())


@pytest.mark.parametrize(
    "message",
    [
        {"k": "site", "t": 9, "thread": 5, "instrument": 2, "code": 7, "line": 15},
        {"k": "site", "t": 9, "thread": 5, "instrument": 2, "code": 7, "line": 15, "lasti": 40, "path": [[7]]},
        {"k": "look", "t": 10, "thread": 5, "since": 4, "rows": [[7, 15, 40]]},
        {"k": "loops", "t": 3, "thread": 5, "anchor": 2, "heads": [["x", 7, 20, 80]], "site": []},
    ],
)
def test_what_is_malformed_is_refused(message: dict[str, Any]) -> None:
    with pytest.raises(wire.WireError):
        decoded(message)
