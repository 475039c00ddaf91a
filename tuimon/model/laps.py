"""Calls of regions by the second: what a rate over a window is made of.

A lap is a second of one region's calls, of one set of sizes. Calls with a compilation in them are in none, and neither are
calls that raised: they did only a part of the work.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence

from tuimon.model.parts import Lap, Region, Sizes

LAP_NS = 1_000_000_000
MOST_LAPS = 600
"""Laps of one region and size that are kept apart; what is older is one lap, so that sums stay whole."""

MOST_IN_ALL = 120_000
FEWEST_LAPS = 16
"""Laps of all regions that are kept apart, so that memory does not grow with the regions: where there are so many regions that
each has less than MOST_LAPS of them, but for so many, older laps become one in pairs. A window of a job of thousands of regions
is then longer than it says, by a part of its own length."""

MOST_SIZES = 64
"""Sizes of one region that are told apart; the calls of the others count as of sizes that are not known."""

UNKNOWN_SIZES: Sizes = ()
"""What calls of a graph with symbols have whose sizes are not known. Of one without symbols it is what its calls have."""


class Room:
    """How many laps each track keeps."""

    __slots__ = ("_tracks", "most")

    def __init__(self) -> None:
        self._tracks = 0
        self.most = MOST_LAPS

    def add(self) -> None:
        """There is one more track."""
        self._tracks += 1
        self.most = max(FEWEST_LAPS, min(MOST_LAPS, MOST_IN_ALL // self._tracks))


class Track:
    """The laps of one region and size, and the one that is under way."""

    __slots__ = ("_lap", "_laps", "_room", "_until", "_versions")

    def __init__(self, laps: deque[Lap], room: Room, versions: Counter[str]) -> None:
        self._laps = laps
        self._room = room
        room.add()
        self._versions = versions
        self._lap = Lap(0, 0, 0)
        self._until = -1

    def add(self, took: int, end_ns: int) -> None:
        """A call that took so many ns and ended then."""
        if end_ns >= self._until:
            self._begin(end_ns)
        lap = self._lap
        lap.calls += 1
        lap.ns += took
        lap.end_ns = end_ns if end_ns > lap.end_ns else lap.end_ns

    def extend(self, took: Sequence[int], ends_ns: Sequence[int]) -> None:
        """Some calls, in their order: how long each took, and when it ended."""
        latest = max(ends_ns)
        if latest >= self._until:
            for one, end_ns in zip(took, ends_ns, strict=True):
                self.add(one, end_ns)
            return
        lap = self._lap
        lap.calls += len(took)
        lap.ns += sum(took)
        lap.end_ns = max(lap.end_ns, latest)

    def _begin(self, end_ns: int) -> None:
        laps = self._laps
        most = self._room.most
        if len(laps) >= most:
            if most < MOST_LAPS:
                _thin(laps)
            else:
                oldest = laps.popleft()
                laps[0].calls += oldest.calls
                laps[0].ns += oldest.ns
        self._lap = Lap(end_ns, 0, 0)
        self._until = (end_ns // LAP_NS + 1) * LAP_NS
        laps.append(self._lap)
        self._versions["roofline"] += 1


def _thin(laps: deque[Lap]) -> None:
    """Make one of each two of the older laps: those that stay apart are the latest, and a lap is the longer the older it is."""
    held = list(laps)
    old = 2 * (len(held) // 3)
    laps.clear()
    for at in range(0, old, 2):
        one, other = held[at : at + 2]
        laps.append(Lap(max(one.end_ns, other.end_ns), one.calls + other.calls, one.ns + other.ns))
    laps.extend(held[old:])


def track(region: Region, sizes: Sizes, room: Room, versions: Counter[str], *, device: bool = False) -> Track:
    """Where calls of a region with these sizes are counted; each new lap is a change of the section "roofline"."""
    held = region.device_laps if device else region.laps
    if sizes not in held and len(held) > MOST_SIZES:
        sizes = UNKNOWN_SIZES
    return Track(held.setdefault(sizes, deque()), room, versions)


class SizedCalls:
    """The sizes that an entry's backward runs with: those of the forward calls since the last backward, if they agree.

    What autograd calls `backward` with does not hold the symbols' values; the forward call before it was made with them.
    """

    __slots__ = ("_known", "_over", "_sizes")

    def __init__(self) -> None:
        self._sizes: Sizes = UNKNOWN_SIZES
        self._known = False
        self._over = True

    def forward(self, sizes: Sizes) -> None:
        """A forward call with these sizes."""
        if self._over:
            self._sizes, self._known, self._over = sizes, True, False
        elif sizes != self._sizes:
            self._known = False

    def backward(self) -> Sizes:
        """A backward call: the sizes it had, UNKNOWN_SIZES where that cannot be told."""
        self._over = True
        return self._sizes if self._known else UNKNOWN_SIZES
