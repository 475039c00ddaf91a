"""One event of a chrome trace, where there is no msgspec: a host that tuimon was sent to may have Python alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

AT_ONCE = False


@dataclass(slots=True)
class Entry:
    """As in entry_packed.py, but each is read by itself, its args too."""

    ph: Any = ""
    cat: Any = None
    name: Any = ""
    ts: Any = None
    dur: Any = None
    pid: Any = None
    tid: Any = None
    args: Any = None

    def arguments(self) -> dict[str, Any]:
        """Its args; empty where it has none."""
        return self.args if isinstance(self.args, dict) else {}

    def launch(self) -> tuple[Any, Any]:
        """(correlation, device) of its args; None for what it has not."""
        args = self.arguments()
        return args.get("correlation"), args.get("device")

    def operands(self) -> tuple[bytes | None, Any]:
        """(None: how its operands stand in the file is not kept; its sequence number)."""
        return None, self.arguments().get("Sequence number")


def many(_text: str) -> list[Entry]:
    """Raises ValueError: they are read one by one."""
    raise ValueError
