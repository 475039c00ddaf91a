"""The command that gets there, as a process, and the talk with the shell over there until a far end of tuimon runs.

The shell is asked for one thing after the other, each in one line, and the next is not sent before the answer to the last has
come: a shell may read ahead on a pipe. The command must not be stopped by a Ctrl-C in our terminal, so that tuimon can still
detach cleanly, but must stay in the terminal's foreground, where ssh asks for passwords: it runs with SIGINT blocked.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import secrets
import select
import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any

from tuimon.attach.refusal import Refused
from tuimon.draw.text import clean
from tuimon.relay import sent
from tuimon.relay.place import Place
from tuimon.relay.protocol import MARK_VARIABLE, RELAY

NOISE_LIMIT = 1 << 20
"""Bytes of a login script's own words that are passed over before it is no use to wait on."""
STEP_S = 60.0
"""What each answer may take, once the shell has given its first. That one may take any time: somebody types a password."""
WAITING_FROM_S = 1.0
CLOSING_S, STALL_LOOK_S = 0.5, 0.2
"""So long a stalled write goes on once it is to end, and so often it looks."""
SHOWN = 300
"""Characters of a foreign sentence that are shown."""

COMMANDS = ("tuimon", "python3 -m tuimon", "python -m tuimon")
_NUMBERED = {str(n): command for n, command in enumerate(COMMANDS)}
PYTHONS = ("python3", "python3.14", "python3.13", "python3.12", "python3.11", "python3.10", "python",
           "/opt/conda/bin/python3", "/usr/local/bin/python3")  # fmt: skip

# The mark is written in two pieces: where something echoes what it reads, the echo is not taken for an answer.
_ASK = (
    "cd /; M={head}''{tail}; p() {{ n=$1; shift; command -v \"$1\" >/dev/null 2>&1 || return 1; "
    'o=$({variable}=probe "$@" relay </dev/null 2>/dev/null) || return 1; '
    "case $o in '{{'*) printf '\\n%s\\n' \"$M tuimon $n $o\";; *) return 1;; esac; }}; "
    "{probes}; printf '\\n%s\\n' \"$M asked\"\n"
)
_ASK_PYTHONS = (
    'for p in {pythons}; do v=$("$p" -c \'import sys; print("%d.%d" % sys.version_info[:2])\' </dev/null 2>/dev/null) && '
    "printf '\\n%s\\n' \"$M python $p $v\"; done; printf '\\n%s\\n' \"$M asked\"\n"
)


