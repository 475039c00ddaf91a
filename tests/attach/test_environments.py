"""Jobs in strange surroundings: the right behaviour or the right sentence, and the job is never harmed."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.attach.conftest import anybodys_python, as_nobody, become_nobody, needs_tracing, refused_by, until
from tests.attach.surroundings import Begin, Job, job
from tuimon.attach import limits, preflight, procfs
from tuimon.attach.inject import seccomp
from tuimon.attach.refusal import Refused
from tuimon.attach.session import attach

__all__ = ["job"]
pytestmark = needs_tracing
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def works(target: Job) -> None:
    """Attach, detach, and it goes on."""
    session = attach(target.pid, {})
    assert session.pid == target.pid
    goodbye = session.detach()
    assert goodbye is not None and goodbye["left"] == []
    until(lambda: session.report.left == [])
    target.gets_on()


def may_unshare(*flags: str) -> bool:
    """Whether this machine lets us."""
    return (
        shutil.which("unshare") is not None
        and not subprocess.run(["unshare", *flags, "true"], check=False, stderr=subprocess.DEVNULL).returncode
    )


NAMESPACES = {
    "user": ["-U"],
    "user as root": ["-U", "-r"],
    "mount": ["-m"],
    "pid": ["-p", "-f", "--mount-proc"],
    "network and ipc and uts and cgroup": ["-n", "-i", "-u", "-C"],
    "all": ["-U", "-r", "-m", "-p", "-f", "--mount-proc", "-n", "-i", "-u", "-C"],
}


@pytest.mark.parametrize("flags", NAMESPACES.values(), ids=NAMESPACES)
def test_namespaces(job: Begin, flags: list[str]) -> None:
    if not may_unshare(*flags):
        pytest.skip("this machine does not let us make such namespaces")
    target = job(through=["unshare", *flags])
    if "-p" in flags:
        assert procfs.pid_inside(procfs.status(target.pid), target.pid) == 1
    works(target)


@needs_root
@pytest.mark.parametrize("root", ["writable", "read-only"])
def test_a_container(job: Begin, tmp_path: Path, root: str) -> None:
    """Its own root, /tmp, /proc, network and pid 1."""
    python = os.path.realpath(sys.executable)
    if not may_unshare("-m", "-p", "-f", "-n", "-i", "-u") or python.startswith("/tmp/"):
        pytest.skip("this machine does not let us make one")
    shell = (
        f"set -e; R={tmp_path}/root; mkdir $R; mount --rbind / $R; mount --make-rprivate $R; mount -t tmpfs x $R/tmp; "
        f'mount -t proc proc $R/proc; {"mount -o remount,bind,ro $R;" if root == "read-only" else ""} exec chroot $R "$@"'
    )
    target = job(through=["unshare", "-m", "-p", "-f", "-n", "-i", "-u", "sh", "-c", shell, "sh"], python=python)
    assert procfs.pid_inside(procfs.status(target.pid), target.pid) == 1
    assert not os.path.exists(f"/proc/{target.pid}/root{tmp_path}")  # another /tmp
    works(target)


@needs_root
def test_nowhere_to_put_the_socket(job: Begin) -> None:
    """Everything read-only: the sentence, and nothing else."""
    if not may_unshare("-m"):
        pytest.skip("this machine does not let us make namespaces")
    places = ("/tmp", "/dev/shm", "/var/tmp")
    mounts = "; ".join(f"mount --bind {place} {place}; mount -o remount,bind,ro {place}" for place in places)
    before = f"""
