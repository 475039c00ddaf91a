"""The GPUs in a small panel: a card each for a few, and all of them side by side in a few lines for many."""

from __future__ import annotations

from tuimon.app.panels.frame import PanelLines, labelled
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
    watts,
    why_no_activity,
)
from tuimon.app.scene import Scene
from tuimon.draw import format as fmt
from tuimon.draw.spark import chart
from tuimon.draw.text import Line, cells, clean, cut, cut_line, fill, line_cells, pad
from tuimon.events import GpuSampled, MigSampled
from tuimon.model.gpu_marks import Mark
from tuimon.model.gpus import of_job

LEAST_CARD = 40
"""Cells below which several GPUs share lines."""
LEAST_TOKEN, MOST_TOKEN = 4, 12
"""Cells of a GPU where many share a line."""


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
        if value is not None:
            activity += [*([("  ", "text")] if activity else []), *labelled(label, f"{percent(value):>4}", "strong")]
    mine = labelled("job", held(job)) if job is not None and job.memory_bytes is not None else []
    if height <= 1:
        room = 6 if width < 60 else 12
        spark: Line = [(util, "number"), (" " + chart(history, room, 1, 100.0, glyphs)[0], "spark")]
        parts = [(0, begin + spark), (1, memory), (4, watt), (3, heat), (2, mine), (5, activity), (2, words)]
        return [cut_line(fill(parts, width), width, glyphs.ellipsis)]
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
        return [first, spent] if height < 3 or not second else [first, second, spent]
    why = why_no_activity(scene)
    middle: Line = [("    ", "text"), *(activity or [(why, "note")])]
    pool = pool_line(job, width - 4) if job is not None else []
    last: Line = [("    ", "text"), *words] if words else ([("    ", "text"), *pool] if pool else [])
    lines = [first, cut_line(middle, width, glyphs.ellipsis) if activity or why else [], spent]
    return [line for line in [*lines, cut_line(last, width, glyphs.ellipsis)] if line]


def _level(found: tuple[Mark, ...], kind: str) -> str:
    return next((str(mark.level) for mark in found if mark.kind == kind), "number")


# ---------------------------------------------------------------------------------------------- many in a few lines


def matrix(scene: Scene, width: int, height: int, cursor: str | None = None) -> PanelLines:
    """All GPUs side by side, up to four lines: which, utilisation, memory, heat. A narrow one is left with ranges."""
    gpus = [row.gpu for row in rows(scene) if row.part is None]
    label = 5
    each = min(MOST_TOKEN, (width - label) // max(1, len(gpus)))
    if each < LEAST_TOKEN or height <= 0:
        return [in_one_line(scene, width)][: max(0, height)]
    jobs = {job.index for job in of_job(scene.model.surroundings)}
    util: Line = [(pad("util", label), "label")]
    memory: Line = [(pad("mem", label), "label")]
    heat: Line = [(pad("temp", label), "label")]
    which: Line = [(pad("gpu", label), "label")]
    for gpu in gpus:
        found = marks_of(scene, gpu)
        sign, level = sign_of(scene, gpu, found)
        gone = away(gpu) is not None
        chosen = cursor is not None and index_of(cursor) == gpu.index
        name = f"{gpu.index}{scene.glyphs.mark_on if gpu.index in jobs else ''}"
        which += [(pad(name, each - 1), "selected" if chosen else ("strong" if gpu.index in jobs else "gpu")), (" ", "text")]
        util += _token(scene, gpu, each, (sign, level), gone)
        share = None
        if gpu.memory_used_bytes is not None and gpu.memory_total_bytes:
            share = 100.0 * gpu.memory_used_bytes / gpu.memory_total_bytes
        full = next((mark for mark in found if mark.kind == "full"), None)
        hot = next((mark for mark in found if mark.kind == "hot"), None)
        memory += _value(percent(share), each, full, "", gone)
        degrees = f"{gpu.temperature_c:.0f}" if gpu.temperature_c is not None else fmt.UNKNOWN
        heat += _value(degrees, each, hot, " C", gone)
    chosen_lines = {1: [util], 2: [util, memory], 3: [which, util, memory]}.get(height, [which, util, memory, heat])
    return [cut_line(line, width, scene.glyphs.ellipsis) for line in chosen_lines]


def _token(scene: Scene, gpu: GpuSampled, each: int, mark: tuple[str, str], gone: bool) -> Line:
    sign, level = mark
    if gone:
        return [(pad("lost" if each > 6 and gpu.lost is not None else "x" if gpu.lost is not None else STALE, each), level)]
    value = percent(gpu.utilization) if each > 5 else percent(gpu.utilization).rstrip("%")
    value = pad(value, 4 if each > 5 else 3, right=True)
    room = each - cells(value) - 2
    spark = ""
    if room > 0:
        spark = chart(list(scene.model.surroundings.gpu_history.get(gpu.index, ())), room, 1, 100.0, scene.glyphs)[0]
    return [(value, "number"), (spark, "spark"), (pad(sign, each - cells(value) - cells(spark))[: max(1, each)], level)]


def _value(text: str, each: int, mark: Mark | None, unit: str, gone: bool) -> Line:
    if gone:
        return [(" " * each, "text")]
    wide = each > 5
    text = pad((text + unit if wide else text.rstrip("%")), 4 if wide else 3, right=True)
    sign, level = (mark.sign, str(mark.level)) if mark is not None else ("", "number")
    return [(text, level), (pad(sign, each - cells(text)), level)]


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


def parts_in_brief(scene: Scene, width: int) -> Line:
    """All parts in a line."""
    parts = scene.model.surroundings.mig.values()
    mine = sorted(f"{part.gpu}.{part.number}" for part in parts if part.process_memory_bytes)
    line = [
        *labelled("MIG parts", str(len(parts))),
        *([("  ", "text"), *labelled("the job's", ", ".join(mine))] if mine else []),
    ]
    return cut_line(line, width, scene.glyphs.ellipsis)
