"""One process: everything that matters for attaching to it, read from outside. It is neither stopped nor changed."""

from __future__ import annotations

import contextlib
import os
import struct
from dataclasses import replace

from tuimon.attach import calls, explain, preflight, procfs
from tuimon.attach.find import belongings, choice
from tuimon.attach.find.process import Target, describe
from tuimon.attach.inject import ladder, seccomp
from tuimon.attach.refusal import Refused
from tuimon.doctor import attached, gpu
from tuimon.doctor.checks import Check, note, ok, problem

PART = "process"
MOST_THREADS = 12
_STATES = {
    "R": "runs", "S": "sleeps", "D": "is in uninterruptible sleep", "T": "is stopped", "t": "is stopped by a tracer",
    "Z": "has ended (a zombie)", "X": "has ended", "I": "is idle",
}  # fmt: skip
_MACHINES = {62: "x86_64", 183: "aarch64", 3: "i386", 40: "arm", 243: "riscv64", 22: "s390x", 21: "ppc64"}
_NEXT = {
    "dead": "tuimon list",
    "zombie": "tuimon list",
    "tid": "attach to the process instead of its thread",
    "not-python": "tuimon list",
    "uid": "sudo tuimon attach {pid}",
    "stopped": "kill -CONT {pid}",
    "traced": "end the debugger, strace or monitor that traces it",
    "ptrace-scope-1": "sudo tuimon attach {pid}, or sudo sysctl kernel.yama.ptrace_scope=0",
    "ptrace-scope-2": "sudo tuimon attach {pid}",
    "ptrace-scope-3": "start the job with `tuimon run`",
    "denied": "sudo tuimon attach {pid}, or run tuimon on the host",
    "new-python": "start the job with `tuimon run`",
    "old-python": "start the job with a newer Python",
    "free-threaded": "start the job with `tuimon run`",
    "already-attached": "leave that one first (q)",
    "remote-debug-off": "start the job without the switch, or with `tuimon run`",
}
_FACT = {
    "stopped": "state", "zombie": "state", "dead": "state", "traced": "tracer", "uid": "owner", "already-attached": "monitors",
    "remote-debug-off": "PEP 768", "seccomp": "seccomp",
}  # fmt: skip
"""Code of a verdict -> the name of the check that shows the same thing."""


def checks(pid: int) -> tuple[list[Check], bool]:
    """What there is to say of a process, and whether `tuimon attach PID` would attach to anything."""
    verdict, works = _verdict(pid)
    try:
        facts = procfs.status(pid)
        target = describe(pid)
    except OSError:
        return [verdict], works
    found = [*_about(pid, facts, target), *_state(pid, facts), _program(pid)]
    if target is not None:
        found += [*_python(pid, target), *_role(target)]
    monitors = _other_tuimon(pid)
    found += [_namespaces(pid, facts), _filter(facts), *_threads(pid), *gpu.of_process(pid), monitors]
    code = ""
    if works and monitors.state == "problem":
        works, code = False, "already-attached"
        verdict = _no(pid, code, "another tuimon is attached to this process; one at a time")
    elif not works:
        code = verdict.what.rpartition("[")[2].rstrip("]")
    return [*(_counted_once(check, code) for check in found), verdict], works


def _counted_once(check: Check, code: str) -> Check:
    """The fact behind the verdict is a note: it is one problem, and the verdict says it, with what to do."""
    return replace(check, state="note", next_step=None) if check.name == _FACT.get(code) and check.state == "problem" else check


def _verdict(pid: int) -> tuple[Check, bool]:
    try:
        meant = choice.choose([pid], False)
    except Refused as refusal:
        return _no(pid, refusal.code, refusal.sentence), False
    refused = [target for target in meant if not target.attachable]
    if refused and (len(refused) == len(meant) or pid in [target.pid for target in refused]):
        first = next((target for target in refused if target.pid == pid), refused[0])
        return _no(first.pid, first.code or "no-job", first.why or ""), False
    if [target.pid for target in meant] == [pid]:
        what = f"tuimon can attach: {_ways(meant[0])}"
    else:
        pids = ", ".join(str(target.pid) for target in meant[:8]) + (", .." if len(meant) > 8 else "")
        what = f"stands for {len(meant)} job{'s' if len(meant) > 1 else ''}: {pids}"
    return Check(PART, "attach", "ok", what, f"tuimon attach {pid}"), True


