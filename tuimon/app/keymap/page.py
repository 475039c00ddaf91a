"""The keys of pages: of all of them, of the page of a step, of the page of profiler windows."""

from __future__ import annotations

from tuimon.app.action import Action

PAGE: tuple[Action, ...] = (
    Action(
        "leave",
        "leave",
        ("escape", "q", "enter"),
        "esc",
        "back",
        "Back to the panels.",
        "general",
        "page",
        footer=0,
        palette=False,
    ),
    Action(
        "quit_page",
        "app.quit",
        ("ctrl+q", "ctrl+c"),
        "ctrl+c",
        "quit",
        "Detach and leave; the job runs on.",
        "general",
        "page",
        palette=False,
    ),
)

STEP: tuple[Action, ...] = (
    Action("step_next", "slow_step(1)", ("n",), "n N", "slow step", "The next slow step.", "steps", "step", 1, palette=False),
    Action("step_previous", "slow_step(-1)", ("N",), "N", "", "The slow step before.", "steps", "step", palette=False),
    Action("step_copy", "copy", ("y",), "y", "copy the sentence", "Copy the sentence.", "steps", "step", 1, palette=False),
)
"""What the page of a step has beyond other pages."""

WINDOW: tuple[Action, ...] = (
    Action("window_open", "open_window", ("p",), "p", "open a window", "Open it.", "roofline", "window", 0, palette=False),
    Action(
        "window_more",
        "steps(1)",
        ("plus", "equals_sign"),
        "+ -",
        "steps",
        "More steps.",
        "roofline",
        "window",
        1,
        palette=False,
    ),
    Action("window_fewer", "steps(-1)", ("minus",), "-", "", "Fewer steps.", "roofline", "window", palette=False),
    Action("window_cancel", "cancel_window", ("x",), "x", "cancel", "Cancel it.", "roofline", "window", 1, palette=False),
)
"""What the page of profiler windows has beyond other pages."""
