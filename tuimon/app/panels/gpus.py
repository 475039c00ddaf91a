"""GPUs in words and numbers: what all drawings of them have in common."""

from __future__ import annotations

from dataclasses import dataclass

from tuimon.app.panels.frame import plural
from tuimon.app.scene import Scene
from tuimon.draw import format as fmt
from tuimon.draw.text import Line, cells, clean, cut_line, fill, pad
from tuimon.events import GpuSampled, MigSampled, PoolSampled
from tuimon.model.gpu_marks import Mark, marks
from tuimon.model.gpus import JobGpu, fragmentation
from tuimon.model.xids import xid_words

NVML_LATE_S = 3.0
"""Where no source has told of it: a driver call that takes longer than this is worth a word."""
FRAGMENTED = 0.25
"""Of a pool: worth a sign."""
STALE = "?"
"""The sign of a GPU that does not answer."""
NOT_ALL = "util: a kernel was running, not how busy"
NOT_ALL_SHORT = "util: a kernel was running"
GPM = ("sm_activity", "tensor_activity", "dram_activity")


@dataclass(frozen=True, slots=True)
class Row:
    """A GPU, or one MIG part of it."""

    gpu: GpuSampled
    part: MigSampled | None = None

    @property
    def key(self) -> str:
        """For the selection; `index_of` takes it apart."""
        return f"gpu {self.gpu.index}" if self.part is None else f"gpu {self.gpu.index} part {self.part.number}"


def index_of(key: str) -> int | None:
    """The GPU that a key is of."""
    words = key.split()
    return int(words[1]) if len(words) > 1 and words[0] == "gpu" else None


def rows(scene: Scene) -> list[Row]:
    """GPUs by index, each with its parts behind it."""
    surroundings = scene.model.surroundings
    out: list[Row] = []
    for index in sorted(surroundings.gpus):
        gpu = surroundings.gpus[index]
        out.append(Row(gpu))
        out += [Row(gpu, surroundings.mig[key]) for key in sorted(surroundings.mig) if key[0] == index]
    return out


def marks_of(scene: Scene, gpu: GpuSampled) -> tuple[Mark, ...]:
    """What stands out about it, the worst first."""
    of = scene.model.surroundings
    return marks(gpu, of.gpu_tracks.get(gpu.index), of.mig.values(), of.xids, scene.model.now_ns)


def words_of(scene: Scene, gpu: GpuSampled, mark: Mark) -> str:
    """What a mark says; of an XID error its meaning too, of several the latest one's."""
    if mark.kind != "xid":
        return clean(mark.words)
    latest = [one.xid for one in scene.model.surroundings.xids if one.index == gpu.index][-1]
    which = "" if mark.words == f"XID {latest}" else f"the latest, {latest}, "
    return f"{clean(mark.words)}: {which}{xid_words(latest)}"


def silent_s(scene: Scene, index: int) -> float | None:
    """For how long a GPU has not answered; None: it does."""
    of = scene.model.surroundings.silents
    found = of.get(index) or of.get(None)
    return found.since_s if found is not None else None


def silence(scene: Scene, width: int) -> Line:
    """That a call into the driver does not come back; empty where all do."""
    silents = scene.model.surroundings.silents
    told = scene.model.surroundings.silent
    if told is None or told.since_s is None:
        late = scene.nvml_waiting_s
        if late is None or late <= NVML_LATE_S or scene.model.target.ended is not None:
            return []
        return [("! ", "warn"), (f"NVML not answering for {fmt.age(late)}", "warn")]
    others = sorted(index for index in silents if index is not None)
    where = f" on GPU {ranges(others)}" if others and None not in silents else ""
    call = f" ({clean(told.call)})" if told.call else ""
    text = f"NVML not answering for {fmt.age(told.since_s)}{where}"
    line: Line = [("! ", "warn"), (text, "warn")]
    if cells(text) + 2 + cells(call) <= width:  # half a name says nothing
        line.append((call, "note"))
    return cut_line(line, width, scene.glyphs.ellipsis)


def ranges(numbers: list[int]) -> str:
    """`0-3, 5`."""
    out: list[str] = []
    at = 0
    while at < len(numbers):
        end = at
        while end + 1 < len(numbers) and numbers[end + 1] == numbers[end] + 1:
            end += 1
        out.append(str(numbers[at]) if end == at else f"{numbers[at]}{'-' if end > at + 1 else ', '}{numbers[end]}")
        at = end + 1
    return ", ".join(out)


def short_name(name: str) -> str:
    """Without the words that all of them share."""
    name = clean(name)
    for word in ("NVIDIA ", "GeForce ", "Tesla "):
        name = name.removeprefix(word)
    return name


def names(scene: Scene) -> str:
    """`8 x H100 80GB HBM3`, or how many there are where they differ."""
    gpus = list(scene.model.surroundings.gpus.values())
    kinds = {short_name(gpu.name) for gpu in gpus}
    if len(kinds) != 1:
        return f"{len(gpus)} GPUs"
    name = next(iter(kinds))
    return f"{len(gpus)} x {name}" if len(gpus) > 1 else name


