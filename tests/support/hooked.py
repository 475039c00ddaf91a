"""Runs a small program in a process of its own with the hook in it, without any attach machinery.

The program's text may call `attach()` and `detach()`, which put the hook in and take it out on a thread of that process; what
the hook sends goes through a real socket into a file. `run` gives the messages, the events and the model made of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.imported import imported
from tuimon.events import Event
from tuimon.hook import wire
from tuimon.model import Model
from tuimon.sources.live import LiveDecoder

DEADLINE_S = 600

_PRELUDE = """
import socket, sys, threading
sys.path.insert(0, {root!r})
from tuimon.hook import session as _session, wire as _wire

class _Hooked:
    def __init__(self, options):
        self.job, self.monitor = socket.socketpair()
        self.session = _session.Session(self.job, {{}}, options)
        self.session.install()
        self.server = threading.Thread(target=self.session.serve, name="hook", daemon=True)
        self.reader = threading.Thread(target=self._read, name="monitor", daemon=True)
        self.server.start()
        self.reader.start()
    def _read(self):
        with open({out!r}, "ab") as file:
            while True:
                data = self.monitor.recv(1 << 20)
                if not data:
                    return
                file.write(data)
                file.flush()
    def detach(self):
        self.monitor.sendall(_wire.json_frame({{"cmd": "detach"}}))
        self.server.join(60)
        self.job.shutdown(socket.SHUT_RDWR)  # a worker that was forked meanwhile has it as well
        self.job.close()
        self.reader.join(60)
        self.monitor.close()

_hooked = None
def attach(**options):
    global _hooked
    _hooked = _Hooked(options)
def detach():
    global _hooked
    _hooked.detach()
    _hooked = None
"""


@dataclass
class Outcome:
    """What a run gave."""

    stdout: str
    stderr: str
    messages: list[dict[str, Any]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    model: Model = field(default_factory=Model)
    sessions: int = 0

    @property
    def values(self) -> Any:
        """The JSON value in the last line of the program's output."""
        return json.loads(self.stdout.strip().splitlines()[-1])


TORCH = ("torch",)
"""For programs that import torch before the hook comes."""
DYNAMO = ("torch", "torch._dynamo.backends.debugging", "torch._functorch.aot_autograd", "torch._inductor.compile_fx")
"""For programs that have compiled something by then: also what the first use of a backend imports."""


def run(
    program: str, tmp_path: Path, *, how: str = "run", after: tuple[str, ...] = (), python: str = sys.executable
) -> Outcome:
    """Run the program's text to its end by this or another Python, with the modules of `after` imported before its first line.

    Raises AssertionError with its output if it fails.
    """
    out = tmp_path / "frames"
    out.write_bytes(b"")
    script = tmp_path / "program.py"
    prelude = _PRELUDE.format(root=str(Path(__file__).parents[2]), out=str(out))
    script.write_text(prelude + "\n" + textwrap.dedent(program))
    if after:
        ran = imported(*after, python=python).run(script, DEADLINE_S)
    else:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        command = [python, str(script)]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, env=environment, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    outcome = Outcome(ran.stdout, ran.stderr)

    def folder() -> int:
        return os.open(os.path.dirname(outcome.messages[-1]["path"]), os.O_RDONLY | os.O_DIRECTORY)

    decoder = LiveDecoder(None, script.name, how, folder=folder)
    for kind, body in wire.Decoder().feed(out.read_bytes()):
        if kind == wire.JSON_FRAME:
            outcome.messages.append(wire.read_json(body))
        outcome.events += decoder.frame(kind, body)
    outcome.sessions = sum(1 for message in outcome.messages if message.get("k") == "ack")
    outcome.model.apply(outcome.events)
    return outcome
