"""A real sshd on the loopback interface: list, attach, watch, detach, a cut connection, a host without tuimon."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attach.conftest import needs_tracing, until
from tests.relay.conftest import ROOT, Talk, Traces, below, command_of, plain_python
from tests.relay.test_near import Watcher
from tests.support.command import tuimon
from tuimon.attach.refusal import Refused
from tuimon.relay import near, place

SSHD = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")

pytestmark = [
    pytest.mark.live,
    needs_tracing,
    pytest.mark.skipif(SSHD is None or shutil.which("ssh") is None, reason="no sshd here (apt install openssh-server)"),
]

TRAIN = """
import hashlib, json, os, struct, sys, time, torch
torch.manual_seed(0)
torch.set_num_threads(1)
net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 1))
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
compiled = torch.compile(lambda x: net(x).pow(2).mean(), backend="aot_eager")
source = torch.Generator().manual_seed(1)
losses, steps, last, told = hashlib.sha256(), 0, -1, os.pipe()
if child := os.fork():  # this one waits, and then takes as many steps as the other has, with nobody attached
    print(child, flush=True)
    os.waitpid(child, 0)
    last = json.loads(os.read(told[0], 1 << 16))["steps"]
while steps != last and not (last < 0 and steps % 10 == 0 and os.path.exists(sys.argv[1])):
    optimizer.zero_grad()
    loss = compiled(torch.randn(8, 16, generator=source))
    loss.backward()
    optimizer.step()
    losses.update(struct.pack("<f", loss.item()))
    steps += 1
    if not child:
        time.sleep(0.02)  # few, for the parent to take as many
        if steps == 5:
            print("ready", flush=True)
from torch._dynamo.utils import counters
counted = {name: dict(counters[name]) for name in ("frames", "stats", "graph_break")}
facts = json.dumps({"steps": steps, "losses": losses.hexdigest(), **counted})
print(facts, flush=True)
if not child:
    os.write(told[1], facts.encode())
    os._exit(0)
"""
"""Forks: the child trains until a file appears, and then the parent as far. One start of torch serves both."""


class Training:
    """The program above, running."""

    def __init__(self, stop: Path) -> None:
        self._stop = stop
        self.process = subprocess.Popen(
            [sys.executable, "-c", TRAIN, str(stop)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        assert self.process.stdout is not None
        self._stdout = self.process.stdout
        self.pid = int(self._stdout.readline())
        """Of the one to attach to."""
        assert self._stdout.readline() == "ready\n"

    def is_as_if_never_touched(self) -> None:
        """Ends it; fails unless it gives what a run of as many steps alone gives."""
        self._stop.touch()
        watched, alone = json.loads(self._stdout.readline()), json.loads(self._stdout.readline())
        assert self.process.wait(60) == 0
        assert watched == alone and watched["steps"] > 0

    def kill(self) -> None:
        """End both."""
        self.process.kill()
        with contextlib.suppress(ProcessLookupError):
            if self.process.returncode is None:
                os.kill(self.pid, signal.SIGKILL)
        self.process.communicate()


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Training]:
    """A training run that all tests here attach to; the last one looks whether it has noticed."""
    running = Training(tmp_path_factory.mktemp("training") / "stop")
    yield running
    running.kill()


class Sshd:
    """A running sshd with one key that leads to this checkout's tuimon, one to a Python without it, and one to nothing."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        with socket.socket() as finding:
            finding.bind(("127.0.0.1", 0))
            self.port = finding.getsockname()[1]
        path = f"{os.path.dirname(sys.executable)}:/usr/bin:/bin"
        keys = [
            f'command="PATH={path} PYTHONPATH={ROOT} exec $SSH_ORIGINAL_COMMAND" {self._key("with")}',
            f'command="PATH={plain_python()}:/usr/bin:/bin PYTHONPATH= exec $SSH_ORIGINAL_COMMAND" {self._key("without")}',
        ]
        self._key("unknown")
        self._key("host")
        (directory / "authorized_keys").write_text("".join(keys))
        config = directory / "sshd_config"
        config.write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {directory}/host\nPidFile none\nUsePAM no\nStrictModes no\n"
            f"AuthorizedKeysFile {directory}/authorized_keys\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
        )
        assert SSHD is not None
        if os.geteuid() == 0:
            with contextlib.suppress(OSError):
                os.makedirs("/run/sshd", 0o755, exist_ok=True)  # which its package makes when the service starts
        # sshd wants to be called by its full path: it starts itself anew for each connection
        self.process = subprocess.Popen([SSHD, "-D", "-f", str(config), "-E", str(directory / "log")])
        until(lambda: self._listens() or self.process.poll() is not None)
        if self.process.poll() is not None:
            pytest.skip(f"sshd does not run here: {(directory / 'log').read_text()}")

    def command(self, key: str) -> str:
        """An ssh command that uses one of the keys, and nothing of the user's own."""
        config = self.directory / f"ssh_config_{key}"
        config.write_text(
            f"Host *\n  IdentityFile {self.directory}/{key}\n  IdentitiesOnly yes\n  IdentityAgent none\n  BatchMode yes\n"
            "  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n"
        )
        return f"ssh -F {config}"

    def address(self, pid: int | None = None) -> str:
        """The address of this machine as another host, or of a process on it."""
        return f"ssh://127.0.0.1:{self.port}" + (f"/{pid}" if pid is not None else "")

    def connections(self) -> list[int]:
        """The sshd processes of the connections."""
        return [pid for pid in below(self.process.pid) if b"sshd" in command_of(pid)]

    def _key(self, name: str) -> str:
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.directory / name)]
        subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
        return (self.directory / f"{name}.pub").read_text()

    def _listens(self) -> bool:
        with socket.socket() as trying:
            return trying.connect_ex(("127.0.0.1", self.port)) == 0


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """An sshd of our own."""
    running = Sshd(tmp_path_factory.mktemp("sshd"))
    yield running
    running.process.terminate()
    running.process.wait()


