"""PEP 768: asking CPython 3.14 itself to run a script file, from outside and from any version of Python.

The target publishes where its parts lie (`_Py_DebugOffsets`, at the start of `_PyRuntime`). Three things are written into its
memory, as the PEP says: the path of a script, a flag in the main thread's state, a bit in that thread's eval breaker. No
thread is stopped. CPython runs the script on the main thread when that next looks at its eval breaker, so the script does
nothing but start a thread: one expression, no function of ours on the main thread.

A user can switch this off (PYTHON_DISABLE_REMOTE_DEBUG, -X disable-remote-debug, a build --without-remote-debug). Such a
process has said no to being debugged, and `interpreter` refuses it, whatever else would work.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import time
from collections.abc import Callable
from typing import NamedTuple

from tuimon.attach import procfs
from tuimon.attach.inject.waiting import Wait
from tuimon.attach.procfs import Memory
from tuimon.attach.refusal import Refused

COOKIE = b"xdebugpy"
FIRST = (3, 14)
"""The first version that has it."""

# Include/internal/pycore_debug_offsets.h of 3.14: 64-bit words, in sections of so many
_SECTIONS = (
    ("cookie, version, free_threaded", 3), ("runtime_state", 3), ("interpreter_state", 16), ("thread_state", 9),
    ("interpreter_frame", 8), ("code_object", 11), ("pyobject", 2), ("type_object", 4), ("tuple_object", 3),
    ("list_object", 3), ("set_object", 4), ("dict_object", 3), ("float_object", 2), ("long_object", 3),
    ("bytes_object", 3), ("unicode_object", 4), ("gc", 2), ("gen_object", 4), ("llist_node", 2),
    ("debugger_support", 6),
)  # fmt: skip
_LAYOUT = struct.Struct(f"<8s{sum(words for _, words in _SECTIONS) - 1}Q")
_INTERPRETERS_HEAD = 5
_INTERPRETER = 6  # size, id, next, threads_head, threads_main, gc, imports_modules, ..
_THREAD = 22  # size, prev, next, interp, current_frame, thread_id, native_thread_id, ..
_SUPPORT = 89  # eval_breaker, remote_debugger_support, enabled, pending_call, script_path, script_path_size
_MOST_INTERPRETERS = 4096

_SIGNALS, _CALLS, _ASYNC, _PLEASE_STOP = 1 << 1, 1 << 2, 1 << 3, 1 << 5  # Include/internal/pycore_ceval.h
READ_S = 2.0
"""So long after the flag is gone the main thread may take to have read the script."""
HELLO_S = 5.0


class Support(NamedTuple):
    """Where a target's part of PEP 768 lies; addresses in its memory."""

    eval_breaker: int
    """Of the main thread's state in the main interpreter."""
    pending: int
    path: int
    path_size: int
    """In bytes, with the zero at the end."""


def is_free_threaded(memory: Memory, runtime: int) -> bool:
    """Whether `_PyRuntime` says that the interpreter is a free-threaded build; the field is there from 3.13 on."""
    try:
        cookie, version, free_threaded = struct.unpack("<8sQQ", memory.read(runtime, 24))
    except OSError:
        return False
    return bool(cookie == COOKIE and version >> 16 >= 0x30D and free_threaded == 1)


def locate(memory: Memory, runtime: int, version: tuple[int, int], main_tid: int) -> Support | None:
    """What `_PyRuntime` says; None where it does not look as it should, so that nothing is written on a guess.

    `main_tid` is the main thread as the target's own pid namespace numbers it: the thread state that is found must say that it
    is this thread's. None too where the interpreter is not up yet.
    """
    try:
        words, interpreter = _main_interpreter(memory, runtime, version)
        if not interpreter:
            return None
        thread = memory.u64(interpreter + words[_INTERPRETER + 4])
        size, owner, native = words[_THREAD], words[_THREAD + 3], words[_THREAD + 6]
        breaker, support, _, pending, path, path_size = words[_SUPPORT:]
        right = (
            thread
            and memory.u64(thread + owner) == interpreter
            and memory.u64(thread + native) == main_tid
            and breaker + 8 <= size
            and support + path + path_size <= size
            and 64 <= path_size <= 1 << 16
        )
        if not right:
            return None
        return Support(thread + breaker, thread + support + pending, thread + support + path, path_size)
    except OSError:
        return None


def is_switched_off(memory: Memory, runtime: int, version: tuple[int, int]) -> bool:
    """Whether the target's user has switched remote debugging off; False where that cannot be seen."""
    try:
        words, interpreter = _main_interpreter(memory, runtime, version)
        # the setting is there before the first module is
        started = interpreter and memory.u64(interpreter + words[_INTERPRETER + 6])
        return bool(started and memory.u32(interpreter + words[_SUPPORT + 2]) == 0)
    except OSError:
        return False


