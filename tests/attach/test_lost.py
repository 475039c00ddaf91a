"""Whatever becomes of tuimon or of the job while they are connected: the job goes on as it was, and nothing of ours stays."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.attach.conftest import needs_tracing, until
from tests.attach.surroundings import Begin, Job, job
from tuimon.attach import procfs
from tuimon.attach.refusal import Refused
from tuimon.attach.session import Session, attach
from tuimon.hook import wire
from tuimon.hook.bundle import bundle

__all__ = ["job"]
pytestmark = needs_tracing
ROOT = Path(__file__).resolve().parents[2]

STOPPED_S = int(os.environ.get("TUIMON_STOPPED_S", "2"))
"""So long a tuimon is kept stopped; set it to 30 for a long run."""

MONITOR = """
import os, sys, time
sys.path.insert(0, {root!r})
from tuimon.attach.session import attach
from tuimon.hook import wire
from tuimon.hook.bundle import bundle
sources = bundle()
sources["session"] += {flood!r}
session = attach({pid}, {{}}, sources=sources)
counted = [0, 0]
def sink(kind, body):
    if kind == wire.SAMPLES_FRAME:
        counted[0] += 1
    else:
        counted[1] = wire.read_json(body).get("dropped", counted[1])
session.start(sink, lambda reason: None)
{more}
print("attached", flush=True)
for line in sys.stdin:
    print(*counted, flush=True)
"""

FLOOD = """
def _flooding(self, _install=Session._install):
    _install(self)
    timed = timers.call_timer(lambda: None, self.next_number(), self.outbox)
    def flood():
        while self.here[0]:
            for _ in range(2000):
                timed()
            time.sleep(0.002)
    threading.Thread(target=flood, daemon=True).start()
Session._install = _flooding
"""


class Monitor:
    """A tuimon in a process of its own, attached."""

    def __init__(self, pid: int, more: str = "", flood: str = "") -> None:
        text = MONITOR.format(root=str(ROOT), pid=pid, more=textwrap.dedent(more), flood=flood)
        self.process = subprocess.Popen(
            [sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self.line() == "attached"

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def counted(self) -> tuple[int, int]:
        """Frames of samples, and samples dropped, so far."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        frames, dropped = self.line().split()
        return int(frames), int(dropped)


@pytest.fixture
def monitors() -> Iterator[list[Monitor]]:
    """Those that are to be killed at the end, with all that they have forked."""
    running: list[Monitor] = []
    yield running
    for monitor in running:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(monitor.process.pid, signal.SIGKILL)
        monitor.process.communicate()


PYTHONS = [sys.executable, *sorted(str(path) for path in Path("/opt/py").glob("v3.*/bin/python"))]


@pytest.fixture(params=PYTHONS)
def python(request: pytest.FixtureRequest) -> str:
    """Each Python that there is here."""
    found: str = request.param
    return found


def threads(target: Job) -> int:
    return len(procfs.thread_ids(target.pid))


def descriptors(pid: int) -> list[str]:
    """What a process has open, without what comes and goes."""
    found = []
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # closed in between
            found.append(os.readlink(f"/proc/{pid}/fd/{name}").split("[")[0])
    return sorted(found)


def reattach(target: Job) -> dict[str, Any]:
    """At once, without waiting for anything."""
    goodbye = attach(target.pid, {}).detach()
    assert goodbye is not None and goodbye["left"] == []
    return goodbye


# ------------------------------------------------------------------------------------------------- tuimon is lost


@pytest.mark.parametrize(
    "more",
    [
        "",
        # children that hold a copy of the connection: the stream does not end with tuimon
        "if os.fork() == 0: time.sleep(600)\nif os.fork() == 0: time.sleep(600)",
    ],
    ids=["alone", "with two children"],
)
def test_a_killed_tuimon_takes_the_hook_with_it(job: Begin, monitors: list[Monitor], more: str) -> None:
    target = job()
    before = threads(target), descriptors(target.pid)
    for _ in range(1):
        monitors.append(Monitor(target.pid, more))
        monitors[-1].process.kill()
        reattach(target)  # the dead one's hook may still be leaving: that is waited for
    monitors.append(Monitor(target.pid, more))
    monitors[-1].process.kill()
    until(lambda: (threads(target), descriptors(target.pid)) == before)
    target.gets_on()


