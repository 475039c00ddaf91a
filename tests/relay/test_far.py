"""The far end over pipes, spoken to byte by byte."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.attach.conftest import needs_tracing
from tests.relay.conftest import ROOT, Traces
from tuimon import __version__
from tuimon.hook import wire
from tuimon.relay.protocol import MARK_VARIABLE, PASSED_ON, RELAY

MARK = "tuimon-0123"


class FarEnd:
    """`tuimon relay` as a process, and our side of the pipes."""

    def __init__(self, program: str, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env={**os.environ, "PYTHONPATH": str(ROOT), MARK_VARIABLE: MARK},
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        self.messages: list[dict[str, Any]] = []
        self.samples = 0
        self._decoder = wire.Decoder()
        self._data = b""
        self._begun = False

    def say(self, **message: Any) -> None:
        """Send a request."""
        self.stdin.write(wire.json_frame(message))

    def hear(self, seconds: float = 0.2) -> bool:
        """Read once, if there is something; False at the end."""
        if not select.select([self.stdout], [], [], seconds)[0]:
            return True
        data = os.read(self.stdout.fileno(), 1 << 16)
        ended = not data
        if not self._begun:
            self._data += data
            before, found, data = self._data.partition(f"{MARK} relay\n".encode())
            if not found:
                return not ended
            assert before.strip() == b""
            self._begun = True
        for kind, body in self._decoder.feed(data):
            if kind == wire.JSON_FRAME:
                self.messages.append(wire.read_json(body.removeprefix(PASSED_ON)))
            else:
                self.samples += 1
        return not ended

    def until(self, wanted: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """The first message that is wanted; fails when it does not come."""
        deadline = time.monotonic() + 60
        seen = 0
        while True:
            for message in self.messages[seen:]:
                seen += 1
                if wanted(message):
                    return message
            assert time.monotonic() < deadline, self.messages
            assert self.hear(), (self.messages, self.process.stderr and self.process.stderr.read())

    def word(self, word: str) -> dict[str, Any]:
        """The first message of the relay with that word."""
        return self.until(lambda message: message.get("relay") == word)

    def rest(self) -> None:
        """Read until it has ended."""
        deadline = time.monotonic() + 60
        while self.hear() and time.monotonic() < deadline:
            pass
        assert self.process.wait(60) is not None


MAIN = "from tuimon.relay.far import main; raise SystemExit(main())"
SOON_LOST = """
from tuimon.relay import far
begin = far.Attachment.begin
def and_then_soon(self): begin(self); far.LOST_S = 0.5
far.Attachment.begin = and_then_soon
"""
"""Attached first, however long that takes; then half a second without a word is too much."""
Begin = Callable[..., FarEnd]


@pytest.fixture
def far() -> Iterator[Begin]:
    """far(program) gives a running far end."""
    running: list[FarEnd] = []

    def begin(program: str = MAIN) -> FarEnd:
        running.append(FarEnd(program))
        return running[-1]

    yield begin
    for one in running:
        one.process.kill()
        one.process.wait()
        for stream in (one.process.stdin, one.process.stdout, one.process.stderr):
            if stream is not None:
                stream.close()


def attached(end: FarEnd, pid: int) -> FarEnd:
    """The far end, attached to a process as session 5, with frames coming."""
    end.say(attach=5, pid=pid, options={}, patience=20.0)
    end.word("attached")
    end.say(start=5)
    end.until(lambda message: message.get("k") == "status")
    return end


def test_hello_and_beats(far: Begin) -> None:
    end = far()
    hello = end.word("hello")
    assert (hello["tuimon"], hello["protocol"], hello["os"]) == (__version__, RELAY, "linux")
    assert abs(hello["t"] - time.monotonic_ns()) < 60e9
    end.say(beat=123, got=0)
    assert end.word("beat")["echo"] == 123
    end.stdin.close()
    end.rest()
    assert end.process.returncode == 0


def test_what_prints_does_not_get_into_the_protocol(far: Begin) -> None:
    noisy = (
        "import os, sys, tuimon.attach.find.process as process\n"
        "def find_targets(**_):\n"
        "    print('print'); os.write(1, b'raw'); os.system('echo child'); sys.stdout.flush()\n"
        "    assert os.read(0, 10) == b''\n"
        "    return []\n"
        "process.find_targets = find_targets\n" + MAIN
    )
    end = far(noisy)
    end.say(list=1, everything=False)
    assert end.word("answer") == {"relay": "answer", "n": 1, "targets": []}
    end.stdin.close()
    end.rest()
    assert end.process.stderr is not None
    said = end.process.stderr.read()
    assert b"print" in said and b"raw" in said and b"child" in said


def test_requests_that_are_wrong(far: Begin) -> None:
    end = far()
    end.say(invented_later=1)
    end.say(detach=77, seconds=1)
    end.say(cancel=78)
    end.say(start=79)
    end.say(attach=1, pid=2**22 + 5, options={}, patience=1)
    refused = end.word("refused")
    assert (refused["s"], refused["code"]) == (1, "dead")
    end.stdin.write(b"this is no frame at all")
    end.rest()
    assert end.process.returncode != 0


@needs_tracing
def test_attach_frames_sources_detach(far: Begin, job: subprocess.Popen[str]) -> None:
    traces = Traces(job.pid)
    end = attached(far(), job.pid)
    host = end.until(lambda message: message.get("type") in ("HostSampled", "NotAvailable"))
    assert host["k"] == "event"
    end.until(lambda message: message.get("type") in ("GpuSampled", "GpuUnavailable"))
    assert any(message.get("relay") == "of" and message["s"] == 5 for message in end.messages)
    end.say(detach=5, seconds=5.0)
    over = end.word("over")
    assert over["goodbye"]["left"] == [] and over["report"]["left"] == [] and not over["gone"]
    traces.gone()
    # and once more over the same line
    end.messages.clear()
    attached(end, job.pid).say(detach=5, seconds=5.0)
    assert end.word("over")["goodbye"] is not None


@needs_tracing
def test_a_job_that_ends_is_told(far: Begin, job: subprocess.Popen[str]) -> None:
    end = attached(far(), job.pid)
    job.kill()
    job.wait()
    assert end.word("over")["gone"] is True
    ended = next(message for message in end.messages if message.get("type") == "TargetEnded")
    assert ended["how"] == "exited"


@needs_tracing
@pytest.mark.parametrize("how", ["eof", "SIGTERM", "SIGHUP", "SIGKILL", "silence", "closed output"])
def test_the_hook_leaves_when_the_far_end_goes(far: Begin, job: subprocess.Popen[str], how: str) -> None:
    traces = Traces(job.pid)
    program = MAIN if how != "silence" else SOON_LOST + MAIN
    end = attached(far(program), job.pid)
    if how == "eof":
        end.stdin.close()
    elif how == "closed output":
        end.stdout.close()
    elif how != "silence":
        end.process.send_signal(getattr(signal, how))
    end.process.wait(60)
    traces.gone()
    assert job.poll() is None
    if how in ("eof", "SIGTERM", "SIGHUP", "silence"):
        assert end.process.returncode == 0
        end.rest()
        assert end.word("over")["goodbye"]["left"] == []
