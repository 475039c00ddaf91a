"""A comparison in one of its three forms: text of 80 columns, Markdown for a ticket, JSON."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from tuimon.draw.format import duration, per_step, size, spread
from tuimon.draw.text import cells, clean, cut, pad, wrap
from tuimon.report.compare.mechanisms import signed
from tuimon.report.markup import plain, table_row
from tuimon.report.render import to_json

FORMATS = ("text", "json", "md")
CHECKS = "Is it the same work?"
WIDTH = 80
MOST = 20

Facts = dict[str, Any]
Table = tuple[str, Sequence[str], list[list[str]]]
"""(title, heads of the columns, rows); rows that are cut say so in the last one."""


def render(compared: Facts, form: str) -> str:
    """`compared` (from `compare`) as one of FORMATS, ending in a newline. Raises KeyError for another form."""
    return {"text": text, "json": to_json, "md": markdown}[form](compared)


def text(compared: Facts) -> str:
    """As lines of at most 80 cells."""
    lines = _wrapped("tuimon compare", "")
    for line in _heads(compared):
        lines += _wrapped(line, "  ")
    lines += ["", *_wrapped(clean(compared["verdict"]), "")]
    for title, told in _lists(compared):
        lines += ["", title, *(piece for line in told for piece in _wrapped(line, "  "))]
    for title, heads, rows in _tables(compared):
        lines += ["", title, *_laid(heads, rows)]
    lines += ["", CHECKS, *(piece for line in _checks(compared) for piece in _wrapped(line, "  "))]
    lines += ["", "How these were made", *_wrapped(clean(compared["rule"]), "  ")]
    return "\n".join(lines) + "\n"


def markdown(compared: Facts) -> str:
    """As Markdown: what comes from the jobs is in it as text, never as markup."""
    lines = ["# tuimon compare", "", *(f"- {plain(line)}" for line in _heads(compared))]
    lines += ["", f"**{plain(compared['verdict'])}**"]
    for title, told in _lists(compared):
        lines += ["", f"## {plain(title)}", "", *(f"- {plain(line)}" for line in told)]
    for title, heads, rows in _tables(compared):
        lines += ["", f"## {plain(title)}", "", table_row(*heads), f"|{' --- |' * len(heads)}"]
        lines += [table_row(*row) for row in rows]
    lines += ["", f"## {CHECKS}", "", *(f"- {plain(line)}" for line in _checks(compared))]
    lines += ["", "## How these were made", "", plain(compared["rule"])]
    return "\n".join(lines) + "\n"


def _wrapped(line: str, indent: str) -> list[str]:
    first, *rest = wrap(line, WIDTH - len(indent) - 2)
    return [indent + first, *(f"{indent}  {piece}" for piece in rest)]


def _heads(compared: Facts) -> list[str]:
    lines = []
    for name in ("a", "b"):
        one = compared[name]
        facts = [one["kind"], one["command"], f"torch {one['torch']}" if one["torch"] else None, ", ".join(one["devices"])]
        facts += [f"phase {one['phase']}" if one["phase"] else None]
        lines.append(clean(f"{name.upper()}: {one['name']} ({', '.join(fact for fact in facts if fact)})"))
    return lines


def _lists(compared: Facts) -> list[tuple[str, list[str]]]:
    if not compared["comparable"]:
        return [("Not comparable, because", [clean(why) for why in compared["not_comparable"]])]
    found = []
    named = [_mechanism(row) for row in compared["mechanisms"]]
    found.append(("What changed, by name", named or ["nothing that is timed by name"]))
    found.append(("What got worse", [clean(row["sentence"]) for row in compared["worse"]] or ["nothing seen"]))
    return found


def _mechanism(row: Facts) -> str:
    if row["explains"]:
        return clean(f"{row['sentence']} ({row['share']:.0%} of the difference)")
    return clean(row["sentence"])


def _tables(compared: Facts) -> list[Table]:
    if not compared["comparable"]:
        return []
    found = [_steps(compared), _breakdown(compared), _boundaries(compared), _regions(compared), _totals(compared)]
    return [one for one in found if one[2]]


def _difference(row: Facts) -> list[str]:
    value, interval = row["difference"], row["interval"]
    return [_signed(value), "-" if interval is None else f"{_signed(interval[0])} to {_signed(interval[1])}"]


def _signed(value: float | None) -> str:
    return "-" if value is None else signed(value)


def _steps(compared: Facts) -> Table:
    steps = compared["steps"]
    if steps["a"]["n"] == 0 or steps["b"]["n"] == 0:
        return "Steps", (), []
    sides = [f"{duration(one['median'])} {spread(one['p10'], one['p90'])} (n {one['n']})" for one in (steps["a"], steps["b"])]
    return "Steps", ("A", "B", "B - A", "95% interval"), [[*sides, *_difference(steps)]]


def _breakdown(compared: Facts) -> Table:
    rows = [
        [row["category"], duration(row["a"]), duration(row["b"]), *_difference(row)]
        for row in compared["breakdown"]
        if row["a"] or row["b"]
    ]
    return "Where a step's time goes", ("category", "A", "B", "B - A", "95% interval"), rows


def _place(row: Facts) -> str:
    return f"{os.path.basename(row['file'])}:{row['line']}"


def _boundaries(compared: Facts) -> Table:
    rows = []
    for row in compared["boundaries"][:MOST]:
        crossed = [per_step(row["per_step"][side]) for side in ("a", "b")]
        host = row["host_per_step"]
        costs = [duration(host["a"]), duration(host["b"])]
        rows.append([_place(row), *crossed, *costs, *_difference(host), row["reason"]])
    heads = ("boundary", "A /step", "B /step", "host A", "host B", "B - A", "95% interval", "")
    return "Boundaries, crossings and host time a step", heads, rows


def _regions(compared: Facts) -> Table:
    rows = []
    for row in compared["regions"][:MOST]:
        steady, after = row["steady"], row["after_guard_change"]
        initial, changed = (
            f"{duration(one['a'])}, {duration(one['b'])}" if one["a"] or one["b"] else "-" for one in (row["initial"], after)
        )
        rows.append([
            f"{row['function']} {row['direction']}", duration(steady["a"]), duration(steady["b"]), *_difference(steady),
            changed, initial,
        ])  # fmt: skip
    heads = ("function", "A", "B", "B - A", "95% interval", "after guard change", "initial")
    return "Compiled code a step: steady calls; after a guard change; initial calls in all", heads, rows


def _totals(compared: Facts) -> Table:
    rows = [
        ["compile time", *(duration(compared["compile_s"][side]) for side in ("a", "b"))],
        ["recompiles", *("-" if (n := compared["recompiles"][side]) is None else str(n) for side in ("a", "b"))],
    ]
    for name, key in (("resident memory", "rss"), ("GPU memory", "gpu")):
        pair = compared["memory"][key]
        if pair is not None:
            rows.append([name, size(pair["a"]), size(pair["b"])])
    return "In all", ("what", "A", "B"), rows


def _checks(compared: Facts) -> list[str]:
    """What differs, what is not known, and then, in one line, what is the same."""
    lines = []
    for verdict in ("differs", "not known"):
        for row in compared["checks"]:
            if row["verdict"] == verdict:
                sides = f"A {row['a']}, B {row['b']}" if row["a"] != row["b"] else row["a"]
                lines.append(clean(f"{row['what']} {verdict}: {sides}" + (f" ({row['why']})" if row["why"] else "")))
    for row in compared["checks"]:
        if row["verdict"] == "same" and row["why"]:
            lines.append(clean(f"{row['what']}, {row['a']}: {row['why']}"))
    same = [f"{row['what']} ({row['a']})" for row in compared["checks"] if row["verdict"] == "same" and not row["why"]]
    return [*lines, *([clean(f"the same: {', '.join(same)}")] if same else [])]


def _laid(heads: Sequence[str], rows: list[list[str]]) -> list[str]:
    """A table in 80 columns; one that is wider has each row in two lines or more."""
    table = [list(heads), *([clean(cell) for cell in row] for row in rows)]
    sizes = [max(cells(row[at]) for row in table) for at in range(len(heads))]
    if sum(sizes) + len(sizes) + 1 <= WIDTH:
        return [f"  {' '.join(pad(cell, size) for cell, size in zip(row, sizes, strict=True))}".rstrip() for row in table]
    lines = []
    for row in table[1:]:
        told = [
            f"{head} {cell}" if head else cell for head, cell in zip(table[0][1:], row[1:], strict=True) if cell and cell != "-"
        ]
        lines.append(cut(f"  {row[0]}", WIDTH, "~"))
        lines += _wrapped("; ".join(told), "    ")
    return lines
