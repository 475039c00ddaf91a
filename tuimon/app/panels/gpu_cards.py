"""The GPUs in a small panel: a card each for a few, and all of them side by side in a few lines for many."""

from __future__ import annotations

from tuimon.app.panels.frame import PanelLines, labelled, plural
from tuimon.app.panels.gpus import (
    STALE,
    away,
    away_line,
    celsius,
    held,
    index_of,
    marks_of,
    percent,
    pool_line,
    rows,
    short_name,
    sign_of,
    silent_s,
    watts,
    why_no_activity,
)
from tuimon.app.panels.host import named_chart
from tuimon.app.scene import Scene
from tuimon.draw import format as fmt
from tuimon.draw.spark import chart
from tuimon.draw.text import Line, cells, clean, cut, cut_line, exactly, fill, line_cells, pad
from tuimon.events import GpuSampled, MigSampled
from tuimon.model.gpu_marks import Mark
from tuimon.model.gpus import of_job

LEAST_CARD = 40
"""Cells below which several GPUs share lines."""
LEAST_TOKEN, MOST_TOKEN = 4, 12
"""Cells of a GPU where many share some lines."""
LEAST_ALONE, LEAST_WITH_MEMORY = 8, 32
"""Cells of a GPU where they share the only line; from the second on its memory stands there too."""
LABEL = 6
ORDER = ("gpu", "util", "memory", "history", "heat")
"""Which lines of many GPUs come first where there are not enough for all."""


def card(scene: Scene, gpu: GpuSampled, width: int, height: int) -> PanelLines:
    """One GPU in up to four lines, of which the first says most."""
    glyphs = scene.glyphs
    job = next((one for one in of_job(scene.model.surroundings) if one.index == gpu.index), None)
    found = marks_of(scene, gpu)
    sign, level = sign_of(scene, gpu, found)
    begin: Line = [(f"{gpu.index}", "gpu"), (glyphs.mark_on if job is not None else " ", "strong")]
    begin.append((pad(sign, 2), level))
    if away(gpu) is not None:
        return [away_line(scene, gpu, None, width)]
    name = short_name(gpu.name)
    util = f"{percent(gpu.utilization):>4}"
    history = list(scene.model.surroundings.gpu_history.get(gpu.index, ()))
    memory: Line = [(fmt.part_of(gpu.memory_used_bytes, gpu.memory_total_bytes), _level(found, "full"))]
    watt: Line = [(f"{watts(gpu):>9}", _level(found, "held back"))]
    heat: Line = [(f"{celsius(gpu):>4}", _level(found, "hot"))]
    words: Line = [(clean("; ".join(mark.words for mark in found)), level)] if found else []
    activity: Line = []
    for label, value in (("sm", gpu.sm_activity), ("tensor", gpu.tensor_activity), ("dram", gpu.dram_activity)):
        if value is not None and (label != "dram" or height > 1):
            activity += [*([("  ", "text")] if activity else []), *labelled(label, f"{percent(value):>4}", "strong")]
    mine = labelled("job", held(job)) if job is not None and job.memory_bytes is not None else []
    if height <= 1:
        room = 6 if width < 60 else 8
        spark: Line = [*labelled("util", util), (" " + chart(history, room, 1, 100.0, glyphs)[0], "spark")]
        parts = [(0, begin + spark), (2, activity), (1, memory), (5, watt), (4, heat), (3, mine), (2, words)]
        return [_dimmed(scene, gpu, cut_line(fill(parts, width), width, glyphs.ellipsis))]
    ran = "a kernel was running" if width >= 46 else "kernel running"
    head: Line = [*begin, (ran + " ", "label"), (util, "number"), (" ", "text")]
    room = max(0, min(24, width - line_cells(head)))
    first = [*head, (chart(history, room, 1, 100.0, glyphs)[0], "spark")]
    left = width - line_cells(first) - 2
    if left >= 10:
        first += [("  ", "text"), (cut(name, left, glyphs.ellipsis), "gpu")]
    said = words if height < 4 else []  # else they have a line of their own
    spent = fill([(0, [("    ", "text"), *memory]), (2, mine), (1, watt), (3, heat), (2, said)], width)
    if height < 4:
        second = [("    ", "text"), *activity] if activity else []
        lines = [first, spent] if height < 3 or not second else [first, second, spent]
        return [_dimmed(scene, gpu, line) for line in lines]
    why = why_no_activity(scene, width - 4)
    middle: Line = [("    ", "text"), *(activity or [(why, "note")])]
    pool = pool_line(job, width - 4) if job is not None else []
    last: Line = [("    ", "text"), *words] if words else ([("    ", "text"), *pool] if pool else [])
    lines = [first, cut_line(middle, width, glyphs.ellipsis) if activity or why else [], spent]
    return [_dimmed(scene, gpu, line) for line in [*lines, cut_line(last, width, glyphs.ellipsis)] if line]


def _dimmed(scene: Scene, gpu: GpuSampled, line: Line) -> Line:
    """Values from before step back while their GPU does not answer; its sign stays."""
    if silent_s(scene, gpu.index) is None:
        return line
    return [(text, role if role in ("gpu", "warn", "bad") else "quiet") for text, role in line]


