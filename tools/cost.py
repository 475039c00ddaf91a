"""The figures of docs/cost.md, and of README's "What it costs": put there, never typed.

python -m tools.cost bench.md    what `make bench` wrote goes into docs/cost.md, and from there into README
python -m tools.cost             README's block anew, from docs/cost.md
python -m tools.cost --check     write nothing; status 1 where README says another thing than docs/cost.md
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE, README = ROOT / "docs" / "cost.md", ROOT / "README.md"
SECTION = "bench"
FIGURES = (
    ("a step of 1 ms with 2 regions, hook against none", "1 ms, 2 regions: with, wall"),
    ("a step of 1 ms with 20 regions, hook against none", "1 ms, 20 regions: with, wall"),
    ("a step of 10 ms with 2 regions, hook against none", "10 ms, 2 regions: with, wall"),
    ("a step of 10 ms with 20 regions, hook against none", "10 ms, 20 regions: with, wall"),
    ("one timed call of a region", "forward or backward"),
    ("compiling a transformer block (8 s), hook against none", "a transformer block, cold cache, with / without"),
    ("the same out of Inductor's cache (0.14 s)", "a transformer block, warm cache, with / without"),
    ("stop of one thread at attach", "stop of one thread"),
    ("`tuimon attach` to the first number on the screen", "`tuimon attach` to the first number on the screen"),
    ("samples that the monitor takes in", "end to end"),
    ("the monitor's own CPU, 200 regions, 120x40", "200 regions, 40 steps a second, 120x40: CPU"),
    ("to the terminal, quiet job, 120x40", "a quiet job, 120x40: to the terminal"),
    ("to the terminal, busy job, 120x40", "200 regions, 40 steps a second, 120x40: to the terminal"),
    ("first picture of `tuimon`", "first picture"),
)
"""What README says of it, and the row of docs/cost.md with a wanted value that it is from."""


class Missing(ValueError):
    """A page has no place for it, or no figure."""


def between(text: str, name: str) -> re.Match[str]:
    """The part of a page between `<!-- NAME -->` and `<!-- /NAME -->`. Raises Missing."""
    found = re.search(rf"(?<=<!-- {name} -->\n).*?(?=<!-- /{name} -->)", text, re.S)
    if found is None:
        raise Missing(f"there is no part between <!-- {name} --> and <!-- /{name} -->")
    return found


def put(text: str, name: str, inside: str) -> str:
    """The page with another part there. Raises Missing."""
    found = between(text, name)
    return text[: found.start()] + inside + text[found.end() :]


def block(page: str) -> str:
    """README's table, from the tables of docs/cost.md. Raises Missing where a row is not there."""
    tables = between(page, SECTION).group()
    rows = [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in tables.splitlines() if line.startswith("| ")
    ]
    lines = ["| what | median | middle three fifths | wanted | |", "| --- | --: | --- | --- | --- |"]
    for words, name in FIGURES:
        # a name may be there twice, in two units: the one with a wanted value is meant
        found = next((row for row in rows if row[0] == name and row[5]), None) or next(
            (row for row in rows if row[0] == name), None
        )
        if found is None:
            raise Missing(f"docs/cost.md has no row {name!r}")
        _, median, spread, unit, _, wanted, met, note = found
        told = {"yes": "met", "**no**": "**not met**"}.get(met, met or note)
        lines.append(f"| {words} | {median} {unit} | {spread} | {wanted} | {told} |")
    where = next((line for line in tables.splitlines() if re.match(r"\d{4}-\d\d-\d\d, ", line)), "")
    return "\n".join([*lines, "", where.replace(f"{_load(where)}, ", ""), ""])


def _load(line: str) -> str:
    found = re.search(r"load [\d.]+", line)
    return found.group() if found else "load"


def pages(bench: str | None) -> dict[Path, str]:
    """What each page should be; `bench`: what `make bench` wrote, None to keep what docs/cost.md has. Raises Missing."""
    cost = PAGE.read_text(encoding="utf-8")
    if bench is not None:
        deeper = re.sub(r"^## ", "### ", bench, flags=re.M)
        cost = put(cost, SECTION, f"\n{deeper.strip()}\n\n")
    return {PAGE: cost, README: put(README.read_text(encoding="utf-8"), "cost", block(cost))}


def main(argv: list[str] | None = None) -> int:
    """Write the pages, or look whether they are right."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", nargs="?", type=Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(argv)
    try:
        made = pages(options.bench.read_text(encoding="utf-8") if options.bench else None)
    except (OSError, Missing) as why:
        sys.stderr.write(f"{why}\n")
        return 1
    if options.check:
        wrong = [path.name for path, text in made.items() if path.read_text(encoding="utf-8") != text]
        if wrong:
            sys.stderr.write(f"{', '.join(wrong)}: not what docs/cost.md says; `python -m tools.cost` makes it anew\n")
        return 1 if wrong else 0
    for path, text in made.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
