"""How many calls there are to a turn of the loops that they stand in: where all calls look alike, nothing else tells a step.

A loop within a module's `forward` is none of steps: blocks that are compiled one by one are called in such. Of the others the
innermost is taken; where a turn of the one around it always holds the same number of calls, that one may be meant, and it is
said that this is not certain.
"""

from __future__ import annotations

from collections import Counter, deque

from tuimon.model.steps.turning import Item, Loops

KEPT = 8
"""Turns of a loop that are remembered."""
ENOUGH = 2
"""Turns after which their calls are counted on."""
FORWARD = ("forward", "__call__")
"""Functions of modules: what loops within them is no step."""


class Turns:
    """Counts the calls between two passages of each head."""

    def __init__(self, loops: Loops) -> None:
        self._loops = loops
        self._since: Counter[int] = Counter()
        self._counts: dict[int, deque[int]] = {}
        self._calls = self._waits = 0

    def take(self, item: Item) -> None:
        """One more item."""
        if item.kind == "call":
            self._calls += 1
            for head, _ in self._loops.around.get(item.instrument, ()):
                if head:
                    self._since[head] += 1
        elif item.kind == "loop":
            calls = self._since.pop(item.instrument, 0)
            if item.instrument not in self._counts:
                self._counts[item.instrument] = deque(maxlen=KEPT)  # the first turn was not seen from its begin
            elif calls:
                self._counts[item.instrument].append(calls)
        elif item.kind == "next":
            self._waits += 1

    def head(self, instrument: int) -> int:
        """The loop of the steps among those around a call; 0 where it is not known, or its turns are not told."""
        mine = self._mine(instrument)
        return mine[-1] if mine else 0

    def calls(self, instrument: int) -> int:
        """How many calls make a turn of that loop; 0 where it is not known."""
        counts = self._counts.get(self.head(instrument), ())
        return Counter(counts).most_common(1)[0][0] if len(counts) >= ENOUGH else 0

    def expected(self, instrument: int) -> bool:
        """Whether it will be known soon."""
        return self.head(instrument) > 0 and not self.calls(instrument)

    def hidden(self, instrument: int) -> bool:
        """Whether a call stands in a loop of a module's own, and nobody tells the turns of the loop around that."""
        around = self._loops.around.get(instrument, ())
        return any(deep for _, deep in around) and not self.head(instrument)

    def certain(self, instrument: int) -> bool:
        """Whether the innermost loop is that of the steps for all that is known, and not the one around it."""
        mine = self._mine(instrument)
        if len(mine) < 2 or len(mine) < len(self._loops.around[instrument]) or 2 * self._waits > self._calls:
            return True
        outer = self._counts.get(mine[-2], ())
        return bool(mine[-2]) and (len(outer) < ENOUGH or len(set(outer)) > 1)

    def _mine(self, instrument: int) -> list[int]:
        return [head for head, deep in self._loops.around.get(instrument, ()) if not deep]