def _level(found: tuple[Mark, ...], kind: str) -> str:
    return next((str(mark.level) for mark in found if mark.kind == kind), "number")


# ---------------------------------------------------------------------------------------------- many in a few lines


def matrix(scene: Scene, width: int, height: int, cursor: str | None = None) -> PanelLines:
    """All GPUs side by side in up to five lines: which, utilisation, its history, memory, heat. A narrow one has ranges."""
    gpus = [row.gpu for row in rows(scene) if row.part is None]
    if height <= 0:
        return []
    if height == 1:
        each = width // max(1, len(gpus))
        return [_side_by_side(scene, gpus, each, cursor) if each >= LEAST_ALONE else in_one_line(scene, width)]
    each = min(MOST_TOKEN, (width - LABEL) // max(1, len(gpus)))
    if each < LEAST_TOKEN:
        return [in_one_line(scene, width)]
    jobs = {job.index for job in of_job(scene.model.surroundings)}
    lines: dict[str, Line] = {
        name: [(pad(label, LABEL), "label")]
        for name, label in (("gpu", "gpu"), ("util", "util%"), ("history", ""), ("memory", "mem%"), ("heat", "temp"))
    }
    for gpu in gpus:
        found = marks_of(scene, gpu)
        sign, level = sign_of(scene, gpu, found)
        name = f"{gpu.index}{scene.glyphs.mark_on if gpu.index in jobs else ' '}"
        lines["gpu"] += [(name, _name_role(gpu, jobs, cursor)), (pad(sign, each - cells(name))[: each - cells(name)], level)]
        if away(gpu) is not None:
            lines["util"].append((pad("lost" if gpu.lost is not None and each > 4 else "", each), level))
            for other in ("history", "memory", "heat"):
                lines[other].append((" " * each, "text"))
            continue
        role = "quiet" if sign == STALE else "number"
        share = None
        if gpu.memory_used_bytes is not None and gpu.memory_total_bytes:
            share = 100.0 * gpu.memory_used_bytes / gpu.memory_total_bytes
        degrees = f"{gpu.temperature_c:.0f}" if gpu.temperature_c is not None else fmt.UNKNOWN
        history = list(scene.model.surroundings.gpu_history.get(gpu.index, ()))
        lines["util"] += _value(_util(gpu), each, None, role)
        lines["history"] += [(chart(history, each - 1, 1, 100.0, scene.glyphs)[0], "spark"), (" ", "text")]
        lines["memory"] += _value(percent(share), each, _of_kind(found, "full"), role)
        lines["heat"] += _value(degrees, each, _of_kind(found, "hot"), role)
    chosen = ORDER[:height]
    return [cut_line(line, width, scene.glyphs.ellipsis) for name, line in lines.items() if name in chosen]


def _util(gpu: GpuSampled) -> str:
    return "MIG" if gpu.utilization is None and gpu.mig_mode else percent(gpu.utilization)


def _name_role(gpu: GpuSampled, jobs: set[int], cursor: str | None) -> str:
    if cursor is not None and index_of(cursor) == gpu.index:
        return "selected"
    return "strong" if gpu.index in jobs else "gpu"


def _of_kind(found: tuple[Mark, ...], kind: str) -> Mark | None:
    return next((mark for mark in found if mark.kind == kind), None)


def _value(text: str, each: int, mark: Mark | None, role: str) -> Line:
    text = pad(text.rstrip("%"), 3, right=True)
    sign, level = (mark.sign, str(mark.level)) if mark is not None else ("", role)
    return [(text, level), (pad(sign, each - cells(text))[: each - cells(text)], level)]


def _side_by_side(scene: Scene, gpus: list[GpuSampled], each: int, cursor: str | None) -> Line:
    """One line: for each GPU which it is, its utilisation with what has room of its history, and the sign of the worst."""
    jobs = {job.index for job in of_job(scene.model.surroundings)}
    digits = max(len(str(gpu.index)) for gpu in gpus)
    line: Line = []
    for gpu in gpus:
        found = marks_of(scene, gpu)
        sign, level = sign_of(scene, gpu, found)
        room = each - 1  # a cell between two of them
        name = f"{gpu.index:>{digits}}{scene.glyphs.mark_on if gpu.index in jobs else ' '}"
        one: Line = [(name, _name_role(gpu, jobs, cursor))]
        if away(gpu) is not None:
            one.append((f"{sign} lost" if gpu.lost is not None else f"{sign} not read", level))
        else:
            stale = sign == STALE
            percents = _util(gpu)
            one.append((f" {percents:>4}" if each >= 12 else f"{percents.rstrip('%'):>3}", "quiet" if stale else "number"))
            memory: Line = []
            if each >= LEAST_WITH_MEMORY:
                text = fmt.part_of(gpu.memory_used_bytes, gpu.memory_total_bytes)
                memory = [(" " + text, "quiet" if stale else _level(found, "full"))]
            said = f" {sign}" if sign else ""
            spark = min(MOST_TOKEN, room - line_cells(one) - line_cells(memory) - (3 if each >= 12 else cells(said)))
            if spark > 0 and (each >= 12 or not sign):
                history = list(scene.model.surroundings.gpu_history.get(gpu.index, ()))
                beside = " " if each >= 12 else ""
                one.append((beside + chart(history, spark - len(beside), 1, 100.0, scene.glyphs)[0], "spark"))
            one += [(pad(said, 3) if memory else said, level), *memory]
        line += [*exactly(one, room), (" ", "text")]
    return line


def in_one_line(scene: Scene, width: int) -> Line:
    """All GPUs as ranges."""
    gpus = [row.gpu for row in rows(scene) if row.part is None]
    used = [gpu.memory_used_bytes for gpu in gpus if gpu.memory_used_bytes is not None]
    power = [gpu.power_w for gpu in gpus if gpu.power_w is not None]
    odd = [(gpu.index, found[0]) for gpu in gpus if (found := marks_of(scene, gpu))]
    said: Line = []
    if odd:
        level = "bad" if any(mark.level == "bad" for _, mark in odd) else "warn"
        said = [(" ".join(f"{index}{mark.sign}" for index, mark in odd), level)]
    return cut_line(
        fill(
            [
                (0, [(f"{len(gpus)} GPUs", "gpu")]),
                (0, labelled("util", _range([gpu.utilization for gpu in gpus if gpu.utilization is not None], "%"))),
                (0, said),
                (1, labelled("mem", f"{fmt.size(min(used))}-{fmt.size(max(used))}" if used else fmt.UNKNOWN)),
                (2, [(_range(power, " W"), "number")]),
            ],
            width,
        ),
        width,
        scene.glyphs.ellipsis,
    )


def _range(values: list[float], unit: str) -> str:
    if not values:
        return fmt.UNKNOWN + unit
    low, high = f"{min(values):.0f}", f"{max(values):.0f}"
    return (low if low == high else f"{low}-{high}") + unit


# ---------------------------------------------------------------------------------------------- MIG parts


def part_line(scene: Scene, part: MigSampled, width: int) -> Line:
    """One part of a GPU."""
    mark = scene.glyphs.mark_on if part.process_memory_bytes else " "
    parts: list[tuple[int, Line]] = [
        (0, [(f"{part.gpu}.{part.number}", "gpu"), (mark, "strong"), (f" {clean(part.profile or part.name)}", "gpu")]),
        (1, [(fmt.part_of(part.memory_used_bytes, part.memory_total_bytes), "number")]),
        (2, labelled("sm", percent(part.sm_activity), "strong") if part.sm_activity is not None else []),
        (3, labelled("tensor", percent(part.tensor_activity), "strong") if part.tensor_activity is not None else []),
        (1, labelled("job", fmt.size(part.process_memory_bytes)) if part.process_memory_bytes else []),
    ]
    return cut_line(fill(parts, width), width, scene.glyphs.ellipsis)


def divided(scene: Scene, gpu: GpuSampled, width: int, alone: bool = True) -> Line:
    """A GPU in MIG mode in one line. Of it as a whole little is told, so the job's own part comes first where it is `alone`,
    with no lines of its parts below."""
    parts = [part for part in scene.model.surroundings.mig.values() if part.gpu == gpu.index]
    mine = [part for part in parts if part.process_memory_bytes]
    found = marks_of(scene, gpu)
    sign, level = sign_of(scene, gpu, found)
    memory = fmt.part_of(gpu.memory_used_bytes, gpu.memory_total_bytes)
    line: Line = [(f"{gpu.index} ", "gpu"), (pad(sign, 2), level), ("MIG, ", "label"), (plural(len(parts), "part"), "number")]
    shown = [
        (0, line),
        *((1, part_line(scene, part, width // 2)) for part in mine[: 1 if alone else 0]),
        (4, [("more of the job's ", "label"), (str(len(mine) - 1), "number")] if alone and len(mine) > 1 else []),
        (2, labelled("in all", memory, _level(found, "full"))),
        (3, [(watts(gpu), _level(found, "held back"))] if gpu.power_w is not None else []),
    ]
    return _dimmed(scene, gpu, cut_line(fill(shown, width), width, scene.glyphs.ellipsis))


def history(scene: Scene, width: int) -> PanelLines:
    """The only GPU's utilisation over all the width, to be laid over the host's chart; empty where there are more, or none."""
    surroundings = scene.model.surroundings
    if len(surroundings.gpus) != 1:
        return []
    index = next(iter(surroundings.gpus))
    track = surroundings.gpu_history.get(index, ())
    if not any(value is not None for value in track):
        return []
    return named_chart(scene, "gpu util", list(track), "100%", 100.0, width, 3, "spark")


def parts_in_brief(scene: Scene, width: int) -> Line:
    """All parts in a line."""
    parts = scene.model.surroundings.mig.values()
    mine = sorted(f"{part.gpu}.{part.number}" for part in parts if part.process_memory_bytes)
    line = [
        *labelled("MIG parts", str(len(parts))),
        *([("  ", "text"), *labelled("the job's", ", ".join(mine))] if mine else []),
    ]
    return cut_line(line, width, scene.glyphs.ellipsis)
