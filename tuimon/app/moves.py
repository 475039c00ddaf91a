"""How keys move a selection. Pure: from a panel, a scene and a view to a changed view."""

from __future__ import annotations

from collections.abc import Container

from tuimon.app.scene import Panel, PanelView, Scene


def move_cursor(panel: Panel, scene: Scene, view: PanelView, step: int) -> None:
    """Move the selection by rows. Where nothing was selected, the first key selects the row that is there already."""
    ordered = panel.keys(scene, view)
    if not ordered:
        return
    if panel.id == "log" and view.follow:
        at = len(ordered) - 1 + min(step, 0)
    elif view.cursor is None:
        at = min(view.top, len(ordered) - 1)
    else:
        at = _where(ordered, view) + step
    at = min(max(0, at), len(ordered) - 1)
    _select(view, ordered, at)
    # a log follows again when the newest line is reached
    view.follow = panel.id == "log" and step > 0 and at == len(ordered) - 1


def move_to_end(panel: Panel, scene: Scene, view: PanelView, way: int) -> None:
    """Select the first row (`way` < 0) or the last one; a log then follows."""
    ordered = panel.keys(scene, view)
    if not ordered:
        return
    _select(view, ordered, 0 if way < 0 else len(ordered) - 1)
    view.follow = way > 0


def select_shown(panel: Panel, scene: Scene, view: PanelView) -> str | None:
    """The key of the row that looks selected, which is selected from now on; None where there are no rows."""
    ordered = panel.keys(scene, view)
    if not ordered:
        return None
    if view.cursor not in ordered:
        last = len(ordered) - 1
        at = view.at if view.cursor else view.top
        _select(view, ordered, last if panel.id == "log" and view.follow else min(at, last))
    return view.cursor


def turn_mark(view: PanelView, key: str) -> bool:
    """Mark the row of this key, or no longer. Gives whether it is marked now."""
    view.marks ^= {key}
    view.touch()
    return key in view.marks


def next_marked(panel: Panel, scene: Scene, view: PanelView, marks: Container[str]) -> bool:
    """Select the next row among those of these keys, round and round. Gives whether there is one that is shown."""
    ordered = panel.keys(scene, view)
    begin = _where(ordered, view) if ordered and view.cursor is not None else -1
    for at in (*range(begin + 1, len(ordered)), *range(begin + 1)):
        if ordered[at] in marks:
            _select(view, ordered, at)
            view.follow = False
            return True
    return False


def select_row(view: PanelView, key: str) -> None:
    """Select the row of this key."""
    view.cursor = key
    view.touch()


def clear_filter(view: PanelView) -> None:
    """Show all rows again."""
    view.filter = ""
    view.touch()


def _where(ordered: list[str], view: PanelView) -> int:
    if view.cursor in ordered:
        return ordered.index(view.cursor)
    return min(view.at, len(ordered) - 1)


def _select(view: PanelView, ordered: list[str], at: int) -> None:
    view.cursor, view.at = ordered[at], at
    view.touch()