def test_a_stopped_tuimon_is_waited_for_and_what_it_missed_is_counted(job: Begin, monitors: list[Monitor]) -> None:
    target = job()
    monitor = Monitor(target.pid, flood=FLOOD)
    monitors.append(monitor)
    until(lambda: monitor.counted()[0] > 3)
    frames, dropped = monitor.counted()
    assert dropped == 0
    os.kill(monitor.process.pid, signal.SIGSTOP)
    size = 0

    def grows() -> bool:
        nonlocal size
        before, size = size, int(procfs.status(target.pid)["VmRSS"].split()[0])
        target.gets_on()
        return size != before

    # longer than any buffer takes to fill
    for _ in range(20 * STOPPED_S):
        grows()
        signal.sigtimedwait([], 0.05)
    assert threads(target) > 1  # the hook is still in
    assert size < 400_000  # kB
    os.kill(monitor.process.pid, signal.SIGCONT)
    until(lambda: monitor.counted()[0] > frames + 20 and monitor.counted()[1] > 0)
    monitor.process.kill()
    reattach(target)
    target.gets_on()


# ---------------------------------------------------------------------------------------------- a second tuimon


def test_the_second_is_told_who_is_there(job: Begin, monitors: list[Monitor]) -> None:
    target = job()
    monitor = Monitor(target.pid)
    monitors.append(monitor)
    with pytest.raises(Refused) as refused:
        attach(target.pid, {})
    assert refused.value.code == "already-attached"
    sentence = refused.value.sentence
    assert sentence.startswith(f"tuimon (process {monitor.process.pid} of user ")
    assert ", since " in sentence
    assert sentence.endswith(f"is attached to process {target.pid}; detach that one first (q there)")
    monitor.process.kill()
    reattach(target)


# ----------------------------------------------------------------------------------------------- the job's own ways


def watched(target: Job) -> tuple[Session, list[dict[str, Any]], list[str]]:
    """A session that is read, what came, and how it ended."""
    session = attach(target.pid, {})
    came: list[dict[str, Any]] = []
    ended: list[str] = []
    session.start(lambda kind, body: came.append(wire.read_json(body)) if kind == wire.JSON_FRAME else None, ended.append)
    until(lambda: any(message.get("k") == "status" for message in came))
    return session, came, ended


HARMLESS = {
    "fork": "pid = os.fork()\n    if pid == 0: os._exit(0)\n    assert os.waitpid(pid, 0)[1] == 0",
    "fork in a thread": "import threading\n"
    "    def go():\n"
    "        pid = os.fork()\n"
    "        if pid == 0: os._exit(0)\n"
    "        rounds[3] = os.waitpid(pid, 0)[1]\n"
    "    t = threading.Thread(target=go); t.start(); t.join(); assert rounds[3] == 0",
    "fork and exec": "import subprocess\n    assert subprocess.run(['true']).returncode == 0",
    "fork and exit by the interpreter": "pid = os.fork()\n    if pid == 0: sys.exit(0)\n    assert os.waitpid(pid, 0)[1] == 0",
    "multiprocessing fork": "import multiprocessing as m\n"
    "    p = m.get_context('fork').Process(target=len, args=([],)); p.start(); p.join(); assert p.exitcode == 0",
    "a fork server": "import multiprocessing as m\n"
    "    p = m.get_context('forkserver').Process(target=len, args=([],)); p.start(); p.join(); assert p.exitcode == 0",
    "gc.freeze": "import gc\n    gc.collect(); gc.freeze(); gc.collect()",
    "faulthandler": "import faulthandler\n    faulthandler.enable(); faulthandler.dump_traceback(open('/dev/null', 'w'))",
    "settrace and setprofile": "import threading\n"
    "    f = lambda *a: None\n"
    "    sys.settrace(f); sys.setprofile(f); threading.settrace(f); threading.setprofile(f)\n"
    "    getattr(threading, 'settrace_all_threads', len.__class__)(f) if hasattr(threading, 'settrace_all_threads') else None",
    "a chdir and a deleted directory": "import tempfile\n    d = tempfile.mkdtemp(); os.chdir(d); os.rmdir(d)",
    "closed standard streams": "os.close(0); os.close(1)",
    "a changed umask and ulimit": "import resource\n"
    "    os.umask(0o777); resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))",
    "signals blocked": "import signal\n    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())",
    "SIGPIPE deadly": "import signal\n    signal.signal(signal.SIGPIPE, signal.SIG_DFL)",
}


