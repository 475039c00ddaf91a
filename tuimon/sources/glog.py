"""The head of a line as torch's loggers write it, in a log of records (TORCH_TRACE) and in plain text (TORCH_LOGS)."""

from __future__ import annotations

import re
from typing import Literal

LOOKED_AT = 65536
"""Characters at a file's begin in which a line with such a head must stand; before it may be what a launcher says."""

PREFIX = re.compile(r"\[(?P<role>[A-Za-z][\w.-]{0,40}?)(?P<number>\d{1,6})\]: ?")
"""What torch (2.4) and launchers write before a line: "[rank3]:", "[default3]:"."""

HEAD = re.compile(
    r"[VDIWEFC](?P<month>\d\d)(?P<day>\d\d) (?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)\.(?P<fraction>\d{1,9}) +"
    r"(?P<who>\d{1,20}) (?P<path>[^\]\n]{1,4096}?):\d{1,9}\]"
)
"""Level, date and time without a year and a zone, the number of the process or the thread, the line of torch that logs."""

_LINE = re.compile(rf"^(?:{PREFIX.pattern})?{HEAD.pattern}(?P<json> \{{)?", re.MULTILINE)


_PREFIXED = re.compile(rf"^{PREFIX.pattern}{HEAD.pattern}", re.MULTILINE)


def prefixed(first: str) -> bool:
    """Whether there is a line with such a head in a text that has a prefix before it."""
    return _PREFIXED.search(first) is not None


def kind(first: str) -> Literal["records", "text", ""]:
    """What a file that begins like this is: a log of records, a log of plain text, or none of both."""
    found: Literal["records", "text", ""] = ""
    for line in _LINE.finditer(first, 0, LOOKED_AT):
        if line["json"]:
            return "records"
        found = "text"
    return found
