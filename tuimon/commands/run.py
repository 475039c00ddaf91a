"""`tuimon run -- COMMAND`: start a program with the hook in it from its first line, and watch it."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from tuimon.attach.launch import how_it_ended, launch
from tuimon.attach.refusal import Refused
from tuimon.commands import run_log
from tuimon.commands.below import Below
from tuimon.commands.beside import Beside
from tuimon.commands.options import CANNOT_ATTACH, DONE, FAILED, Options, say
from tuimon.commands.recordings import CannotRecord, Recordings
from tuimon.commands.watch import report, signals, watch
from tuimon.draw.text import clean
from tuimon.feed import LiveFeed
from tuimon.fleet import Fleet

if TYPE_CHECKING:
    from tuimon.app.tour import Tour

STOP_S = 5.0

MOST_OF_END = 1 << 16
LAST_LINES = 15
"""So many lines of a failed program's output are shown after the screen is gone."""


def run(
    command: Sequence[str],
    options: Options,
    env: Mapping[str, str] | None = None,
    *,
    ends_with_us: bool = False,
    tour: Tour | None = None,
) -> int:
    """Start `command` and watch it. Gives the program's own exit status (128 + n where signal n killed it).

    With `ends_with_us` the program is a demonstration: it is stopped when the watching stops. `tour` says what to look at.
    """
    environ = dict(os.environ if env is None else env)  # as it is now: the screen library is told of things in ours
    try:
        output = run_log.new_log() if options.screen else None
    except OSError as error:
        say(f"nothing was started: there is no place for the program's output ({error.strerror}); set XDG_STATE_HOME or TMPDIR")
        return FAILED
    if output is not None:
        from tuimon.app import warm_up

        warm_up()
    relay = _Relay()
    with relay, signals(signal.SIGINT) as interrupted:
        with contextlib.ExitStack() as stack:
            streams = _streams(output, options, stack)
            try:
                process, session = launch(list(command), options.hook, env=environ, **streams)
            except Refused as refusal:
                say(f"{clean(refusal.sentence)} [{refusal.code}]")
                if refusal.process is None:
                    if output is not None:
                        output.unlink(missing_ok=True)
                    return CANNOT_ATTACH
                relay.to(refusal.process)
                return _see_out(refusal.process, output, told=refusal.code == "ended")
        relay.to(process)
        feed = LiveFeed(session, shlex.join(command), process, output, pcie=options.pcie)
        options.judge(feed.model)
        with Recordings(options.record) as recordings:
            try:
                recordings.begin([feed])
            except CannotRecord as error:  # it could a moment ago; the program runs already, and nobody is to wait for it twice
                say(f"{error}; the program is watched without a recording")
            feed.start()
            if output is None:
                _headless(feed, process, options, interrupted)
    if output is not None:
        _under_the_screen(feed, process, options, tour)
    with relay:
        # a demonstration would have gone on: stopping it is no failure
        told = output is None and feed.model.target.ended == "exited"
        status = DONE if ends_with_us and _stop(process) else _see_out(process, output, told=told)
    if ends_with_us and output is not None and status == DONE:
        output.unlink(missing_ok=True)
    return status


def _streams(output: Path | None, options: Options, stack: contextlib.ExitStack) -> dict[str, Any]:
    """Where the program's own output goes: our data on stdout must stay parseable, and a screen must stay whole."""
    if output is not None:
        file = stack.enter_context(run_log.opened(output))
        return {"stdin": subprocess.DEVNULL, "stdout": file, "stderr": subprocess.STDOUT}
    return {} if options.output is not None or not options.reported else {"stdout": sys.stderr.fileno()}


def _headless(feed: LiveFeed, process: subprocess.Popen[bytes], options: Options, interrupted: threading.Event) -> None:
    beside = Beside(Fleet([feed]), options)
    with Below(feed.model, feed.pid or process.pid):
        why = watch(feed, options, interrupted, beside)
        if why == "interrupted" and _from_the_terminal():
            # Ctrl-C went to the program too: what it does about it is its own affair, and part of the report
            interrupted.clear()
            say(f"interrupted: waiting for the program (pid {process.pid}) to end; Ctrl-C again stops the watching")
            why = watch(feed, options, interrupted, beside)
    feed.detach()
    if why == "ended":
        say(clean(feed.model.target.ended_detail))
    report(feed, options)


def _under_the_screen(feed: LiveFeed, process: subprocess.Popen[bytes], options: Options, tour: Tour | None) -> None:
    from tuimon.commands.screen import show

    status = show(feed, options, tour)
    if status > 128:  # the monitor takes the signals for itself, to leave the terminal whole
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(status - 128)


def _from_the_terminal() -> bool:
    """Whether a SIGINT of ours most likely was a Ctrl-C, which the program in the same foreground group got as well."""
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


def _stop(process: subprocess.Popen[bytes]) -> bool:
    """End a demonstration that still runs. False if it had ended by itself."""
    if process.poll() is not None:
        return False
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return True


def _see_out(process: subprocess.Popen[bytes], output: Path | None, *, told: bool) -> int:
    """Wait for a program that is not watched any more; gives its status as a shell would have it.

    `told` says that its end has been narrated already. Ctrl-C is for the program; we wait for what it makes of it. Where its
    output went to a file, say so, and show the end of it if the program failed: the screen is gone and nobody has seen why.
    """
    where = "" if output is None else f"; its output: {output}"
    if process.poll() is None:
        say(f"the program goes on without tuimon as pid {process.pid}{where}; Ctrl-C stops it")
    with signals(signal.SIGINT):
        status = process.wait()
    if not told:
        say(f"the program has ended: {how_it_ended(status)}{where}")
    if output is not None and status != 0:
        for line in _end_of(output).splitlines()[-LAST_LINES:]:
            sys.stderr.write(f"  {clean(line)}\n")
    return status if status >= 0 else 128 - status


def _end_of(output: Path) -> str:
    """The last of what a program has printed: that may be gigabytes. Nothing where it is gone, as somebody may remove it."""
    with contextlib.suppress(OSError), output.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - MOST_OF_END))
        return file.read(MOST_OF_END).decode("utf-8", errors="replace")
    return ""


class _Relay:
    """Passes SIGTERM and SIGHUP on to the program: who stops `tuimon run` means to stop what it runs.

    A context; may be entered again. What arrives before the program is known is passed on as soon as it is.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._waiting: list[int] = []
        self._before: dict[signal.Signals, Any] = {}

    def to(self, process: subprocess.Popen[bytes]) -> None:
        """This is the program."""
        self._process = process
        for number in self._waiting:
            self._send(number)

    def __enter__(self) -> None:
        self._before = {number: signal.signal(number, self._arrived) for number in (signal.SIGTERM, signal.SIGHUP)}

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _arrived(self, number: int, _: FrameType | None) -> None:
        if self._process is None:
            self._waiting.append(number)
        elif self._process.poll() is None:
            self._send(number)
        else:  # nobody to pass it on to: it is for tuimon, which may be waiting for a reader of its report
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    def _send(self, number: int) -> None:
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)
