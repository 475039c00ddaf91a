"""What works here and what does not, each with the next step. Looks only: no process but its own is stopped or changed."""

from __future__ import annotations

from tuimon.doctor.checks import Check, State

__all__ = ["Check", "State"]
