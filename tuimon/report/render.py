"""A report in one of its three forms."""

from __future__ import annotations

import json
from typing import Any

from tuimon.report.markdown import markdown
from tuimon.report.text import text

FORMATS = ("text", "json", "md")


def render(report: dict[str, Any], form: str) -> str:
    """`report` (from `build`) as one of FORMATS, ending in a newline. Raises KeyError for another form."""
    return {"text": text, "json": _json, "md": markdown}[form](report)


def _json(report: dict[str, Any]) -> str:
    # NaN and infinity are no JSON: better a loud error here than a file that some readers refuse
    return json.dumps(report, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
