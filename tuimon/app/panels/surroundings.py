"""GPU and host: what the machine does around the job."""

from __future__ import annotations

from tuimon.app.panels import gpu_cards, gpu_table, gpus, host
from tuimon.app.panels.frame import PanelLines, sentence, title_line, title_room
from tuimon.app.panels.tabular import place_cursor
from tuimon.app.scene import Panel, PanelView, Scene
from tuimon.draw.text import Line, cells, clean, cut, cut_line, exactly, line_cells, wrap
from tuimon.model.gpus import of_job

HOST = "host"
"""The key of the host's row."""
PAGE_WIDTH, PAGE_HEIGHT = 60, 10
"""From this size on GPUs are a table."""
TITLE = "GPU and host"
NO_ROW = 1 << 20
"""For `PanelView.above`: a click finds no row."""


def keys(scene: Scene, view: PanelView) -> list[str]:
    """The GPUs with their parts, and the host."""
    surroundings = scene.model.surroundings
    known = surroundings.host is not None or surroundings.gpu_why_not is not None
    return [row.key for row in gpus.rows(scene)] + ([HOST] if known else [])


def why_no_gpu(scene: Scene) -> str:
    """The source's sentence, which speaks of the machine that it runs on."""
    why = clean(scene.model.surroundings.gpu_why_not or "")
    return why if scene.host is None else why.replace(" on this machine", f" on {clean(scene.host)}")


def _no_gpu(scene: Scene, width: int, room: int) -> PanelLines:
    if scene.model.surroundings.gpu_why_not is None:
        over = scene.model.target.ended is not None
        return [[("no GPU reading" if over else "no GPU reading yet", "note")]]
    text = f"no GPU: {why_no_gpu(scene)}"
    if room >= 2 and cells(text) > width:
        return [[(part, "note")] for part in wrap(text, width)[:2]]
    return [[(cut(text, width, scene.glyphs.ellipsis), "note")]]


def _draw(scene: Scene, view: PanelView, width: int, height: int, focused: bool) -> PanelLines:
    if height <= 0 or width <= 0:
        return []
    ordered = keys(scene, view)
    at = place_cursor(view, ordered)
    cursor = ordered[at] if at is not None else None
    if height >= PAGE_HEIGHT and width >= PAGE_WIDTH:
        return _page(scene, view, width, height, focused, at, cursor)[:height]
    return _small(scene, view, width, height, focused, cursor)[:height]


def _edged(scene: Scene, line: Line, chosen: bool, width: int) -> Line:
    if not chosen:
        return [(" ", "text"), *line]
    return [(scene.glyphs.right, "selected"), *exactly([(text, "selected") for text, _ in line], width, "selected")]


def _title(scene: Scene, note: str, width: int, focused: bool) -> Line:
    surroundings = scene.model.surroundings
    if scene.model.target.ended is not None and (surroundings.host is not None or surroundings.gpus):
        note = f"last seen; {note}" if note else "last seen"
    return title_line(5, TITLE, note, width, focused, scene.glyphs)


# ---------------------------------------------------------------------------------------------- among other panels


def _small(scene: Scene, view: PanelView, width: int, height: int, focused: bool, cursor: str | None) -> PanelLines:
    inner = width - 1
    room = height - 1
    surroundings = scene.model.surroundings
    view.above = NO_ROW
    view.page = 1
    known = surroundings.host is not None
    note = ""
    late = gpus.silence(scene, inner)
    lines: PanelLines = [late] if late and room > 0 else []
    if surroundings.gpus:
        left = room - len(lines)
        for_host = (0 if left <= 1 else 1 if left <= 3 or surroundings.mig else 2) if known else 0
        parts = [_job_on(scene), host.in_brief(scene) if known and not for_host else ""]
        note = ", ".join(part for part in parts if part)
        lines += _few_or_many(scene, inner, left - for_host, cursor if focused else None)
    elif room <= 1 and known and surroundings.gpu_why_not is not None:
        note = f"no GPU: {why_no_gpu(scene)}"
        if cells(note) + (cells("last seen; ") if scene.model.target.ended is not None else 0) > title_room(TITLE, width):
            note = note.partition(" (")[0]
    elif not lines:
        lines += _no_gpu(scene, inner, room if not known else room - 1)
    left = room - len(lines)
    told = host.host_lines(scene, inner, 2 if surroundings.gpus else max(2, left - 1))
    if left == 1 and len(told) == 2 and line_cells(told[0]) + line_cells(told[1]) + 2 <= inner:
        told = [[*told[0], ("  ", "text"), *told[1]]]
    told = told[: max(0, left)]
    out = [_title(scene, note, width, focused), *([(" ", "text"), *line] for line in lines)]
    for at, line in enumerate(told):
        out.append(_edged(scene, line, focused and cursor == HOST and at == 0, inner))
    if not known and left > 0:
        why = "no reading of the host" + (" yet" if scene.model.target.ended is None else ": the job is over")
        out += sentence(why, width, left)
    elif known and height > len(out):
        out += host.cpu_chart(scene, width, min(height - len(out), 4))
    return out


def _job_on(scene: Scene) -> str:
    """On which of several GPUs the job is; "" where there is one."""
    jobs = [job.index for job in of_job(scene.model.surroundings)]
    several = len(scene.model.surroundings.gpus) > 1
    return f"job on GPU {gpus.ranges(jobs)}" if several and jobs else ""


