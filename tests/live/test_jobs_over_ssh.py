"""What people come for, by keys alone, as they do it: tmux, in it ssh to a real sshd, there tuimon on a real job.

At most six keys each, from the screen that one is met by.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attach.conftest import needs_tracing
from tests.live.test_ssh import SSHD, Sshd
from tests.relay.conftest import ROOT, Traces
from tests.support.tmux import TMUX, Tmux

pytestmark = [
    pytest.mark.live,
    needs_tracing,
    pytest.mark.skipif(SSHD is None or shutil.which("ssh") is None, reason="no sshd here (apt install openssh-server)"),
    pytest.mark.skipif(TMUX is None, reason="no tmux here (apt install tmux)"),
]

MOST_KEYS = 6

TRAIN = """
import logging, time, torch
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
log = logging.getLogger("train")


class Slow(logging.Handler):
    def emit(self, record):
        time.sleep(0.004)  # as to a file on a busy server


class Rows(Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, at):
        time.sleep(0.3 if at % 60 == 59 else 0.002)  # in each 15th batch of four
        return torch.ones(16) * (at % 7)


net = torch.nn.Linear(16, 16)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
log.addHandler(Slow())
log.propagate = False
log.setLevel(logging.INFO)


@torch.compile(backend="aot_eager")
def loss_of(x):
    y = net(x).relu()
    log.info("batch of %d", len(x))
    y = y * 0.5
    torch._dynamo.graph_break()
    return y.pow(2).mean()


for x in DataLoader(Rows(), batch_size=4):
    optimizer.zero_grad()
    loss_of(x).backward()
    optimizer.step()
"""
LOGGED = TRAIN[: TRAIN.index("    log.info(")].count("\n") + 1
"""The line of the costly break."""


class Shell(Sshd):
    """An sshd that lets one in, on a terminal."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        with open(directory / "authorized_keys", "a", encoding="utf-8") as keys:
            keys.write(self._key("shell"))

    def runs(self, *words: str) -> str:
        """A command for a terminal here that runs tuimon over there."""
        path = f"{os.path.dirname(sys.executable)}:/usr/bin:/bin"
        there = f"PATH={path} PYTHONPATH={ROOT} LC_ALL=C.UTF-8 OMP_NUM_THREADS=1 {sys.executable} -m tuimon {shlex.join(words)}"
        return f"{self.command('shell')} -tt -p {self.port} 127.0.0.1 {shlex.quote(there)}"


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """An sshd of our own."""
    running = Shell(tmp_path_factory.mktemp("sshd"))
    yield running
    running.process.terminate()
    running.process.wait()


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The job's program."""
    file = tmp_path_factory.mktemp("job") / "train.py"
    file.write_text(TRAIN)
    return file


@pytest.fixture(scope="module")
def job(program: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The job, running."""
    process = subprocess.Popen([sys.executable, str(program)], env={**os.environ, "OMP_NUM_THREADS": "1"})
    yield process
    process.kill()
    process.wait()


@contextlib.contextmanager
def at(command: str) -> Iterator[Tmux]:
    """A person in front of this."""
    tmux = Tmux(command)
    try:
        yield tmux
    finally:
        tmux.close()


def below(text: str) -> list[str]:
    """The panels: what is frozen, while the lines above count on and a word to the person goes away."""
    return text.split("\n")[2:23]


def test_the_costliest_boundary_and_the_last_slow_step(shell: Shell, job: subprocess.Popen[bytes], program: Path) -> None:
    with at(shell.runs("attach", str(job.pid))) as on:
        on.shows(f"train.py:{LOGGED}", "q quit")
        traces = Traces(job.pid)
        # the costliest boundary, and its line: it is seen with no key at all; in full it is behind three
        began = on.keys
        on.press("2")
        on.wait(lambda text: f"train.py:{LOGGED}" in text and "recompiles" not in text)
        on.press("Enter")
        on.shows("boundary", "share of its time")
        on.wait(lambda text: f"{program}:{LOGGED}" in "".join(text.split()))
        on.press("Enter")
        on.shows('log.info("batch of %d", len(x))', "y.pow(2).mean()")  # its source, with what is around it
        on.wait(lambda text: f"{program}:{LOGGED}" in "".join(text.split()))
        assert on.keys - began <= MOST_KEYS
        for there in ("share of its time", "q quit", "recompiles"):
            on.press("Escape")
            on.shows(there)

        # what has come together change by change is what is painted when all is painted anew
        on.press("Space")
        on.shows("FROZEN")
        on.press("Down")
        on.wait(lambda text: re.search(r"^▸ +\d", text, re.MULTILINE) is not None)  # a row is selected
        seen = below(on.still())
        on.resize(100, 30)
        on.wait(lambda text: len(text.split("\n")[2]) > 80)
        on.resize(80, 24)
        on.wait(lambda text: below(text) == seen)
        on.press("Space")
        on.wait(lambda text: "FROZEN" not in text)

        # the cause of the last slow step
        on.shows("data wait")  # the sign of one that was seen
        began = on.keys
        on.press("n", "Enter")
        on.shows("its account beside the usual one", "data wait", "of the", "train.py:")
        assert on.keys - began <= MOST_KEYS
        on.press("Escape")
        on.shows("q quit", "recompiles")  # an escape with a q right behind it is alt+q to a terminal
        on.press("q")
        on.wait(lambda _: on.ended)
        assert "detached" in on.text
    traces.gone()
    assert job.poll() is None


def test_the_two_settings_of_the_lab(shell: Shell) -> None:
    with at(shell.runs("lab")) as on:
        on.shows("q ")
        on.press("1", "6", "4", "0", "Enter")
        on.shows("640 GFLOP/s", "RIGHT")
        assert on.keys <= MOST_KEYS
        began = on.keys
        on.press("2", "1", "T", "Enter")
        on.shows("1,000 GFLOP/s", "2 of 2 right")
        assert on.keys - began <= MOST_KEYS