def _no(pid: int, code: str, sentence: str) -> Check:
    return problem(PART, "attach", f"{sentence} [{code}]", _NEXT.get(code, "").format(pid=pid) or None)


def _ways(target: Target) -> str:
    version = tuple(int(part) for part in (target.python or "0.0").split("."))
    try:
        names = ladder.steps(target.pid, (version[0], version[1]), None)
    except (Refused, ValueError, IndexError):
        return "by its own injector"
    words = {ladder.OWN: "by the injector", ladder.REMOTE_EXEC: "by asking Python (PEP 768)"}
    return ", then ".join(words.get(name, name) for name in names)


def _about(pid: int, facts: dict[str, str], target: Target | None) -> list[Check]:
    name = facts.get("Name", "?")
    command = " ".join(target.command) if target is not None else ""
    found = [ok(PART, "name", f"{pid} {name}" + (f": {command}" if command else ""))]
    uid, own = _uid(facts), os.geteuid()
    user = (target.user if target is not None else None) or str(uid)
    if uid == own:
        found.append(ok(PART, "owner", f"{user}, as you are"))
    elif preflight.may_trace_anything():
        found.append(ok(PART, "owner", f"{user}; you may attach to everybody's"))
    else:
        found.append(problem(PART, "owner", f"{user}, and you are another user", f"sudo tuimon attach {pid}"))
    return found


def _uid(facts: dict[str, str]) -> int:
    try:
        return int(facts["Uid"].split()[0])
    except (KeyError, ValueError, IndexError):
        return -1


def _state(pid: int, facts: dict[str, str]) -> list[Check]:
    letter = facts.get("State", "?")[:1]
    what = f"{_STATES.get(letter, letter)} ({letter})"
    if letter in "T":
        found = [problem(PART, "state", what, f"kill -CONT {pid}")]
    elif letter in "ZX":
        found = [problem(PART, "state", what, "tuimon list")]
    elif letter == "D":
        found = [note(PART, "state", f"{what}: the hook begins when that is over", "wait, or look at the disk or file system")]
    else:
        found = [ok(PART, "state", what)]
    tracer = int(facts.get("TracerPid", "0") or 0)
    if tracer:
        found.append(problem(PART, "tracer", f"is traced by process {tracer}", "end that one first"))
    else:
        found.append(ok(PART, "tracer", "none"))
    return found


def _program(pid: int) -> Check:
    try:
        path = os.readlink(f"/proc/{pid}/exe")
        with open(f"/proc/{pid}/exe", "rb") as file:
            header = file.read(20)
    except OSError as error:
        return note(PART, "program", f"may not be seen ({error.strerror})")
    if len(header) < 20 or header[:4] != b"\x7fELF":
        return note(PART, "program", f"{path} is no ELF program")
    bits = {1: "32-bit", 2: "64-bit"}.get(header[4], "?")
    machine = _MACHINES.get(struct.unpack_from("<H", header, 18)[0], "another machine")
    what = f"{path}, {bits} {machine}"
    if bits != "64-bit" or machine != os.uname().machine:
        return problem(PART, "program", what, "run tuimon on a machine of its own kind")
    return ok(PART, "program", what)


def _python(pid: int, target: Target) -> list[Check]:
    found = []
    mapped = _maps(pid)
    library = next((m.path for m in mapped if "/libpython" in m.path and not m.path.endswith(("libpython3.so",))), None)
    where = f"in {library}" if library else "linked into the program (static)"
    gone = (library or _exe(pid)).endswith(" (deleted)")
    if target.python is None:
        found.append(note(PART, "Python", "its version cannot be seen"))
    else:
        extra = ": that file has been replaced or removed since, which does no harm" if gone else ""
        threaded = ", free-threaded" if target.code == "free-threaded" else ""
        found.append(ok(PART, "Python", f"{target.python}{threaded}, {where.removesuffix(' (deleted)')}{extra}"))
    if target.python is not None and tuple(map(int, target.python.split("."))) >= (3, 14):
        off = target.code == "remote-debug-off"
        what = f"debugging from outside is switched {'off by its user' if off else 'on'} (PEP 768)"
        found.append(problem(PART, "PEP 768", what, _NEXT["remote-debug-off"]) if off else ok(PART, "PEP 768", what))
    torch = belongings.torch_library("\n".join(m.path for m in mapped))
    if torch:
        found.append(ok(PART, "torch", f"{belongings.torch_version(pid, torch) or 'version not known'}, {torch}"))
    elif target.has_torch is False:
        found.append(note(PART, "torch", "is not loaded: tuimon attaches, and waits for the program to import it"))
    else:
        found.append(note(PART, "torch", "cannot be seen"))
    return found


