"""The lines of a log, as records: a head with a JSON object in it, and lines of payload behind it, each after a tab.

Whatever a file holds, reading it raises nothing, and needs memory for one record of each rank at a time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tuimon.sources.glog import HEAD, PREFIX

LONGEST_LINE = 2**25
"""Characters of one line; a longer one is passed over and counted."""
LONGEST_PAYLOAD = 2**23
"""Characters of one payload; of a longer one the begin is kept."""
MOST_PREFIXES = 4096
MOST_NUMBERS = 5
"""Line numbers of damaged records that are told."""

_JSON = re.compile(r" *(?=\{)")


@dataclass(slots=True)
class Record:
    """One record of a log."""

    line: int
    """The number of its head's line, from 1."""
    month: int
    day: int
    ns: int
    """Since midnight, in the zone of the job."""
    who: int
    """The number of the process that wrote it; of its thread in logs of torch 2.4."""
    told: dict[str, Any]
    payload: str | None = None
    """None where it has none that is asked for."""
    cut: bool = False
    """Whether its payload was too long, or the file ends in it."""


@dataclass(slots=True)
class Damage:
    """What of a log could not be read."""

    records: int = 0
    payloads: int = 0
    foreign: int = 0
    """Lines that are no part of a record."""
    lines: list[int] = field(default_factory=list)

    def at(self, line: int) -> None:
        """Note where."""
        if len(self.lines) < MOST_NUMBERS:
            self.lines.append(line)

    def sentence(self, records: int) -> str:
        """What to say of it beside so many records that were read; "" where nothing is amiss."""
        parts = []
        if self.records:
            parts.append(f"{self.records:,} of {records + self.records:,} records could not be read")
        if self.payloads:
            parts.append(f"the text behind {self.payloads:,} of {records + self.records:,} records could not be read")
        if parts and self.lines:
            which = ", ".join(f"{line:,}" for line in self.lines)
            more = ".." if self.records + self.payloads > len(self.lines) else ""
            parts[-1] += f" (line{'s' if len(self.lines) > 1 else ''} {which}{more})"
        if self.foreign:
            lines = "line in it is" if self.foreign == 1 else "lines in it are"
            parts.append(f"{self.foreign:,} {lines} no part of a record")
        return "; ".join(parts)


@dataclass(slots=True)
class _Open:
    """A record whose payload may go on."""

    record: Record
    wanted: bool
    parts: list[str] = field(default_factory=list)
    size: int = 0

    def add(self, text: str) -> None:
        if self.wanted and not self.record.cut:
            self.parts.append(text)
            self.size += len(text) + 1
            self.record.cut = self.size > LONGEST_PAYLOAD

    def over(self) -> Record:
        if self.parts:
            self.record.payload = "\n".join(self.parts)[:LONGEST_PAYLOAD]
        return self.record


def records(
    chunks: Iterable[str], damage: Damage, wants: Callable[[dict[str, Any]], bool], prefix: str | None = None
) -> Iterator[Record]:
    """The records in a text that comes in chunks, in their order. `wants` tells of a record whether to read its payload.

    `prefix`: only those behind this prefix ("rank3"); what has none is then nobody's.
    """
    under_way: dict[str, _Open | None] = {}
    latest = ""
    for number, line in _numbered(chunks):
        if line is None:  # longer than any is
            damage.records += 1
            damage.at(number)
            continue
        told = PREFIX.match(line)
        name, at = ("", 0) if told is None else (told["role"] + told["number"], told.end())
        if prefix is not None and name and name != prefix:
            latest = name
            continue
        if line.startswith("\t", at):
            of = under_way.get(name if name else latest)
            if of is not None:
                of.add(line[at + 1 :])
            continue
        head = HEAD.match(line, at)
        body = _JSON.match(line, head.end()) if head is not None else None
        if prefix is not None and name != prefix:
            latest = name if head is not None else latest
            continue
        if head is None or body is None:
            damage.foreign += bool(line[at:].strip())
            continue
        before = under_way.get(name)
        if before is not None:
            yield before.over()
        latest = name
        if name not in under_way and len(under_way) >= MOST_PREFIXES:
            under_way.clear()
        under_way[name] = _opened(number, head, line[body.end() :], wants)
        if under_way[name] is None:
            damage.records += 1
            damage.at(number)
    for last in under_way.values():
        if last is not None:
            yield last.over()


def _opened(number: int, head: re.Match[str], text: str, wants: Callable[[dict[str, Any]], bool]) -> _Open | None:
    try:
        told = json.loads(text)
    except (ValueError, RecursionError, MemoryError):
        return None
    if not isinstance(told, dict):
        return None
    seconds = int(head["hour"]) * 3600 + int(head["minute"]) * 60 + int(head["second"])
    ns = seconds * 10**9 + int(head["fraction"].ljust(9, "0"))
    record = Record(number, int(head["month"]), int(head["day"]), ns, int(head["who"]), told)
    return _Open(record, wants(told))


def _numbered(chunks: Iterable[str]) -> Iterator[tuple[int, str | None]]:
    """(number, line) from 1; None for a line that is longer than any is."""
    number = 1
    parts: list[str] = []
    size = 0
    for chunk in chunks:
        lines = chunk.split("\n")
        for text in lines[:-1]:
            parts.append(text)
            yield number, None if size + len(text) > LONGEST_LINE else "".join(parts).removesuffix("\r")
            parts, size = [], 0
            number += 1
        size += len(lines[-1])
        if size <= LONGEST_LINE:
            parts.append(lines[-1])
    if size:
        yield number, None if size > LONGEST_LINE else "".join(parts).removesuffix("\r")


def prefixes(chunks: Iterable[str]) -> list[str]:
    """The prefixes of the records of a text, in the order in which they come: of logs of several ranks in one file."""
    found: dict[str, None] = {}
    for _, line in _numbered(chunks):
        told = PREFIX.match(line) if line is not None else None
        if line is not None and told is not None and HEAD.match(line, told.end()) and len(found) < MOST_PREFIXES:
            found[told["role"] + told["number"]] = None
    return list(found)
