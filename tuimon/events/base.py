"""What every event has."""

from __future__ import annotations

from dataclasses import dataclass

SCHEMA = 1
"""Raised by one when an event changes its meaning. Adding a field with a default is no change."""


@dataclass(frozen=True, slots=True)
class Event:
    """A fact about the target or its surroundings."""

    t_ns: int
    """When it happened, CLOCK_MONOTONIC of the job's host."""
