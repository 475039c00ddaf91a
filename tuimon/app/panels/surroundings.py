"""GPU and host: what the machine does around the job."""

from __future__ import annotations

from collections.abc import Iterable

from tuimon.app.panels.frame import PanelLines, bar, labelled, sentence, title_line, title_room
from tuimon.app.scene import Panel, PanelView, Scene
from tuimon.draw import format as fmt
from tuimon.draw.spark import chart
from tuimon.draw.text import Line, cells, clean, cut, fill, line_cells, pad, wrap
from tuimon.events import GpuSampled

HISTORY_CELLS = 16
LABELS_FROM = 60
"""A GPU's line has labels and a history from this width on."""

NVML_LATE_S = 3.0
"""A driver call that takes longer than this is worth a word."""


def gpu_line(scene: Scene, gpu: GpuSampled, width: int) -> Line:
    """One GPU in one line; a value that could not be read is "-", with its reason in the details."""
    name = clean(gpu.name)
    for word in ("NVIDIA ", "GeForce ", "Tesla "):
        name = name.removeprefix(word)
    wide = width >= LABELS_FROM
    room = 18 if wide else 9
    temperature = f"{gpu.temperature_c:.0f} C" if gpu.temperature_c is not None else f"{fmt.UNKNOWN} C"
    clock = f"{gpu.sm_clock_mhz:.0f} MHz" if gpu.sm_clock_mhz is not None else f"{fmt.UNKNOWN} MHz"
    parts: list[tuple[int, Line]] = [
        (0, [(f"{gpu.index} ", "strong"), (pad(cut(name, room, scene.glyphs.ellipsis), room), "gpu")]),
        (0, _with_label("util ", f"{_percent(gpu.utilization):>4}", wide)),
        (1, _with_label("mem ", fmt.part_of(gpu.memory_used_bytes, gpu.memory_total_bytes), wide)),
        (2, [(_watts(gpu), "number")]),
        (4, [(temperature, "number")]),
        (5, _with_label("sm ", clock, wide)),
    ]
    if wide:
        history = list(scene.model.surroundings.gpu_history.get(gpu.index, ()))
        parts.insert(1, (6, [(chart(history, HISTORY_CELLS, 1, 100.0, scene.glyphs)[0], "spark")]))
    if gpu.throttle:
        why = ": " + clean(", ".join(gpu.throttle)) if wide else ""
        parts.append((0, [(f"throttled{why}", "warn")]))
    return fill(parts, width)


def gpus_line(scene: Scene, width: int) -> Line:
    """All GPUs in one line, as ranges."""
    gpus = list(_gpus(scene))
    throttled = sum(1 for gpu in gpus if gpu.throttle)
    used = [gpu.memory_used_bytes for gpu in gpus if gpu.memory_used_bytes is not None]
    power = [gpu.power_w for gpu in gpus if gpu.power_w is not None]
    return fill(
        [
            (0, [(f"{len(gpus)} GPUs", "gpu")]),
            (0, labelled("util", _range([gpu.utilization for gpu in gpus if gpu.utilization is not None], "%"))),
            (1, labelled("mem", f"{fmt.size(min(used))}-{fmt.size(max(used))}" if used else fmt.UNKNOWN)),
            (0, [(f"throttled {throttled}", "warn")] if throttled else []),
            (2, [(_range(power, " W"), "number")]),
        ],
        width,
    )


def _range(values: list[float], unit: str) -> str:
    if not values:
        return fmt.UNKNOWN + unit
    low, high = f"{min(values):.0f}", f"{max(values):.0f}"
    return (low if low == high else f"{low}-{high}") + unit


def _with_label(label: str, value: str, wide: bool) -> Line:
    """In a narrow panel the unit has to say what it is."""
    return [(label, "label"), (value, "number")] if wide else [(value, "number")]


def _percent(value: float | None) -> str:
    return f"{value:.0f}%" if value is not None else fmt.UNKNOWN


def _watts(gpu: GpuSampled) -> str:
    if gpu.power_w is None:
        return f"{fmt.UNKNOWN} W"
    return f"{gpu.power_w:.0f} of {gpu.power_limit_w:.0f} W" if gpu.power_limit_w is not None else f"{gpu.power_w:.0f} W"


def host_lines(scene: Scene, width: int) -> PanelLines:
    """The job's process and its host: two lines where they fit, and one with what matters most where they do not."""
    host = scene.model.surroundings.host
    if host is None:
        return []
    cores = f"{host.cpu_percent / 100:.2f} cores" if host.cpu_percent is not None else fmt.UNKNOWN
    share = None
    if host.host_memory_used_bytes is not None and host.host_memory_total_bytes:
        share = host.host_memory_used_bytes / host.host_memory_total_bytes
    memory = fmt.part_of(host.host_memory_used_bytes, host.host_memory_total_bytes)
    job: Line = fill(
        [
            (0, [("job  ", "label"), (cores, "number")]),
            (1, labelled("rss", fmt.size(host.rss_bytes))),
            (2, labelled("threads", fmt.count(host.threads))),
            (3, [*labelled("waited for a core", fmt.duration(host.run_queue_wait_s)), (" since start", "label")]),
            (5, labelled("read", fmt.size(host.read_bytes))),
            (6, labelled("written", fmt.size(host.written_bytes))),
            (4, labelled("major faults", fmt.count(host.major_faults))),
        ],
        width,
    )
    machine: Line = fill(
        [
            (0, [("host ", "label"), (_percent(host.host_cpu_percent), "number"), (" cpu", "label")]),
            (1, labelled("memory", memory)),
            (2, [(bar(share, 10, scene.glyphs), "spark-dim")]),
        ],
        width,
    )
    return [job, machine]


