"""States of a job that are rare or last long: all known from before the attach, silent, detached; and all scenes by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tests.app.steps_scene import SlowJob
from tests.support.fake_feed import MODEL, MS, SCENES, TRAIN, FakeFeed, FakeFleet, S, Script, ended, fleet
from tests.support.gpu_scenes import MACHINES
from tests.support.points import windows
from tuimon import events as ev

ITEM = "Unsupported Tensor.item() call with capture_scalar_outputs=False"


def before_attach() -> list[ev.Event]:
    """Attached after an hour, to a job that evaluates just now: what Dynamo kept of that hour, and no call since.

    In the order in which the hook tells it: compilations, frames, what it has put timers on, breaks.
    """
    script = Script()
    script.attach()
    attached = script.t
    script.t = attached - 3_600 * S
    script.compile("0/0", "forward", took_s=3.2, before=True)
    script.t += 2 * S
    guard = "tensor 'x' size mismatch at index 0. expected 32, actual 17"
    script.compile("0/1", "forward", took_s=1.9, failed=[("0/0", guard)], before=True)
    script.t = attached + 40 * MS
    script.add(ev.FrameSeen(script.t, "forward", MODEL, 12, ("0/0", "0/1"), breaks=(("0/0", 41), ("0/1", 41))))
    script.add(ev.FrameSeen(script.t, "collate", TRAIN, 48, ()))
    resume = "torch_dynamo_resume_in_forward_at_41"
    for number, entry in ((1, "0/0"), (3, "0/1")):
        timers: tuple[tuple[ev.Role, str, int], ...] = (("forward", "forward", 12), ("resume", resume, 41))
        for at, (role, function, line) in enumerate(timers, number):
            name = f"__{role}_{at}"
            script.add(
                ev.InstrumentAdded(script.t, at, role, entry, name, function, MODEL, line, "inductor", 17, before_attach=True)
            )
    for _ in range(2):  # once for each entry
        _past_break(script, MODEL, 41, "Unsupported call: logging.Logger.info", "forward")
    _past_break(script, TRAIN, 57, ITEM, "collate", skipped=True)
    script.add(ev.HistoryCounted(script.t, 2, 3, 2))
    script.add(ev.GpuUnavailable(script.t, "no NVIDIA driver on this machine (libnvidia-ml.so.1 not found)"))
    script.t += 4 * S
    script.host()
    script.status(0)
    return script.events


def _past_break(script: Script, file: str, line: int, kind: str, function: str, skipped: bool = False) -> None:
    script.add(
        ev.GraphBroke(
            script.t,
            None,
            0,
            kind,
            kind,
            "GB0059",
            function,
            file,
            line,
            explanation="Dynamo does not know how to trace this call.",
            hints=("Move it out of the compiled function.",),
            skipped_frame=skipped,
            stack=((TRAIN, 88, "<module>"), (file, line, function)),
            before_attach=True,
        )
    )


def slow() -> list[ev.Event]:
    """120 steps: every 20th up to 69 waits for data, 30 and 65 for a collection, 60 for nobody knows what; it runs on."""
    job = SlowJob()
    for step in range(120):
        more = {"gc": 180.0} if step in (30, 65) else {"other": 140.0} if step == 60 else {}
        if step % 20 == 9 and step < 70:
            more = {"data": 120.0}
        job.steps(1, **more)
    job.script.host()
    return job.script.events


def lost() -> list[ev.Event]:
    """The busy job, of which nothing is heard any more: the connection is gone, and nobody knows how the job is."""
    events = [event for event in ended() if not isinstance(event, ev.TargetEnded)]
    last = max(event.t_ns for event in events)
    return [*events, ev.TargetEnded(last + S, "lost", "connection to node7 lost: Broken pipe")]


def stopped() -> FakeFeed:
    """The busy job, stopped with ctrl+z 41 s ago."""
    feed = FakeFeed(SCENES["busy"]())
    feed.silent = (41.0, "stopped")
    return feed


KNOWN = ("h100", "cpu")
"""Scenes with points in the roofline: `tests.support.points` has what to compute them with."""

WHOLE: dict[str, Callable[[], list[ev.Event] | FakeFleet | FakeFeed]] = {
    **SCENES,
    **{f"gpu-{name}": events for name, events in MACHINES.items()},
    "slow": slow,
    "before-attach": before_attach,
    "lost": lost,
    "stopped": stopped,
    "ranks": fleet,
    "ranks64": partial(fleet, 64),
    **dict.fromkeys(KNOWN, windows),
}
"""Name -> what a monitor is driven on."""
