"""The machine: its system, tuimon's own Python and packages, and whether attaching works here at all."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import pwd
import resource
import subprocess
import sys
import time
from pathlib import Path

from tuimon import __version__
from tuimon.attach import interpreter, preflight, procfs
from tuimon.attach.find import belongings
from tuimon.attach.inject import ptrace
from tuimon.attach.refusal import Refused
from tuimon.doctor import installation
from tuimon.doctor.checks import Check, TooSlow, note, ok, problem, within

CAP_SYS_NICE = 23
SELF_TEST_S = 30.0
_PACKAGES = {
    "textual": ("the screen", problem),
    "psutil": ("CPU, memory and page faults of the job", note),
    "nvidia-ml-py": ("what the GPUs do", note),
}
_PROGRAM = "import sys; sys.stdin.read()"


def checks() -> list[Check]:
    """All of them."""
    return [*_here(), *_packages(), *_attaching()]


def _here() -> list[Check]:
    system = os.uname()
    what = f"{system.sysname} {system.release} on {system.machine}, {_distribution()}"
    try:
        ptrace.supported()
        found = [ok("machine", "system", what)]
    except Refused as refusal:
        found = [problem("machine", "system", f"{what}: {refusal.sentence}", "tuimon run -- python train.py")]
    version = platform.python_version()
    found.append(ok("machine", "tuimon", f"tuimon {__version__} on Python {version}, {sys.executable}"))
    found.append(installation.check())
    container = _own_container()
    if container:
        found.append(
            note(
                "machine",
                "container",
                f"tuimon runs in {container}: it sees the processes of this container only",
                "run it on the host to see them all; from there: tuimon list --via 'docker exec -i NAME'",
            )
        )
    return [*found, _proc_mount()]


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "unknown system")
    except (OSError, AttributeError):
        return "unknown distribution"


def _own_container() -> str | None:
    with contextlib.suppress(OSError):
        if Path("/proc/2/comm").read_text(encoding="utf-8", errors="replace").strip() == "kthreadd":
            return None  # the kernel's own threads are to be seen: so is everything else
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        return f"the pod {os.environ.get('HOSTNAME', '?')}"
    try:
        name = belongings.container_in_cgroup(Path("/proc/self/cgroup").read_text(encoding="utf-8", errors="replace"))
    except OSError:
        name = None
    if name:
        return f"the container {name}"
    if os.path.exists("/.dockerenv") or os.path.exists("/run/.containerenv"):
        return "a container"
    return None


def _proc_mount() -> Check:
    hidden = None
    try:
        for line in Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines():
            _, where, kind, options = line.split()[:4]
            if where == "/proc" and kind == "proc":
                words = [word for word in options.split(",") if word.startswith("hidepid=")]
                hidden = words[0].partition("=")[2] if words else None
    except (OSError, ValueError):
        return problem("machine", "/proc", "cannot be read", "mount /proc: there tuimon finds the processes")
    if hidden in (None, "0", "off") or preflight.may_trace_anything():
        return ok("machine", "/proc", "shows the processes of every user" if os.geteuid() else "shows every process")
    return note(
        "machine",
        "/proc",
        f"is mounted with hidepid={hidden}: the processes of other users are not shown",
        "sudo tuimon list",
    )


def _packages() -> list[Check]:
    found = []
    for name, (purpose, missing) in _PACKAGES.items():
        try:
            found.append(ok("machine", name, f"{importlib.metadata.version(name)}, for {purpose}"))
        except importlib.metadata.PackageNotFoundError:
            what = f"is not installed: tuimon cannot show {purpose}"
            found.append(missing("machine", name, what, f"{sys.executable} -m pip install {name}"))
    try:
        found.append(ok("machine", "torch", f"{importlib.metadata.version('torch')} next to tuimon (not needed)"))
    except importlib.metadata.PackageNotFoundError:
        found.append(ok("machine", "torch", "none next to tuimon: only its demos need one"))
    return found


# ----------------------------------------------------------------------------------------------------------- attaching


def _attaching() -> list[Check]:
    versions = "{}.{} to {}.{}".format(*interpreter.OLDEST, *interpreter.NEWEST)
    found = [ok("attaching", "Pythons", f"made for CPython {versions}; anything else is refused by name")]
    user = f"{_user(os.geteuid())} ({os.geteuid()})"
    capable = preflight.may_trace_anything()
    scope = preflight.ptrace_scope()
    if capable:
        found.append(ok("attaching", "rights", f"you are {user}, with CAP_SYS_PTRACE: the jobs of every user"))
    elif os.geteuid() == 0:
        found.append(
            note(
                "attaching",
                "rights",
                "you are root, but without CAP_SYS_PTRACE (a container?): root's own jobs only, if at all",
                "start the container with --cap-add=SYS_PTRACE, or run tuimon on the host",
            )
        )
    else:
        found.append(ok("attaching", "rights", f"you are {user}: your own jobs; those of others with sudo"))
    found.append(_yama(scope, capable))
    found.append(_realtime())
    found.append(_places())
    if scope in (None, 0) or (capable and scope != 3):
        found.append(self_test())
    return found


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return "?"


def _yama(scope: int | None, capable: bool) -> Check:
    name = "Yama"
    if scope is None:
        return ok("attaching", name, "this kernel has none: a user may attach to all of their own processes")
    setting = f"kernel.yama.ptrace_scope is {scope}"
    if scope == 0:
        return ok("attaching", name, f"{setting}: a user may attach to all of their own processes")
    if scope == 3:
        return problem(
            "attaching",
            name,
            f"{setting}: nobody may attach until a reboot",
            "start jobs with: tuimon run -- python ..",
        )
    if capable:
        return ok("attaching", name, f"{setting}, which does not concern a user with CAP_SYS_PTRACE")
    who = "only the program that started a process may attach to it" if scope == 1 else "only root may attach"
    more = ", or sudo sysctl kernel.yama.ptrace_scope=0" if scope == 1 else ""
    return problem("attaching", name, f"{setting}: {who}", f"sudo tuimon ..{more}; or start jobs with `tuimon run`")


def _realtime() -> Check:
    capable = False
    with contextlib.suppress(OSError, KeyError, ValueError):
        capable = bool(int(procfs.status(os.getpid())["CapEff"], 16) >> CAP_SYS_NICE & 1)
    allowed = capable or resource.getrlimit(resource.RLIMIT_RTPRIO)[0] != 0
    if allowed:
        return ok("attaching", "priority", "real-time priority is allowed")
    return ok(
        "attaching",
        "priority",
        "no real-time priority for this user: on a machine that is full, an attach may stop one thread for some milliseconds",
    )


def _places() -> Check:
    wanted = dict.fromkeys(path for path in (os.environ.get("TMPDIR", ""), "/tmp", "/dev/shm", "/var/tmp") if path)
    usable = [path for path in wanted if os.path.isdir(path) and os.access(path, os.W_OK | os.X_OK)]
    if usable:
        return ok("attaching", "socket", f"the hook can be met in {', '.join(usable)}")
    return problem(
        "attaching", "socket", f"none of {', '.join(wanted)} can be written to", "set TMPDIR to a directory of yours"
    )


def self_test() -> Check:
    """Attach to a Python that is started for it, with the real hook, and detach again."""
    from tuimon.attach.session import attach

    name = "self-test"
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            _wait_for_start(process)
            begun = time.monotonic()
            session = within(SELF_TEST_S, lambda: attach(process.pid, {}))
            took = time.monotonic() - begun
            goodbye = session.detach()
            left = list((goodbye or {}).get("left") or []) if goodbye is not None else ["no goodbye"]
        except Refused as refusal:
            return problem("attaching", name, f"tuimon cannot attach to a Python that it started for this: {refusal.sentence}")
        except TooSlow:
            return problem(
                "attaching", name, f"attaching to a Python that it started for this took more than {SELF_TEST_S:g} s"
            )
        finally:
            process.kill()
    if left:
        return problem(
            "attaching", name, f"attached to a Python that it started for this, but this was left: {', '.join(left)}"
        )
    return ok("attaching", name, f"attached to a Python that it started for this, in {took * 1000:.0f} ms, and left nothing")


def _wait_for_start(process: subprocess.Popen[bytes]) -> None:
    """Until it sits in its read, or has had time enough."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and process.poll() is None:
        call = procfs.thread_call(process.pid, process.pid)
        if call is not None and call.number is not None and call.arguments[:1] == (0,):
            return
        time.sleep(0.01)
