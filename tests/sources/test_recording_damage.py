"""A recording that was cut off, damaged or made up: never a crash, and nothing but what was recorded."""

from __future__ import annotations

import json
import random
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model.dump import dump
from tests.sources.recorded_streams import STREAMS, Batches, batches, fold, record, replayed, stream, training
from tuimon import events as ev
from tuimon.sources.files import no_progress, open_any
from tuimon.sources.recording import Recording
from tuimon.sources.recording import format as layout
from tuimon.sources.trace_file import Unreadable

CUTS = 200
SECOND = 1_000_000_000


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Batches]:
    """A recording of a job with compilations and many calls, and what was recorded."""
    file = tmp_path_factory.mktemp("made") / "run.tuimon"
    told = [*batches(stream(next(path for path in STREAMS if path.stem == "limited"))), *training(160)]
    record(file, told)
    return file, told


def ends(raw: bytes) -> list[tuple[int, layout.BlockHead]]:
    """(where it ends, its head) of each block, read off the bytes."""
    at, found = layout.HEAD, []
    while at < len(raw):
        head = layout.block_head(raw[at : at + layout.HEAD])
        assert head is not None
        at += layout.HEAD + head.packed
        found.append((at, head))
    return found


def test_cut_anywhere(made: tuple[Path, Batches], tmp_path: Path) -> None:
    file, told = made
    raw = file.read_bytes()
    blocks = ends(raw)
    rng = random.Random(20)
    for number in range(CUTS):
        cut = rng.randrange(len(raw))
        short = tmp_path / f"{number}.tuimon"
        short.write_bytes(raw[:cut])
        whole = [head for end, head in blocks if end <= cut]
        if not whole:
            with pytest.raises(Unreadable):
                open_any(short)
            continue
        recording = Recording(short)
        found = [batch.events for batch in recording.read()]
        assert found == told[: len(found)]
        assert sum(len(e.rows) for b in found for e in b if isinstance(e, ev.Samples)) == sum(head.rows for head in whole)
        # what is lost had come within the last second before the cut
        torn = next(head for end, head in blocks if end > cut)
        assert torn.at_ns - whole[-1].at_ns <= SECOND
        assert not recording.whole and "shown up to" in recording.note
        (opened,), _ = open_any(short)
        *_, last = opened.events(no_progress)
        assert isinstance(last[-1], ev.NotAvailable) and last[-1].what == "the end of the recording"
        if number % 10 == 0:
            assert json.dumps(dump(fold(found))) == json.dumps(dump(fold(told[: len(found)])))


def test_a_bit_that_changed_takes_one_block_at_most(made: tuple[Path, Batches], tmp_path: Path) -> None:
    file, told = made
    raw = file.read_bytes()
    most = max(sum(map(len, told[at : at + 3])) for at in range(len(told)))
    rng = random.Random(8)
    hit = 0
    for number in range(CUTS):
        changed = bytearray(raw)
        place = rng.randrange(len(layout.MAGIC), len(raw)) if number > 40 else rng.randrange(len(layout.MAGIC), layout.HEAD * 3)
        changed[place] ^= 1 << rng.randrange(8)
        damaged = tmp_path / f"{number}.tuimon"
        damaged.write_bytes(changed)
        recording = Recording(damaged)
        found = [event for batch in recording.read() for event in batch.events]
        assert recording.note
        kept = [event for event in found if not isinstance(event, ev.RecordingGap)]
        hit += len(kept) < len(found)
        everything = iter(event for batch in told for event in batch)
        assert all(event in everything for event in kept)  # in their order
        assert sum(map(len, told)) - len(kept) <= most
    assert hit > CUTS // 2


def test_bytes_in_between_are_passed_over(made: tuple[Path, Batches], tmp_path: Path) -> None:
    file, told = made
    raw = file.read_bytes()
    where = [end for end, _ in ends(raw)]
    rng = random.Random(1)
    for number, length in enumerate((1, 63, 64, 65, 2**20 - 64, 2**20, 3 * 2**20)):
        at = rng.choice(where[2:-2])
        junk = bytearray(rng.randbytes(length))
        junk[: len(layout.SYNC)] = layout.SYNC[:length]  # looks like a block, and is none
        other = tmp_path / f"{number}.tuimon"
        other.write_bytes(raw[:at] + junk + raw[at:])
        recording = Recording(other)
        found = [[event for event in batch.events if not isinstance(event, ev.RecordingGap)] for batch in recording.read()]
        assert [batch for batch in found if batch] == told
        assert f"a damaged stretch of {length:,} bytes" in recording.note and recording.whole


