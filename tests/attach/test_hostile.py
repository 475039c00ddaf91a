"""A hostile pair: whoever is at the other end, nothing is executed, nothing hangs, and what belongs together still meets."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.attach.conftest import anybodys_python, become_nobody, needs_tracing, until
from tests.attach.surroundings import Begin, job
from tuimon.attach import channel, places, procfs, session
from tuimon.attach.inject import delivery, helper
from tuimon.attach.inject.remote_exec import ScriptFile
from tuimon.attach.refusal import Refused
from tuimon.attach.session import attach
from tuimon.hook import wire
from tuimon.hook.bundle import bundle

__all__ = ["job"]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: another user")
MOST = 100_000  # kB that a hostile peer may make us hold


def largest() -> int:
    """The most memory that this process has had, in kB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


# ------------------------------------------------------------------- a peer of the right pid that is not our hook

PRELUDE = """
def boot(path, token):
    import hashlib, json, os, socket, struct, sys, time
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    def frame(body, length=None, kind=1):
        return struct.pack("<BI", kind, len(body) if length is None else length) + body
    key = token.encode()
    proof = hashlib.sha256(key + hashlib.sha256(key + b"hello").digest()).hexdigest()
    hello = {{"hello": proof, "proto": {protocol}, "pid": os.getpid(), "py": list(sys.version_info[:3]), "torch": None}}
    def say(**more):
        s.sendall(frame(json.dumps({{**hello, **more}}).encode()))
    try:
        {attack}
        s.settimeout(30)
        while s.recv(65536):
            pass
    except OSError:
        pass
    s.close()
"""

ATTACKS = {
    "nothing": ("pass", "no-hello"),
    "closed at once": ("s.shutdown(2)", "no-hello"),
    "garbage": ("s.sendall(os.urandom(100_000))", "no-hello"),
    "another protocol": ("s.sendall(b'GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')", "no-hello"),
    "a frame of 2 GB": ("s.sendall(struct.pack('<BI', 1, 2_000_000_000) + bytes(1000))", "no-hello"),
    "a frame of 4 GB less one": ("s.sendall(b'\\x01\\xff\\xff\\xff\\xff')", "no-hello"),
    "an endless frame": ("s.sendall(frame(b'', 1 << 20))\n        while True: s.sendall(b' ' * 4096)", "no-hello"),
    "a slow hello": ("[(s.sendall(b'\\x01\\x10\\0\\0\\0{{{{'[n:n+1]), time.sleep(0.3)) for n in range(6)]", "no-hello"),
    "samples for a hello": ("s.sendall(frame(b'', kind=2))", "no-hello"),
    "deep nesting": ("s.sendall(frame(b'[' * 1_000_000))", "no-hello"),
    "deep objects": ("s.sendall(frame(b'{{\"a\":' * 300_000))", "no-hello"),
    "a string of 60 MB": ("s.sendall(frame(b'\"' + b'x' * 60_000_000 + b'\"'))", "no-hello"),
    "a number without end": ("s.sendall(frame(b'{{\"hello\":' + b'9' * 1_000_000 + b'}}'))", "no-hello"),
    "bytes that are no text": ("s.sendall(frame(bytes(range(128, 256))))", "no-hello"),
    "a list": ("s.sendall(frame(b'[]'))", "no-hello"),
    "no token": ("hello.pop('hello'); say()", "peer"),
    "a wrong token": ("say(hello='0' * 64)", "peer"),
    "a token that is no text": ("say(hello=[1, {{}}])", "peer"),
    "the token itself": ("say(hello=token)", "peer"),
    "an older hook": ("say(proto=1)", "protocol"),
    "a newer hook": ("say(proto=99)", "protocol"),
    "a version that is no number": ("say(proto={{'$': 1}})", "protocol"),
    "no version": ("hello.pop('proto'); say()", "protocol"),
    "another pid": ("say(pid=1)", "peer"),
    "an error": ('s.sendall(frame(b\'{{"error": "\\\\u001b[2J bell \\\\u0007"}}\'))', "bootstrap"),
    "more than a hello": ("s.sendall(frame(json.dumps(hello).encode()) + frame(b'{{}}'))", "no-hello"),
    "a frame of 2 GB after the hello": ("say(); s.recv(1 << 22); s.sendall(struct.pack('<BI', 1, 2_000_000_000))", "hook"),
    "deep nesting after the hello": ("say(); s.recv(1 << 22); s.sendall(frame(b'[' * 1_000_000))", "hook"),
    "many parts after the hello": ("say(); s.recv(1 << 22); s.sendall(frame(b'[' + b'0,' * 5_000_000 + b'0]'))", "hook"),
    "an older hook after all": ('say(); s.recv(1 << 22); s.sendall(frame(b\'{{"k": "ack", "proto": 1}}\'))', "protocol"),
    "somebody there, it says": (
        "say(); s.recv(1 << 22)\n"
        "        by = {{'pid': 'x', 'user': '\\x1b[2J', 'since': 1e99}}\n"
        "        s.sendall(frame(json.dumps({{'error': 'already-attached', 'by': by}}).encode()))",
        "already-attached",
    ),
}


