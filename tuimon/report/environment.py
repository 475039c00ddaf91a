"""What the numbers of a report were had with, in words: of a ticket, the first question."""

from __future__ import annotations

from datetime import datetime, timezone

from tuimon.draw.format import count
from tuimon.draw.text import clean
from tuimon.report import phrases
from tuimon.report.phrases import Facts

KINDS = {
    "recording": "a recording",
    "torch_trace": "a TORCH_TRACE log",
    "kineto": "a Kineto trace",
    "ncu": "a table of Nsight Compute",
}


def environment_lines(report: Facts) -> list[str]:
    """Versions, devices, settings, and where it comes from."""
    target = report["target"]
    told = target["command"] if target["how"] != "file" else phrases.NOT_IN_FILE
    lines = [f"command: {told or 'not known'}"]
    lines.append(f"Python {target['python'] or 'not known'}, torch {target['torch'] or 'not known'}")
    lines.append(f"devices: {', '.join(target['devices']) or 'not known'}")
    if target["rank"] is not None:
        lines.append(f"rank {target['rank']} of {count(target['world_size'])}")
    lines.append(f"how: {phrases.HOWS.get(target['how'], target['how'] or 'not known')}")
    file = target["file"]
    if file is not None:
        ranks = "" if file["ranks"] == 1 else f", {phrases.many(file['ranks'], 'rank')}"
        lines.append(f"file: {file['name']} ({KINDS.get(file['kind'], file['kind'])}{ranks})")
    if target["attached_at"]:
        lines.append(f"from {datetime.fromtimestamp(target['attached_at'], timezone.utc):{phrases.WHEN}} on")
    if target["options"]:
        lines.append(f"settings: {', '.join(f'{name}={value}' for name, value in target['options'].items())}")
    return [clean(line) for line in lines]
