"""One event of a chrome trace, and thousands of them decoded at once by msgspec; `args` stay as they stand in the file."""

from __future__ import annotations

import json
from typing import Any

import msgspec

AT_ONCE = True


class Entry(msgspec.Struct):
    """One event. Its values are what the file says, of whatever type."""

    ph: Any = ""
    cat: Any = None
    name: Any = ""
    ts: Any = None
    dur: Any = None
    pid: Any = None
    tid: Any = None
    args: msgspec.Raw = msgspec.Raw(b"")
    """As it stands in the file; an object that has been read already where the event was read by itself."""

    def arguments(self) -> dict[str, Any]:
        """Its args; empty where it has none. Raises ValueError where they are no JSON."""
        args: Any = self.args
        if type(args) is msgspec.Raw:
            try:
                args = msgspec.json.decode(args) if memoryview(args) else None
            except msgspec.MsgspecError:
                args = json.loads(bytes(args), strict=False)
        return args if isinstance(args, dict) else {}

    def launch(self) -> tuple[Any, Any]:
        """(correlation, device) of its args, without the others being read; None for what it has not. Raises as `arguments`."""
        if type(self.args) is msgspec.Raw and memoryview(self.args):
            try:
                found = _launch(self.args)
            except msgspec.MsgspecError:
                pass
            else:
                return found.correlation, found.device
        args = self.arguments()
        return args.get("correlation"), args.get("device")

    def operands(self) -> tuple[bytes | None, Any]:
        """(what its args say of operands, as it stands in the file; its sequence number); None where that was not to be had."""
        if type(self.args) is not msgspec.Raw or not memoryview(self.args):
            return None, self.arguments().get("Sequence number")
        try:
            found = _operands(self.args)
        except msgspec.MsgspecError:
            return None, self.arguments().get("Sequence number")
        parts = (found.dims, found.old, found.types, found.concrete)
        return b"\0".join(map(bytes, parts)), found.sequence


class _Operands(msgspec.Struct):
    dims: msgspec.Raw = msgspec.field(name="Input Dims", default=msgspec.Raw(b""))
    old: msgspec.Raw = msgspec.field(name="Input dims", default=msgspec.Raw(b""))
    types: msgspec.Raw = msgspec.field(name="Input type", default=msgspec.Raw(b""))
    concrete: msgspec.Raw = msgspec.field(name="Concrete Inputs", default=msgspec.Raw(b""))
    sequence: Any = msgspec.field(name="Sequence number", default=None)


_operands = msgspec.json.Decoder(_Operands).decode


class _Launch(msgspec.Struct):
    correlation: Any = None
    device: Any = None


_launch = msgspec.json.Decoder(_Launch).decode
_many = msgspec.json.Decoder(list[Entry]).decode


def many(text: str) -> list[Entry]:
    """The events in a JSON list. Raises ValueError where msgspec refuses it, RecursionError."""
    try:
        return _many(text)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from None
