"""The nodes of a job: a place for each that is named, and a connection to each, several at a time."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from tuimon.attach.refusal import Refused
from tuimon.commands.options import say
from tuimon.draw.text import clean
from tuimon.relay import near
from tuimon.relay.place import Place, parse, via

AT_ONCE = 8
"""Connections that are made at the same time."""
FEW = 16
"""Of more processes than this on other hosts, the calls are folded where they run."""
NODE = "{}"
"""In --via, stands for the node's name."""


def places_of(nodes: Sequence[str], command: str | None) -> list[Place]:
    """A place for each node: by ssh, or by `command` with the node's name in it. Raises ValueError with a sentence."""
    if command is None:
        return [parse(node if "://" in node else f"ssh://{node}")[0] for node in nodes]
    if nodes and NODE not in command:
        raise ValueError(f"--nodes with --via: say where the node's name goes, as in 'srun --overlap --jobid=9 -n1 -w {NODE}'")
    return [replace(via(command.replace(NODE, node)), name=node) for node in nodes]


def connect(
    places: Sequence[Place],
    contact: Callable[[], Any],
    send: Callable[[str], bool],
    links: contextlib.ExitStack,
    *,
    go_on: bool,
) -> list[near.Link]:
    """A connection to each place, closed with `links`; `contact` makes who is told of one.

    The first alone, since it may ask for a password; then several at once.

    With `go_on`, places that cannot be reached are said and left out, as long as there is one that can. Raises Refused.
    """
    asking = threading.Lock()

    def ask(question: str) -> bool:
        with asking:  # one question at a time
            return send(question)

    def reach(place: Place) -> near.Link | Refused:
        try:
            return near.connect(place, contact(), ask)
        except Refused as refusal:
            return refusal

    found = [reach(place) for place in places[:1]]
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="tuimon-connect") as pool:
        found += list(pool.map(reach, places[1:]))
    made = [links.enter_context(one) for one in found if isinstance(one, near.Link)]
    refusals = [one for one in found if isinstance(one, Refused)]
    if refusals and not (go_on and made):
        raise refusals[0]
    for place, one in zip(places, found, strict=True):
        if isinstance(one, Refused):
            say(f"{clean(place.name)} is left out: {clean(one.sentence)} [{one.code}]")
    return made
