"""The whole way: helper, socket, bootstrap, bundle, detach."""

from __future__ import annotations

import errno
import os
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from tuimon.attach import channel, places, preflight, procfs, session, tracer
from tuimon.attach.inject import delivery, remote_exec
from tuimon.attach.refusal import Refused
from tuimon.attach.session import attach
from tuimon.hook import wire

from .conftest import Start, anybodys_python, become_nobody, needs_tracing, until

pytestmark = needs_tracing

SNAPSHOT = b"""
def look():
    import __main__, gc, json, os, signal, socket, sys, threading
    def kind_of(name):
        try:
            return os.readlink("/proc/self/fd/" + name).split(":")[0]
        except OSError:
            return None  # closed meanwhile
    facts = dict(
        threads=sorted(thread.name for thread in threading.enumerate()),
        files=sorted(filter(None, map(kind_of, os.listdir("/proc/self/fd")))),
        modules=sorted(sys.modules), path=sys.path, main=sorted(vars(__main__)), finders=len(sys.meta_path),
        hooks=[sys.gettrace() is None, sys.getprofile() is None, sys.excepthook is sys.__excepthook__],
        signals=[str(signal.getsignal(number)) for number in (2, 10, 12, 15)], callbacks=len(gc.callbacks),
    )
    with open(OUT + ".new", "w") as file:
        json.dump(facts, file)
    os.rename(OUT + ".new", OUT)
look()
"""


def snapshot(program, directory: Path) -> dict[str, object]:
    """What the program looks like from inside."""
    import json

    out = directory / f"snapshot-{len(list(directory.iterdir()))}"
    program.inject(SNAPSHOT.replace(b"OUT", repr(str(out)).encode()))
    until(out.exists)
    # the injected thread itself is seen by threading only as long as it lives
    facts = json.loads(out.read_text())
    assert isinstance(facts, dict)
    return facts


@pytest.mark.parametrize("mode", ["busy", "sleeping", "idle_threads", "forking"])
def test_attach_and_detach_leave_nothing(start: Start, cycles: int, mode: str, dummy: dict[str, str], tmp_path: Path) -> None:
    program = start(mode)
    session = attach(program.pid, {}, sources=dummy)  # imports what the bootstrap needs
    session.detach()
    snapshot(program, tmp_path)
    before = snapshot(program, tmp_path)
    ours = len(os.listdir("/proc/self/fd"))
    for _ in range(cycles):
        session = attach(program.pid, {"n": 1}, sources=dummy)
        goodbye = session.detach()
        assert goodbye is not None and goodbye["left"] == []
        until(lambda session=session: session.report.left == [])  # told once more where a busy target came by late
    # the bootstrap's thread ends a moment after its goodbye
    until(lambda: len(procfs.thread_ids(program.pid)) <= (5 if mode == "idle_threads" else 1))
    after = snapshot(program, tmp_path)
    if mode == "forking":  # what it has open depends on the moment
        before.pop("files"), after.pop("files")
    assert after == before
    until(lambda: len(os.listdir("/proc/self/fd")) <= ours)
    assert program.faults == 0


def test_hello_says_who_it_is(start: Start, dummy: dict[str, str]) -> None:
    program = start("busy")
    told: list[str] = []
    session = attach(program.pid, {}, sources=dummy, progress=told.append)
    assert session.hello["pid"] == program.pid == session.pid
    assert session.hello["py"] == list(sys.version_info[:3])
    assert session.hello["torch"] is None
    assert session.hello["cwd"] == os.getcwd()
    assert "busy" in session.hello["argv"]
    assert session.how == "injected"
    assert session.mechanism == "pending"
    assert told
    session.detach()


def test_frames_come_in_order_and_commands_go_out(start: Start, dummy: dict[str, str]) -> None:
    session = attach(start("busy").pid, {"colour": "blue"}, sources=dummy)
    got: list[dict[str, object]] = []
    ended: list[str] = []
    session.start(lambda kind, body: got.append(wire.read_json(body)), ended.append)
    for number in range(50):
        assert session.send({"n": number})
    until(lambda: len(got) == 51)
    assert got[0] == {"k": "ack", "options": {"colour": "blue"}}
    assert [message["got"] for message in got[1:]] == [{"n": number} for number in range(50)]
    assert not session.over
    session.detach()
    assert session.over
    assert ended == ["detached"]
    assert not session.send({"n": 0})


def test_second_tuimon_is_refused_and_the_first_stays(start: Start, dummy: dict[str, str]) -> None:
    program = start("busy")
    first = attach(program.pid, {}, sources=dummy)
    with pytest.raises(Refused) as refused:
        attach(program.pid, {}, sources=dummy)
    assert refused.value.code == "already-attached"
    assert first.send({"still": "there"})
    assert first.detach() is not None
    third = attach(program.pid, {}, sources=dummy)
    assert third.detach() is not None


