"""A calibration as a table: of text for people, of Markdown for a ticket."""

from __future__ import annotations

from tuimon.draw import format as fmt
from tuimon.draw.text import clean
from tuimon.roofline.calibration import Calibration, Figure

_HEADINGS = ("what", "threads", "best", "median", "cv", "clean", "by", "quality", "measured")


def _rows(one: Calibration) -> list[tuple[str, ...]]:
    """A row for each way of each figure; the way that gave the figure is marked."""
    rows: list[tuple[str, ...]] = []
    for figure in sorted(one.figures, key=lambda figure: (figure.threads or 0, figure.what == "bandwidth")):
        unit = "FLOP/s" if figure.what == "peak" else "B/s"
        for way in figure.ways:
            chosen = way == figure.best
            rows.append(
                (
                    f"{_of(figure)}",
                    str(figure.threads or "-"),
                    fmt.si(way.best, unit),
                    fmt.si(way.median, unit),
                    f"{way.cv:.1%}",
                    f"{way.clean}/{way.repeats}",
                    f"{way.way} {way.size}{' *' if chosen else ''}",
                    figure.quality if chosen else "",
                    figure.date[:10] if chosen else "",
                )
            )
    return rows


def _of(figure: Figure) -> str:
    return f"{figure.of} {figure.unit}" if figure.what == "peak" else figure.of


def _about(one: Calibration) -> str:
    facts = [one.name, f"torch {one.figures[0].torch}"]
    if one.memory_bytes:
        facts.append(f"{one.memory_bytes / 2**30:.0f} GiB")
    if one.cache_bytes:
        facts.append(f"last cache {one.cache_bytes / 2**20:.0f} MiB")
    if one.driver:
        facts.append(f"driver {one.driver}")
    clocks = sorted({figure.clock_mhz for figure in one.figures if figure.clock_mhz is not None})
    if clocks:
        facts.append(" to ".join(f"{clock:,.0f}" for clock in dict.fromkeys((clocks[0], clocks[-1]))) + " MHz")
    return ", ".join(facts)


def lines(one: Calibration) -> list[str]:
    """A calibration as a table of text."""
    rows = [_HEADINGS, *_rows(one)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    table = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return [clean(_about(one)), "", *map(clean, table), "", "* the ceiling: the best clean repeat of the best way"]


def markdown(one: Calibration) -> list[str]:
    """A calibration as a Markdown table."""
    rows = ["| " + " | ".join(clean(cell).replace("|", "/") for cell in row) + " |" for row in (_HEADINGS, *_rows(one))]
    rows.insert(1, "|" + " --- |" * len(_HEADINGS))
    return [f"## {clean(_about(one))}", "", *rows]
