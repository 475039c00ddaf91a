"""Whether a program is the same with tuimon as without it: what Dynamo counted, and every tensor, to the bit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cases import jobs

ONLY_AFTER = ("process",)
"""What is compared after a detach alone: under `tuimon run` the hook is in to the end."""


def spans(steps: int) -> list[tuple[int, int]]:
    """(attach, detach), in steps: before the first step until a third of them is over, and in the second half."""
    first, second, third = max(1, steps // 3), max(2, steps // 2), max(3, steps * 5 // 6)
    return [(0, first), (second, third)]


@dataclass(frozen=True, slots=True)
class Three:
    """What a program left each time, by process."""

    alone: dict[str, Any]
    attached: dict[str, Any]
    """With two attaches and detaches."""
    run: dict[str, Any]
    """Under `tuimon run`."""

    def differences(self) -> list[str]:
        """What is otherwise with tuimon than without."""
        return [
            *(f"attach: {line}" for line in unlike(self.alone, self.attached)),
            *(f"run: {line}" for line in unlike(_without(self.alone), _without(self.run))),
        ]


def watch(script: Path, python: str, steps: int) -> Three:
    """Run a program of so many steps three times. Raises `jobs.Failed`."""
    return Three(
        jobs.witnesses_of_attach(script, python, []),
        jobs.witnesses_of_attach(script, python, spans(steps)),
        jobs.witnesses_of_run(script, python),
    )


def _without(witnesses: dict[str, Any]) -> dict[str, Any]:
    return {name: {part: value for part, value in told.items() if part not in ONLY_AFTER} for name, told in witnesses.items()}


def unlike(one: Any, other: Any, place: str = "") -> Iterator[str]:
    """Where two trees of JSON differ, each with both values."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in sorted(one.keys() | other.keys()):
            inner = f"{place}/{name}" if place else str(name)
            if name in one and name in other:
                yield from unlike(one[name], other[name], inner)
            else:
                yield f"{inner} is only there {'without' if name in one else 'with'} tuimon"
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from unlike(left, right, f"{place}[{index}]")
    elif one != other:
        yield f"{place}: {str(other)[:150]}, without tuimon {str(one)[:150]}"
