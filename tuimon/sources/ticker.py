"""A thread that reads something every so often, and can be stopped in a bounded time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from tuimon.events import Event

Put = Callable[[Event], None]
"""Where a source's events go: an inbox's `put`."""


class Ticker:
    """The thread under a periodic source.

    `name` is shown in lists of threads. `round_` is called at once and then every `period` seconds until it returns False,
    raises, or `stop` is called; a round that took too long makes the next ones be skipped, not hurried. `closing` is called
    last, on the same thread. `failed` is told of an exception in either: a source that breaks says so and ends, it does not
    take the monitor with it.
    """

    def __init__(
        self,
        name: str,
        period: float,
        round_: Callable[[], bool],
        failed: Callable[[BaseException], None],
        closing: Callable[[], None] | None = None,
    ) -> None:
        if not period > 0:
            raise ValueError(f"a period must be positive, not {period}")
        self._period = period
        self._round = round_
        self._failed = failed
        self._closing = closing
        self._stop = threading.Event()
        # a daemon: a driver that never answers must not keep the monitor from ending
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread. Raises RuntimeError if it was started before."""
        self._thread.start()

    def stop(self, timeout: float = 2.0) -> bool:
        """Ask the thread to end and wait for it, at most `timeout` seconds. True if it has ended (or never ran)."""
        self._stop.set()
        if self._thread.ident is None or self._thread is threading.current_thread():
            return True
        self._thread.join(timeout)
        return not self._thread.is_alive()

    @property
    def stopping(self) -> bool:
        """Somebody asked for the end: what a late round has found is of no interest any more."""
        return self._stop.is_set()

    @property
    def alive(self) -> bool:
        """The thread runs."""
        return self._thread.is_alive()

    def _run(self) -> None:
        try:
            due = time.monotonic()
            while not self._stop.is_set() and self._round():
                now = time.monotonic()
                due += self._period
                if due < now:
                    due = now + self._period
                self._stop.wait(due - now)
        except Exception as error:  # noqa: BLE001 - whatever it was, it is told, and only this source ends
            self._tell(error)
        finally:
            if self._closing is not None:
                try:
                    self._closing()
                except Exception as error:  # noqa: BLE001 - as above
                    self._tell(error)

    def _tell(self, error: BaseException) -> None:
        if not self.stopping:
            self._failed(error)


class Ticked:
    """A source that reads on a ticker of its own, `_ticker`."""

    _ticker: Ticker

    def start(self) -> None:
        """Start reading on a thread of its own. Raises RuntimeError if started before."""
        self._ticker.start()

    def stop(self, timeout: float = 2.0) -> bool:
        """End the thread, waiting at most `timeout` seconds. True if it has ended."""
        return self._ticker.stop(timeout)

    @property
    def alive(self) -> bool:
        """The thread still reads."""
        return self._ticker.alive
