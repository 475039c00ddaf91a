"""A report in one of its three forms."""

from __future__ import annotations

import json
from typing import Any

from tuimon.draw.text import harmless_json
from tuimon.report.markdown import markdown
from tuimon.report.text import text

FORMATS = ("text", "json", "md")


def render(report: dict[str, Any], form: str) -> str:
    """`report` (from `build`) as one of FORMATS, ending in a newline. Raises KeyError for another form."""
    return {"text": text, "json": to_json, "md": markdown}[form](report)


def to_json(report: dict[str, Any]) -> str:
    """An object as indented JSON that is safe to look at in a terminal, ending in a newline. Text stays readable."""
    # NaN and infinity are no JSON: better a loud error here than a file that some readers refuse
    return harmless_json(json.dumps(report, indent=1, ensure_ascii=False, allow_nan=False)) + "\n"