def block(body: bytes, **changed: int) -> bytes:
    """A block with this body and check sums that fit."""
    codec, packed = layout.pack_body(body)
    head = layout.BlockHead(layout.DATA, codec, len(packed), len(body), 1, 0, 0, 0, 0, 0, zlib.crc32(packed))
    return head._replace(**changed).pack() + packed


def made_up(path: Path, *blocks: bytes) -> Path:
    head = layout.FileHead(b"s" * 16, 1, 1.7e9, 5, ev.SCHEMA, False)
    path.write_bytes(head.pack() + b"".join(blocks))
    return path


def item(tag: int, raw: bytes, length: int | None = None) -> bytes:
    return layout.ITEM.pack(tag, len(raw) if length is None else length) + raw


@settings(max_examples=300, deadline=None)
@given(
    body=st.binary(max_size=200)
    | st.lists(st.tuples(st.integers(0, 6), st.binary(max_size=40)).map(lambda one: item(*one)), max_size=6).map(b"".join),
    kind=st.integers(0, 5),
    rows=st.integers(0, 4),
    codec=st.sampled_from([layout.PLAIN, layout.ZLIB]),
)
def test_whatever_a_block_holds(
    tmp_path_factory: pytest.TempPathFactory, body: bytes, kind: int, rows: int, codec: int
) -> None:
    file = tmp_path_factory.getbasetemp() / "whatever.tuimon"
    good = block(item(layout.EVENT, json.dumps({"type": "Line", "t_ns": 1, "text": "good"}).encode()))
    made_up(file, good, block(body, kind=kind, rows=rows, codec=codec), good)
    told = [event for batch in replayed(file) for event in batch]
    assert told[0] == told[-1] == ev.Line(1, "good")
    json.dumps(dump(fold([told])))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_whatever_stands_behind_the_magic(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    file = tmp_path_factory.getbasetemp() / "behind.tuimon"
    file.write_bytes(layout.MAGIC + raw)
    with pytest.raises(Unreadable):
        open_any(file)


@pytest.mark.parametrize(
    "bad",
    [
        block(item(layout.EVENT, b"[" * 1_000_000)),
        block(item(layout.EVENT, b'{"type":"Line","t_ns":' + b"9" * 100_000 + b"}")),
        block(item(layout.EVENT, b"\xff\xfe")),
        block(item(layout.EVENT, b"[]")),
        block(item(layout.EVENT, b'{"type":"Line"}')),
        block(item(layout.EVENT, b"{}", length=4_000_000_000)),
        block(item(layout.ROWS, layout.ROWS_ITEM.pack(1, 2**31))),
        block(b"x" * 100, unpacked=99),
        block(b"\0" * 10_000_000, unpacked=1000),  # a bomb: more than its head says
        block(b"x" * 1000, unpacked=layout.MOST_UNPACKED + 1),
        block(b"x" * 1000, codec=7),
    ],
    ids=range(11),
)
def test_what_is_bad_is_passed_over_and_said(bad: bytes, tmp_path: Path) -> None:
    good = block(item(layout.EVENT, json.dumps({"type": "Line", "t_ns": 1, "text": "good"}).encode()))
    recording = Recording(made_up(tmp_path / "bad.tuimon", good, bad, good))
    told = [event for batch in recording.read() for event in batch.events]
    assert [event for event in told if not isinstance(event, ev.RecordingGap)] == [ev.Line(1, "good")] * 2
    assert "damaged" in recording.note and sum(isinstance(event, ev.RecordingGap) for event in told) == 1


def test_what_a_newer_tuimon_wrote_is_passed_over(tmp_path: Path) -> None:
    newer = item(77, b"whatever") + item(layout.EVENT, b'{"type":"InventedLater","t_ns":1}')
    line = item(layout.EVENT, json.dumps({"type": "Line", "t_ns": 1, "text": "good", "invented": 1}).encode())
    recording = Recording(made_up(tmp_path / "new.tuimon", block(newer + line), block(line, kind=99)))
    assert [batch.events for batch in recording.read()] == [[ev.Line(1, "good")]]
