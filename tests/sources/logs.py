"""Made up TORCH_TRACE logs, line by line."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from tuimon import events as ev
from tuimon.model import Model
from tuimon.sources.opened import no_progress
from tuimon.sources.torch_trace import open_log
from tuimon.sources.trace_file import Text

WALL = 1764460800.0
"""30 November 2025, 0:00 UTC."""
CONFIG = json.dumps({"recompile_limit": 8, "suppress_errors": True, "capture_scalar_outputs": False})


def head(at: float = 36000.0, *, day: str = "1130", who: int = 4711, prefix: str = "") -> str:
    """The head of a line at so many seconds after midnight."""
    rest, whole = at % 1, int(at)
    time = f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}.{int(rest * 1e6):06}"
    return f"{prefix}V{day} {time} {who} torch/_dynamo/utils.py:1]"


def line(told: dict[str, Any], payload: Any = None, at: float = 36000.0, **more: Any) -> str:
    """One record, with its payload behind it as torch writes it."""
    text = payload if payload is None or isinstance(payload, str) else json.dumps(payload, indent=0)
    if text is None:
        return f"{head(at, **more)} {json.dumps(told)}\n"
    told = {**told, "has_payload": hashlib.md5(text.encode()).hexdigest()}
    return f"{head(at, **more)} {json.dumps(told)}\n" + "".join(f"\t{one}\n" for one in text.split("\n"))


def ids(frame: int = 0, entry: int = 0, attempt: int = 0) -> dict[str, int]:
    """What says in a record's metadata which compilation it is of."""
    return {"frame_id": frame, "frame_compile_id": entry, "attempt": attempt}


def phase(name: str, way: str, at: float, **more: Any) -> str:
    """The begin ("B") or the end ("E") of a phase."""
    event = {"name": name, "ts": (WALL + at) * 1e6, "args": {}, "ph": way, "cat": "dynamo_timed", "tid": 0, "pid": 0}
    return line({"chromium_event": {}, **more}, event, at)


def metrics(at: float = 36001.0, where: dict[str, int] | None = None, kind: str = "compilation_metrics", **more: Any) -> str:
    """The end of a compilation of `f`, which took half a second."""
    where = ids() if where is None else where
    told = {
        "compile_id": f"{where['frame_id']}/{where['frame_compile_id']}" if where else None,
        "co_name": "f",
        "co_filename": "/w/model.py",
        "co_firstlineno": 12,
        "cache_size": where.get("frame_compile_id", 0),
        "guard_count": 3,
        "graph_op_count": 2,
        "start_time": WALL + at - 0.5,
        "duration_us": 500_000,
        "dynamo_config": CONFIG,
        "python_version": "3.12.11 | packaged by Anaconda",
        "is_forward": True,
        **more,
    }
    return line({kind: told, **where}, None, at)


def start(at: float = 36000.0, where: dict[str, int] | None = None, file: Any = 0) -> str:
    """The begin of a compilation, called from line 30."""
    stack = [{"line": 30, "name": "<module>", "filename": file}, {"line": 12, "name": "f", "filename": file}]
    return line({"dynamo_start": {"stack": stack}, **(ids() if where is None else where)}, None, at)


NAME = line({"str": ["/w/model.py", 0]})
FILE = line({"str": ["/lib/torch/_dynamo/convert_frame.py", 1]}) + NAME
GRAPH = line(
    {"dynamo_output_graph": {"sizes": {}}, **ids()}, "class GraphModule(torch.nn.Module):\n    def forward(self): pass"
)
WHOLE = FILE + start() + GRAPH + metrics()
"""A log of one compilation."""
BREAK = """Graph break in user code at /w/model.py:14
Graph Break Reason: Unsupported Tensor.item() call with capture_scalar_outputs=False
  Explanation: Dynamo does not support tracing `Tensor.item()`

User code traceback:
  File "/w/train.py", line 20, in <module>
    f(x)
  File "/w/model.py", line 14, in f
    s = x.item()
"""


def events(folder: Path, text: str | bytes, name: str = "trace.log") -> list[ev.Event]:
    """The events of a log that holds one rank."""
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    (opened,) = open_log(path, Text(path))
    return [event for batch in opened.events(no_progress) for event in batch]


def model(folder: Path, text: str | bytes, name: str = "trace.log") -> Model:
    """A model of it."""
    found = Model()
    found.apply(events(folder, text, name))
    return found