import os, subprocess
subprocess.run({mounts!r}, shell=True, check=True)
"""
    target = job(before, through=["unshare", "-m"], env={key: value for key, value in os.environ.items() if key != "TMPDIR"})
    with pytest.raises(Refused) as refused:
        attach(target.pid, {})
    assert refused.value.code == "no-socket-dir"
    assert "/tmp, /dev/shm, /var/tmp" in refused.value.sentence
    target.gets_on()


@needs_root
def test_noexec_is_no_hindrance(job: Begin) -> None:
    if not may_unshare("-m"):
        pytest.skip("this machine does not let us make namespaces")
    before = "import subprocess\nsubprocess.run('mount -t tmpfs -o noexec,nosuid,nodev x /tmp', shell=True, check=True)"
    works(job(before, through=["unshare", "-m"]))


# --------------------------------------------------------------------------------------------------------- users


@needs_root
def test_root_attaches_to_nobodys_process(job: Begin) -> None:
    works(job(python=anybodys_python(), preexec_fn=become_nobody))


@needs_root
def test_nobody_and_roots_process(job: Begin) -> None:
    target = job()
    said = as_nobody(lambda: refused_by(target.pid))
    assert said.startswith("uid: ") and "root (0)" in said and "sudo" in said


@needs_root
def test_nobody_attaches_to_nobodys_process(job: Begin) -> None:
    """The whole way as an ordinary user, with a copy of tuimon that he may read."""
    python = anybodys_python()
    target = job(python=python, preexec_fn=become_nobody)
    if as_nobody(lambda: refused_by(target.pid)) != "allowed":
        pytest.skip("an ordinary user may not trace his own processes here")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        os.chmod(directory, 0o755)
        shutil.copytree(
            Path(__file__).parents[2] / "tuimon", f"{directory}/tuimon", ignore=shutil.ignore_patterns("__pycache__")
        )
        subprocess.run(["chmod", "-R", "a+rX", directory], check=True)
        text = (
            f"import sys; sys.path.insert(0, {directory!r}); sys.dont_write_bytecode = True\n"
            "from tuimon.attach.session import attach, Refused\n"
            f"try: print(attach({target.pid}, {{}}).detach()['left'])\n"
            "except Refused as refused: print(refused.code, refused.sentence)\n"
        )
        ran = subprocess.run(
            [python, "-c", text], preexec_fn=become_nobody, capture_output=True, text=True, cwd="/", check=False
        )
    assert ran.stdout == "[]\n", ran.stdout + ran.stderr
    target.gets_on()


# ---------------------------------------------------------------------------------------------- limits and privileges


@pytest.mark.parametrize("spare", [0, 2])
def test_no_descriptor_left_is_said_so(job: Begin, spare: int) -> None:
    before = f"""
import os, resource
kept = [os.open("/dev/null", os.O_RDONLY) for _ in range(20)]
resource.setrlimit(resource.RLIMIT_NOFILE, (max(kept) + 1 + {spare}, 4096))
"""
    target = job(before)
    with pytest.raises(Refused) as refused:
        attach(target.pid, {})
    assert refused.value.code == "no-files"
    assert f"prlimit --pid {target.pid}" in refused.value.sentence
    target.gets_on()


def test_few_descriptors_are_enough(job: Begin) -> None:
    before = f"""
