"""docs/report.md, from the schema of the report: every key, its type, and what the schema says of it.

`python -m tools.report_fields` writes it; `--check` writes nothing and fails where it differs.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tuimon.report.schema import schema

PAGE = Path(__file__).resolve().parent.parent / "docs" / "report.md"

HEAD = """\
<!-- written by `python -m tools.report_fields` from tuimon/report/report.schema.json; change it there -->
# The report as JSON

```
tuimon attach 12345 --headless --duration 30 --format json
tuimon report run.tuimon --format json
tuimon report --schema
```

The last line prints the JSON Schema (draft 2020-12) that every report obeys; this page is made of it.

{description}

`x[]` is an entry of a list, `x.*` a value behind any key. A type with `null` may be unknown; each of the keys is always there.
A key without words is what its name says.
"""


def page() -> str:
    """The whole page."""
    document = schema()
    definitions: dict[str, Any] = document.get("$defs", {})
    out = [HEAD.format(description="\n".join(textwrap.wrap(document["description"], 128)))]
    for name, part in document["properties"].items():
        out.append(f"\n## {name}\n\n{_words(part)}| key | type | what it is |\n| --- | --- | --- |\n")
        out += rows(name, part, definitions)
    for name, part in definitions.items():
        out.append(f"\n## Type: {name}\n\n{_words(part)}| key | type | what it is |\n| --- | --- | --- |\n")
        out += rows(name, part, definitions)
    return "".join(out)


def _words(part: dict[str, Any]) -> str:
    return f"{part['description']}\n\n" if "description" in part else ""


def rows(name: str, part: dict[str, Any], definitions: dict[str, Any]) -> Iterator[str]:
    """Lines of the table for a value, and for all that is in it."""
    words = part.get("description", "")
    if "const" in part:
        words = f"always `{part['const']}`. {words}".strip()
    if "enum" in part:
        told = ", ".join(f"`{value}`" for value in part["enum"] if value is not None)
        words = f"{words}; one of {told}" if words else f"one of {told}"
    inside = any(key in part for key in ("properties", "items", "anyOf")) or isinstance(part.get("additionalProperties"), dict)
    if "." in name or not inside:  # of a section of its own, the words stand above
        told = _escaped(words)
        if told or not inside or "$ref" in str(part.get("anyOf", "")) or "null" in part.get("type", ()):
            yield f"| `{name}` | {kind(part)} | {told} |\n"
    for key, inner in part.get("properties", {}).items():
        yield from rows(f"{name}.{key}", inner, definitions)
    if isinstance(part.get("additionalProperties"), dict):
        yield from rows(f"{name}.*", part["additionalProperties"], definitions)
    if isinstance(part.get("items"), dict):
        yield from rows(f"{name}[]", part["items"], definitions)
    for choice in part.get("anyOf", ()):
        if "properties" in choice or "items" in choice:
            yield from rows(name, choice, definitions)


def kind(part: dict[str, Any]) -> str:
    """The type of a value in a word or two; one that has a section of its own is a link to that."""
    if "$ref" in part:
        name = part["$ref"].rpartition("/")[2]
        return f"[{name}](#type-{name})"
    if "anyOf" in part:
        return " or ".join(dict.fromkeys(kind(choice) for choice in part["anyOf"]))
    told = part.get("type", "text" if "const" in part else "any")
    return " or ".join(told) if isinstance(told, list) else str(told)


def _escaped(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def main() -> int:
    """Write the page, or look whether it is right."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 where the page differs")
    made = page()
    if parser.parse_args().check:
        same = PAGE.is_file() and PAGE.read_text(encoding="utf-8") == made
        if not same:
            sys.stderr.write("docs/report.md is not what the schema says: python -m tools.report_fields\n")
        return 0 if same else 1
    PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
