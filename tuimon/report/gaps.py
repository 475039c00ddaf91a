"""The list of what a report does not know. Whatever is null in it stands here too, with its reason."""

from __future__ import annotations

from collections.abc import Mapping


class Gaps:
    """Collects (what, why); the first reason given for a thing stays."""

    def __init__(self, known: Mapping[str, str] | None = None) -> None:
        self._whys: dict[str, str] = dict(known or {})

    def add(self, what: str, why: str) -> None:
        """Note that `what` (a place in the report, or the name of an instrument) is not known, because `why`."""
        self._whys.setdefault(what, why)

    def listed(self) -> list[dict[str, str]]:
        """As the report has it: [{what, why}, ..], in the order in which they came up."""
        return [{"what": what, "why": why} for what, why in self._whys.items()]
