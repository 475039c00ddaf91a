"""A made-up job with slow steps of several causes, for the timeline and the page of a step."""

from __future__ import annotations

from tests.support.fake_feed import MS, TRAIN, S, Script
from tuimon import events as ev

LOADER = "/home/user/project/loader.py"


class SlowJob:
    """Steps of 20 ms, of which a test makes some slow: by a collection, by the loader, by something that nobody timed."""

    def __init__(self, optimizer: bool = True, names: str = "") -> None:
        self.script = script = Script()
        script.attach()
        self.names = names
        self.forward = script.instrument("forward", "0/0", f"forward{names}")
        self.backward = script.instrument("backward", "0/0", f"forward{names}")
        self.data = script.instrument("data", None, f"enumerate(DataLoader)#{names or '_SingleProcess'}.__next__")
        self.gc = script.instrument("gc", None, "gc")
        self.optimizer = script.instrument("optimizer", None, "SGD.step") if optimizer else None
        script.add(ev.CodeSeen(script.t, 1, f"main{names}", f"main{names}", f"{TRAIN}{names}", 1))
        script.add(ev.SourceSeen(script.t, f"{TRAIN}{names}", 15, "gc.collect()  # now and then"))
        script.add(ev.SourceSeen(script.t, f"{TRAIN}{names}", 9, "for batch in loader:"))
        self.step = 0

    def steps(self, count: int, length_ms: float = 20.0, **slow_ms: float) -> None:
        """So many steps; `gc`, `data`, `other`: ms that each takes longer by that."""
        script = self.script
        for _ in range(count):
            t = script.t
            rows: list[tuple[int, int, int, int, int]] = []
            part = int(length_ms * MS / 5) * (100 + self.step * 7 % 5) // 100

            def timed(number: int, ns: int, flags: int = 0, into: list[tuple[int, int, int, int, int]] = rows) -> None:
                nonlocal t
                into.append((number, 1, flags, t, t + ns))
                t += ns

            timed(self.data, part // 2 + int(slow_ms.get("data", 0) * MS))
            if slow_ms.get("data"):
                script.add(ev.SiteSeen(t, self.data, 1, 9, 20, ((f"{TRAIN}{self.names}", 9, "main"),), 1))
            timed(self.forward, 2 * part)
            if slow_ms.get("gc"):
                timed(self.gc, int(slow_ms["gc"] * MS), 2 << 8)
                script.add(ev.SiteSeen(t, self.gc, 1, 15, 40, ((f"{TRAIN}{self.names}", 15, "main"),), 1))
            timed(self.backward, 2 * part)
            t += int(slow_ms.get("other", 0) * MS)
            if self.optimizer is not None:
                timed(self.optimizer, part // 2)
            script.add(ev.Samples(t, tuple(rows)))
            script.t = t
            self.step += 1

    def rest(self) -> None:
        """More than a second goes by, so that no step waits for a reading any more."""
        self.script.t += 2 * S
        self.script.host()

    def fast(self, count: int, length_us: float = 100.0) -> None:
        """So many short steps, in few batches."""
        script, rows = self.script, []
        assert self.optimizer is not None
        for _ in range(count):
            end = script.t + int(length_us * 1000)
            rows.append((self.optimizer, 1, 0, end - 1000, end))
            script.t = end
        script.add(ev.Samples(script.t, tuple(rows)))


def slow_job() -> list[ev.Event]:
    """120 steps; every 20th waits for data, 30 and 90 for a collection, 77 for nobody knows what."""
    job = SlowJob()
    for step in range(120):
        if step in (30, 90):
            job.steps(1, gc=180.0)
        elif step == 77:
            job.steps(1, other=140.0)
        elif step % 20 == 9:
            job.steps(1, data=120.0)
        else:
            job.steps(1)
    job.rest()
    return job.script.events