def percent(value: float | None) -> str:
    """Whole percent."""
    return f"{value:.0f}%" if value is not None else fmt.UNKNOWN


def watts(gpu: GpuSampled) -> str:
    """`611/700 W`."""
    if gpu.power_w is None:
        return f"{fmt.UNKNOWN} W"
    return f"{gpu.power_w:.0f}/{gpu.power_limit_w:.0f} W" if gpu.power_limit_w is not None else f"{gpu.power_w:.0f} W"


def celsius(gpu: GpuSampled) -> str:
    """`64 C`."""
    return f"{gpu.temperature_c:.0f} C" if gpu.temperature_c is not None else f"{fmt.UNKNOWN} C"


def clock(gpu: GpuSampled) -> str:
    """`1980 MHz`."""
    return f"{gpu.sm_clock_mhz:.0f} MHz" if gpu.sm_clock_mhz is not None else f"{fmt.UNKNOWN} MHz"


def held(job: JobGpu | None) -> str:
    """What the job holds; "~" where it is an inference."""
    if job is None or job.memory_bytes is None:
        return fmt.UNKNOWN
    return ("~" if job.inferred else "") + fmt.size(job.memory_bytes)


def away(gpu: GpuSampled) -> str | None:
    """Why nothing at all is known of it; None where something is."""
    return gpu.lost if gpu.lost is not None else dict(gpu.missing).get("gpu")


def has_activity(scene: Scene) -> bool:
    """Whether some GPU or part tells what its SMs do."""
    of = scene.model.surroundings
    return any(getattr(one, name) is not None for one in (*of.gpus.values(), *of.mig.values()) for name in GPM)


def why_no_activity(scene: Scene, width: int | None = None) -> str:
    """Once for all of them, in less words where all are too many; "" where it is told, or no reason is known."""
    if has_activity(scene):
        return ""
    whys = {dict(gpu.missing).get("activity") for gpu in scene.model.surroundings.gpus.values() if away(gpu) is None}
    whys.discard(None)
    if not whys:
        return ""
    begin, why = "no SM or tensor activity", clean(str(sorted(map(str, whys))[0]))
    whole = f"{begin} beside it: {why}"
    return whole if width is None or cells(whole) <= width else f"{begin}: {why.partition(': ')[0]}"


def sign_of(scene: Scene, gpu: GpuSampled, found: tuple[Mark, ...]) -> tuple[str, str]:
    """(sign, role) of the worst about it; two spaces' worth of nothing where all is well."""
    if silent_s(scene, gpu.index) is not None:
        return STALE, "warn"
    if gpu.lost is None and away(gpu) is not None:
        return STALE, "warn"
    return (found[0].sign, found[0].level) if found else ("", "text")


def away_line(scene: Scene, gpu: GpuSampled, role: str | None, width: int, sign_at: int = 2, words_at: int = 5) -> Line:
    """A GPU of which nothing is known, in words: its sign and the words begin at these cells."""
    gone = gpu.lost is not None
    why = clean(away(gpu) or "")
    first = why if why.lower().startswith("gpu lost") else f"{'lost' if gone else 'not read'}: {why}"
    words = "; ".join([first, *(words_of(scene, gpu, mark) for mark in marks_of(scene, gpu) if mark.kind != "lost")])
    level = "bad" if gone else "warn"
    name = f"{short_name(gpu.name)}  " if gpu.name and width >= 100 else ""
    line: Line = [
        (pad(str(gpu.index), sign_at), role or "gpu"),
        (pad("x" if gone else STALE, words_at - sign_at), role or level),
        (name, role or "dim"),
        (words, role or level),
    ]
    return cut_line(line, width, scene.glyphs.ellipsis)


def emptied(pool: PoolSampled) -> str:
    """What it had to do for want of memory."""
    return f"emptied {plural(pool.retries or 0, 'time')}, out of memory {plural(pool.ooms or 0, 'time')}"


def pool_line(job: JobGpu, width: int) -> Line:
    """The job's own allocator beside what the driver sees of it."""
    pool = job.pool
    if pool is None:
        return []
    broken = fragmentation(pool)
    parts: list[tuple[int, Line]] = [
        (0, [("pool ", "label"), (fmt.size(pool.allocated_bytes), "number"), (" allocated", "label")]),
        (2, [(fmt.size(pool.reserved_bytes), "number"), (" reserved", "label")]),
    ]
    if broken is not None:
        bad = broken >= FRAGMENTED
        rank, role, sign = (0, "warn", "! ") if bad else (3, "number", "")
        parts.append((rank, [(sign + fmt.percent(broken), role), (" fragmented", "label")]))
    if pool.retries or pool.ooms:
        parts.append((0, [(f"! {plural(pool.retries or 0, 'retry', 'retries')}, {pool.ooms or 0} OOM", "warn")]))
    if job.memory_bytes is not None:
        parts.append((4, [("NVML ", "label"), (held(job), "number")]))
    return fill(parts, width)
