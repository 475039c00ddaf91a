"""What a sentence is about: the way from a finding, a line of the log or a row to its evidence."""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal[
    "boundary", "recompile", "frame", "region", "step", "gpu", "host", "rank", "settings", "point", "log", "compilation"
]


class About(NamedTuple):
    """One thing of the model."""

    kind: Kind
    key: str
    """Its key there, as the panel of that kind has it: a boundary's key, a region's name, a step's index .."""
