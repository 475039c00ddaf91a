"""The fold over profiler windows and what they hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tuimon.events import CountersSeen, KernelsSeen, WindowChanged

if TYPE_CHECKING:
    from tuimon.model.model import Model

MOST_WINDOWS = 16

_ORDER = ("waiting", "open", "closed", "refused", "cancelled")


@dataclass(slots=True)
class Window:
    """A profiler window in the job."""

    number: int
    state: str
    """"waiting", "open", "closed", "refused", "cancelled"."""
    why: str = ""
    steps: int = 0
    job_s: float | None = None
    """How long the job stood still for it."""
    slower: float | None = None
    """Median step in it over the median of those before."""
    begin_ns: int | None = None
    end_ns: int | None = None
    asked_ns: int = 0
    """When it was first heard of."""

    @property
    def over(self) -> bool:
        """Nothing more will come of it."""
        return self.state in ("closed", "refused", "cancelled")


class WindowFold:
    """Keeps the last windows, and the kernels of those that told them."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def changed(self, event: WindowChanged) -> None:
        """A window is asked for, open, or over."""
        model = self._model
        window = next((one for one in model.windows if one.number == event.window), None)
        if window is None:
            window = Window(event.window, event.state, asked_ns=event.t_ns)
            model.windows.append(window)
        if _ORDER.index(event.state) >= _ORDER.index(window.state):
            window.why = event.why if event.state != window.state else event.why or window.why
            window.state = event.state
        window.steps = event.steps or window.steps
        window.job_s = window.job_s if event.job_s is None else event.job_s
        window.slower = window.slower if event.slower is None else event.slower
        window.begin_ns = window.begin_ns if event.begin_ns is None else event.begin_ns
        window.end_ns = window.end_ns if event.end_ns is None else event.end_ns
        if event.state == "closed":
            model.closed_windows += 1
            cost = "" if event.job_s is None else f"; the job stood still for {event.job_s * 1e3:.0f} ms"
            model.say(event.t_ns, "window", f"profiler window {event.window} over{cost}")
        elif event.state in ("refused", "cancelled"):
            model.say(event.t_ns, "window", f"profiler window {event.window} {event.state}: {event.why}")
        model.changed("roofline")

    def kernels(self, event: KernelsSeen) -> None:
        """What a window or a file holds."""
        held = self._model.kernels
        held.pop(event.window, None)
        held[event.window] = event
        while len(held) > MOST_WINDOWS:
            del held[next(iter(held))]
        self._model.changed("roofline")

    def counters(self, event: CountersSeen) -> None:
        """What hardware counters say of kernels."""
        self._model.counters = event
        self._model.changed("roofline")
