"""The near end against real far ends, against shells that misbehave, and with the line cut in every place."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.attach.conftest import needs_tracing, until
from tests.relay.conftest import ROOT, Talk, Traces, below, beside, command_of, plain_python, script
from tuimon import __version__
from tuimon.attach.refusal import Refused
from tuimon.hook import wire
from tuimon.relay import line, near, place, sent
from tuimon.relay.place import Place
from tuimon.relay.protocol import RELAY
from tuimon.sources.live import LiveDecoder

BARE = "/usr/bin:/bin"


class Watcher:
    """Takes what a session gives."""

    def __init__(self, session: near.FarSession) -> None:
        self.kinds: set[str] = set()
        self.ends: list[str] = []
        self.decoder = LiveDecoder(session.pid, "", session.how)
        session.start(self.take, self.ends.append)

    def take(self, kind: int, body: bytes) -> None:
        """A frame."""
        self.kinds |= {type(event).__name__ for event in self.decoder.frame(kind, body)}


def refused(where: Place, talk: near.Contact | None = None, send: near.Send | None = None) -> Refused:
    """The refusal of a connection to a place."""
    with pytest.raises(Refused) as caught, near.connect(where, talk, send):
        pass
    return caught.value


def fake_tuimon(directory: Path, facts: dict[str, object], then: str = "exit 1") -> Place:
    """A place where `tuimon` is a script that answers the probe with these facts."""
    answer = json.dumps(facts)
    script(directory, "tuimon", f"""if [ "$TUIMON_RELAY" = probe ]; then echo '{answer}'; exit 0; fi\n{then}""")
    return beside(PATH=f"{directory}:{BARE}", PYTHONPATH="")


# ------------------------------------------------------------------------------------------------------------ sessions


@needs_tracing
def test_list_attach_watch_detach(job: subprocess.Popen[str], talk: Talk) -> None:
    traces = Traces(job.pid)
    before = set(threading.enumerate())
    with near.connect(beside(), talk) as link:
        assert job.pid in [target.pid for target in link.find_targets(everything=True)]
        assert link.notes == [] and link.far["tuimon"] == __version__
        for _ in range(2):
            session = link.open_session(job.pid, {}, talk)
            assert session.brings_sources and session.host == link.place.name and session.pid == job.pid
            assert session.hello["argv"][0] == sys.executable and session.mechanism in ("pending", "thread", "remote_exec")
            watcher = Watcher(session)
            wanted = {"TargetSeen", "HookStatus", "HostSampled", "GpuUnavailable"}
            until(lambda watcher=watcher, wanted=wanted: wanted <= watcher.kinds)  # type: ignore[misc]
            goodbye = session.detach()
            assert goodbye is not None and goodbye["left"] == [] and session.report.left == []
            assert session.over and watcher.ends == ["detached"] and session.gone is False
            traces.gone()
    assert any("putting the hook in" in sentence for sentence in talk.said)
    until(lambda: set(threading.enumerate()) <= before)


@needs_tracing
def test_one_line_carries_several_sessions(job: subprocess.Popen[str]) -> None:
    with subprocess.Popen([sys.executable, "-c", "import time\nwhile True: time.sleep(0.01)"]) as other:
        try:
            with near.connect(beside()) as link:
                pids = [job.pid, other.pid]
                watchers = []
                for pid in pids:
                    watchers.append((session := link.open_session(pid, {}), Watcher(session)))
                until(lambda: all("HookStatus" in watcher.kinds for _, watcher in watchers))
                (first, first_watcher), (second, second_watcher) = watchers
                assert first.detach() is not None
                second_watcher.kinds.clear()
                until(lambda: "HookStatus" in second_watcher.kinds)
                assert first_watcher.ends == ["detached"] and second_watcher.ends == []
            # the link is closed with a session on it: that is its end
            assert second_watcher.ends in (["detached"], ["connection closed"]) and second.over
        finally:
            other.kill()


@needs_tracing
def test_a_session_with_a_line_of_its_own(job: subprocess.Popen[str]) -> None:
    traces = Traces(job.pid)
    session = near.open_session(beside(), job.pid, {})
    assert below(os.getpid())
    assert session.detach() is not None
    traces.gone()
    assert [target.pid for target in near.find_targets(beside(), everything=True) if target.pid == job.pid] == [job.pid]


@needs_tracing
def test_a_job_that_ends_is_known_to_have_ended(job: subprocess.Popen[str]) -> None:
    with near.connect(beside()) as link:
        session = link.open_session(job.pid, {})
        watcher = Watcher(session)
        job.kill()
        job.wait()
        until(lambda: watcher.ends)
        assert session.gone is True and "TargetEnded" in watcher.kinds
        assert session.detach() is None


def test_the_far_ends_refusal_comes_through(talk: Talk) -> None:
    with near.connect(beside()) as link:
        with pytest.raises(Refused) as caught:
            link.open_session(2**22 + 5, {}, talk)
        assert caught.value.code == "dead" and caught.value.sentence.startswith("at `env")
        with pytest.raises(Refused) as caught:
            link.choose([2**22 + 5], False)
        assert "at `env" in caught.value.sentence


def test_the_clocks_are_compared() -> None:
    with near.connect(beside()) as link:
        import time

        # the same machine: the far clock is ours, to within what a beat takes
        assert abs(link.clock() - time.monotonic_ns()) < 2e9


# -------------------------------------------------------------------------------------------------------------- cutting


@needs_tracing
@pytest.mark.parametrize("what", ["command", "far end"])
def test_a_cut_line_is_a_state(job: subprocess.Popen[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """The command is killed (as ssh would be), or the far end."""
    monkeypatch.setattr(near, "BEAT_S", 0.2)  # the command notices when it has something to carry
    through = script(tmp_path / "bin", "through", 'exec 3>&1; cat | "$@" >&3')  # a process between us and the shell
    traces = Traces(job.pid)
    where = beside()
    with near.connect(Place("gpu7", (str(through / "through"), *where.command), ssh=True)) as link:
        session = link.open_session(job.pid, {})
        watcher = Watcher(session)
        until(lambda: "HookStatus" in watcher.kinds)
        ours = link._line.process.pid
        killed = [ours, *below(ours)]
        if what == "far end":
            killed = [pid for pid in killed[1:] if b"tuimon" in command_of(pid)]
        for number in (signal.SIGSTOP, signal.SIGKILL):  # all at one moment: none may say goodbye because another has gone
            for pid in killed:
                with contextlib.suppress(ProcessLookupError):  # the helper of the attach may just have ended
                    os.kill(pid, number)
        until(lambda: watcher.ends)
        (end,) = watcher.ends
        assert end.startswith("connection to gpu7 lost") and end.endswith("the hook there takes itself out within 30 s")
        assert session.gone is None and session.over
        traces.gone()
        assert session.detach() is None
        with pytest.raises(Refused) as caught:
            link.find_targets()
        assert caught.value.code == "lost"
    # and again, at once
    assert near.open_session(where, job.pid, {}).detach() is not None


@needs_tracing
def test_a_killed_near_end_leaves_nothing(job: subprocess.Popen[str]) -> None:
    traces = Traces(job.pid)
    program = (
        "import sys, time\n"
        "from tuimon.relay import near, place\n"
        "session = near.open_session(place.via(sys.argv[1]), int(sys.argv[2]), {})\n"
        "session.start(lambda kind, body: None, lambda reason: None)\n"
        "print('attached', flush=True)\n"
        "time.sleep(600)\n"
    )
    words = [sys.executable, "-c", program, " ".join(beside().command), str(job.pid)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}) as monitor:
        assert monitor.stdout is not None
        assert monitor.stdout.readline() == "attached\n"
        there = below(monitor.pid)
        assert there
        monitor.kill()
    traces.gone()
    until(lambda: not [pid for pid in there if os.path.exists(f"/proc/{pid}")])


@needs_tracing
def test_no_beats_no_hook(job: subprocess.Popen[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line is dead but not closed: the far end notices by itself."""
    monkeypatch.setattr(near, "BEAT_S", 600.0)
    program = tmp_path / "relay.py"
    program.write_text(
        "from tuimon.relay import far\n"
        "begin = far.Attachment.begin\n"
        "def and_then_soon(self): begin(self); far.LOST_S = 0.5\n"
        "far.Attachment.begin = and_then_soon\n"
        "raise SystemExit(far.main())\n"
    )
    facts = json.dumps({"tuimon": __version__, "protocol": RELAY})
    quoted = f"if [ \"$TUIMON_RELAY\" = probe ]; then echo '{facts}'; exit 0; fi\nexec {sys.executable} {program}"
    directory = script(tmp_path / "bin", "tuimon", quoted)
    traces = Traces(job.pid)
    with near.connect(beside(PATH=f"{directory}:{BARE}")) as link:
        session = link.open_session(job.pid, {})
        watcher = Watcher(session)
        traces.gone()
        until(lambda: watcher.ends)
        assert job.poll() is None


