"""What one drawing of the roofline's page costs: 200 points with trails and bars, chart and table, at 120x40.

    python -m tests.bench.roofline_draw

Prints ms of CPU of this process, as median [p10-p90]: the chart alone over the whole width, and the page (chart, table,
words) as the panel hands it on, another point selected each time.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable

from tests.support.points import CEILINGS, compute, h100, point
from tuimon.app.panels.frame import fitted
from tuimon.app.panels.roofline import PANEL
from tuimon.app.plane import Plane
from tuimon.app.scene import PanelView, Scene
from tuimon.draw.glyphs import GLYPH_SETS, GlyphSet
from tuimon.draw.roofline import Axes, roofline_lines
from tuimon.model import Model
from tuimon.roofline.points import Point, Roofline

POINTS, WIDTH, HEIGHT, DRAWINGS = 200, 120, 40, 60


def many(count: int = POINTS) -> tuple[Point, ...]:
    """So many points below the roofs, with a trail of eight places each."""
    of = random.Random(6)
    found = []
    for number in range(count):
        ceiling = CEILINGS[of.randrange(3)]
        intensity = 10 ** of.uniform(-0.5, 3.2)
        rate = ceiling.roof(intensity) * of.uniform(0.05, 0.95)
        seconds = of.uniform(1e-4, 1e-2)
        bound = of.choice(("exact", "upper", "unknown"))
        one = point(
            f"triton_poi_fused_kernel_{number}",
            "kernel",
            rate * seconds,
            rate * seconds / intensity,
            seconds,
            ceiling,
            bound=bound,
            trail=8,
        )
        found.append(one)
    return tuple(sorted(found, key=lambda one: -one.time_share))


def known(points: tuple[Point, ...]) -> Roofline:
    """All that the page shows."""
    like = h100()
    return Roofline(
        points, like.process, like.ceilings, 0, like.now_roof, like.now_why, like.flop_known_for, like.unknown, like.notes
    )


def cpu_ms(draw: Callable[[int], object]) -> tuple[float, float, float]:
    """(median, p10, p90) of the CPU time of a drawing."""
    draw(0)
    taken = []
    for at in range(DRAWINGS):
        began = time.process_time_ns()
        draw(at + 1)
        taken.append((time.process_time_ns() - began) / 1e6)
    cuts = statistics.quantiles(taken, n=10)
    return statistics.median(taken), cuts[0], cuts[-1]


def chart(points: tuple[Point, ...], glyphs: GlyphSet) -> Callable[[int], object]:
    """The chart alone, over the whole width."""
    like, axes = h100(), Axes()

    def draw(at: int) -> object:
        return roofline_lines(
            WIDTH, HEIGHT, CEILINGS, 0, points, at % POINTS, glyphs, now_roof=like.now_roof, axes=axes, now_ns=at * 10**9
        )

    return draw


def page(points: tuple[Point, ...], glyphs: GlyphSet) -> Callable[[int], object]:
    """The whole page, with another point selected each time."""
    model, view = Model(), PanelView()
    plane = Plane(compute(known(points)))

    def draw(at: int) -> object:
        view.cursor = points[at % POINTS].key
        lines = PANEL.draw(Scene(model, glyphs, at * 10**9, CEILINGS, plane), view, WIDTH, HEIGHT, True)
        return fitted(lines, WIDTH, HEIGHT, glyphs)

    return draw


def main() -> None:
    """Print the figures."""
    points = many()
    print(f"{POINTS} points, 8 places of trail each, {WIDTH}x{HEIGHT}, {DRAWINGS} drawings: ms of CPU, median [p10-p90]")  # noqa: T201
    for glyphs in GLYPH_SETS.values():
        for what, draw in (("chart", chart(points, glyphs)), ("page", page(points, glyphs))):
            median, low, high = cpu_ms(draw)
            print(f"  {glyphs.name:8} {what:6} {median:6.2f} [{low:.2f}-{high:.2f}]")  # noqa: T201


if __name__ == "__main__":
    main()
