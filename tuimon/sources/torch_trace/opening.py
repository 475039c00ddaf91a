"""A log, opened: one member for each rank in it, and each read in batches of events."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path

from tuimon import events as ev
from tuimon.sources import glog
from tuimon.sources.opened import Opened, Progress
from tuimon.sources.torch_trace.dialects import Dialects, wants
from tuimon.sources.torch_trace.facts import Facts
from tuimon.sources.torch_trace.lines import Damage, Record, prefixes, records
from tuimon.sources.torch_trace.times import LATEST_S, NO_DATE, LogClock, guessed_wall, wall_of
from tuimon.sources.trace_file import Text, Unreadable

BATCH = 256
"""Events of one batch, about."""
NOT_TOLD = "a TORCH_TRACE log tells what was compiled, not what ran"
NOT_IN_IT = ("calls", "steps", "crossings", "device", "gpu", "host")
_MD5 = re.compile(r"[0-9a-f]{32}")

_IN_NAME = re.compile(r"rank[_-]?(\d{1,6})(?!\d)")


def open_log(path: Path, text: Text) -> list[Opened]:
    """The ranks whose records a log holds. `text` is the file, opened, and is used up."""
    named = _IN_NAME.search(path.name)
    several = prefixes(text.chunks()) if glog.prefixed(text.first) else []
    if len(several) > 1:
        return [Opened("torch_trace", path, _label(one), _rank(one), _reader(path, one, _rank(one))) for one in several]
    rank = int(named[1]) if named is not None else _rank(several[0]) if several else None
    label = path.name if rank is None else f"rank {rank}"
    return [Opened("torch_trace", path, label, rank, _reader(path, None, rank))]


def _rank(prefix: str) -> int | None:
    return int(prefix[4:]) if prefix.startswith("rank") else None


def _label(prefix: str) -> str:
    rank = _rank(prefix)
    return prefix if rank is None else f"rank {rank}"


def _reader(path: Path, prefix: str | None, rank: int | None) -> Callable[[Progress], Iterator[list[ev.Event]]]:
    return lambda progress: _Log(path, prefix, rank).batches(progress)


class _Log:
    """Reads one rank's records, once."""

    def __init__(self, path: Path, prefix: str | None, rank: int | None) -> None:
        self._path = path
        self._prefix = prefix
        self._facts = Facts(rank=rank)
        self._own_rank: int | None = None
        self._damage = Damage()
        self._dialects = Dialects(self._facts, self._damage)
        self._wall = 0.0

    def batches(self, progress: Progress) -> Iterator[list[ev.Event]]:
        """The events. Raises Unreadable before the first batch only."""
        text = Text(self._path)
        text.progress = progress
        try:
            first = next(records([text.first], Damage(), wants, self._prefix), None)
            if first is None and self._prefix is None:
                raise Unreadable("holds no record that can be read: each line of a TORCH_TRACE log has a JSON object in it")
            wall = wall_of(records([text.first], Damage(), wants, self._prefix))
            known = wall is not None
            self._wall = guessed_wall(first, text.written_s) if wall is None and first is not None else wall or text.written_s
            clock = LogClock(datetime.fromtimestamp(min(max(0.0, self._wall), LATEST_S), timezone.utc).year)
            at = 0 if first is None else first.ns
            yield self._begin(at, known)
            batch: list[ev.Event] = []
            latest = at
            for record, is_last in _with_last(records(text.chunks(), self._damage, wants, self._prefix)):
                latest = clock.ns(record)
                if is_last:
                    _end_of_file(record)
                batch += self._record(latest, record)
                if len(batch) >= BATCH:
                    yield batch
                    batch = []
            yield [*batch, *self._end(latest, text)]
        finally:
            text.close()

    def _record(self, at: int, record: Record) -> list[ev.Event]:
        rank = record.told.get("rank")
        if self._own_rank is None and type(rank) is int and 0 <= rank < 10**6:
            self._own_rank = rank
            if self._facts.rank is None:
                self._facts.rank, self._facts.changed = rank, True
        found = self._dialects.read(at, record)
        if self._facts.changed:  # first: what is told now is to be understood by it
            found.insert(0, self._target(at))
        return found

    def _target(self, at: int) -> ev.TargetSeen:
        return self._facts.target(at, self._path.name, max(0.0, self._wall + at / 1e9))

    def _begin(self, at: int, known: bool) -> list[ev.Event]:
        found: list[ev.Event] = [self._target(at), ev.NotInFile(at, NOT_IN_IT, NOT_TOLD)]
        if not known:
            found.append(ev.NotAvailable(at, "target.attached_at", NO_DATE))
        return found

    def _end(self, at: int, text: Text) -> list[ev.Event]:
        told, damage = self._dialects, self._damage
        gaps: list[tuple[str, str]] = []
        if told.ahead:
            why = f"{_many(told.ahead, 'compilation')} ahead of time, outside Dynamo, which gives the ids"
            gaps.append(("compile ids", f"not in this file: {why}"))
        if told.misnamed:
            whose = "their records'" if told.misnamed > 1 else "its record's"
            why = f"the metrics of {_many(told.misnamed, 'compilation')} bear another id: {whose} is shown"
            gaps.append(("compile ids", why))
        if told.restarts and not told.breaks:
            why = f"its torch wrote no record of graph breaks, and {_many(told.restarts, 'compilation')} began anew for one"
            gaps.append(("boundaries", f"not in this file: {why}"))
        if told.again and not told.reasons:
            gaps.append(("recompiles.reason", "not in this file: its torch wrote no record of why frames were compiled again"))
        if told.lookups_untold:
            why = f"its torch wrote no result of {_many(told.lookups_untold, 'cache lookup')}"
            gaps.append(("warmup.caches", f"not in this file: {why}"))
        going_on = told.under_way()
        if going_on:
            ids = ", ".join(f"[{name}]" for name in going_on[:5])
            gaps.append(("the end of the log", f"the log ends while {_many(len(going_on), 'compilation')} went on: {ids}"))
        if self._own_rank is not None and self._facts.rank is not None and self._own_rank != self._facts.rank:
            gaps.append(("target.rank", f"the file's name says {self._facts.rank}, its records say {self._own_rank}"))
        amiss = damage.sentence(told.records)
        notes = [f"the file {text.note}"] if text.note else []
        notes += [amiss] if amiss else []
        if told.logs > 1:
            notes.append(f"it holds {told.logs:,} logs, one behind the other: ids that come again stand as after a reset")
        if notes:
            gaps.append(("the whole file", "; ".join(notes)))
        found = [*told.never_said(at), *(ev.NotAvailable(at, what, why) for what, why in gaps)]
        if not (told.compilations or going_on or told.breaks):
            only = "torch.export and symbolic shapes only, " if told.export else ""
            found.append(ev.NotInFile(at, ("compiles",), f"{only}no record of a compilation by Dynamo"))
        if told.executed:
            found.append(ev.GraphsExecuted(at, tuple(told.executed), told.executed_cut))
        return [*found, ev.TargetEnded(at, "detached", f"read to its end: {_many(told.records, 'record')}")]


def _many(number: int, one: str) -> str:
    return f"{number:,} {one}{'' if number == 1 else 's'}"


def _with_last(found: Iterator[Record]) -> Iterator[tuple[Record, bool]]:
    """Each, and whether it is the last."""
    before: Record | None = None
    for record in found:
        if before is not None:
            yield before, False
        before = record
    if before is not None:
        yield before, True


def _end_of_file(record: Record) -> None:
    """The last record of a file that is cut off has a part of its payload, by its own checksum. That is none.

    JSON that is cut off shows that by itself, and checksums of whole payloads may be wrong where a file was worked over.
    """
    told, artifact = record.told.get("has_payload"), record.told.get("artifact")
    if isinstance(artifact, dict) and artifact.get("encoding") == "json":
        return
    if record.payload is None or not isinstance(told, str) or _MD5.fullmatch(told) is None:
        return
    text = record.payload.encode("utf-8", "surrogatepass")
    if hashlib.md5(text, usedforsecurity=False).hexdigest() != told:
        record.payload = None