@pytest.fixture(scope="module")
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """One target for all of them: it has to survive them all."""
    text = "import time, threading\nprint('up', flush=True)\nwhile True: time.sleep(0.01)\n"
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        yield process
        process.kill()


REAL = ("a wrong token", "an older hook", "another pid", "a string of 60 MB", "deep nesting", "a slow hello")


def attacker(attack: str) -> str:
    """The text that connects and attacks."""
    return PRELUDE.format(protocol=wire.PROTOCOL, attack=attack.replace("{{", "{").replace("}}", "}"))


@pytest.mark.parametrize(("attack", "code"), [ATTACKS[name] for name in ATTACKS if name != "another pid"])
def test_a_peer_that_is_not_our_hook(tmp_path: Path, attack: str, code: str) -> None:
    names: dict[str, Any] = {}
    exec(attacker(attack), names)
    patience = 0.5 if code == "no-hello" else 15.0  # who is refused for what he says has to be heard first
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        listening.listen()
        thread = threading.Thread(target=names["boot"], args=(str(tmp_path / "s"), "secret"))
        thread.start()
        connection, _ = listening.accept()
        with connection, pytest.raises(Refused) as refused:
            channel.receive_hello(connection, "secret", patience)
            channel.send_bundle(connection, {"session": ""}, {}, "secret")
            channel.first_answer(connection, wire.Decoder(), patience)
        thread.join(60)
    assert not thread.is_alive()
    assert refused.value.code == code, refused.value.sentence
    assert refused.value.sentence.isprintable()


