"""By which way the bootstrap gets into a process that runs already, and what is tried when one way does not work.

Our own injector comes first everywhere. On 3.14 PEP 768 is the second: it runs a line of Python on the main thread, and Dynamo
sees that line (it compiled 7 frames of ours in 200 attaches to a loop with graph breaks; none with the injector). It needs
no executable memory, no stop and no right to trace, which is what the injector can be refused.

This runs in the helper, which also stays behind when nobody waits any longer: until whatever was queued has come by as a
no-op, and the target is rid of all that the attempt needed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any

from tuimon.attach import preflight, procfs
from tuimon.attach.inject import remote_exec
from tuimon.attach.inject.injector import GONE_S, Injection, Outcome, guarded
from tuimon.attach.inject.remote_exec import RemoteExec, ScriptFile
from tuimon.attach.inject.waiting import Wait
from tuimon.attach.preflight import Target
from tuimon.attach.refusal import Refused

OWN, REMOTE_EXEC = "own", "remote_exec"
ORDER = (OWN, REMOTE_EXEC)
BEGIN_S = 1.0
"""So long PEP 768 is given where another way can follow."""
SOON_S = 0.5
"""So long what the injector needed is waited for before "done" is answered; the rest is for later."""
LINGER_S = 600.0
PASSED_ON = frozenset({"no-memory", "no-cave", "no-room", "no-thread", "denied", "uninterruptible", "may-not-write"})
"""Refusals of the injector that need not be PEP 768's; the others would be the same there, or are the target's own."""

Answer = Callable[[dict[str, Any]], None]
MakeScript = Callable[[], ScriptFile]


def steps(pid: int, version: tuple[int, int], form: str | None, order: tuple[str, ...] = ORDER) -> list[str]:
    """The ways to try, in order. `form` ("pending", "thread", "remote_exec") leaves one of them. Raises Refused, ValueError."""
    if form in ("pending", "thread"):
        return [OWN]
    if form == REMOTE_EXEC:
        if version < remote_exec.FIRST:
            raise Refused(
                "no-remote-exec",
                "process {} runs Python {}.{}; only 3.14 and newer can be asked to run a script".format(pid, *version),
            )
        return [REMOTE_EXEC]
    if form is not None:
        raise ValueError(f"there is no form {form!r}")
    return [step for step in order if step == OWN or version >= remote_exec.FIRST]


class Climb:
    """One attach, from the first way to the last."""

    def __init__(
        self,
        pid: int,
        started: int,
        script: bytes,
        script_file: MakeScript,
        wait: Wait,
        answer: Answer,
        connected: Callable[[], bool],
        form: str | None = None,
        order: tuple[str, ...] = ORDER,
    ) -> None:
        """`started` is the start time by which the caller knows the process; `connected`: whether the hook has said hello."""
        self.pid, self.started = pid, started
        self.script, self.script_file = script, script_file
        self.wait, self.answer, self.connected = wait, answer, connected
        self.form, self.order = form, order
        self.linger_s = LINGER_S

    def run(self) -> None:
        """Get it in. Answers "begun" and "done", or "refused"; then, when something has to be waited for, "settled"."""
        with guarded(self.pid):
            target = preflight.look(self.pid)
            try:
                if target.started != self.started:
                    raise Refused("dead", f"process {self.pid} has ended; its number belongs to another one now")
                ways = steps(self.pid, target.python, self.form, self.order)
                while True:
                    try:
                        self._step(ways.pop(0), target, bool(ways))
                        return
                    except _Next as following:
                        if not ways:
                            raise following.refusal from None
            finally:
                target.close()

    def _step(self, way: str, target: Target, more: bool) -> None:
        if way == OWN:
            self._inject(target, more)
        else:
            self._ask(target, more)

    def _inject(self, target: Target, more: bool) -> None:
        work = Injection(target, self.script, self.wait, self.form)
        try:
            work.run(lambda mechanism: self.answer({"begun": mechanism}))
        except Refused as refusal:
            passed_on = more and refusal.code in PASSED_ON and not procfs.has_ended(self.pid)
            if not passed_on:
                self._refuse(refusal)
            take_time()
            work.clean_up(GONE_S if passed_on else self.linger_s)
            if passed_on and not work.stuck:
                raise _Next(refusal) from None
            if passed_on:
                self._refuse(refusal)
            self.answer({"settled": work.outcome.left})
            return
        more_to_come = work.clean_up(SOON_S)
        self._done(work.outcome)
        if more_to_come:  # a call is queued that the main thread has not come by to make; it will do nothing
            take_time()
            work.clean_up(self.linger_s)
            self.answer({"settled": work.outcome.left})

    def _ask(self, target: Target, more: bool) -> None:
        support = remote_exec.locate(target.memory, target.runtime, target.python, target.pid_inside)
        if support is None:
            raise _Next(
                Refused("no-remote-exec", f"the Python in process {self.pid} does not say where to ask; use `tuimon run`")
            )
        try:
            script = self.script_file()
        except OSError as error:
            raise _Next(
                Refused("script", f"the script for process {self.pid} could not be written: {error.strerror}")
            ) from None
        request = RemoteExec(self.pid, target.memory, support, script)
        try:
            request.run(self.wait, self.connected, lambda: self.answer({"begun": REMOTE_EXEC}), BEGIN_S if more else None)
        except Refused as refusal:
            request.withdraw()
            if more and refusal.code in ("main-busy", "busy") and not self.wait.over():
                request.tidy(never)
                raise _Next(refusal) from None
            self._refuse(refusal)
            request.tidy(never)
            self.answer({"settled": []})
            return
        except BaseException:
            request.tidy(never)
            raise
        request.tidy(self.connected)
        outcome = Outcome()
        outcome.mechanism = REMOTE_EXEC
        self._done(outcome)

    def _refuse(self, refusal: Refused) -> None:
        self.answer({"refused": [refusal.code, refusal.sentence]})

    def _done(self, outcome: Outcome) -> None:
        done = {"mechanism": outcome.mechanism, "kicks": outcome.kicks, "stops": outcome.stops, "left": outcome.left}
        self.answer({"done": done})


class _Next(Exception):
    """This way did not work: try the next, or refuse with this."""

    def __init__(self, refusal: Refused) -> None:
        super().__init__(refusal.sentence)
        self.refusal = refusal


def take_time() -> None:
    """Give up the priority that the helper may have been given for its stops: from here on nobody waits for it."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def never() -> bool:
    """For a hook that is not coming."""
    return False