def test_two_at_the_same_moment(start: Start, dummy: dict[str, str]) -> None:
    program = start("busy")
    outcomes: list[str] = []

    def one() -> None:
        try:
            session = attach(program.pid, {}, sources=dummy)
        except Refused as refused:
            outcomes.append(refused.code)
        else:
            until(lambda: len(outcomes) >= 2)
            outcomes.append("attached")
            session.detach()

    threads = [threading.Thread(target=one) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["already-attached", "already-attached", "attached"]
    program.gets_on()


def test_tuimon_that_goes_away_takes_the_hook_with_it(start: Start, dummy: dict[str, str]) -> None:
    program = start("busy")
    session = attach(program.pid, {}, sources=dummy)
    session._connection.shutdown(socket.SHUT_RDWR)  # as the kernel does for a process that is killed
    until(lambda: len(procfs.thread_ids(program.pid)) == 1)
    session.close()
    assert attach(program.pid, {}, sources=dummy).detach() is not None


def test_target_that_ends_is_an_end_not_an_error(start: Start, dummy: dict[str, str]) -> None:
    program = start("busy")
    session = attach(program.pid, {}, sources=dummy)
    ended: list[str] = []
    session.start(lambda kind, body: None, ended.append)
    program.process.kill()
    until(lambda: ended)
    assert session.detach() is None


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"session": "this is no Python"}, "hook"),
        ({"session": "raise RuntimeError('as asked')"}, "hook"),
        ({"session": "class Session: pass"}, "hook"),
    ],
)
def test_hook_that_does_not_load_is_reported_and_leaves_nothing(
    start: Start, dummy: dict[str, str], change: dict[str, str], code: str
) -> None:
    program = start("busy")
    with pytest.raises(Refused) as refused:
        attach(program.pid, {}, sources={**dummy, **change})
    assert refused.value.code == code
    session = attach(program.pid, {}, sources=dummy)
    assert session.detach() is not None
    program.gets_on()
    assert program.errors() == ""


def test_hook_that_fails_to_install_is_taken_out(start: Start, dummy: dict[str, str]) -> None:
    program = start("busy")
    with pytest.raises(Refused) as refused:
        attach(program.pid, {"fail": "install"}, sources=dummy)
    assert "as asked" in refused.value.sentence
    assert attach(program.pid, {}, sources=dummy).detach() is not None


def children() -> set[int]:
    """The processes that this one has started and not collected."""
    return {int(pid) for file in Path("/proc/self/task").glob("*/children") for pid in file.read_text().split()}


def test_helper_that_is_ready_is_the_one_that_attaches(start: Start, dummy: dict[str, str]) -> None:
    program = start("busy")
    tracer.get_ready()
    tracer.get_ready()
    (ready,) = tracer._ready
    session = attach(program.pid, {}, sources=dummy)
    assert tracer._ready == []
    assert session.detach() is not None and session.settled(20)
    until(lambda: ready.process.returncode == 0)
    program.gets_on()


def test_helper_that_has_died_before_it_was_needed_is_replaced(start: Start, dummy: dict[str, str]) -> None:
    program = start("busy")
    tracer.get_ready()
    (ready,) = tracer._ready
    ready.process.kill()
    ready.process.wait()
    assert attach(program.pid, {}, sources=dummy).detach() is not None


def test_helper_that_nobody_needs_ends_with_its_line() -> None:
    helper = tracer.Helper()
    helper.line.close()
    assert helper.process.wait(20) == 0
    helper.dismiss()


def test_refusal_leaves_no_helper() -> None:
    before = children()
    with pytest.raises(Refused) as refused:
        attach(os.getpid(), {})
    assert refused.value.code == "self"
    assert children() <= before


