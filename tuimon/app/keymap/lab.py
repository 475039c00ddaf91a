"""The keys of the lab."""

from __future__ import annotations

from tuimon.app.action import Action

LAB: tuple[Action, ...] = (
    Action("intensity", "ask('intensity')", ("i", "I"), "i", "I", "Set the intensity I, in FLOP/byte.", "question"),
    Action("bandwidth", "ask('bandwidth')", ("b", "B"), "b", "B", "Set the bandwidth B, in GB/s.", "question"),
    Action("peak", "ask('peak')", ("k", "K"), "k", "peak", "Set the peak, in GFLOP/s.", "question"),
    Action(
        "reset", "reset", ("r",), "r", "reset", "No I, no B, a peak of 1,000 GFLOP/s. The score stays.", "question", footer=2
    ),
    Action(
        "predict",
        "ask('prediction')",
        ("p",),
        "p",
        "predict",
        "Type the ceiling you expect, in GFLOP/s. It is scored when the ceiling is revealed; within 1 % is right.",
        "answer",
        footer=0,
    ),
    Action(
        "play",
        "play",
        ("space",),
        "space",
        "play",
        "Trace the selected roof up to I, two stations a second; again: stop. It only traces: nothing runs.",
        "answer",
        footer=0,
    ),
    Action(
        "step",
        "step",
        ("s", "right"),
        "s",
        "step",
        "One station further; the last is at I and reveals the ceiling.",
        "answer",
        footer=0,
    ),
    Action("reveal", "reveal", ("v",), "v", "reveal", "Show the ceiling at once.", "answer", footer=3),
    Action(
        "walk",
        "walk",
        ("w",),
        "w",
        "walk",
        "The guided walk: five predictions, about five minutes. Again: leave it.",
        "walk",
        footer=2,
    ),
    Action("on", "on", ("enter",), "enter", "go on", "The next stop, when this one is done.", "walk"),
    Action("skip", "skip(1)", ("N",), "N", "skip", "The next stop in any case.", "walk"),
    Action("before", "skip(-1)", ("P",), "P", "stop before", "The stop before.", "walk"),
    Action(
        "again",
        "again",
        ("h",),
        "h",
        "take again",
        "The numbers that were taken from the live region, as they were.",
        "live region",
    ),
    Action(
        "measured",
        "measured",
        ("m",),
        "m",
        "measured",
        "Back to the measured numbers of the region that the hypothesis was taken from.",
        "live region",
    ),
    Action("help", "help", ("question_mark", "f1"), "?", "help", "This page, and back.", "general", footer=1),
    Action("theme", "app.theme", ("t",), "t", "theme", "The next theme.", "general"),
    Action("leave", "leave", ("q",), "q", "back", "Out of this page, then out of the lab.", "general", footer=0),
    Action("undo", "undo", ("escape",), "esc", "back", "Out of what is typed or of this page; back to the monitor.", "general"),
    Action("quit", "app.quit", ("ctrl+q", "ctrl+c"), "ctrl+c", "quit", "Leave tuimon.", "general"),
)