class Contact:
    """What a caller may be told while it takes time, and how it says that it does not want to go on."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()

    def say(self, sentence: str) -> None:
        """Something has been reached."""

    def waiting(self, sentence: str, since_s: float) -> None:
        """What is waited for, since so many seconds."""


class Line:
    """The process, its streams, and what it says on stderr."""

    def __init__(self, place: Place, contact: Any) -> None:
        """Start the command. Raises Refused("no-command")."""
        self.place = place
        self._contact = contact
        self._mark = f"tuimon-{secrets.token_hex(8)}"
        self._held = b""
        self._noise = 0
        self._said = bytearray()
        self._write_until = math.inf
        self._ending = threading.Lock()
        if shutil.which(place.command[0]) is None:
            hint = "install an ssh client, or use --via" if place.ssh else "is it installed, and spelled right?"
            raise Refused("no-command", f"there is no program {place.command[0]!r} here: {hint}")
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            self.process = subprocess.Popen(
                place.shell, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
            )
        except OSError as error:
            raise Refused("no-command", f"{place.command[0]!r} cannot be run: {error.strerror}") from None
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        assert self.process.stdin is not None and self.process.stdout is not None
        self.writing, self.reading = self.process.stdin.fileno(), self.process.stdout.fileno()
        os.set_blocking(self.writing, False)
        os.set_blocking(self.reading, False)
        self._listener = threading.Thread(target=self._listen, name="tuimon stderr", daemon=True)
        self._listener.start()

    # ------------------------------------------------------------------------------------------------------ the talk

    def begin(self, send: Callable[[str], bool] | None) -> bytes:
        """Have a far end run over there; gives what it has said already behind its first line. Raises Refused.

        `send` is asked where there is no tuimon, or none that can be talked to; where it says no, or is None, that is refused.
        """
        self._contact.say(f"connecting to {self.place.there}")
        half = len(self._mark) // 2
        probes = " || ".join(f"p {n} {command}" for n, command in _NUMBERED.items())
        ask = _ASK.format(head=self._mark[:half], tail=self._mark[half:], variable=MARK_VARIABLE, probes=probes)
        self.write(ask.encode())
        found: tuple[str, dict[str, Any]] | None = None
        waiting = (
            f"waiting for ssh to reach {self.place.name}" if self.place.ssh else f"waiting for {self.place.there} to answer"
        )
        for answer in self._answers(waiting, None):
            word, _, rest = answer.partition(" ")
            if word == "tuimon":
                number, _, facts = rest.partition(" ")
                if number not in _NUMBERED:
                    raise Refused("protocol", f"{self.place.there} has answered what it was not asked: {_shown(answer)}")
                found = _NUMBERED[number], _object(facts)
        if found is not None and found[1].get("protocol") == RELAY:
            self._run(found[0])
        else:
            self._run_sent(found, send)
        for _ in self._answers(f"starting tuimon at {self.place.there}", STEP_S, until="relay"):
            pass
        return self._held

    def _run(self, command: str) -> None:
        self._contact.say(f"{self.place.there} has answered; starting {command.rpartition(' ')[2]} there")
        self.write(f"export {MARK_VARIABLE}=$M; exec {command} relay\n".encode())

    def _run_sent(self, found: tuple[str, dict[str, Any]] | None, send: Callable[[str], bool] | None) -> None:
        name = self.place.there
        if found is None:
            code, why = "no-tuimon", f"there is no tuimon at {name}"
            else_ = "install it there (pip install tuimon), or have this one sent along for the time of the attach: --send"
        else:
            code = "protocol"
            why = (
                f"tuimon {_shown(found[1].get('tuimon'))} at {name} speaks relay protocol {_shown(found[1].get('protocol'))}, "
                f"this one {RELAY}"
            )
            else_ = "upgrade the older of the two, or have this one sent along for the time of the attach: --send"
        if send is None:
            raise Refused(code, f"{why}; {else_}")
        pythons: list[tuple[str, str]] = []
        self.write(_ASK_PYTHONS.format(pythons=" ".join(PYTHONS)).encode())
        for answer in self._answers(f"looking for a Python at {name}", STEP_S):
            words = answer.split()
            if len(words) == 3 and words[0] == "python" and words[1] in PYTHONS:
                pythons.append((words[1], words[2]))
        fit = next((python for python, version in pythons if _version(version) >= sent.OLDEST), None)
        if fit is None:
            there = ", ".join(sorted({_shown(version) for _, version in pythons})) or "none"
            raise Refused("no-python", f"{why}, and it cannot be sent: it needs Python 3.10 or later there (found: {there})")
        pack = sent.pack()
        question = f"{why}. Send this one along ({len(pack) // 1024} kB)? It is kept in memory there and gone at the end."
        if not send(question):
            raise Refused(code, f"{why}; {else_}")
        self._contact.say(f"sending tuimon to {name}, {len(pack) // 1024} kB, for {fit} there")
        self.write(f"export {MARK_VARIABLE}=$M; exec {fit} -c {shlex.quote(sent.LOADER)} {len(pack)}\n".encode())
        for _ in self._answers(f"starting Python at {name}", STEP_S, until="ready"):
            pass
        self.write(pack)

    def _answers(self, waiting: str, seconds: float | None, until: str = "asked") -> list[str]:
        """The lines with our mark, without it, up to the one that says `until`. Raises Refused."""
        found: list[str] = []
        began = time.monotonic()
        told = False
        mark = self._mark.encode() + b" "
        while True:
            at = self._held.find(mark)
            end = self._held.find(b"\n", at) if at >= 0 else -1
            if end >= 0:
                text = self._held[at + len(mark) : end].decode("utf-8", "replace").strip()
                self._drop(end + 1)
                if text == until:
                    return found
                found.append(text)
                continue
            self._drop(at if at >= 0 else max(0, len(self._held) - len(mark)))
            now = time.monotonic()
            if self._noise + len(self._held) > NOISE_LIMIT:
                raise Refused("connect", f"what answers at {self.place.there} is no shell, or its login scripts never end")
            if self._contact.cancelled.is_set():
                raise Refused("cancelled", f"cancelled while {waiting}")
            if seconds is not None and now - began > seconds:
                raise Refused("connect", f"no answer within {seconds:g} s while {waiting}; try again{self.says()}")
            # a password may be being typed at this very terminal: nothing is written over it
            quiet = seconds is None and os.isatty(0)
            if now - began > WAITING_FROM_S and not told and not quiet:
                told = True
                self._contact.waiting(waiting, now - began)
            data = self.read(0.1)
            if data == b"":
                raise self._ended()
            self._held += data or b""

    def _drop(self, length: int) -> None:
        self._held = self._held[length:]
        self._noise += length

    def _ended(self) -> Refused:
        """Why the command has ended before a far end ran."""
        try:
            status = self.process.wait(2.0)
        except subprocess.TimeoutExpired:
            status = None
        self._listener.join(0.5)
        said = self.said()
        if said:
            return Refused("connect", f"{self.place.program} says: {said}")
        if self.place.ssh:
            hint = f"does `ssh {self.place.name} true` work?"
            return Refused("connect", f"ssh has ended with status {status} and no word; {hint}")
        return Refused(
            "connect",
            f"{self.place.there} has ended (status {status}) before anything answered; does it pass standard input on "
            "(docker exec -i, kubectl exec -i), and is there a `sh`?",
        )

    # --------------------------------------------------------------------------------------------------- the streams

    def read(self, seconds: float) -> bytes | None:
        """What has come; None when nothing has within so many seconds, b"" at the end."""
        if not select.select([self.reading], [], [], seconds)[0]:
            return None
        try:
            return os.read(self.reading, 1 << 18)
        except BlockingIOError:
            return None
        except OSError:
            return b""

    def write(self, data: bytes, seconds: float = STEP_S) -> bool:
        """Write all of it; False where the line does not take it in so many seconds, or is gone."""
        deadline = time.monotonic() + seconds
        view = memoryview(data)
        while view:
            left = min(deadline, self._write_until) - time.monotonic()
            if not select.select([], [self.writing], [], min(max(0.0, left), STALL_LOOK_S))[1]:
                if left <= STALL_LOOK_S:
                    return False
                continue
            try:
                view = view[os.write(self.writing, view) :]
            except BlockingIOError:
                continue
            except OSError:
                return False
        return True

    def hurry(self) -> None:
        """It is to end: a write that a stalled line holds up, on another thread, gives up within a moment."""
        self._write_until = time.monotonic() + CLOSING_S

    def shut(self) -> None:
        """Close our side; nobody may be writing. May be called twice."""
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()

    def end(self, seconds: float = 2.0) -> None:
        """`shut`, and see the command end. May be called twice."""
        self.shut()
        with self._ending:
            for end in (None, self.process.terminate, self.process.kill):
                if end is not None:
                    end()
                try:
                    self.process.wait(seconds)
                    break
                except subprocess.TimeoutExpired:
                    continue

    def close(self, seconds: float = 2.0) -> None:
        """`end`, and give up what may still come: nobody may be reading then."""
        self.end(seconds)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def says(self) -> str:
        """` (ssh says: ...)`, or nothing."""
        said = self.said()
        return f" ({self.place.program} says: {said})" if said else ""

    def said(self) -> str:
        """The last lines of what the command has said on stderr, fit for a terminal."""
        lines = [clean(line).strip() for line in bytes(self._said).decode("utf-8", "replace").splitlines()]
        told = [line for line in lines if line and not line.startswith("Warning: Permanently added")]
        return "; ".join(told[-3:])[-SHOWN:]

    def _listen(self) -> None:
        assert self.process.stderr is not None
        with contextlib.suppress(OSError, ValueError):
            while data := self.process.stderr.read(4096):
                self._said += data
                del self._said[:-8192]


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _version(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"([0-9]{1,3})\.([0-9]{1,3})", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _shown(value: Any) -> str:
    return clean(str(value))[:40]
