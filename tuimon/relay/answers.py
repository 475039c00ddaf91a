"""What the far end answers to one request, handed from the link's reader to the thread that waits for it."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

from tuimon.relay.remote import FarSession

KEPT = 100
"""Of what is said before the word that settles it, the latest so many."""


class Answers:
    """What has come for one request, up to the word that settles it."""

    def __init__(self, *last: str) -> None:
        """`last`: the words that settle it."""
        self._last = last
        self._changed = threading.Condition()
        self._messages: deque[dict[str, Any]] = deque(maxlen=KEPT)
        self._session: FarSession | None = None
        self._settled = False

    def put(self, message: dict[str, Any], session: FarSession | None) -> bool:
        """From the reader; False where nobody takes it any more. A session that is handed over is the waiting one's to end."""
        with self._changed:
            last = message["relay"] in self._last
            if self._settled or (session is not None and not last):
                return False
            self._settled = last
            self._session = session
            self._messages.append(message)
            self._changed.notify_all()
            return True

    def next(self, seconds: float) -> dict[str, Any] | None:
        """The next one; None where none comes in so many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self._messages, seconds)
            return self._messages.popleft() if self._messages else None

    def take_session(self) -> FarSession | None:
        """The session that came, once."""
        with self._changed:
            session, self._session = self._session, None
            return session

    def leave(self) -> FarSession | None:
        """Nothing is waited for any more; gives the session that came and was not taken."""
        with self._changed:
            self._settled = True
        return self.take_session()
