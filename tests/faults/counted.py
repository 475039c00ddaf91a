"""The job that counts for itself (`counted_program`), and a tuimon in a process of its own that counts what it is told."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from .table import ROOT

PROGRAM = Path(__file__).with_name("counted_program.py")
STEPS = 50
"""Of one epoch."""
ANSWER_S = 300.0

MONITOR = """
import json, os, sys
sys.path.insert(0, {root!r})
from tuimon.attach.refusal import Refused
from tuimon.attach.session import attach
from tuimon.hook import wire
from tuimon.hook.bundle import bundle
sources = bundle()
if sys.argv[1:] == ["narrow"]:
    for limit, less in (("QUEUE_LIMIT = 131072", 4096), ("UNSENT_LIMIT = 4 * 1024 * 1024", 65536)):
        assert limit in sources["outbox"]
        sources["outbox"] = sources["outbox"].replace(limit, limit.split("=")[0] + "= " + str(less))
counts, roles, status, ended, windows = {{}}, {{}}, {{}}, [], {{}}
def say(**facts):
    os.write(1, json.dumps(facts).encode() + b"\\n")
def sink(kind, body):
    if kind == wire.SAMPLES_FRAME:
        for row in wire.read_samples(body):
            counts[row[0]] = counts.get(row[0], 0) + 1
        return
    message = wire.read_json(body)
    if message.get("k") == "added":
        roles[message["instrument"]] = message["role"]
    elif message.get("k") == "status":
        status.update(message)
    elif message.get("k") == "window":
        windows[message["state"]] = windows.get(message["state"], 0) + 1
def told():
    by_role = {{}}
    for number, count in list(counts.items()):
        by_role[roles.get(number, "?")] = by_role.get(roles.get(number, "?"), 0) + count
    say(by_role=by_role, rows=sum(counts.values()), samples=status.get("samples"), dropped=status.get("dropped"), ended=ended,
        instruments=status.get("instruments"), windows=windows)
say(up=True)
for line in sys.stdin:
    word, *rest = line.split(None, 1)
    if word == "attach":
        try:
            session = attach(int(rest[0]), {{}}, sources=sources)
            session.start(sink, ended.append)
            say(attached=True)
        except Refused as refused:
            say(refused=refused.code, sentence=refused.sentence)
    elif word == "told":
        told()
    elif word == "window":
        say(sent=session.send({{"cmd": "window", "window": 1, "steps": 2}}))
    elif word == "detach":
        session.detach()
        told()
"""


class Talking:
    """A process that answers lines with JSON lines."""

    def __init__(self, argv: list[str], env: Mapping[str, str] | None = None) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), **(env or {})}
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `end`
        self.process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, env=environment, start_new_session=True
        )
        self._rest = b""

    def tell(self, line: str) -> None:
        """Say a line to it."""
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def hear(self, seconds: float = ANSWER_S) -> dict[str, Any]:
        """Its next answer. Raises AssertionError where it does not come."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + seconds
        while b"\n" not in self._rest:
            left = deadline - time.monotonic()
            assert left > 0 and select.select([self.process.stdout], [], [], left)[0], f"no answer within {seconds:g} s"
            data = os.read(self.process.stdout.fileno(), 65536)
            assert data, f"it has ended: {self.said()[-600:]}"
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        answer = json.loads(line)
        assert isinstance(answer, dict)
        return answer

    def ask(self, line: str, seconds: float = ANSWER_S) -> dict[str, Any]:
        """Say a line and hear the answer."""
        self.tell(line)
        return self.hear(seconds)

    def said(self) -> str:
        """What it has written to stderr."""
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")

    def end(self) -> None:
        """Kill it, and collect it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self.process.wait()
        self.errors.close()


class Counted(Talking):
    """The job, warmed up. `through`: words in front of its Python."""

    def __init__(self, backend: str = "aot_eager", through: tuple[str, ...] = (), env: Mapping[str, str] | None = None) -> None:
        super().__init__([*through, sys.executable, str(PROGRAM), backend], env)
        first = self.hear()
        self.pid: int = first["pid"]
        self.losses = first["losses"]
        self.steps = 0

    def run(self, epochs: int) -> dict[str, Any]:
        """Some epochs."""
        return self.answer_of(self.ask(str(epochs)))

    def answer_of(self, answer: dict[str, Any]) -> dict[str, Any]:
        """The same answer, once its losses are seen to be those of the first epoch. Raises AssertionError."""
        assert answer["losses"] == self.losses and len(self.losses) == 1, "the losses are not those of the first epoch"
        self.steps = answer["steps"]
        return answer

    def is_free(self) -> bool:
        """Whether nothing of the hook is in it any more, by its own account."""
        return not self.run(0)["hooked"]


class Monitor(Talking):
    """A tuimon without a screen, which counts rows. `narrow`: its hook holds few of them back."""

    def __init__(self, *, narrow: bool = False, env: Mapping[str, str] | None = None) -> None:
        super().__init__([sys.executable, "-c", MONITOR.format(root=str(ROOT)), *(["narrow"] if narrow else [])], env)
        self.hear()

    def attach(self, pid: int) -> None:
        """Raises AssertionError where it is refused."""
        answer = self.ask(f"attach {pid}")
        assert answer.get("attached"), answer


@contextlib.contextmanager
def ending(one: Any) -> Iterator[Any]:
    """Whatever has an `end`: ended."""
    try:
        yield one
    finally:
        one.end()


def until(condition: Callable[[], object], what: str, seconds: float = 60.0) -> None:
    """Wait for a condition. Raises AssertionError."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds:g} s"
        time.sleep(0.005)


def counts_wrong(steps: int, told: dict[str, Any]) -> str:
    """What differs between the steps that the job has made and the rows that tuimon has been told of, dropped ones included."""
    if told["samples"] > told["rows"]:  # the last status is told before the last rows
        return f"the hook has sent {told['samples']} rows, {told['rows']} have come"
    wanted = {"forward": 2 * steps, "backward": 2 * steps, "resume": steps, "optimizer": steps}
    if told["dropped"]:
        short = sum(wanted.values()) - sum(told["by_role"].get(role, 0) for role in wanted)
        return "" if 0 <= short <= told["dropped"] else f"{short} rows are missing, {told['dropped']} told as dropped"
    found = {role: told["by_role"].get(role, 0) for role in wanted}
    return "" if found == wanted else f"of {steps} steps: {found}, not {wanted}"
