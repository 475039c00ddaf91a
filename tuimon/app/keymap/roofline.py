"""The keys of the roofline's panel, while it has the keys."""

from __future__ import annotations

from tuimon.app.action import Action

ROOFLINE: tuple[Action, ...] = (
    Action(
        "next_point",
        "point(1)",
        ("right",),
        "left right",
        "point",
        "Select the next point, or the one before (j and k too).",
        "roofline",
        "roofline",
        footer=1,
    ),
    Action("previous_point", "point(-1)", ("left",), "left", "point before", "The point before.", "roofline", "roofline"),
    Action(
        "boundary",
        "boundary",
        ("b",),
        "b",
        "boundary",
        "The next memory boundary for all points; after the last one: where each point's bytes mean most.",
        "roofline",
        "roofline",
        footer=3,
    ),
    Action(
        "trails",
        "trails",
        ("i",),
        "i",
        "trails",
        "Where points were in the last windows: shown, or not.",
        "roofline",
        "roofline",
        footer=4,
    ),
    Action(
        "whole",
        "whole",
        ("u",),
        "u",
        "whole process",
        "One point: all regions together. Again: back.",
        "roofline",
        "roofline",
        footer=3,
    ),
    Action(
        "window",
        "window",
        ("p",),
        "p",
        "profiler",
        "A profiler window in the job, for its operators and kernels: what it costs, then p again to open one.",
        "roofline",
        "roofline",
        footer=2,
    ),
    Action(
        "hypothesis",
        "hypothesis",
        ("h",),
        "h",
        "to the lab",
        "The selected point's intensity and ceiling into the lab, as a hypothesis.",
        "roofline",
        "roofline",
        footer=4,
    ),
)
"""What panel 6 has while it has the keys. Some of these keys mean something else elsewhere."""

BESIDE: dict[str, int | None] = {
    "ceiling": 1,
    "freeze": 3,
    "next": 4,
    "look": 5,
    **dict.fromkeys(("filter", "sort", "next_slow", "mark")),
}
"""Ranks in the footer of actions of the main screen, while the roofline has the keys."""
