"""How it stands with the job, where that comes before anything else that a screen could answer."""

from __future__ import annotations

import re
from collections.abc import Callable

from tuimon.app.panels.pace import attaching_words, stopped_words
from tuimon.app.ranks import SILENT_S
from tuimon.app.scene import Scene
from tuimon.draw import format as fmt
from tuimon.draw.text import Line, clean


def standing(scene: Scene) -> Line:
    """What must be said first: not attached, refused, stopped, without torch; empty where the job runs, or ran."""
    target = scene.model.target
    if target.ended == "refused":
        return [("cannot attach: ", "bad"), (clean(target.ended_detail), "text")]
    if target.attached_ns is None:
        if target.ended is not None:
            return [("not attached: ", "ended"), (clean(target.ended_detail) or target.ended, "text")]
        if scene.replay is not None:
            return [("tuimon was attaching then", "note")]
        waits = target.attaching_since_s is not None
        return [(clean(attaching_words(scene.model)), "warn" if waits else "text")]
    if target.ended is not None:
        return []
    stopped = stopped_words(scene.silence, target.pid)
    if stopped is not None:
        where = f" in step {scene.model.steps.n}" if scene.model.steps.source is not None else ""
        return [(stopped + where, "warn")]
    if scene.silence is not None and scene.silence[0] >= SILENT_S:
        return [(f"nothing heard from the job for {fmt.age(scene.silence[0])}: what stands here is from before", "warn")]
    if target.torch is None:
        return [("waiting for torch: the job has not imported it yet", "text")]
    return []


def is_over(scene: Scene) -> bool:
    """Whether the watching is over, as the job ended or is not heard of; a file that was read is not."""
    target = scene.model.target
    return target.ended is not None and not (target.how == "file" and target.ended == "detached")


def ended_line(scene: Scene) -> Line:
    """How and when it ended: `ended: killed by signal 9 at 14:13:23 in step 260`, or that it is not heard of; empty while it
    goes on, and of a file that was read."""
    model = scene.model
    target = model.target
    if target.ended is None or not is_over(scene):
        return []
    detail = clean(target.ended_detail) or target.ended
    offset = model.wall_offset_s
    at = ""
    if offset is not None and target.ended_ns is not None:
        at = f" at {fmt.clock(target.ended_ns / 1e9 + offset, scene.utc_offset_s)}"
    step = f" in step {model.steps.n}" if model.steps.source is not None else ""
    if target.ended == "exited":
        how, unknown = _HOW.sub("", detail), _UNKNOWN.fullmatch(detail)
        if unknown is not None:  # nothing that is worth the room of when it was
            return [("ended", "ended"), (f"{at}{step}, {unknown[1]}", "text")]
        return [("ended: ", "ended"), (f"{how}{at}{step}", "text")]
    return [(f"{AWAY.get(target.ended, target.ended)} since {at.removeprefix(' at ') or 'then'}{step}: {detail}", "text")]


_HOW = re.compile("^the (?:program|process) has ended: ")
_UNKNOWN = re.compile(r"the process has ended \((.+)\)")


AWAY = {"lost": "not heard of", "detached": "no longer attached"}
"""What is known of a job that is not watched any more, and may run on."""


_OVER = {"exited": "ended: ", "lost": "lost: ", "detached": "detached: "}


def over_word(scene: Scene) -> Line:
    """That what follows is of the past; empty while the job goes on, and of a file that was read."""
    ended = scene.model.target.ended
    return [(_OVER.get(ended, "ended: "), "ended")] if ended is not None and is_over(scene) else []


def answered(own: Callable[[Scene], Line]) -> Callable[[Scene], Line]:
    """An answer of a panel that first says how it stands with the job, where that matters more; of a job that is over it says
    that."""

    def answer(scene: Scene) -> Line:
        first = standing(scene)
        if first:
            return first
        return [*over_word(scene), *own(scene)]

    return answer


def told(sentence: str) -> Line:
    """A sentence on what there is not, as an answer."""
    return [(sentence, "text")]