@pytest.fixture
def there(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> Sshd:
    """The same, with ssh set up for the key that leads to a tuimon."""
    monkeypatch.setenv(place.SSH_VARIABLE, sshd.command("with"))
    return sshd


def test_a_training_run_is_watched_let_go_and_cut_off(there: Sshd, training: Training) -> None:
    traces = Traces(training.pid)
    talk = Talk()
    where, pid = place.parse(there.address(training.pid))
    assert pid == training.pid
    with near.connect(where, talk) as link:
        target = next(target for target in link.find_targets() if target.pid == pid)
        assert target.has_torch and target.attachable and target.kind == "job"
        assert [target.pid for target in link.choose([pid], False)] == [pid]
        session = link.open_session(pid, {}, talk)
        watcher = Watcher(session)
        until(lambda: {"Samples", "CompileFinished", "HookStatus", "HostSampled"} <= watcher.kinds)
        goodbye = session.detach()
        assert goodbye is not None and goodbye["left"] == [] and session.report.left == []
        traces.gone()

        session = link.open_session(pid, {}, talk)
        watcher = Watcher(session)
        until(lambda: "Samples" in watcher.kinds)
        for connection in there.connections():
            with contextlib.suppress(ProcessLookupError):
                os.kill(connection, signal.SIGKILL)
        until(lambda: watcher.ends)
        assert watcher.ends[0].startswith("connection to 127.0.0.1 lost") and session.gone is None
        traces.gone()
    # and again, at once
    session = near.open_session(where, pid, {})
    assert session.detach() is not None
    traces.gone()
    until(lambda: not there.connections())


def test_a_host_without_tuimon(sshd: Sshd, training: Training, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(place.SSH_VARIABLE, sshd.command("without"))
    talk = Talk()
    where, _ = place.parse(sshd.address())
    with pytest.raises(Refused) as caught:
        near.connect(where, talk)
    assert caught.value.code == "no-tuimon" and "--send" in caught.value.sentence
    traces = Traces(training.pid)
    with near.connect(where, talk, send=lambda _question: True) as link:
        session = link.open_session(training.pid, {}, talk)
        watcher = Watcher(session)
        until(lambda: {"Samples", "GpuUnavailable"} <= watcher.kinds)
        goodbye = session.detach()
        assert goodbye is not None and goodbye["left"] == [] and session.report.left == []
    traces.gone()


def test_why_ssh_does_not_get_there(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(place.SSH_VARIABLE, sshd.command("unknown"))
    with pytest.raises(Refused, match=r"ssh says: .*Permission denied \(publickey\)") as caught:
        near.connect(place.parse(sshd.address())[0])
    assert caught.value.code == "connect"
    with pytest.raises(Refused, match=r"ssh says: .*Connection refused"):
        near.connect(place.parse("ssh://127.0.0.1:1/1")[0])


def test_the_users_own_ssh_command(sshd: Sshd) -> None:
    with near.connect(place.via(f"{sshd.command('with')} -p {sshd.port} 127.0.0.1")) as link:
        assert os.getpid() in [target.pid for target in link.find_targets(everything=True)]


def test_the_commands(there: Sshd, training: Training) -> None:
    listed = tuimon("list", there.address(), "--format", "json")
    assert listed.status == 0, listed.err
    assert training.pid in [target["pid"] for target in json.loads(listed.out)["targets"]]
    watched = tuimon("attach", there.address(training.pid), "--format", "json", "--steps", "20")
    assert watched.status == 0, watched.err
    assert watched.report["target"]["pid"] == training.pid and watched.report["steps"]["n"] >= 20
    assert watched.report["host"] is not None
    assert training.process.poll() is None


def test_the_job_has_not_noticed_any_of_it(training: Training) -> None:
    training.is_as_if_never_touched()
