"""How much may be under way to the terminal: found out by asking it, behind each piece of a picture, where its cursor is.

Nothing else tells. Behind an ssh line the kernel, sshd and TCP take hundreds of kB and say nothing, and a picture that is drawn
into them is minutes old when it is seen. An answer shows that all before the question has arrived. No bytes go out here, and no
time passes but the caller's.
"""

from __future__ import annotations

import statistics
from collections import deque
from typing import NamedTuple

FIRST = 400
"""Bytes before the first question: two lines of the screen."""

PROBE = 100
"""Bytes that tell how long an answer takes of itself."""

LEAST, MOST = 150, 1 << 17
AIM_S = 0.16
"""A piece is to take so long on the line: what a key changes waits no longer."""

PROMPT_S = 0.1
"""An answer that takes no longer than usual by more than this: the line takes it all at once."""

JITTER_S = 0.03
"""Answers differ by as much for other reasons: a rate of a few hundred bytes in such a time would say nothing of the line."""

SILENT_S = 2.0
"""A terminal that does not answer the first question for so long answers none."""

LOST_S = 10.0
"""An answer that has not come after so long does not come any more."""

FORGET_S = 60.0
"""The quickest answer of so long ago no longer counts: a line may have become another one."""

SELDOM = 4096
"""Where a piece may be as long as this, the line is quick: it is asked behind each quarter, or each second, not each time."""
SELDOM_S = 1.0
SAMPLES = 4


class _Answer(NamedTuple):
    took_s: float
    size: int


class Flow:
    """What is under way, how quick the line is, and how much may be sent at once."""

    def __init__(self) -> None:
        self.rate_bytes_s: float | None = None
        """What the line carries, where an answer ever took noticeably long; None: it takes all at once, as far as is known."""
        self.answers: bool | None = None
        """Whether the terminal answers; None: not known yet."""
        self._chunk = FIRST
        self._asked: tuple[float, int, int] | None = None
        """When the question went that is not answered, the bytes that went with it, and its number."""
        self._number = 0
        self._unasked = 0
        self._asked_at = float("-inf")
        self._least: _Answer | None = None
        """The quickest answer of late, and the quickest since it was looked at last."""
        self._recent: _Answer | None = None
        self._since = float("-inf")
        self._rates: deque[float] = deque(maxlen=SAMPLES)

    @property
    def waiting(self) -> bool:
        """Whether a question is not answered."""
        return self._asked is not None

    def room(self, now: float) -> int:
        """How many bytes may be written now; 0: none before the answer has come."""
        if self._asked is not None:
            patience = LOST_S if self.answers else SILENT_S
            if now - self._asked[0] < patience:
                return 0
            self._asked = None
            if self.answers is None:
                self.answers = False
            self._chunk = LEAST
        return MOST if self.answers is False else self._chunk

    def waits_until(self) -> float | None:
        """When a question that is not answered counts as lost; None: none is open."""
        if self._asked is None:
            return None
        return self._asked[0] + (LOST_S if self.answers else SILENT_S)

    def is_overdue(self, now: float, allowed_s: float) -> bool:
        """Whether an answer takes so much longer than the quickest."""
        return self._asked is not None and now - self._asked[0] > allowed_s + (self._least.took_s if self._least else 0.0)

    def ask(self, size: int, now: float) -> int | None:
        """So many bytes are about to be written: the number of the question that goes behind them; None: there goes none."""
        self._unasked += size
        if self.answers is False and now - self._asked_at < LOST_S:
            return None
        if self._chunk >= SELDOM and self._unasked < self._chunk // 4 and now - self._asked_at < SELDOM_S:
            return None
        self._number += 1
        self._asked_at = now
        if self.answers is not False:
            self._asked = now, self._unasked, self._number
        self._unasked = 0
        return self._number

    def forget(self) -> None:
        """What is open will not be answered as it was asked: the terminal has another size."""
        self._asked = None

    def answered(self, number: int, now: float, numbers: int = 1 << 30) -> bool:
        """The terminal has answered the question of this number, of which it tells only the rest by `numbers`. Gives whether it
        was the one that was waited for.
        """
        self.answers = True
        if self._asked is None or self._asked[2] % numbers != number:
            return False
        asked, size, _ = self._asked
        self._asked = None
        self._learn(max(now - asked, 1e-4), size, now)
        return True

    def _learn(self, took: float, size: int, now: float) -> None:
        this = _Answer(took, size)
        if now - self._since > FORGET_S:
            self._least, self._recent, self._since = self._recent or self._least, None, now
        self._recent = this if self._recent is None else min(self._recent, this)
        least = self._least
        if least is None:
            self._least = this
            if took > AIM_S:
                self._chunk = PROBE  # far away or slow: the next one, which is short, tells which
                return
        elif took <= least.took_s:
            self._least = this
            if least.size > size + PROBE and least.took_s - took > PROMPT_S:
                self._slow((least.size - size) / (least.took_s - took))
                return
        elif took - least.took_s >= PROMPT_S:
            if size >= PROBE:  # at least all of it in all of the time, whatever else has held the answer up
                self._slow(max(size / took, (size - least.size) / (took - least.took_s)))
            return
        elif size >= least.size + PROBE:
            longer = took - least.took_s
            self._sample((size - least.size) / (longer if longer > JITTER_S else 0.002))
            self._grow(size, took, int(statistics.median(self._rates) * AIM_S))
            return
        # too short to tell much, but for a line that was thought slower than this: all of it came in all of the time
        if self.rate_bytes_s is not None and size / took > self.rate_bytes_s:
            self._sample(size / took)
        # where the line was slow, the next one may be as long as it takes to tell
        self._grow(size, took, (least or this).size + 3 * PROBE if self._rates else MOST)

    def _grow(self, size: int, took: float, most: int) -> None:
        if size >= self._chunk // 2:
            self._chunk = min(MOST, max(LEAST, min(most, max(2 * self._chunk, int(size / took * AIM_S)))))

    def _slow(self, rate: float) -> None:
        self._sample(rate)
        self._chunk = min(max(LEAST, int(rate * AIM_S)), max(LEAST, self._chunk))

    def _sample(self, rate: float) -> None:
        """Now and then an answer is late because a machine is busy, this one or the terminal's: the line is as quick as it was
        at the best of some questions, and one alone says nothing.
        """
        self._rates.append(rate)
        if len(self._rates) > 1:
            self.rate_bytes_s = max(self._rates)