def _maps(pid: int) -> list[procfs.Mapping]:
    try:
        return procfs.mappings(pid)
    except OSError:
        return []


def _exe(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""


def _role(target: Target) -> list[Check]:
    parent = f", below process {target.parent}" if target.parent is not None else ""
    role = f"{target.kind}{parent}"
    if target.rank is not None:
        size = f" of {target.world_size}" if target.world_size is not None else ""
        local = f", local rank {target.local_rank}" if target.local_rank is not None else ""
        role += f", rank {target.rank}{size}{local}"
    if target.job:
        role += f", job {target.job}"
    found = [ok(PART, "role", role) if target.kind in ("job", "launcher") else note(PART, "role", role)]
    if target.gpus:
        found.append(ok(PART, "GPUs", ", ".join(map(str, target.gpus))))
    else:
        found.append(ok(PART, "GPUs", "none in use" if target.gpus == [] else "cannot be seen"))
    return found


def _namespaces(pid: int, facts: dict[str, str]) -> Check:
    container = belongings.container(pid, facts, procfs.environment(pid))
    inside = facts.get("NSpid", "").split()
    number = f", where it is process {inside[-1]}" if len(inside) > 1 else ""
    root = ""
    try:
        link = os.readlink(f"/proc/{pid}/root")
        root = f"; its root is {link}" if link != "/" else ""
    except OSError:
        pass
    if container is None:
        return ok(PART, "container", f"none but ours{root}")
    named = "a container or namespace of its own" if container == "yes" else container
    return ok(PART, "container", f"{named}{number}{root}; tuimon can attach from outside")


def _filter(facts: dict[str, str]) -> Check:
    try:
        mode, filters = seccomp.state(facts)
    except ValueError:
        mode, filters = 0, None
    if mode == 0:
        return ok(PART, "seccomp", "no filter")
    if mode == 1:
        return problem(
            PART, "seccomp", "strict mode: the kernel kills it for any call that attaching needs", "use `tuimon run`"
        )
    count = "a filter" if filters in (None, 1) else f"{filters} filters"
    return note(PART, "seccomp", f"{count}; what it says is found out before anything is done")


def _threads(pid: int) -> list[Check]:
    tids = procfs.thread_ids(pid)
    groups: dict[tuple[str, str], int] = {}
    for tid in tids[1:]:
        key = (_thread_name(pid, tid), _doing(pid, tid))
        groups[key] = groups.get(key, 0) + 1
    seen = procfs.thread_call(pid, pid) is not None
    found = [ok(PART, "main thread", explain.where_is_main(pid) if seen else "what it does may not be seen")]
    if groups:
        most = sorted(groups.items(), key=lambda item: -item[1])
        words = [
            f"{count} x {name} {doing}" if count > 1 else f"{name} {doing}" for (name, doing), count in most[:MOST_THREADS]
        ]
        more = f", and {len(most) - MOST_THREADS} kinds more" if len(most) > MOST_THREADS else ""
        found.append(ok(PART, "threads", f"{len(tids) - 1} more: {', '.join(words)}{more}"))
    return found


def _thread_name(pid: int, tid: int) -> str:
    try:
        return procfs.status(pid, tid).get("Name", "?")
    except OSError:
        return "?"


def _doing(pid: int, tid: int) -> str:
    call = procfs.thread_call(pid, tid)
    if call is None:
        return "(?)"
    with contextlib.suppress(OSError):
        state = procfs.status(pid, tid).get("State", "?")[:1]
        if state in calls.HALTED:
            return calls.HALTED[state]
    if call.running or call.number is None:
        return "runs"
    if call.number < 0:
        return "waits for memory"
    named = calls.name(call.number)
    return f"in {calls.INTERRUPTED if named == calls.RESTARTED else named}"


def _other_tuimon(pid: int) -> Check:
    try:
        other = attached.tuimon_of(pid)
    except OSError:
        return ok(PART, "monitors", "whether another tuimon is attached cannot be told from outside")
    if other is None:
        return ok(PART, "monitors", "no other tuimon of this machine is attached")
    return problem(PART, "monitors", f"tuimon (process {other}) is attached to it")