def _few_or_many(scene: Scene, width: int, room: int, cursor: str | None) -> PanelLines:
    """The GPUs in at most `room` lines."""
    if room <= 0:
        return []
    shown = gpus.rows(scene)
    whole = [row.gpu for row in shown if row.part is None]
    if len(whole) > room or (len(whole) > 1 and width < gpu_cards.LEAST_CARD):
        return gpu_cards.matrix(scene, width, room, cursor)
    each = 1 if len(shown) > len(whole) else min(4, room // len(whole))
    lines: PanelLines = []
    for gpu in whole:
        chosen = cursor is not None and gpus.index_of(cursor) == gpu.index
        card = gpu_cards.card(scene, gpu, width, each)
        lines += [[(text, "selected") for text, _ in card[0]], *card[1:]] if chosen and len(whole) > 1 else card
    parts = [gpu_cards.part_line(scene, row.part, width) for row in shown if row.part is not None]
    if len(parts) > room - len(lines) > 0:
        parts = [gpu_cards.parts_in_brief(scene, width)]
    return [*lines, *parts[: room - len(lines)]]


# ---------------------------------------------------------------------------------------------- the whole screen


def _page(
    scene: Scene, view: PanelView, width: int, height: int, focused: bool, at: int | None, cursor: str | None
) -> PanelLines:
    inner = width - 1
    glyphs = scene.glyphs
    late = gpus.silence(scene, inner)
    head: PanelLines = [[(" ", "text"), *late]] if late else []
    count = len(gpus.rows(scene))
    note = ""
    view.above = len(head) + 1
    if count:
        note = f"{gpus.names(scene)}; {gpus.NOT_ALL}"
        rows, in_words = gpu_table.table(
            scene, view, width, min(count + 1, max(3, height - len(head) - 7)), focused, at if cursor != HOST else None
        )
        if len(rows) - 1 < count:
            note = f"{view.top + 1}-{view.top + len(rows) - 1} of {count}; {note}"
        head += rows
        said = _said(scene, in_words, inner)
        most = max(1, min(5, height - len(head) - 6))
        if len(said) > most:
            said = [*said[: most - 1], [(f"and {len(said) - most + 1} more: enter on a GPU shows all about it", "note")]]
        head += [[(" ", "text"), *cut_line(line, inner, glyphs.ellipsis)] for line in said]
    else:
        head += [[(" ", "text"), *line] for line in _no_gpu(scene, inner, 1)]
        view.above = len(head)
    out = [_title(scene, note, width, focused), *head]
    told = host.host_lines(scene, inner, 4)
    if told and count and height - len(out) > len(told) + 1:
        out.append([])
    for number, line in enumerate(told):
        out.append(_edged(scene, line, focused and cursor == HOST and number == 0, inner))
    if not told:
        why = "no reading of the host" + (" yet" if scene.model.target.ended is None else ": the job is over")
        return [*out, *sentence(why, width, height - len(out))]
    below = host.fill_room(scene, inner, height - len(out) - 1)
    return [*out, [], *([(" ", "text"), *line] if line else [] for line in below)] if below else out


def _said(scene: Scene, in_words: bool, width: int) -> PanelLines:
    """What a table cannot hold: what stands out, the job's pools, and what is not told."""
    out: PanelLines = []
    surroundings = scene.model.surroundings
    if not in_words:
        for index in sorted(surroundings.gpus):
            gpu = surroundings.gpus[index]
            if gpus.away(gpu) is None:
                found = gpus.marks_of(scene, gpu)
                out += [[(f"{mark.sign:<2} GPU {index} {clean(mark.words)}", str(mark.level))] for mark in found]
    jobs = of_job(surroundings)
    for job in jobs:
        begin = f"GPU {job.index} "
        pool = gpus.pool_line(job, width - cells(begin))
        if pool:
            out.append([(begin, "label"), *pool])
    if any(job.inferred for job in jobs):
        how = {"only": "the only process there", "pool": "the process whose memory is that of its pool"}
        whys = sorted({how[job.how] for job in jobs if job.how in how})
        out.append([(f"~ taken for the job's: {', '.join(whys)}", "note")])
    for gpu in surroundings.gpus.values():
        if why := dict(gpu.missing).get("mig"):
            out.append([(f"GPU {gpu.index} no part is shown: {clean(why)}", "note")])
    if any(gpu.mig_mode for gpu in surroundings.gpus.values()):
        out.append([("the driver tells no utilisation of a GPU in MIG mode, nor of its parts", "note")])
    elif why := gpus.why_no_activity(scene):
        out.append([(why, "note")])
    return out


PANEL = Panel(
    number=5,
    id="surroundings",
    title=TITLE,
    sections=("gpu", "host", "target"),
    draw=_draw,
    keys=keys,
    ticking=lambda scene: bool(scene.nvml_waiting_s and scene.nvml_waiting_s > gpus.NVML_LATE_S),
    help=(
        "util is NVML's: the part of the driver's last period in which some kernel was running, which is not how busy the GPU "
        "was; sm and tensor say that, where the GPU tells them (Hopper and newer). A dot marks the GPUs that the job uses, ~ a "
        "number that is taken for the job's. Signs: ! worth a look, !! bad, x lost or an XID error, ? does not answer. job: "
        "cores in use, resident memory, and the cores that it lacks, for threads that are ready to run. enter shows all about "
        "the selected GPU, or about the host: threads, processes, limits."
    ),
)