@needs_tracing
@pytest.mark.parametrize("name", REAL)
def test_a_target_with_another_hook_in_it(sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    attack, code = ATTACKS[name]
    before = largest()
    with monkeypatch.context() as patched:
        patched.setattr(delivery, "boot_source", lambda: attacker(attack))
        patched.setattr(session, "CONNECT_S", 1.0)
        with pytest.raises(Refused) as refused:
            attach(sleeper.pid, {}, patience=3)
    assert refused.value.code == code, refused.value.sentence
    assert largest() - before < MOST
    until(lambda: len(procfs.thread_ids(sleeper.pid)) == 1)


@needs_tracing
def test_after_all_that_the_true_hook_gets_in(sleeper: subprocess.Popen[bytes]) -> None:
    goodbye = attach(sleeper.pid, {}).detach()
    assert goodbye is not None and goodbye["left"] == []
    assert sleeper.poll() is None


def test_the_versions_are_named() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(wire.json_frame({"hello": "x", "proto": 1}))
        with pytest.raises(Refused) as refused:
            channel.receive_hello(ours, "token", 1)
    sentence = refused.value.sentence
    assert sentence.startswith(f"a hook of protocol version 1 is in process {os.getpid()}, this tuimon ")
    assert f"speaks {wire.PROTOCOL}:" in sentence


# ----------------------------------------------------------------------------- a listener that is not our tuimon

MARK = "executed-by-the-wrong-one"


@pytest.fixture
def boot(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """The bootstrap's names, with little patience."""
    names: dict[str, Any] = {"__name__": "_tuimon_boot"}
    exec(compile(delivery.boot_source(), "<tuimon>", "exec"), names)
    names["GREETING_S"] = 1.5
    yield names
    assert not [name for name in sys.modules if name.startswith("_tuimon_hook")]


def order(token: str, **more: object) -> tuple[bytes, bytes]:
    """The two frames that tuimon sends, for a hook that leaves a mark in this module."""
    sources = {"session": f"import sys\nsys.{MARK.replace('-', '_')} = True\n"}
    body = wire.json_frame({"bundle": sources, "options": {}, "by": {}, **more})
    return wire.json_frame({"proto": wire.PROTOCOL, "proof": wire.proof(token, body[wire.HEADER.size :])}), body


IMPOSTORS: dict[str, Callable[[socket.socket], None]] = {
    "another token": lambda s: next(s.sendall(part) for part in order("guessed")),
    "what the hook has said": lambda s: _echo(s),
    "no proof": lambda s: s.sendall(wire.json_frame({"proto": wire.PROTOCOL}) + order("")[1]),
    "a body that was changed": lambda s: s.sendall(order("secret")[0] + order("secret", more=1)[1]),
    "a body that is cut": lambda s: (s.sendall(order("secret")[0] + order("secret")[1][:-1]), s.shutdown(1))[1],
    "an older tuimon": lambda s: s.sendall(wire.json_frame({"bundle": {"session": "1/0"}, "sha256": "", "options": {}})),
    "another protocol": lambda s: s.sendall(wire.json_frame({"proto": 99, "proof": "x"}) + order("secret")[1]),
    "garbage": lambda s: s.sendall(os.urandom(10_000)),
    "a frame of 2 GB": lambda s: s.sendall(struct.pack("<BI", 1, 2_000_000_000)),
    "a proof of 60 MB": lambda s: s.sendall(struct.pack("<BI", 1, 60_000_000) + bytes(1_000_000)),
    "a body of 60 MB": lambda s: s.sendall(order("secret")[0] + struct.pack("<BI", 1, 60_000_000)),
    "deep nesting": lambda s: s.sendall(wire.HEADER.pack(1, 4000) + b"[" * 4000),
    "nothing": lambda s: None,
    "nothing after the proof": lambda s: s.sendall(order("secret")[0]),
    "the end": lambda s: s.shutdown(socket.SHUT_RDWR),
    "descriptors": lambda s: _descriptors(s),
}


def _echo(connection: socket.socket) -> None:
    said = wire.read_json(connection.recv(65536)[wire.HEADER.size :])["hello"]
    _, body = order("x")
    connection.sendall(wire.json_frame({"proto": wire.PROTOCOL, "proof": said}) + body)


def _descriptors(connection: socket.socket) -> None:
    """Many, with a frame that is no proof: none of them may stay open."""
    socket.send_fds(connection, [wire.json_frame({"proto": wire.PROTOCOL})], [0] * 100)


@pytest.mark.parametrize("attack", IMPOSTORS.values(), ids=IMPOSTORS)
def test_a_listener_that_is_not_our_tuimon(
    boot: dict[str, Any], tmp_path: Path, attack: Callable[[socket.socket], None]
) -> None:
    before, files = largest(), sorted(os.listdir("/proc/self/fd"))
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        listening.listen()
        thread = threading.Thread(target=boot["boot"], args=(str(tmp_path / "s"), "secret"))
        thread.start()
        connection, _ = listening.accept()
        with connection:
            with contextlib.suppress(OSError):
                attack(connection)
            thread.join(60)  # its own bound is 10 s
    assert not thread.is_alive()
    assert not hasattr(sys, MARK.replace("-", "_")), "it was executed"
    assert largest() - before < MOST
    assert {*os.listdir("/proc/self/fd")} <= {*files}  # fewer: what another test had left to be closed


def test_the_true_one_is_executed(boot: dict[str, Any], tmp_path: Path) -> None:
    """Otherwise the test above would show nothing."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        listening.listen()
        thread = threading.Thread(target=boot["boot"], args=(str(tmp_path / "s"), "secret"))
        thread.start()
        connection, _ = listening.accept()
        with connection:
            for part in order("secret"):
                connection.sendall(part)
            thread.join(20)
    assert getattr(sys, MARK.replace("-", "_"))
    delattr(sys, MARK.replace("-", "_"))


@needs_root
def test_a_listener_of_another_user_is_not_spoken_to(boot: dict[str, Any]) -> None:
    """It would be told the command line otherwise."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory, socket.socket(socket.AF_UNIX) as listening:
        os.chmod(directory, 0o777)
        listening.bind(f"{directory}/s")
        os.chmod(f"{directory}/s", 0o666)
        os.seteuid(1)  # the kernel notes who listens
        try:
            listening.listen()
        finally:
            os.seteuid(0)
        boot["boot"](f"{directory}/s", "secret")
        connection, _ = listening.accept()
        with connection:
            assert connection.recv(100) == b""
        assert os.path.exists(f"{directory}/s")  # not ours to take away


# --------------------------------------------------------------------------------------------------- races for the socket

WATCH = """
import os, socket, sys
directory, what = sys.argv[1:]
print("watching", flush=True)
done = 0
while True:
    for name in os.listdir(directory):
        if not name.startswith(".tuimon-"):
            continue
        path = directory + "/" + name
        try:
            if what == "connect":
                s = socket.socket(socket.AF_UNIX)
                s.settimeout(1)
                s.connect(path + "/s")
                s.sendall(b"\\x01\\x02\\0\\0\\0{}" * 100)
                print("connected", flush=True)
            else:
                s = socket.socket(socket.AF_UNIX)
                os.mkdir(path + ".mine")
                s.bind(path + ".mine/s")
                os.chmod(path + ".mine/s", 0o666)
                os.chmod(path + ".mine", 0o777)
                s.listen(8)
                os.rename(path, path + ".theirs")
                os.rename(path + ".mine", path)
                print("replaced", flush=True)
                while True:
                    c = s.accept()[0]
                    print("came", c.recv(65536)[5:15], flush=True)
                    c.close()
        except OSError as error:
            if done < 1:
                print("failed", error.errno, flush=True)
            done += 1
"""


class Watcher:
    """A process that lies in wait in a directory."""

    def __init__(self, directory: Path, what: str, as_nobody: bool) -> None:
        self.process = subprocess.Popen(
            [anybodys_python(), "-c", WATCH, str(directory), what],
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=become_nobody if as_nobody else None,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "watching\n"

    def said(self) -> list[str]:
        """End it; what it has done."""
        self.process.kill()
        return self.process.communicate()[0].splitlines()


@pytest.fixture
def shared() -> Iterator[Path]:
    """A directory that everybody may write to."""
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="tuimon-test-") as directory:
        os.chmod(directory, 0o1777)
        yield Path(directory)


def slow_to_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give whoever lies in wait more time than he ever has."""
    text = delivery.boot_source()
    late = text.replace(
        "        connection = connect(path)\n        if",
        "        __import__('time').sleep(0.3); connection = connect(path)\n        if",
    )
    assert late != text
    monkeypatch.setattr(delivery, "boot_source", lambda: late)


@needs_root
@needs_tracing
@pytest.mark.parametrize("as_nobody", [True, False], ids=["another user", "the same user"])
def test_who_connects_first_is_let_go(job: Begin, shared: Path, monkeypatch: pytest.MonkeyPatch, as_nobody: bool) -> None:
    slow_to_connect(monkeypatch)
    target = job(env={**os.environ, "TMPDIR": str(shared)})
    watcher = Watcher(shared, "connect", as_nobody)
    try:
        goodbye = attach(target.pid, {}).detach()
        assert goodbye is not None and goodbye["left"] == []
    finally:
        said = watcher.said()
    if as_nobody:
        assert "failed 13" in said and "connected" not in said  # EACCES: the socket is the target's alone
    else:
        assert "connected" in said
    assert not os.listdir(shared)


@needs_root
@needs_tracing
def test_who_puts_his_own_socket_in_our_place_gets_nothing_and_runs_nothing(
    job: Begin, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chmod(shared, 0o777)  # no sticky bit: everybody may rename everything
    slow_to_connect(monkeypatch)
    target = job(env={**os.environ, "TMPDIR": str(shared)})
    watcher = Watcher(shared, "replace", True)
    try:
        # such a directory is the last choice
        goodbye = attach(target.pid, {}).detach()
        assert goodbye is not None
        with monkeypatch.context() as patched:
            patched.setattr(places, "others_may_rename", lambda directory, trusted: False)
            patched.setattr(session, "CONNECT_S", 1.0)
            with pytest.raises(Refused) as refused:
                attach(target.pid, {}, patience=3)
            assert refused.value.code == "no-hello"
    finally:
        said = watcher.said()
    assert "replaced" in said
    target.gets_on()
    until(lambda: len(procfs.thread_ids(target.pid)) == 1)
    assert attach(target.pid, {}).detach() is not None


# ------------------------------------------------------------------------------------------------- the socket's place


@needs_tracing
@pytest.mark.parametrize("place", ["link", "long", "file", "missing", "read-only", "relative", "dotdot"])
def test_places_that_will_not_do(job: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    real = tmp_path / "real"
    real.mkdir()
    where = {
        "link": tmp_path / "link",
        "long": tmp_path / ("x" * 100),
        "file": tmp_path / "file",
        "missing": tmp_path / "missing",
        "read-only": real,
        "relative": Path("real"),
        "dotdot": Path(f"{real}/../real"),
    }[place]
    if place == "link":
        where.symlink_to(real)
    elif place == "long":
        where.mkdir()
    elif place == "file":
        where.touch()
    elif place == "read-only":
        monkeypatch.setattr(
            places, "open_inside", lambda pid, path, take=places.open_inside: _unless(path != str(real), take, pid, path)
        )
    target = job(env={**os.environ, "TMPDIR": str(where)})
    with channel.Channel(target.pid) as way:
        assert [place.path for place in way.places][:1] == ["/tmp"]
    if place == "link":
        goodbye = attach(target.pid, {}).detach()
        assert goodbye is not None and goodbye["left"] == []
        assert not list(real.iterdir())


def _unless(well: bool, take: Callable[[int, str], int], pid: int, path: str) -> int:
    if not well:
        raise PermissionError(13, "as asked")
    return take(pid, path)


@needs_tracing
def test_no_place_at_all(job: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "places", lambda pid, name: [])
    target = job()
    with pytest.raises(Refused) as refused:
        attach(target.pid, {})
    assert refused.value.code == "no-socket-dir" and "TMPDIR" in refused.value.sentence
    target.gets_on()


def test_safe_places_first(tmp_path: Path) -> None:
    def judged(mode: int) -> bool:
        tmp_path.chmod(mode)
        handle = os.open(tmp_path, os.O_RDONLY)
        try:
            return places.others_may_rename(handle, {0, os.geteuid()})
        finally:
            os.close(handle)

    assert [judged(mode) for mode in (0o700, 0o755, 0o1777, 0o777, 0o775)] == [False, False, False, True, True]
    tmp_path.chmod(0o700)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


def test_a_place_is_judged_by_all_that_leads_there(tmp_path: Path) -> None:
    pid, owner = os.getpid(), os.geteuid()
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True, mode=0o700)
    judged = []
    for mode in (0o755, 0o777, 0o1777):
        (tmp_path / "a").chmod(mode)
        judged.append(places.is_exposed(pid, str(inner), owner))
    assert judged == [False, True, False]


@pytest.mark.parametrize("exposed", [False, True])
def test_nothing_is_executed_that_another_user_could_replace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exposed: bool
) -> None:
    """The script that CPython 3.14 is asked to run lies in a folder of ours, and nowhere if that could be another's."""
    made: list[ScriptFile] = []

    class Climb:
        def __init__(self, *given: Any) -> None:
            self.script_file = given[3]

        def run(self) -> None:
            made.append(self.script_file())
            assert os.listdir(tmp_path) == [".tuimon-x"]
            assert os.listdir(tmp_path / ".tuimon-x") == ["s.py"]
            assert stat.S_IMODE(os.stat(tmp_path / ".tuimon-x").st_mode) == 0o700
            made[0].remove()

    monkeypatch.setattr(helper, "Climb", Climb)
    directory = os.open(tmp_path, os.O_RDONLY)
    os.close(places.make_folder(directory, ".tuimon-x"))
    request = {"places": [(directory, str(tmp_path))], "exposed": [exposed], "name": ".tuimon-x", "boot": "", "token": "",
               "code": None, "kind": "", "pid": os.getpid(), "started": 0, "patience": None, "form": None,
               "uid": os.geteuid(), "gid": os.getegid()}  # fmt: skip
    reading, writing = os.pipe()
    try:
        if exposed:
            with pytest.raises(OSError, match="another user could replace it"):
                helper.get_in(request, 0, lambda message: None, helper.Control(reading))
        else:
            helper.get_in(request, 0, lambda message: None, helper.Control(reading))
            assert made
        assert not os.listdir(tmp_path)
    finally:
        for handle in (directory, reading, writing):
            os.close(handle)


def test_what_a_killed_tuimon_left_is_taken_away_by_the_next(tmp_path: Path) -> None:
    def left(name: str, age: float, listened_at: bool = False) -> socket.socket:
        made = socket.socket(socket.AF_UNIX)
        made.bind(str(tmp_path / name))
        if listened_at:
            made.listen()
        os.utime(tmp_path / name, (time.time() - age,) * 2)
        return made

    made = [
        left(".tuimon-00112233445566aa", 100),
        left(".tuimon-00112233445566bb", 100, True),
        left(".tuimon-00112233445566cc", 1),
        left("another", 100),
    ]
    (tmp_path / ".tuimon-00112233445566dd").touch()
    os.utime(tmp_path / ".tuimon-00112233445566dd", (0, 0))
    (tmp_path / ".tuimon-00112233445566ee").symlink_to(tmp_path / "another")
    for name in ("ff", "fe", "fd", "fc"):  # folders: empty, of a dead one, of one that lives, of a profiler window
        (tmp_path / f".tuimon-00112233445566{name}").mkdir()
    made.append(left(".tuimon-00112233445566fe/s", 100))
    made.append(left(".tuimon-00112233445566fd/s", 100, True))
    (tmp_path / ".tuimon-00112233445566fc" / "tuimon-window-1-1.json").touch()
    for name in ("ff", "fe", "fd", "fc"):
        os.utime(tmp_path / f".tuimon-00112233445566{name}", (time.time() - 100,) * 2)
    directory = os.open(tmp_path, os.O_RDONLY)
    places.tidy(directory)
    os.close(directory)
    for one in made:
        one.close()
    assert sorted(name[-2:] for name in os.listdir(tmp_path)) == ["bb", "cc", "dd", "ee", "er", "fc", "fd"]


# -------------------------------------------------------------------------------------------------- while it streams


@needs_tracing
@pytest.mark.parametrize(
    "said",
    [struct.pack("<BI", 1, 2_000_000_000), wire.HEADER.pack(1, 300_000) + b"[" * 300_000],
    ids=["2 GB", "deep nesting"],
)
def test_a_hook_that_goes_mad_is_taken_out(job: Begin, said: bytes) -> None:
    sources = bundle()
    sources["session"] += (
        "\n_serve = Session._serve\n"
        "def _mad(self):\n"
        "    self._sock._sock.settimeout(20)\n"
        "    self._sock._sock.recv(65536)\n"
        f"    self._sock._sock.sendall({said!r})\n"
        "    self._sock._sock.settimeout(0)\n"
        "    _serve(self)\n"
        "Session._serve = _mad\n"
    )
    target = job()
    watching = attach(target.pid, {}, sources=sources)
    ended: list[str] = []

    def sink(kind: int, body: bytes) -> None:
        if kind == wire.JSON_FRAME:
            wire.read_json(body)

    watching.start(sink, ended.append)
    watching.send({"cmd": "go mad"})
    until(lambda: ended)
    assert "not in the protocol" in ended[0]
    until(lambda: len(procfs.thread_ids(target.pid)) == 1)
    watching.close()
    target.gets_on()
    assert attach(target.pid, {}).detach() is not None


def test_what_a_peer_says_is_shown_without_control_characters() -> None:
    by = {"pid": 7, "user": "\x1b[31mroot\n", "host": "a\u202eb", "since": "x"}
    sentence = channel.already_attached(json.loads(json.dumps(by)), 4711)
    assert sentence.isprintable() and "process 7 of user" in sentence and "4711" in sentence
    assert channel.already_attached(None, 4711).startswith("another tuimon is attached to process 4711")
