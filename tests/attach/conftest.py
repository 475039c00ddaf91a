"""Real processes to attach to."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tuimon.attach import preflight, procfs
from tuimon.attach.inject import injector, ptrace, threads
from tuimon.attach.inject.injector import Outcome
from tuimon.attach.refusal import Refused

HERE = Path(__file__).resolve().parent
PLAIN = "target_program.py"
LINGER_S = 20.0
"""On a busy machine a thread may be back late. What never comes back is left all the same."""
SETTLE_S = 10.0
"""And a main thread that sleeps may take long to sleep again, once it has carried our system calls."""
CYCLES = int(os.environ.get("TUIMON_CYCLES", "10"))
"""How often each target is attached to; `make attach-proof` does so ten times as often, to look for what happens seldom."""

DUMMY_SESSION = """
from . import wire


class Session:
    def __init__(self, sock, hello, options):
        self.sock, self.options = sock, options

    def install(self):
        if self.options.get("fail") == "install":
            raise RuntimeError("as asked")
        self.sock.sendall(wire.json_frame({"k": "ack", "options": self.options}))

    def serve(self):
        decoder = wire.Decoder()
        while True:
            data = self.sock.recv(65536)
            if not data:
                return
            for kind, body in decoder.feed(data):
                message = wire.read_json(body)
                if message.get("cmd") == "detach":
                    self.sock.sendall(wire.json_frame({"k": "detached", "detached": True, "left": []}))
                    return
                self.sock.sendall(wire.json_frame({"k": "echo", "got": message}))
"""


def can_trace() -> bool:
    """Whether this machine lets us trace a child of ours."""
    try:
        ptrace.supported()
    except Refused:
        return False
    return True


needs_tracing = pytest.mark.skipif(not can_trace(), reason="attaching is built for Linux on x86_64 and aarch64")


@pytest.fixture
def cycles() -> int:
    """How often to do it."""
    return CYCLES


@pytest.fixture
def dummy() -> dict[str, str]:
    """A bundle with a hook that does nothing but answer."""
    hook = HERE.parents[1] / "tuimon" / "hook"
    return {"session": DUMMY_SESSION, **{name: (hook / f"{name}.py").read_text("utf-8") for name in ("wire", "remains")}}


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait for a condition; fails the test when it does not come true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.002)


def become_nobody() -> None:
    """Give up root for good, in a child."""
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)


def as_nobody(work: Callable[[], str]) -> str:
    """What `work` gives in a child that is an ordinary user."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            become_nobody()
            os.write(writing, work().encode())
        except BaseException as error:  # noqa: BLE001 - the child must not go on as a second test run
            os.write(writing, repr(error).encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as file:
        return file.read()


def refused_by(pid: int) -> str:
    """The code and the sentence of a look."""
    try:
        preflight.look(pid).close()
    except Refused as refused:
        return f"{refused.code}: {refused.sentence}"
    return "allowed"


def anybodys_python() -> str:
    """A Python that another user can run too; skips the test where there is none."""
    for python in (sys.executable, "/usr/bin/python3"):
        try:
            ran = subprocess.run(
                [python, "-c", "import sys; sys.exit(sys.version_info < (3, 10))"], preexec_fn=become_nobody, check=False
            )
        except OSError:
            continue
        if ran.returncode == 0:
            return python
    pytest.skip("no Python here that another user can run")


class Program:
    """A running target_program.py."""

    def __init__(
        self,
        directory: Path,
        mode: str,
        python: str,
        options: Sequence[str],
        environment: dict[str, str],
        program: str = PLAIN,
        arguments: Sequence[str] = (),
    ) -> None:
        file = directory / f"{mode}-{time.monotonic_ns()}"
        file.write_bytes(bytes(4096))
        self.process = subprocess.Popen(
            [python, *options, str(HERE / program), mode, str(file), *arguments],
            stderr=subprocess.PIPE,
            env={**os.environ, **environment},
        )
        self.pid = self.process.pid
        self.said: str | None = None
        with open(file, "r+b") as handle:
            self.counters = memoryview(mmap.mmap(handle.fileno(), 4096)).cast("Q")
        until(lambda: self.counters[0] > 0 or self.process.poll() is not None)
        self.sleeps = program == PLAIN and mode in ("sleeping", "lock")
        if self.sleeps:
            # a call that is queued on its way there stays queued for as long as it sleeps
            until(lambda: threads.asleep_with_main(self.pid) or self.process.poll() is not None)
        assert self.process.poll() is None, self.errors()

    @property
    def rounds(self) -> int:
        """How far it has come."""
        return self.counters[0]

    @property
    def faults(self) -> int:
        """What it found to be wrong."""
        return self.counters[1]

    @property
    def hits(self) -> int:
        """How often `HIT` was run in it."""
        return self.counters[2]

    def inject(self, script: bytes | None = None, seconds: float = 10.0) -> Outcome:
        """Run a script in it, traced by this very process."""
        started = procfs.start_ticks(self.pid)
        with pytest.MonkeyPatch.context() as patch:
            if self.sleeps:
                patch.setattr(injector, "SETTLE_S", SETTLE_S)
            return injector.inject(
                self.pid, started, HIT if script is None else script, seconds, lambda _mechanism: None, linger_s=LINGER_S
            )

    def gets_on(self) -> None:
        """Fails unless it lives and makes progress."""
        before = self.rounds
        until(lambda: self.rounds > before or self.process.poll() is not None)
        assert self.process.poll() is None, self.errors()

    def errors(self) -> str:
        """What it wrote to stderr; ends it."""
        if self.said is None:
            self.process.kill()
            self.said = self.process.communicate()[1].decode(errors="replace")
        return self.said


HIT = b"import __main__\n__main__.counters[2] += 1\n"
Start = Callable[..., Program]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """start(mode, python=.., options=.., environment=.., program=.., arguments=..) gives a running Program."""
    running: list[Program] = []

    def begin(
        mode: str,
        python: str = sys.executable,
        options: Sequence[str] = (),
        environment: dict[str, str] | None = None,
        program: str = PLAIN,
        arguments: Sequence[str] = (),
    ) -> Program:
        begun = Program(tmp_path, mode, python, options, environment or {}, program, arguments)
        running.append(begun)
        return begun

    yield begin
    for program in running:
        program.errors()