def test_what_a_job_does_while_it_is_watched(job: Begin) -> None:
    """One after the other, in one job and one session: each may make the next one harder."""
    acts = "".join(f"def act{number}():\n    {act}\n" for number, act in enumerate(HARMLESS.values()))
    target = job(f"import os\n{acts}\ndef act():\n    globals()['act%d' % rounds[7]]()\n")
    session, came, ended = watched(target)
    for number in range(len(HARMLESS)):
        target._rounds[7] = number
        target.act()
        assert not ended, list(HARMLESS)[number]
    seen = len(came)
    until(lambda: len(came) > seen)  # the hook is still there
    assert session.last_frame_age < 20
    goodbye = session.detach()
    assert goodbye is not None and goodbye["left"] == [] and goodbye["reason"] == "detached"
    target.gets_on()
    reattach(target)
    target.gets_on()


def test_sys_modules_emptied_of_everything(job: Begin) -> None:
    target = job(
        "def act():\n    for name in list(sys.modules):\n        if name not in ('sys', 'builtins'): del sys.modules[name]\n"
    )
    session, came, ended = watched(target)
    target.act()
    seen = len(came)
    until(lambda: len(came) > seen or ended)
    session.detach()
    target.gets_on()


@pytest.mark.parametrize(
    "closing",
    ["os.closerange(3, 4096)", "n = os.open('/dev/null', os.O_WRONLY)\n    for fd in ours(): os.dup2(n, fd)"],
    ids=["closed", "replaced"],
)
def test_descriptors_taken_from_us_are_the_jobs_from_then_on(job: Begin, tmp_path: Path, closing: str) -> None:
    kept = tmp_path / "kept"
    before = f"""
import os
def ours():
    return [int(fd) for fd in os.listdir('/proc/self/fd') if int(fd) >= 512]
def act():
    {closing}
    global files
    files = [open({str(kept)!r} + str(n), 'w') for n in range(600)]
"""
    target = job(before)
    _session, _came, _ended = watched(target)
    files = len([name for name in os.listdir(f"/proc/{target.pid}/fd") if int(name) >= 512])
    assert files >= 2  # the connection and the handle of our process, out of the way
    target.act()
    until(lambda: threads(target) == 1)  # the hook has left
    target.gets_on()
    assert all(not Path(f"{kept}{number}").read_bytes() for number in range(600))
    numbers = {int(name) for name in os.listdir(f"/proc/{target.pid}/fd")}
    assert len([n for n in numbers if os.readlink(f"/proc/{target.pid}/fd/{n}").startswith(str(kept))]) == 600
    reattach(target)


def test_exec_ends_the_watching_and_the_new_program_can_be_attached_to(job: Begin) -> None:
    target = job("import os\ndef act():\n    os.execv(sys.executable, sys.orig_argv)\n")
    _session, _came, ended = watched(target)
    started = target.rounds
    target.act(returns=False)
    until(lambda: ended)
    until(lambda: target.rounds > started)
    target.gets_on()
    reattach(target)


@pytest.mark.parametrize(
    ("act", "status", "reason"),
    [
        ("sys.exit(7)", 7, "exit"),
        (
            "import threading\n    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n    sys.exit(7)",
            7,
            "exit",
        ),
        ("1 / 0", 1, "exit"),
        ("import os\n    os._exit(7)", 7, None),
        ("import os\n    os.kill(os.getpid(), 9)", -9, None),
        ("import os\n    os.abort()", -6, None),
    ],
    ids=["exit", "exit with a daemon thread", "exception", "_exit", "SIGKILL", "abort"],
)
def test_the_job_ends_as_it_would_have(job: Begin, act: str, status: int, reason: str | None) -> None:
    target = job(f"def act():\n    {act}\n")
    session, came, ended = watched(target)
    target.act(returns=False)
    assert target.process.wait(30) == status
    until(lambda: ended)
    goodbyes = [message.get("reason") for message in came if message.get("k") == "detached"]
    assert goodbyes == ([reason] if reason else [])
    session.detach()