import os, resource
kept = [os.open("/dev/null", os.O_RDONLY) for _ in range(20)]
resource.setrlimit(resource.RLIMIT_NOFILE, (max(kept) + 1 + {limits.NEEDED}, 4096))
"""
    works(job(before))


@needs_root
def test_a_cgroup_without_room_for_a_thread(job: Begin) -> None:
    group = Path("/sys/fs/cgroup/pids") / f"tuimon-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError:
        pytest.skip("no cgroup of the first kind with a limit on pids here")
    try:
        target = job()
        (group / "cgroup.procs").write_text(str(target.pid))
        (group / "pids.max").write_text("1")
        with pytest.raises(Refused) as refused:
            attach(target.pid, {})
        assert refused.value.code == "no-new-thread"
        assert "cgroup" in refused.value.sentence
        target.gets_on()
        (group / "pids.max").write_text("max")
        works(target)
    finally:
        with contextlib.suppress(NameError):
            target.end()
        until(lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()


PRIVILEGES = {
    "no_new_privs": "import ctypes; assert ctypes.CDLL(None).prctl(38, 1, 0, 0, 0) == 0",
    "no capabilities": "import ctypes; l = ctypes.CDLL(None)\n"
    "h = (ctypes.c_uint32 * 2)(0x20080522, 0); d = (ctypes.c_uint32 * 6)(); assert l.capset(h, d) == 0",
    "not dumpable": "import ctypes; assert ctypes.CDLL(None).prctl(4, 0, 0, 0, 0) == 0",
}


@needs_root
@pytest.mark.parametrize("before", PRIVILEGES.values(), ids=PRIVILEGES)
def test_privileges_given_up(job: Begin, before: str) -> None:
    works(job(before))


@pytest.fixture
def yama(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[int], None]:
    """Set the scope: the file says so, and the kernel's answer to the question is that of a machine with Yama."""

    def begin(scope: int) -> None:
        (tmp_path / "ptrace_scope").write_text(f"{scope}\n")
        monkeypatch.setattr(preflight, "_YAMA", str(tmp_path / "ptrace_scope"))
        monkeypatch.setattr(preflight, "may_trace_anything", lambda: False)

        def no(*_: object, **__: object) -> None:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(preflight, "Memory", no)

    return begin


@pytest.mark.parametrize(("scope", "step"), [(1, "sysctl"), (2, "sudo"), (3, "rebooted")])
def test_ptrace_scope(job: Begin, yama: Callable[[int], None], scope: int, step: str) -> None:
    target = job()
    yama(scope)
    with pytest.raises(Refused) as refused:
        attach(target.pid, {})
    assert refused.value.code == f"ptrace-scope-{scope}"
    assert step in refused.value.sentence and "tuimon run" in refused.value.sentence
    target.gets_on()


# ------------------------------------------------------------------------------------------------- how it was started


@pytest.mark.parametrize("through", [["timeout", "600"], ["nice", "-n", "5"], ["nohup"], ["setsid", "-w"], ["env", "-i"]])
def test_started_through(job: Begin, through: list[str]) -> None:
    if shutil.which(through[0]) is None:
        pytest.skip(f"no {through[0]} here")
    works(job(through=through))


def test_closed_standard_streams(job: Begin) -> None:
    works(job(through=["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"]))


def test_a_deleted_working_directory(job: Begin) -> None:
    target = job("import os, tempfile\nd = tempfile.mkdtemp(); os.chdir(d); os.rmdir(d)")
    session = attach(target.pid, {})
    assert session.hello["cwd"] is None
    assert session.detach() is not None
    target.gets_on()


@pytest.fixture
def own_python() -> Iterator[tuple[str, Path]]:
    """A copy of the interpreter's program (and its library) that may be deleted."""
    base = Path(os.path.realpath(sys.executable))
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        (Path(directory) / "bin").mkdir()
        (Path(directory) / "lib").mkdir()
        copy = Path(directory) / "bin" / base.name
        shutil.copy2(base, copy)
        for library in (base.parents[1] / "lib").glob("libpython3*.so*"):
            shutil.copy2(library, Path(directory) / "lib" / library.name)
        yield str(copy), Path(directory)


def test_an_interpreter_that_was_upgraded_on_disk(job: Begin, own_python: tuple[str, Path]) -> None:
    python, directory = own_python
    environment = {**os.environ, "PYTHONHOME": sys.base_prefix, "LD_LIBRARY_PATH": str(directory / "lib")}
    target = job(python=python, env=environment)
    shutil.rmtree(directory / "bin")
    shutil.rmtree(directory / "lib")
    assert os.readlink(f"/proc/{target.pid}/exe").endswith("(deleted)")
    works(target)


def test_what_it_costs_to_look_is_nothing_where_there_is_no_filter(job: Begin) -> None:
    target = job()
    facts = procfs.status(target.pid)
    assert seccomp.state(facts).mode == 0
    pauses: list[float] = []
    with procfs.Memory(target.pid) as memory:
        seccomp.check(target.pid, memory, pauses)
    assert not pauses
