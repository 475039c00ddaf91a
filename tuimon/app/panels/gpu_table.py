"""The GPUs as a table: heads, and one line for each GPU and each part of one."""

from __future__ import annotations

from tuimon.app.panels import gpus
from tuimon.app.panels.frame import PanelLines
from tuimon.app.scene import PanelView, Scene
from tuimon.draw import format as fmt
from tuimon.draw.spark import chart
from tuimon.draw.table import Cell, Cells, Column, head_line, layout, note_widths, row_line, window
from tuimon.draw.text import clean, exactly
from tuimon.events import GpuSampled, MigSampled
from tuimon.model.gpus import JobGpu, of_job

_COLUMNS = (
    Column("gpu", "gpu", 3),
    Column("job", "", 1),
    Column("sign", "", 2),
    Column("util", "util", 4, right=True),
    Column("history", "", 6, flex=2, most=24, rank=6),
    Column("sm", "sm", 4, right=True, rank=3),
    Column("tensor", "tensor", 6, right=True, rank=4),
    Column("dram", "dram", 4, right=True, rank=11),
    Column("memory", "memory", 13, right=True),
    Column("held", "the job's", 9, right=True, rank=2),
    Column("power", "power", 9, right=True, rank=7),
    Column("heat", "temp", 5, right=True, rank=8),
    Column("clock", "sm clock", 8, right=True, rank=10),
    Column("part", "part", 8, rank=1),
    Column("name", "name", 12, rank=12),
    Column("words", "", 30, flex=3, rank=13),
)

WORDS_WIDTH = 150
"""From so many cells on a row says in words what stands out; else lines below the table do."""


def table(scene: Scene, view: PanelView, width: int, height: int, focused: bool, at: int | None) -> tuple[PanelLines, bool]:
    """Heads and one line a GPU; `at` is the selected one. Also gives whether the lines say in words what stands out."""
    all_rows = gpus.rows(scene)
    room = max(1, height - 1)
    view.top = window(len(all_rows), at if at is not None else view.top, view.top, room)
    view.page = room
    shown = all_rows[view.top : view.top + room]
    hidden = _hidden(scene, width)
    columns = [column for column in _COLUMNS if column.name not in hidden]
    jobs = {job.index: job for job in of_job(scene.model.surroundings)}
    content = [_part(scene, row.part) if row.part is not None else _gpu(scene, row.gpu, jobs) for row in shown]
    note_widths(columns, [row for row in content if "away" not in row], view.widths)
    inner = width - 1
    placed = layout(columns, inner, view.widths)
    lines: PanelLines = [[(" ", "text"), *head_line(placed, inner, None, "", scene.glyphs.ellipsis)]]
    for offset, (row, row_cells) in enumerate(zip(shown, content, strict=True)):
        chosen = focused and view.top + offset == at
        role = "selected" if chosen else ("quiet" if gpus.silent_s(scene, row.gpu.index) is not None else None)
        edge = scene.glyphs.right if chosen else " "
        if "away" in row_cells:
            lines.append(
                [
                    (edge, role or "text"),
                    *exactly(
                        gpus.away_line(scene, row.gpu, role, inner, 4 + 2 * placed.gap, 6 + 3 * placed.gap),
                        inner,
                        role or "text",
                    ),
                ]
            )
        else:
            lines.append([(edge, role or "text"), *row_line(placed, row_cells, inner, scene.glyphs.ellipsis, role)])
    return lines, placed.has("words")


def _hidden(scene: Scene, width: int) -> frozenset[str]:
    of = scene.model.surroundings
    hidden = set() if gpus.has_activity(scene) else {"sm", "tensor", "dram"}
    if not of.mig:
        hidden.add("part")
    if width < WORDS_WIDTH:
        hidden.add("words")
    if not any(value is not None for track in of.gpu_history.values() for value in track):
        hidden.add("history")
    if len({gpu.name for gpu in of.gpus.values()}) < 2:
        hidden.add("name")
    if not any(job.memory_bytes is not None for job in of_job(of)):
        hidden.add("held")
    return frozenset(hidden)


def _history(scene: Scene, index: int) -> Cell:
    values = list(scene.model.surroundings.gpu_history.get(index, ()))
    return lambda width: (chart(values, width, 1, 100.0, scene.glyphs)[0], "spark")


def _gpu(scene: Scene, gpu: GpuSampled, jobs: dict[int, JobGpu]) -> Cells:
    if gpus.away(gpu) is not None:
        return {"away": ("", "text")}
    found = gpus.marks_of(scene, gpu)
    by_kind = {mark.kind: mark.level for mark in found}
    sign, level = gpus.sign_of(scene, gpu, found)
    quiet = gpus.silent_s(scene, gpu.index)
    words = "; ".join(mark.words for mark in found)
    return {
        "gpu": (str(gpu.index), "gpu"),
        "job": (scene.glyphs.mark_on if gpu.index in jobs else "", "strong"),
        "sign": (sign, level),
        "util": (gpus.percent(gpu.utilization), "number"),
        "history": _history(scene, gpu.index),
        "sm": (gpus.percent(gpu.sm_activity), "strong"),
        "tensor": (gpus.percent(gpu.tensor_activity), "strong"),
        "dram": (gpus.percent(gpu.dram_activity), "number"),
        "memory": (fmt.part_of(gpu.memory_used_bytes, gpu.memory_total_bytes), by_kind.get("full", "number")),
        "held": (gpus.held(jobs.get(gpu.index)), "number"),
        "power": (gpus.watts(gpu), by_kind.get("held back", "number")),
        "heat": (gpus.celsius(gpu), by_kind.get("hot", "number")),
        "clock": (gpus.clock(gpu), by_kind.get("held back", "number")),
        "name": (gpus.short_name(gpu.name), "gpu"),
        "words": (clean(words) if quiet is None else f"no answer for {fmt.age(quiet)}", level),
    }


def _part(scene: Scene, part: MigSampled) -> Cells:
    return {
        "gpu": (f"{part.gpu}.{part.number}", "gpu"),
        "job": (scene.glyphs.mark_on if part.process_memory_bytes else "", "strong"),
        "util": (fmt.UNKNOWN, "dim"),
        "sm": (gpus.percent(part.sm_activity), "strong"),
        "tensor": (gpus.percent(part.tensor_activity), "strong"),
        "dram": (gpus.percent(part.dram_activity), "number"),
        "memory": (fmt.part_of(part.memory_used_bytes, part.memory_total_bytes), "number"),
        "held": (fmt.size(part.process_memory_bytes), "number"),
        "part": (clean(part.profile or part.name), "gpu"),
    }