def _main_interpreter(memory: Memory, runtime: int, version: tuple[int, int]) -> tuple[tuple[int, ...], int]:
    """The published words, and the address of the interpreter with id 0 (newer ones stand in front of it), or 0."""
    words = _LAYOUT.unpack(memory.read(runtime, _LAYOUT.size))
    if version < FIRST or words[0] != COOKIE or words[1] >> 16 != version[0] << 8 | version[1]:
        return words, 0
    interpreter = memory.u64(runtime + words[_INTERPRETERS_HEAD])
    identity, following = words[_INTERPRETER + 1], words[_INTERPRETER + 2]
    for _ in range(_MOST_INTERPRETERS):
        if not interpreter or memory.u64(interpreter + identity) == 0:
            return words, interpreter
        interpreter = memory.u64(interpreter + following)
    return words, 0


class ScriptFile:
    """The script in the target's own file system: new, mode 0600, in a directory that is open already."""

    def __init__(self, directory: int, path: str, name: str, text: bytes) -> None:
        """`path` is the directory's as the target sees it. To be made as the target's user. Raises OSError."""
        self.directory, self.name = directory, name
        self.path = f"{path.rstrip('/')}/{name}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        self._fd = os.open(name, flags, 0o600, dir_fd=directory)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX)  # by this `channel` sees that its owner lives
            os.fchmod(self._fd, 0o600)  # whatever the umask
            while text:
                text = text[os.write(self._fd, text) :]
        except BaseException:
            self.remove()
            raise

    def empty(self) -> None:
        """Make it a script that does nothing, for one that is just about to read it."""
        with contextlib.suppress(OSError):
            os.ftruncate(self._fd, 0)

    def remove(self) -> None:
        """Take it away; may be called twice."""
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                os.unlink(self.name, dir_fd=self.directory)
            os.close(self._fd)
            self._fd = -1


class RemoteExec:
    """One request to a target."""

    def __init__(self, pid: int, memory: Memory, support: Support, script: ScriptFile) -> None:
        self.pid, self.memory, self.support, self.script = pid, memory, support, script
        self.asked = False

    def run(self, wait: Wait, connected: Callable[[], bool], tell: Callable[[], None], begin_s: float | None = None) -> None:
        """Ask, and come back once the hook has said hello (`connected`). `tell` is called when the target has taken the script.

        Raises Refused: "main-busy" where it has not been taken when `wait` is over, or after `begin_s` seconds (another way is
        to be tried then); "cancelled"; "script" where nothing came of it. The request is withdrawn then.
        """
        self._ask()
        begun = time.monotonic()
        while self.pending():
            over = wait.over() or ("late" if begin_s is not None and time.monotonic() - begun > begin_s else "")
            if over and self.withdraw():
                raise wait.refused(over, 0)
            wait.look(0)
            time.sleep(0.001)
        tell()
        taken = time.monotonic()
        while not connected():
            if wait.over() == "cancelled":
                self.script.empty()
                raise wait.refused("cancelled", 2)
            if time.monotonic() - taken > HELLO_S:
                raise Refused(
                    "script",
                    f"the Python in process {self.pid} has taken the script but not run it: it may not read "
                    f"{self.script.path}, or an audit hook of the job's forbids it; use `tuimon run`",
                )
            time.sleep(0.001)

    def _ask(self) -> None:
        path = os.fsencode(self.script.path) + b"\0"
        if len(path) > self.support.path_size:
            raise Refused("script", f"the path {self.script.path} is too long for the Python in process {self.pid}")
        if self.pending():
            raise Refused("busy", f"another debugger has just asked process {self.pid} to run a script; try again")
        self.memory.write(self.support.path, path)
        self.memory.write(self.support.pending, struct.pack("<i", 1))
        self.asked = True
        # The bit shares its word with others that the target sets meanwhile. Only the byte of the events is written, and with
        # those set as well that would not be set again if their setting fell between the read and the write; each of them
        # only makes the target look. The two that are left out are asked for again: the GIL every 5 ms, a collection by the
        # next object that is made.
        events = self.memory.read(self.support.eval_breaker, 1)[0]
        self.memory.write(self.support.eval_breaker, bytes([events | _PLEASE_STOP | _SIGNALS | _CALLS | _ASYNC]))

    def pending(self) -> bool:
        """Whether the flag still stands: the script has not been taken."""
        return self.memory.u32(self.support.pending) == 1

    def withdraw(self) -> bool:
        """Take the request back; False where the target has taken the script already (which may then still be run)."""
        if not self.asked:
            return True
        was = self.pending()
        self.memory.write(self.support.pending, bytes(4))
        if was:
            self.script.empty()  # the main thread can have seen the flag an instant ago
            self.asked = False
        return was

    def tidy(self, connected: Callable[[], bool]) -> None:
        """Remove the script once nobody can be about to read it: a missing file would show on the job's stderr."""
        deadline = time.monotonic() + READ_S
        while not connected() and time.monotonic() < deadline and not procfs.has_ended(self.pid):
            time.sleep(0.01)
        self.script.remove()
