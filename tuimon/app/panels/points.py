"""The points of the roofline as rows: their order, those that the filter lets through, the selected one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tuimon.app.filtering import matches
from tuimon.app.scene import PanelView, Scene

if TYPE_CHECKING:
    from tuimon.roofline.points import Point

SORTS: tuple[tuple[str, Callable[[Point], Any] | None], ...] = (
    ("time", None),
    ("share of the roof", lambda point: (point.of_roof is None, point.of_roof or 0.0)),
    ("rate", lambda point: -(point.rate or 0.0)),
    ("intensity", lambda point: -(point.intensity or 0.0)),
    ("name", lambda point: point.name),
)
"""The orders of the points; None: as they come, by their time."""


def keys(scene: Scene, view: PanelView) -> list[str]:
    """The keys of the points in the order shown."""
    return [point.key or point.name for point in arranged(scene, view)]


def arranged(scene: Scene, view: PanelView) -> Sequence[Point]:
    """The points that the filter lets through, in the order that the person chose: that of their time, at first."""
    points: Sequence[Point] = scene.plane.points(scene.model)
    if view.filter:
        points = [point for point in points if matches(view.filter, f"{point.kind} {point.name} {point.boundary}")]
    order = SORTS[view.sort % len(SORTS)][1]
    if order is not None:
        points = sorted(points, key=order)
    return points[::-1] if view.reverse else points


def selected_point(scene: Scene, view: PanelView) -> Point | None:
    """The point that is selected; None where none is."""
    points = arranged(scene, view)
    at = cursor(points, view)
    return points[at] if at is not None else None


def cursor(points: Sequence[Point], view: PanelView) -> int | None:
    return next((at for at, point in enumerate(points) if view.cursor in (point.key, point.name) and view.cursor), None)
