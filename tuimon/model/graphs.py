"""The fold over compiled graphs: which region computes what.

A graph is told once, before or after the timer of its region, so the two are tied together whichever comes last. Where torch
made several graphs of one compilation, the k-th told is the k-th region's; a single forward region runs all of its.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tuimon.events import GraphSeen
from tuimon.model.parts import Region

if TYPE_CHECKING:
    from tuimon.model.model import Model

GraphKey = tuple[int, str, str]
"""(generation, compile id, direction)."""

MOST_GRAPHS = 5_000
MOST_PLACES = 64
"""Graphs of one compilation and direction that are kept."""


class GraphFold:
    """Keeps what graphs compute, and gives each region its own."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._regions: dict[GraphKey, list[Region]] = {}

    def seen(self, event: GraphSeen) -> None:
        """A graph was told. One of a later attempt at its compilation puts those of the earlier attempts out of force."""
        model = self._model
        key = (model.generations.current, event.compile_id, event.direction)
        known = model.graphs.get(key)
        if known is None:
            if not model.room("graphs", model.graphs, MOST_GRAPHS):
                return
            known = model.graphs[key] = []
        latest = max((graph.attempt for graph in known), default=event.attempt)
        if event.attempt < latest:
            return
        if event.attempt > latest:
            known.clear()
        at = next((at for at, graph in enumerate(known) if graph.place == event.place), None)
        if at is not None:
            known[at] = _together(known[at], event)
        elif model.room("graphs of one compilation", known, MOST_PLACES):
            known.append(event)
            known.sort(key=lambda graph: graph.place)
        self._tie(key)

    def region(self, region: Region) -> None:
        """A region is timed from now on."""
        key = (region.generation, region.compile_id, region.direction)
        self._regions.setdefault(key, []).append(region)
        self._tie(key)

    def _tie(self, key: GraphKey) -> None:
        regions, graphs = self._regions.get(key, ()), self._model.graphs.get(key, [])
        alone = len(regions) == 1 and key[2] == "forward"
        for at, region in enumerate(regions):
            region.graphs = list(graphs) if alone else [graph for graph in graphs if graph.place == at]
        self._model.changed("roofline")


def _together(one: GraphSeen, other: GraphSeen) -> GraphSeen:
    """What two tellings of one graph say: the better rows of the two, and what only one of them has."""
    better, worse = sorted((one, other), key=lambda graph: (graph.cut, graph.level != "aten", graph.before_attach))
    return replace(
        better,
        kernels=better.kernels or worse.kernels,
        symbols=better.symbols or worse.symbols,
        model_bytes=worse.model_bytes if better.model_bytes is None else better.model_bytes,
    )
