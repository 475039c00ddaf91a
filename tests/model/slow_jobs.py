"""A job of steps of 20 ms, as events, into which slow steps are put."""

from __future__ import annotations

from collections.abc import Sequence

from tests.model.script import added, target
from tuimon import events as ev
from tuimon.model import Model

MS = 1_000_000
FILE = "/w/train.py"
FORWARD, OPTIMIZER, GC, DATA, COMMUNICATION, PROFILER, CPU = 1, 9, 11, 12, 13, 14, 15
TID = 777
MAIN, STALL, TORCH = 50, 51, 52
"""Code objects: the loop, a function that it calls, and one of torch's."""


class Job:
    """A model and the time in it. A step begins with a forward call of 8 ms and ends with the optimizer's 2 ms."""

    def __init__(self) -> None:
        self.model = Model()
        self.ns = 1000 * MS
        self.cpu_ns = 0
        self.step_n = 0
        self.apply(
            target(),
            ev.ThreadSeen(0, 0, "MainThread", TID),
            ev.CodeSeen(0, MAIN, "<module>", "<module>", FILE, 1),
            ev.CodeSeen(0, STALL, "stall", "stall", FILE, 30),
            ev.CodeSeen(0, TORCH, "save", "save", "/usr/lib/python3/site-packages/torch/serialization.py", 900),
            ev.SourceSeen(0, FILE, 10, "time.sleep(0.12)"),
            ev.SourceSeen(0, FILE, 15, "gc.collect()"),
            added(FORWARD, "forward", "0/0", file=FILE),
            added(OPTIMIZER, "optimizer", None, function="step", name="AdamW"),
            added(GC, "gc", None, name="gc", function="gc.collect", file="", line=0),
            added(DATA, "data", None, name="DataLoader", function="DataLoader.__next__", file="", line=0),
            added(COMMUNICATION, "communication", None, name="wait for allreduce", function="Work.wait", file="", line=0),
            added(PROFILER, "profiler", None, name="torch.profiler step", function="profile.step", file="", line=0),
            added(CPU, "cpu", None, name="cpu", function="", file="", line=0),
        )

    def apply(self, *events: ev.Event) -> None:
        self.model.apply(events)

    def site(self, instrument: int, at_ns: int, line: int, code: int = MAIN) -> None:
        self.apply(ev.SiteSeen(at_ns, instrument, code, line, 0, (), 0))

    def look(self, at_ns: int, since_ns: int, *lines: tuple[int, int]) -> None:
        self.apply(ev.StackSeen(at_ns, 0, since_ns, tuple((code, line, 0, 0) for code, line in lines)))

    def step(
        self, *rows: tuple[int, float], idle: float = 0.0, site: int | None = None, flags: int = 0, cpu: bool = False
    ) -> None:
        """One step; `rows`: (instrument, ms) that run one after the other between the forward call and the optimizer."""
        begin = self.ns
        found = []
        if cpu:
            found.append((CPU, 0, 0, begin, self.cpu_ns))
        at = begin + 8 * MS
        found.append((FORWARD, 0, 0, begin, at))
        at += round(idle * MS)
        for instrument, ms in rows:
            end = at + round(ms * MS)
            found.append((instrument, 0, flags, at, end))
            if site is not None:
                self.site(instrument, end, site)
            at = end
        at += 12 * MS
        found.append((OPTIMIZER, 0, 0, at - 2 * MS, at))
        self.apply(ev.Samples(at, tuple(found)))
        self.ns = at
        self.step_n += 1

    def steps(self, n: int, **more: bool) -> Job:
        for _ in range(n):
            self.step(**more)
        return self

    def read(self, wait_ms: float, at_ns: int | None = None, **more: int) -> None:
        """A reading of the main thread: it has waited for a core for so long in all."""
        self.apply(ev.ThreadSampled(self.ns if at_ns is None else at_ns, TID, wait_ms / 1e3, 0.0, **more))

    def end(self) -> Job:
        self.apply(ev.TargetEnded(self.ns, "exited", "exited with status 0", 0))
        return self

    @property
    def slow(self) -> list[tuple[int, str, str]]:
        """(index, cause, detail) of the slow steps."""
        return [(one.account.index, one.causes[0].cause, one.causes[0].detail) for one in self.model.steps.slow]


def compiled(job: Job, compile_id: str, ms: float, guard: str = "", **more: object) -> Sequence[ev.Event]:
    """A forward compilation of `f` that begins now."""
    began = job.ns
    found: list[ev.Event] = [ev.CompileStarted(began, compile_id, 0, "f", FILE, 10, "MainThread")]
    if guard:
        number = int(compile_id.rpartition("/")[2])
        found.append(ev.GuardsFailed(began, compile_id, ((f"{compile_id.partition('/')[0]}/{number - 1}", guard),)))
    end = began + round(ms * MS)
    found.append(
        ev.CompileFinished(end, compile_id, "forward", "f", FILE, 10, "MainThread", began, ms / 1e3, **more)  # type: ignore[arg-type]
    )
    return found
