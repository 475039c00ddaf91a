"""Files that somebody gives tuimon to read: TORCH_TRACE logs, Kineto traces, tables of Nsight Compute."""

from __future__ import annotations

import contextlib
import copy
import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from tests.fuzz.draws import Draw, changed
from tests.fuzz.seen import looked_at
from tests.sources.logs import head
from tests.sources.test_ncu import ADD, LAST, NEW, OLD, new, old
from tests.sources.test_torch_trace_anything import ALL, RECORDS
from tests.sources.test_trace_file import OP
from tuimon.model import Model
from tuimon.sources.carried import checked
from tuimon.sources.files import no_progress, open_any
from tuimon.sources.trace_file import Unreadable

LOG = b"V0101 00:00:00.000000 1 torch/_dynamo/x.py:1] "
KINETO = b'{"schemaVersion": 1, "traceEvents": ['
NCU = b'"ID","Process ID","Process Name",'
KERNEL = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 20.5, "dur": 10.0,
          "args": {"External id": 3, "correlation": 9, "stream": 7, "device": 0, "grid": [1, 1, 1]}}  # fmt: skip
MARKED: list[dict[str, Any]] = [
    OP,
    {**OP, "name": "aten::addmm", "ts": 15.0, "dur": 5.0, "args": {**OP["args"], "External id": 3, "Sequence number": 4}},  # type: ignore[dict-item]
    KERNEL,
    {**KERNEL, "cat": "gpu_memcpy", "name": "Memcpy HtoD", "ts": 32.0, "args": {"bytes": 64, "stream": 7, "correlation": 9}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 16.0, "dur": 2.0,
     "args": {"correlation": 9, "External id": 3}},
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#3", "pid": 1, "tid": 1, "ts": 5.0, "dur": 100.0},
    {"ph": "X", "cat": "cpu_op", "name": "Torch-Compiled Region: 0/1", "pid": 1, "tid": 1, "ts": 8.0, "dur": 80.0},
    {"ph": "X", "cat": "cpu_op", "name": "## Call CompiledFxGraph abc ##", "pid": 1, "tid": 1, "ts": 9.0, "dur": 70.0},
    {"ph": "s", "cat": "ac2g", "name": "ac2g", "id": 9, "pid": 1, "tid": 1, "ts": 16.0},
    {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}, "ts": 1.0},
]  # fmt: skip
HEADER: dict[str, Any] = {
    "schemaVersion": 1,
    "deviceProperties": [{"id": 0, "name": "NVIDIA H100", "totalGlobalMem": 85_000_000_000, "numSms": 132}],
    "distributedInfo": {"backend": "nccl", "rank": 1, "world_size": 2},
    "record_shapes": 1,
    "baseTimeNanoseconds": 1_700_000_000_000_000_000,
}


@cache
def folder() -> Path:
    """For files that are read again at once."""
    shared = Path("/dev/shm")
    made = tempfile.TemporaryDirectory(prefix="tuimon-fuzz-", dir=shared if shared.is_dir() else None)
    _KEPT.append(made)
    return Path(made.name)


_KEPT: list[tempfile.TemporaryDirectory[str]] = []


def of_file(data: bytes, thorough: bool) -> None:
    """A file of these bytes, read as `report` and `replay` do."""
    path = folder() / "file"
    path.write_bytes(data)
    try:
        found, _ = open_any(path)
        for one in found:
            model = Model()
            for batch in one.events(no_progress):
                for event in batch:
                    assert checked(event) == event
                model.apply(batch)
            looked_at(model, thorough=thorough)
    except Unreadable as error:
        assert str(error)


def log(data: bytes, thorough: bool) -> None:
    """A log of these bytes."""
    of_file(LOG + data, thorough)


def kineto(data: bytes, thorough: bool) -> None:
    """A trace of these bytes."""
    of_file(KINETO + data, thorough)


def ncu(data: bytes, thorough: bool) -> None:
    """A table of these bytes."""
    of_file(NCU + data, thorough)


def log_seeds() -> list[bytes]:
    """A log with a record of each kind."""
    return [ALL.encode().removeprefix(LOG)]


def kineto_seeds() -> list[bytes]:
    """Each event, and all."""
    lines = [json.dumps(one).encode() for one in MARKED]
    return [*(one + b"]}" for one in lines), b",".join(lines) + b"]}"]


def ncu_seeds() -> list[bytes]:
    """Two tables, of an older and of a newer version."""
    older = "\n".join(
        [OLD + LAST, old(0, "k(int)", ADD, "inst", "1,000"), old(0, "k(int)", "dram__bytes.sum", "Mbyte", "3.00")]
    )
    newer = "\n".join([NEW + '"Section Name","Metric Name",' + LAST, new(0, "gemm", "gpu__time_duration.sum", "ns", "1,000")])
    return [one.encode().removeprefix(NCU) for one in (older, newer)]


def any_seeds() -> list[bytes]:
    """One of each kind."""
    return [ALL.encode(), *(KINETO + one for one in kineto_seeds()[-1:]), *(NCU + one for one in ncu_seeds())]


def records(data: bytes, thorough: bool) -> None:
    """A log of sound records in which some values are others."""
    draw = Draw(data)
    some = copy.deepcopy([RECORDS[draw.below(len(RECORDS))] for _ in range(draw.below(4))])
    lines = []
    for told, payload in [*copy.deepcopy(RECORDS), *some]:
        if draw.below(4) == 0:
            changed(draw, told)
        if draw.below(6) == 0:
            payload = draw.pick((None, _dumped(draw.value()), draw.text(), _within(draw, payload)))
        lines.append(f"{head()} {_dumped(told)}\n")
        if payload is not None:
            lines += [f"\t{line}\n" for line in payload.split("\n")]
        if draw.below(16) == 0:
            lines.insert(draw.below(len(lines)), lines.pop())
    of_file("".join(lines).encode("utf-8", "surrogatepass"), thorough)


def _within(draw: Draw, payload: str | None) -> str | None:
    """The JSON of a payload with another value in it, or a text with a piece less."""
    if payload is None:
        return None
    try:
        told = json.loads(payload)
    except ValueError:
        at = draw.below(len(payload) + 1)
        return payload[:at] + draw.text() + payload[at + draw.below(20) :]
    changed(draw, told)
    return _dumped(told)


def _dumped(value: Any) -> str:
    with contextlib.suppress(ValueError):  # a number of more digits than Python writes
        return json.dumps(value)
    return "9" * 5000


def events(data: bytes, thorough: bool) -> None:
    """A trace of sound events in which some values are others."""
    draw = Draw(data)
    header, told = copy.deepcopy(HEADER), copy.deepcopy(MARKED)
    for _ in range(1 + draw.below(6)):
        changed(draw, header if draw.below(5) == 0 else told[draw.below(len(told))])
    for _ in range(draw.below(4)):
        told.insert(draw.below(len(told)), told[draw.below(len(told))])
    of_file(_dumped({**header, "traceEvents": told}).encode("utf-8", "surrogatepass"), thorough)


def cells(data: bytes, thorough: bool) -> None:
    """A sound table in which some cells are others."""
    draw = Draw(data)
    lines = [one.split(",") for one in (NCU + draw.pick(ncu_seeds())).decode().split("\n")]
    for _ in range(1 + draw.below(6)):
        row = lines[draw.below(len(lines))]
        value = draw.value("1")
        row[draw.below(len(row))] = value if isinstance(value, str) else _dumped(value)
    of_file("\n".join(map(",".join, lines)).encode("utf-8", "surrogatepass"), thorough)
