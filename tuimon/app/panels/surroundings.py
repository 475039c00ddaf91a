"""GPU and host: what the machine does around the job."""

from __future__ import annotations

from tuimon.app.panels import gpu_cards, gpu_table, gpus, host
from tuimon.app.panels.frame import PanelLines, sentence, title_line, title_room, untold
from tuimon.app.panels.standing import answered, told
from tuimon.app.panels.tabular import place_cursor
from tuimon.app.scene import Panel, PanelView, Scene
from tuimon.draw import format as fmt
from tuimon.draw.text import Line, cells, clean, cut, cut_line, exactly, fill, line_cells, wrap
from tuimon.model.gpus import of_job

HOST = "host"
"""The key of the host's row."""
PAGE_WIDTH, PAGE_HEIGHT = 60, 10
"""From this size on GPUs are a table."""
TITLE = "GPU and host"
NONE_HERE = ("", "no driver", "no gpu")
"""`GpuUnavailable.kind` where nothing speaks for a GPU."""
SHORT = {"mismatch": "the driver was upgraded: reboot"}
"""Where the first words of the whole sentence are too many for a title."""
WHOLE = 1 << 10
"""Cells of a line that is not cut."""
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


def no_gpu(scene: Scene, width: int | None = None) -> str:
    """That there is none, or why one that may be there is not read; in less words where these do not fit. "" where nothing was
    told yet."""
    surroundings = scene.model.surroundings
    if surroundings.gpu_why_not is None:
        return ""
    begin = "no GPU: " if surroundings.gpu_kind in NONE_HERE else "GPU not read: "
    whole = why_no_gpu(scene)
    short = (whole, whole.partition(" (")[0], SHORT.get(surroundings.gpu_kind, ""), whole.partition(": ")[0])
    fitting = (text for text in short if text and (width is None or cells(begin + text) <= width))
    return begin + next(fitting, short[1])


def _no_gpu(scene: Scene, width: int, most: int) -> PanelLines:
    """One line where there is none; up to `most` where there is something to do about it."""
    if scene.model.surroundings.gpu_why_not is None:
        if untold(scene, "gpu"):
            return [[(cut(f"GPU: {untold(scene, 'gpu')}", width, scene.glyphs.ellipsis), "note")]]
        over = scene.model.target.ended is not None
        return [[("no GPU reading" if over else "no GPU reading yet: the first comes a second after the attach", "note")]]
    if scene.model.surroundings.gpu_kind not in NONE_HERE and most >= 2:
        return [[(part, "note")] for part in wrap(no_gpu(scene), width)[:most]]
    return [[(cut(no_gpu(scene, width), width, scene.glyphs.ellipsis), "note")]]


def _no_host(scene: Scene) -> str:
    if untold(scene, "host"):
        return f"host: {untold(scene, 'host')}"
    if scene.model.target.ended is not None:
        return "no reading of the host: the job is over"
    return "no reading of the host yet: the first comes about a second after the attach"


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
        many = left == 4 < len(surroundings.gpus)  # which, utilisation and memory are three lines
        for_host = (0 if left <= 1 else 1 if left <= 3 or surroundings.mig or many else 2) if known else 0
        drawn = _few_or_many(scene, inner, left - for_host, cursor if focused else None)
        lines[:0] = drawn  # where they always are: what a call that hangs takes is the host's room
        told_in_title = title_room(TITLE, width) - _last_seen(scene)
        note = _note(scene, drawn, known and not for_host, told_in_title)
    elif room <= 1 and known and surroundings.gpu_why_not is not None:
        note = no_gpu(scene, title_room(TITLE, width) - _last_seen(scene))
    elif not lines:
        lines += _no_gpu(scene, inner, min(2, room if not known else room - 1))
    left = room - len(lines)
    told = host.host_lines(scene, inner, 2 if surroundings.gpus or left <= 2 else left - 1)
    if left == 1 and told:
        both = [*told[0], ("  ", "text"), *told[-1]]
        told = [both] if len(told) == 2 and line_cells(both) <= inner else host.host_lines(scene, inner, 1)
    told = told[: max(0, left)]
    out = [_title(scene, note, width, focused), *([(" ", "text"), *line] for line in lines)]
    for at, line in enumerate(told):
        out.append(_edged(scene, line, focused and cursor == HOST and at == 0, inner))
    if not known and left > 0:
        out += sentence(_no_host(scene), width, left)
    elif known and height > len(out):
        out += host.cpu_chart(scene, width, min(height - len(out), 4))
    return out


def _last_seen(scene: Scene) -> int:
    """Cells that the title needs for saying so."""
    return cells("last seen; ") if scene.model.target.ended is not None else 0


