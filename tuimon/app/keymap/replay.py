"""The keys of the main screen while a recording is played."""

from __future__ import annotations

from tuimon.app.action import Action

REPLAY: tuple[Action, ...] = (
    Action("play", "play", ("space",), "space", "play", "Pause, or play; at the end: from the begin.", "replay", "replay", 1),
    Action(
        "step_on",
        "replay_step(1)",
        ("full_stop",),
        ". ,",
        "step",
        "One step on; a comma: one back. It pauses.",
        "replay",
        "replay",
        1,
    ),
    Action("step_back", "replay_step(-1)", ("comma",), ",", "a step back", "One step back.", "replay", "replay"),
    Action(
        "steps_on", "replay_step(10)", ("greater_than_sign",), "> <", "ten steps", "Ten steps on, or back.", "replay", "replay"
    ),
    Action("steps_back", "replay_step(-10)", ("less_than_sign",), "<", "ten back", "Ten steps back.", "replay", "replay"),
    Action(
        "next_finding",
        "finding(1)",
        ("f",),
        "f F",
        "finding",
        "Where the next thing to look at came up; F: the one before.",
        "replay",
        "replay",
        footer=2,
    ),
    Action("previous_finding", "finding(-1)", ("F",), "F", "finding before", "The one before.", "replay", "replay"),
    Action(
        "go_to",
        "go_to",
        ("o",),
        "o",
        "go to",
        "A step (1204), a time of day (03:12), since the begin (90s), from here (+30s, -1m), a share (50%).",
        "replay",
        "replay",
        footer=2,
    ),
    Action(
        "play_faster", "speed(1)", ("plus", "equals_sign"), "+ -", "speed", "Play faster, or slower.", "replay", "replay", 3
    ),
    Action("play_slower", "speed(-1)", ("minus",), "-", "slower", "Play slower.", "replay", "replay"),
    Action("to_begin", "to_begin", ("0",), "0", "the begin", "Back to the begin.", "replay", "replay"),
)
"""What there is beyond that while a recording is played. Some of these keys mean something else for a live job."""
