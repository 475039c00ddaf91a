"""The hook's messages about compiled graphs as events: unpacked, read, and put together where several tell of one graph."""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from tuimon import events as ev
from tuimon.sources import graph_text, output_code
from tuimon.sources.inbox import weight

LONGEST_TEXT = 8 * 2**20
"""Bytes of a graph's text that are read."""

MOST_KEPT = 2048
"""Compilations whose graphs are remembered, for what is told of them later."""

MOST_WEIGHT = 16_000
"""An event about a graph or a profile of more weight than this (some 4 MB) is none that is kept."""

_DIRECTIONS: Mapping[str, Literal["forward", "backward"]] = {
    "aot_forward_graph": "forward",
    "aot_inference_graph": "forward",
    "aot_backward_graph": "backward",
    "dynamo_output_graph": "forward",
}


class GraphMessages:
    """Reads one message after the other. It keeps, of each compilation, the graphs that it has told."""

    def __init__(self) -> None:
        self._told: OrderedDict[str, dict[tuple[str, int], ev.GraphSeen]] = OrderedDict()
        """Compile id -> (direction, place) -> its graph as it was told last."""
        self._codes: dict[str, dict[str, int]] = {}
        """Compile id -> direction -> how many of its codes have come."""

    def began(self, compile_id: str) -> None:
        """A compilation begins under this id: what was told under it is another's, or of an attempt that is thrown away."""
        self._told.pop(compile_id, None)
        self._codes.pop(compile_id, None)

    def coded(self, compile_id: str) -> frozenset[str]:
        """The directions of this compilation for which Inductor's code has come."""
        return frozenset(self._codes.get(compile_id, ()))

    def read(self, message: Mapping[str, Any]) -> list[ev.Event]:
        """The event in a message of kind "graph"; none where it tells nothing new. Raises ValueError for a malformed one.

        A log has the text itself in its message ("text"), the hook a packed one ("z").
        """
        kind, compile_id = message["kind"], message["compile_id"]
        if not isinstance(compile_id, str):
            raise ValueError(f"a compile id that is none: {repr(compile_id)[:60]}")
        attempt = message.get("attempt") or 0
        text = _plain(message["text"]) if "text" in message else _unpacked(message)
        graphs = self._told.get(compile_id)
        if graphs is not None and next(iter(graphs.values())).attempt != attempt:
            self.began(compile_id)
            graphs = None
        if kind == "inductor_output_code":
            return self._code(message, compile_id, graphs, text)
        direction = _DIRECTIONS.get(kind)
        if direction is None:
            return []
        level: Literal["aten", "torch"] = "torch" if kind == "dynamo_output_graph" else "aten"
        known = [one for (way, _), one in (graphs or {}).items() if way == direction]
        if level == "torch" and any(one.level == "aten" for one in known):
            return []
        place = message.get("place")
        if not isinstance(place, int) or not 0 <= place < 1000:
            place = sum(one.level == level for one in known)
        if text is None:
            content = graph_text.Content(cut=True, why="its text is longer than is kept" if message.get("cut") else _TOO_LONG)
        else:
            content = graph_text.read(text, level)
        seen = ev.GraphSeen(
            t_ns=message["t"],
            compile_id=compile_id,
            direction=direction,
            place=place,
            attempt=attempt,
            level=level,
            rows=content.rows,
            reads=content.reads,
            writes=content.writes,
            cut=content.cut,
            why=content.why,
            before_attach=bool(message.get("before_attach")),
        )
        if weight(seen) > MOST_WEIGHT // 2:  # its kernels may come as well
            seen = replace(seen, rows=(), reads=(), writes=(), cut=True, why="it is larger than is kept")
        self._keep(compile_id, seen)
        return [seen]

    def _code(
        self, message: Mapping[str, Any], compile_id: str, graphs: dict[tuple[str, int], ev.GraphSeen] | None, text: str | None
    ) -> list[ev.Event]:
        """A graph again, with the kernels that Inductor has made of it."""
        if text is None or graphs is None:
            return []
        code = output_code.read(text)
        counts = self._codes.setdefault(compile_id, {})
        place = counts.get(code.direction, 0)
        counts[code.direction] = place + 1
        seen = graphs.get((code.direction, place))
        if seen is None:
            return []
        size = message.get("model_bytes")
        told = replace(
            seen,
            kernels=code.kernels,
            symbols=code.symbols or seen.symbols,
            model_bytes=size if isinstance(size, int) and 0 <= size < 2**62 else seen.model_bytes,
        )
        if weight(told) > MOST_WEIGHT:
            told = replace(told, kernels=())
        self._keep(compile_id, told)
        return [told]

    def _keep(self, compile_id: str, seen: ev.GraphSeen) -> None:
        graphs = self._told.setdefault(compile_id, {})
        self._told.move_to_end(compile_id)
        if len(graphs) < 64:
            graphs[seen.direction, seen.place] = seen
        if len(self._told) > MOST_KEPT:
            oldest, _ = self._told.popitem(last=False)
            self._codes.pop(oldest, None)


def _plain(text: str | None) -> str | None:
    """A text as the hook would have sent it: without its lines of comment, which hold the user's source."""
    return None if text is None or len(text) > LONGEST_TEXT else _COMMENT.sub("", text)


_COMMENT = re.compile(r"(?m)^[ \t]*#.*\n?")
_TOO_LONG = "its text is longer than 8 MB"


def _unpacked(message: Mapping[str, Any]) -> str | None:
    """The text in a message; None where it is too long. Raises ValueError where it is no packed text."""
    packed = message.get("z")
    if not packed:
        return None
    try:
        unpack = zlib.decompressobj()
        found = unpack.decompress(base64.b64decode(packed, validate=True), LONGEST_TEXT)
    except (binascii.Error, zlib.error, TypeError) as error:
        raise ValueError(f"a text that cannot be unpacked: {error}") from error
    if unpack.unconsumed_tail:
        return None
    if not unpack.eof:
        raise ValueError("a text that is cut off")
    return found.decode("utf-8", "replace")