def test_helper_that_is_killed_harms_nobody(start: Start, dummy: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    program = start("busy")
    begin, made = tracer.Tracer._start_helper, []

    def kill_it(self, request):
        fd = begin(self, request)
        made.append(self)
        self._process.kill()
        return fd

    with monkeypatch.context() as patched:
        patched.setattr(tracer.Tracer, "_start_helper", kill_it)
        with pytest.raises(Refused) as refused:
            attach(program.pid, {}, sources=dummy)
    assert refused.value.code == "helper"
    until(made[0].settled.is_set)
    assert made[0].report.left == ["unknown: the process that attached has died"]
    assert "-B" in made[0]._process.args  # under sudo a .pyc would be root's
    assert attach(program.pid, {}, sources=dummy).detach() is not None
    program.gets_on()


@pytest.mark.parametrize(("error", "code"), [(errno.EMFILE, "files"), (errno.ENOENT, "helper")])
def test_error_of_the_system_is_a_refusal(monkeypatch: pytest.MonkeyPatch, error: int, code: str) -> None:
    def look(_pid: int) -> None:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(preflight, "look", look)
    with pytest.raises(Refused) as refused:
        attach(os.getpid(), {})
    assert refused.value.code == code


def test_thread_is_scheduled_as_the_main_one() -> None:
    processors = os.sched_getaffinity(0)
    if len(processors) < 2:
        pytest.skip("one processor only")
    up, over = threading.Event(), threading.Event()

    def pinned() -> None:
        os.sched_setaffinity(0, {min(processors)})
        up.set()
        over.wait()

    thread = threading.Thread(target=pinned)
    thread.start()
    try:
        up.wait()
        inner = thread.native_id
        assert inner is not None and procfs.scheduling(inner)[0] == {min(processors)}
        session._like_main(os.getpid(), inner)
        assert procfs.scheduling(inner) == procfs.scheduling(os.getpid())
        session._like_main(os.getpid(), None)
    finally:
        over.set()
        thread.join()


def test_scripts_of_killed_tuimons_are_tidied_up(tmp_path: Path) -> None:
    directory = os.open(tmp_path, os.O_RDONLY)
    names = [f".tuimon-{number:016x}.py" for number in range(3)]
    owned, left, new = (remote_exec.ScriptFile(directory, str(tmp_path), name, b"pass") for name in names)
    try:
        os.close(left._fd)  # its owner is gone
        os.close(new._fd)
        left._fd = new._fd = -1
        for name in names[:2]:
            os.utime(tmp_path / name, (0, 0))
        places.tidy(directory)
        assert sorted(os.listdir(tmp_path)) == [names[0], names[2]]
    finally:
        owned.remove()
        os.close(directory)


def test_ancestor_traces_by_itself_where_only_it_may(
    start: Start, dummy: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracer, "_must_trace_itself", lambda pid: True)
    program = start("busy")
    session = attach(program.pid, {}, sources=dummy)
    assert session.detach() is not None
    assert session.report.stops


# ------------------------------------------------------------------------------------------------------- the channel


def test_socket_is_private_and_removed(
    start: Start, dummy: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = start("sleeping", environment={"TMPDIR": str(tmp_path)})
    seen: list[tuple[int, int, set[int]]] = []
    take = channel.Channel.accept

    def accept(self):
        folder, inside = os.stat(tmp_path / self.name), os.stat(tmp_path / self.name / "s")
        seen.append((stat.S_IMODE(folder.st_mode), stat.S_IMODE(inside.st_mode), {folder.st_uid, inside.st_uid}))
        return take(self)

    monkeypatch.setattr(channel.Channel, "accept", accept)
    # the job takes the name away as soon as it is through; here it is to be looked at
    text = delivery.boot_source()
    monkeypatch.setattr(delivery, "boot_source", lambda: text.replace("os.unlink(path)", "raise OSError"))
    session = attach(program.pid, {}, sources=dummy)
    assert seen == [(0o700, 0o600, {os.geteuid()})]
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".tuimon")]
    session.detach()


def test_no_symbolic_link_is_followed(start: Start, dummy: dict[str, str], tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    program = start("sleeping", environment={"TMPDIR": str(link)})
    with channel.Channel(program.pid) as way:
        assert str(link) not in [place.path for place in way.places]
    assert attach(program.pid, {}, sources=dummy).detach() is not None
    assert not list(real.iterdir())


def test_only_the_target_may_connect(tmp_path: Path) -> None:
    way = channel.Channel(1)
    try:
        way.socket.bind(str(tmp_path / "s"))
        way.socket.listen(1)
        with socket.socket(socket.AF_UNIX) as other:
            other.connect(str(tmp_path / "s"))
            assert way.accept() is None
    finally:
        way.close()


def test_token_is_checked() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(wire.json_frame({"hello": "guessed", "proto": wire.PROTOCOL}))
        with pytest.raises(Refused) as refused:
            channel.receive_hello(ours, "secret", 1)
        assert refused.value.code == "peer"


@pytest.mark.parametrize("sent", [b"", b"\x09\0\0\0\0", b"\x01\x02\0\0\0[]", wire.json_frame({"error": "x"})])
def test_nonsense_instead_of_a_hello(sent: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(sent)
        theirs.shutdown(socket.SHUT_WR)
        with pytest.raises(Refused):
            channel.receive_hello(ours, "secret", 1)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: attach to another user's process")
def test_socket_belongs_to_the_targets_user(dummy: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    python = anybodys_python()
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        home = Path(directory) / "home"
        home.mkdir()
        os.chown(home, 65534, 65534)
        script = f"import time; open({str(home / 'up')!r}, 'w').close(); time.sleep(600)"
        environment = {**os.environ, "TMPDIR": str(home)}
        with subprocess.Popen([python, "-c", script], env=environment, preexec_fn=become_nobody) as process:
            try:
                until((home / "up").exists)
                owners: list[int] = []
                take = channel.Channel.accept

                def accept(self):
                    owners.append(os.stat(home / self.name).st_uid)
                    owners.append(os.stat(home / self.name / "s").st_uid)
                    return take(self)

                monkeypatch.setattr(channel.Channel, "accept", accept)
                # the job takes the name away as soon as it is through; here it is to be looked at
                text = delivery.boot_source()
                monkeypatch.setattr(delivery, "boot_source", lambda: text.replace("os.unlink(path)", "raise OSError"))
                session = attach(process.pid, {}, sources=dummy)
                assert owners == [65534, 65534] and not list(home.glob(".tuimon*"))
                assert session.detach() is not None
            finally:
                process.kill()