def _note(scene: Scene, drawn: PanelLines, brief: bool, room: int) -> str:
    """The title's: which GPUs are the job's, what its process does where no line says so, and what util is."""
    parts = [_job_on(scene), host.in_brief(scene) if brief else ""]
    note = ", ".join(part for part in parts if part)
    told = any("kernel" in text for line in drawn for text, _ in line)  # a card has room for the words
    if not told and any(gpu.utilization is not None for gpu in scene.model.surroundings.gpus.values()):
        for what in (gpus.NOT_ALL, gpus.NOT_ALL_SHORT):
            with_it = f"{note}; {what}" if note else what
            if cells(with_it) <= room:
                return with_it
    return note


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
    if room == 1 and len(whole) == 1 and whole[0].mig_mode and gpus.away(whole[0]) is None:
        return [gpu_cards.divided(scene, whole[0], width)]
    if len(whole) > room or (len(whole) > 1 and width < gpu_cards.LEAST_CARD):
        return gpu_cards.matrix(scene, width, room, cursor)
    each = 1 if len(shown) > len(whole) else min(4, room // len(whole))
    lines: PanelLines = []
    for gpu in whole:
        chosen = cursor is not None and gpus.index_of(cursor) == gpu.index
        if any(row.part is not None and row.gpu is gpu for row in shown) and gpus.away(gpu) is None:
            card = [gpu_cards.divided(scene, gpu, width, alone=False)]
        else:
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
    hangs: PanelLines = []
    if late:
        stale: Line = [("? marks a row from before", "note")] if gpus.rows(scene) else []
        hangs = [[(" ", "text"), *fill([(0, late), (1, stale)], inner)]]
    head: PanelLines = []
    count = len(gpus.rows(scene))
    note = ""
    view.above = 1
    if count:
        has_util = any(gpu.utilization is not None for gpu in scene.model.surroundings.gpus.values())
        note = f"{gpus.names(scene)}; {gpus.NOT_ALL}" if has_util else gpus.names(scene)
        rows, in_words = gpu_table.table(
            scene, view, width, min(count + 1, max(3, height - len(hangs) - 7)), focused, at if cursor != HOST else None
        )
        if len(rows) - 1 < count:
            note = f"{view.top + 1}-{view.top + len(rows) - 1} of {count}; {note}"
        head += rows + hangs  # below, so that no row moves when a call hangs
        said = _said(scene, in_words, inner)
        most = max(1, min(5, height - len(head) - 6))
        if len(said) > most:
            said = [*said[: most - 1], [(f"and {len(said) - most + 1} more: enter on a GPU shows all about it", "note")]]
        head += [[(" ", "text"), *cut_line(line, inner, glyphs.ellipsis)] for line in said]
    else:
        head += [*hangs, *([(" ", "text"), *line] for line in _no_gpu(scene, inner, 4))]
        view.above = len(head)
    out = [_title(scene, note, width, focused), *head]
    told = host.host_lines(scene, inner, 4)
    if told and count and height - len(out) > len(told) + 1:
        out.append([])
    for number, line in enumerate(told):
        out.append(_edged(scene, line, focused and cursor == HOST and number == 0, inner))
    if not told:
        return [*out, *sentence(_no_host(scene), width, height - len(out))]
    below = host.fill_room(scene, inner, height - len(out) - 1, gpu_cards.history(scene, inner))
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
                out += [[(f"{mark.sign:<2} GPU {index} {gpus.words_of(scene, gpu, mark)}", str(mark.level))] for mark in found]
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


def _copied(scene: Scene, key: str) -> str:
    """A GPU or the host as a line of text."""
    if key == HOST:
        lines = host.host_lines(scene, WHOLE, 2)
        return "host: " + ", ".join("".join(text for text, _ in line).strip() for line in lines) if lines else ""
    index = gpus.index_of(key)
    gpu = scene.model.surroundings.gpus.get(index) if index is not None else None
    if gpu is None:
        return ""
    held = fmt.part_of(gpu.memory_used_bytes, gpu.memory_total_bytes)
    said = [f"util {gpu.utilization:.0f}%"] if gpu.utilization is not None else []
    said += [f"memory {held}"] + ([f"{gpu.power_w:.0f} W"] if gpu.power_w is not None else [])
    said += [f"{gpu.temperature_c:.0f} C"] if gpu.temperature_c is not None else []
    said += [gpus.words_of(scene, gpu, mark) for mark in gpus.marks_of(scene, gpu)]
    return f"GPU {gpu.index} {clean(gpu.name)}: {', '.join(said)}"


def stands_out(scene: Scene) -> Line:
    """What of the machine holds the job back, or may; empty where nothing does."""
    line = _answer(scene)
    return line if any(role in ("warn", "bad") for _, role in line) else []


def _answer(scene: Scene) -> Line:
    """What stands out of a GPU, then of the host; else how much the job has of them."""
    of = scene.model.surroundings
    late = gpus.silence(scene, 200)
    if late:
        return late
    marked = [
        (gpu, mark)
        for index in sorted(of.gpus)
        if gpus.away(gpu := of.gpus[index]) is None or gpu.lost is not None
        for mark in gpus.marks_of(scene, gpu)
    ]
    worst = next((one for one in marked if one[1].level == "bad"), marked[0] if marked else None)
    if worst is not None:
        gpu, mark = worst
        return [(f"{mark.sign} GPU {gpu.index} ", str(mark.level)), (gpus.words_of(scene, gpu, mark), str(mark.level))]
    told_of_host = host.answer(scene)
    if any(role in ("warn", "bad") for _, role in told_of_host):
        return told_of_host
    jobs = of_job(of)
    known = [(job.index, of.gpus[job.index].utilization) for job in jobs if job.index in of.gpus]
    busy = {index: used for index, used in known if used is not None}
    out: Line = []
    if busy:
        low, high = min(busy.values()), max(busy.values())
        which = f"GPU {gpus.ranges(sorted(busy))}"
        between = f"{low:.0f}%" if round(low) == round(high) else f"{low:.0f}-{high:.0f}%"
        out = [(f"{which} of the job: a kernel ran for {between} of the time; ", "text")]
    if told_of_host:
        return [*out, *told_of_host]
    return out or told(no_gpu(scene) or _no_host(scene))


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
    answer=answered(_answer),
    copied=_copied,
)