def test_a_far_end_that_says_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line is dead but not closed: the near end notices by itself."""
    monkeypatch.setattr(near, "BEAT_S", 0.2)
    with near.connect(beside()) as link:
        # what is heard from now on comes too late; a beat of ours is answered by one, so the far end is stopped
        there = below(os.getpid())
        for pid in there:
            os.kill(pid, signal.SIGSTOP)
        monkeypatch.setattr(near, "LOST_S", 0.5)
        until(lambda: link.over)
        for pid in there:  # what is stopped would be waited for
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(Refused, match="lost"):
            link.open_session(1, {})


def test_garbage_in_the_stream_ends_it(tmp_path: Path) -> None:
    hello = wire.json_frame({"relay": "hello", "tuimon": __version__, "protocol": RELAY, "t": 1})
    beat = wire.json_frame({"relay": "beat", "echo": 0, "t": 1})
    (tmp_path / "frames").write_bytes(hello + beat)
    then = f'echo "$TUIMON_RELAY relay"; cat {tmp_path}/frames; echo "motd: \033[31mhello"; cat >/dev/null'
    where = fake_tuimon(tmp_path / "bin", {"tuimon": __version__, "protocol": RELAY}, then)
    with pytest.raises(Refused, match="not in the protocol") as caught, near.connect(where) as link:
        until(lambda: link.over)
        link.find_targets()
    assert "\033" not in caught.value.sentence


# --------------------------------------------------------------------------------------------------------- getting there


def test_noise_before_the_hello_is_passed_over(tmp_path: Path) -> None:
    noisy = script(
        tmp_path / "bin", "noisy", "echo 'Welcome to gpu7'; echo 'disk quota!' >&2; printf 'no end of line'; exec \"$@\""
    )
    where = beside()
    with near.connect(Place("gpu7", (str(noisy / "noisy"), *where.command), ssh=False)) as link:
        assert link.far["protocol"] == RELAY
        # a Ctrl-C in our terminal does not end the line before tuimon has detached
        status = Path(f"/proc/{link._line.process.pid}/status").read_text()
        blocked = next(row.split()[1] for row in status.splitlines() if row.startswith("SigBlk"))
        assert int(blocked, 16) >> (signal.SIGINT - 1) & 1


def test_what_echoes_its_input_is_no_answer(talk: Talk) -> None:
    """`docker exec -t` without a tuimon: what comes back is what was sent."""
    talk_over = threading.Timer(2.0, talk.cancelled.set)
    talk_over.start()
    refusal = refused(place.via("env -i /bin/sh -c 'cat' "), talk)
    assert refusal.code == "cancelled"
    assert len(talk.waited) == 1 and "to answer" in talk.waited[0]  # said once, however long it takes


def test_another_protocol_is_refused_by_name(tmp_path: Path) -> None:
    where = fake_tuimon(tmp_path / "bin", {"tuimon": "0.3\033[2J", "protocol": "2.9"})
    refusal = refused(where)
    assert refusal.code == "protocol"
    assert "tuimon 0.3?[2J at" in refusal.sentence.replace("�", "?")
    assert f"speaks relay protocol 2.9, this one {RELAY}; upgrade" in refusal.sentence
    assert "--send" in refusal.sentence


def test_another_version_of_the_same_protocol_goes_on(tmp_path: Path) -> None:
    program = "import tuimon; tuimon.__version__ = '0.0.1'\nfrom tuimon.relay import far; raise SystemExit(far.main())"
    (tmp_path / "old.py").write_text(program)
    directory = script(tmp_path / "bin", "tuimon", f"exec {sys.executable} {tmp_path}/old.py")
    with near.connect(beside(PATH=f"{directory}:{BARE}")) as link:
        assert link.notes == [f"tuimon 0.0.1 at {link.place.there}, {__version__} here"]


def test_no_tuimon_there() -> None:
    where = beside(PATH=BARE, PYTHONPATH="")
    refusal = refused(where)
    assert refusal.code == "no-tuimon" and "pip install tuimon" in refusal.sentence and "--send" in refusal.sentence
    asked: list[str] = []
    refusal = refused(where, send=lambda question: bool(asked.append(question)))
    assert refusal.code == "no-tuimon" and "Send this one along" in asked[0]


def test_an_older_tuimon_without_a_relay_is_none(tmp_path: Path) -> None:
    directory = script(tmp_path / "bin", "tuimon", "echo 'usage: tuimon' >&2; exit 2")
    assert refused(beside(PATH=f"{directory}:{BARE}", PYTHONPATH="")).code == "no-tuimon"


def test_no_python_to_send_it_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = script(tmp_path / "bin", "python3", "echo 3.9")
    (directory / "sh").symlink_to(shutil.which("sh") or "/bin/sh")
    monkeypatch.setattr(line, "PYTHONS", ("python3", "python3.10", "python"))
    refusal = refused(beside(PATH=str(directory), PYTHONPATH=""), send=lambda _question: True)
    assert refusal.code == "no-python" and "3.10 or later" in refusal.sentence and "found: 3.9" in refusal.sentence


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        ("no-such-program exec", "no-command", "no program 'no-such-program'"),
        ("true", "connect", "docker exec -i"),
        ("sh -c 'echo no such container >&2; exit 1'", "connect", "sh says: no such container"),
        ("sh -c 'exec yes'", "connect", "is no shell"),
        ("sh -c 'printf \"\\033[2Jgone\\n\" >&2'", "connect", "[2Jgone"),
    ],
)
def test_why_it_does_not_get_there(command: str, code: str, words: str) -> None:
    refusal = refused(place.via(command))
    assert refusal.code == code and words in refusal.sentence and "\033" not in refusal.sentence


def test_cancelled_at_once(talk: Talk) -> None:
    talk.cancelled.set()
    assert refused(place.via("sh -c 'exec sleep 600'"), talk).code == "cancelled"


# --------------------------------------------------------------------------------------------------------------- sending


@needs_tracing
def test_tuimon_is_sent_along_and_leaves_no_file(job: subprocess.Popen[str], talk: Talk, tmp_path: Path) -> None:
    traces = Traces(job.pid)
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    where = beside(PATH=f"{plain_python()}:{BARE}", PYTHONPATH="", TMPDIR=str(temporary))
    with near.connect(where, talk, send=lambda _question: True) as link:
        assert any("sending tuimon" in sentence for sentence in talk.said)
        session = link.open_session(job.pid, {}, talk)
        watcher = Watcher(session)
        # what the host gives is there, or is said not to be: that Python may have no psutil
        until(lambda: {"HookStatus", "GpuUnavailable"} <= watcher.kinds and {"HostSampled", "NotAvailable"} & watcher.kinds)
        assert list(temporary.iterdir()) == []
        goodbye = session.detach()
        assert goodbye is not None and goodbye["left"] == [] and session.report.left == []
    traces.gone()
    assert list(temporary.iterdir()) == []


def test_where_python_has_no_memfd_the_file_has_no_name() -> None:
    loader = "import os; del os.memfd_create\n" + sent.LOADER
    pack = sent.pack()
    with subprocess.Popen(
        [sys.executable, "-I", "-c", loader, str(len(pack))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"TUIMON_RELAY": "mark"},
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.read(12) == b"\nmark ready\n"
        process.stdin.write(pack)
        process.stdin.close()
        assert b"\nmark relay\n" in process.stdout.read()
        assert process.wait(60) == 0


def test_the_pack_is_the_same_each_time_and_holds_what_the_far_end_imports() -> None:
    assert sent.pack() == sent.pack()
    assert len(sent.pack()) < 1 << 20


@needs_tracing
def test_into_another_pid_namespace(tmp_path: Path) -> None:
    """What `docker exec -i` does: a command that runs another one beside a job whose pids are not ours."""
    unshare, nsenter = shutil.which("unshare"), shutil.which("nsenter")
    if unshare is None or nsenter is None or os.geteuid() != 0:
        pytest.skip("needs unshare and nsenter, and root to make namespaces")
    program = "import os, time\nprint(os.getpid(), flush=True)\nwhile True: time.sleep(0.01)"
    words = [unshare, "--pid", "--fork", "--mount-proc", "--kill-child", sys.executable, "-c", program]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as container:
        try:
            assert container.stdout is not None and container.stderr is not None
            inside = container.stdout.readline().strip()
            if not inside:
                pytest.skip(f"no namespaces here: {container.stderr.read()}")
            (job,) = below(container.pid)
            docker = script(tmp_path / "bin", "docker", f'shift 3; exec {nsenter} -t {job} -p -m "$@"')
            where = Place("docker exec -i c", (str(docker / "docker"), "exec", "-i", "c", *beside().command), ssh=False)
            with near.connect(where) as link:
                assert int(inside) in [target.pid for target in link.find_targets(everything=True)]
                session = link.open_session(int(inside), {})
                watcher = Watcher(session)
                until(lambda: "HookStatus" in watcher.kinds)
                goodbye = session.detach()
                assert goodbye is not None and goodbye["left"] == []
        finally:
            container.kill()