def test_what_is_queued_when_the_job_ends_arrives(job: Begin, python: str) -> None:
    """Also what its own functions at exit have queued; a forked child says nothing; a finalizer that fails is no hindrance."""
    before = """
import atexit, gc, os, weakref
def last():
    (session,) = [found for found in gc.get_objects() if type(found).__name__ == "Session"]
    for number in range(500):  # what the hook's half a second for a goodbye takes on a full machine too
        session.outbox.put({"k": "last", "number": number})
def act():
    pid = os.fork()
    if pid == 0: sys.exit(3)
    rounds[5] = os.waitpid(pid, 0)[1]
    atexit.register(last)
    weakref.finalize(act, lambda: 1 / 0)
    sys.exit(7)
"""
    target = job(before, python=python)
    session, came, ended = watched(target)
    target.act(returns=False)
    assert target.process.wait(30) == 7
    until(lambda: ended)
    assert [message["number"] for message in came if message.get("k") == "last"] == list(range(500))
    assert [message["reason"] for message in came if message.get("k") == "detached"] == ["exit"] and came[-1]["left"] == []
    assert target._rounds[5] == 3 << 8 and target.said().count("Error") == 1
    session.detach()


def test_a_job_that_had_not_imported_threading_keeps_its_main_thread(job: Begin, python: str) -> None:
    """Up to 3.12 the module takes the thread that imports it for the main one."""
    act = """
def act():
    import threading
    assert threading.main_thread() is threading.current_thread(), threading.enumerate()
    assert threading.main_thread().native_id == __import__("os").getpid()
    t = threading.Thread(target=len, args=([],)); t.start(); t.join()
    rounds[5] = len(threading.enumerate())
    if rounds[6]: sys.exit(7)
"""
    target = job("assert 'threading' not in sys.modules\n" + act, python=python)
    session, _came, ended = watched(target)
    target.act()
    assert target._rounds[5] == 1  # the hook is none of the threads that it knows of
    assert session.detach() is not None
    target.act()
    session, _came, ended = watched(target)
    target._rounds[6] = 1
    target.act(returns=False)
    assert target.process.wait(30) == 7, target.said()
    assert target.said() == ""
    until(lambda: ended)


def test_a_stopped_job_is_silent_and_goes_on(job: Begin) -> None:
    target = job()
    session, _came, ended = watched(target)
    os.kill(target.pid, signal.SIGSTOP)
    until(lambda: session.last_frame_age > 1.5)
    assert not ended
    assert procfs.status(target.pid)["State"].startswith("T")
    assert session.detach(timeout=0.5) is None  # no answer; and the connection is closed
    assert ended
    os.kill(target.pid, signal.SIGCONT)
    until(lambda: threads(target) == 1)
    target.gets_on()
    reattach(target)


def test_a_forked_job_can_be_watched_by_itself(job: Begin) -> None:
    """The child has a dead copy of the hook: it carries on without it, and gets a hook of its own."""
    before = """
import os
def act():
    if os.fork() == 0:
        rounds[4] = os.getpid()
"""
    target = job(before)
    session, _came, ended = watched(target)
    target.act()
    until(lambda: target._rounds[4])
    child = target._rounds[4]
    try:
        until(lambda: not procfs.has_ended(child))
        other = attach(child, {})
        assert other.hello["pid"] == child
        goodbye = other.detach()
        assert goodbye is not None and goodbye["left"] == []
        assert not ended
        goodbye = session.detach()
        assert goodbye is not None and goodbye["left"] == []
    finally:
        os.kill(child, signal.SIGKILL)


# -------------------------------------------------------------------------------------------------- what is offered


def test_the_handshake_names_both_sides(job: Begin) -> None:
    target = job()
    session = attach(target.pid, {})
    assert session.hello["proto"] == wire.PROTOCOL
    assert session.hello["implementation"] == "cpython"
    assert session.offers["missing"] == []
    assert set(session.offers["torch"]) >= {"regions", "steps", "history"}
    assert set(session.offers["torch"].values()) == {None}  # nothing of torch is loaded
    session.detach()


def test_the_bundle_has_all_that_the_hook_needs() -> None:
    assert {"session", "wire", "line", "offers"} <= set(bundle())
