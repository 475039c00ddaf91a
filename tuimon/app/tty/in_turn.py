"""Keys in turn: each with all that it does before the next one is looked at.

Textual gives a key to whatever has the focus when the key comes, and does what the key is for later. Over a slow line keys come
several at a time: of `1640` the digits would go to the screen while `1` has yet to open the line that they are typed in, and be
lost.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Generic, TypeVar

from textual import events
from textual.app import App
from textual.dom import DOMNode

Result = TypeVar("Result")

PATIENCE_S = 1.0
"""A key that has not been done with after so long keeps no other waiting: what it was given to may be gone."""


class InTurnApp(App[Result], Generic[Result]):
    """An app that looks at a key when it has done with the one before."""

    def __init__(self) -> None:
        super().__init__()
        self._typed: deque[events.Key] = deque()
        self._turn_s: float | None = None
        """Since when a key has its turn; None: none has."""

    def before_key(self) -> None:
        """A key is about to be looked at."""

    async def on_event(self, event: events.Event) -> None:
        """A key that comes new waits for its turn; all else goes as ever."""
        if not isinstance(event, events.Key) or event.is_forwarded or not self.screen_stack:
            await super().on_event(event)
            return
        self._typed.append(event)
        if self._turn_s is None or time.monotonic() - self._turn_s > PATIENCE_S:
            await self._next()

    async def _next(self) -> None:
        self._turn_s = None
        if self._typed:
            self._turn_s = time.monotonic()
            self.before_key()
            given = self.focused or self.screen
            await super().on_event(self._typed.popleft())
            self._behind(given)

    def _behind(self, node: DOMNode | None) -> None:
        """Go the way that the key goes, from what it was given to up to the app, one place behind it."""
        if node is None or node is self or not node.call_later(self._behind, node.parent):
            self.call_later(self._next)
