"""Ranks that do not run their graphs in the same order."""

from __future__ import annotations

from tuimon import events as ev
from tuimon.model import Model
from tuimon.model.findings import findings


def ran(*names: str) -> Model:
    model = Model()
    model.apply([ev.GraphsExecuted(1, names)] if names else [])
    return model


def test_the_first_graph_that_differs_is_told() -> None:
    ranks = [("rank 0", ran("a", "b", "a")), ("rank 1", ran("a", "a", "b")), ("rank 2", ran("b")), ("rank 3", ran("a", "b"))]
    (found,) = findings(ranks[0][1], beside=ranks)
    assert found.kind == "graph_order"
    assert found.title == "rank 0 and rank 1 run their graphs in different orders: number 2 is b and a, and 1 more differ"
    assert found.evidence == ("rank 0: a b a", "rank 1: a a b", "rank 2: b")


def test_one_order_and_none_are_no_finding() -> None:
    for ranks in ([("0", ran("a")), ("1", ran("a", "b"))], [("0", ran()), ("1", ran("a"))], [("0", ran("a"))], []):
        assert findings(Model(), beside=ranks) == []