def cpu_chart(scene: Scene, width: int, height: int) -> PanelLines:
    """The job's CPU use over the latest readings, full height = all the cores it has used at most."""
    history = list(scene.model.surroundings.cpu_history)
    known = [value for value in history if value is not None]
    if not known or height <= 0:
        return []
    top = max(100.0, -(-max(known) // 100) * 100)
    label = f"{top / 100:.0f} core{'s' if top > 100 else ''}"
    rows = chart(history, max(1, width - 10), height, top, scene.glyphs)
    return [[(f"{label if at == 0 else '':>8} ", "axis"), (row, "spark-dim")] for at, row in enumerate(rows)]


def _gpu_lines(scene: Scene, width: int, room: int) -> PanelLines:
    surroundings = scene.model.surroundings
    if scene.nvml_waiting_s is not None and scene.nvml_waiting_s > NVML_LATE_S:
        late: Line = [("NVML has not answered for ", "warn"), (fmt.age(scene.nvml_waiting_s), "warn")]
        return [late, *[gpu_line(scene, gpu, width) for gpu in _gpus(scene)][: max(0, room - 1)]]
    if surroundings.gpus:
        if room == 1 and len(surroundings.gpus) > 1:
            return [gpus_line(scene, width)]
        lines = [gpu_line(scene, gpu, width) for gpu in _gpus(scene)]
        if len(lines) > room > 0:
            hidden = len(lines) - room + 1
            lines = [*lines[: room - 1], [(f"and {hidden} more GPUs: 5 shows them all", "note")]]
        return lines
    if surroundings.gpu_why_not is not None:
        text = f"no GPU: {why_no_gpu(scene)}"
        if room >= 2 and cells(text) > width:
            return [[(part, "note")] for part in wrap(text, width)[:2]]
        return [[(cut(text, width, scene.glyphs.ellipsis), "note")]]
    return [[("no GPU reading" if scene.model.target.ended is not None else "no GPU reading yet", "note")]]


def why_no_gpu(scene: Scene) -> str:
    """The source's sentence, which speaks of the machine that it runs on."""
    why = clean(scene.model.surroundings.gpu_why_not or "")
    return why if scene.host is None else why.replace(" on this machine", f" on {clean(scene.host)}")


def _gpus(scene: Scene) -> Iterable[GpuSampled]:
    gpus = scene.model.surroundings.gpus
    return (gpus[index] for index in sorted(gpus))


def _job_in_brief(scene: Scene) -> str:
    """The job's process in a few words, where its line has gone to the GPUs."""
    host = scene.model.surroundings.host
    if host is None or host.cpu_percent is None:
        return ""
    return f"job {host.cpu_percent / 100:.2f} cores, rss {fmt.size(host.rss_bytes)}"


def _draw(scene: Scene, view: PanelView, width: int, height: int, focused: bool) -> PanelLines:
    if height <= 0 or width <= 0:
        return []
    inner = width - 1
    host = host_lines(scene, inner)
    room = height - 1
    note = ""
    surroundings = scene.model.surroundings
    if room <= 1 and host and surroundings.gpus:
        gpu = _gpu_lines(scene, inner, room)
        note = _job_in_brief(scene)
    elif room <= 1 and host and surroundings.gpu_why_not is not None:
        gpu = []
        note = f"no GPU: {why_no_gpu(scene)}"
        if cells(note) + (cells("last seen; ") if scene.model.target.ended is not None else 0) > title_room(
            "GPU and host", width
        ):
            note = note.partition(" (")[0]
    else:
        gpu = _gpu_lines(scene, inner, max(1, room - min(len(host), max(0, room - 1))))
    if room - len(gpu) == 1 and len(host) == 2 and line_cells(host[0]) + line_cells(host[1]) + 2 <= inner:
        host = [[*host[0], ("  ", "text"), *host[1]]]
    if scene.model.target.ended is not None and (host or surroundings.gpus):
        note = f"last seen; {note}" if note else "last seen"
    lines = [title_line(5, "GPU and host", note, width, focused, scene.glyphs)]
    lines += [[(" ", "text"), *line] for line in [*gpu, *host]]
    if not host and room > len(gpu):
        why = "no reading of the host" + (" yet" if scene.model.target.ended is None else ": the job is over")
        lines += sentence(why, width, room - len(gpu))
    left = height - len(lines)
    if left > 0 and host:
        lines += cpu_chart(scene, width, min(left, 4))
    return lines[:height]


PANEL = Panel(
    number=5,
    id="surroundings",
    title="GPU and host",
    sections=("gpu", "host", "target"),
    draw=_draw,
    keys=lambda scene, view: [],
    ticking=lambda scene: scene.nvml_waiting_s is not None and scene.nvml_waiting_s > NVML_LATE_S,
    help=(
        "util is NVML's: the part of the driver's last period in which some kernel was resident, which is not how busy the GPU "
        "was. job: cores in use, resident memory, and the time its threads were ready to run but had no core, since it began."
    ),
)
