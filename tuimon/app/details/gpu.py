"""The page of one GPU: charts, memory by whose it is, clocks and why, links, errors, processes, parts, what is not told."""

from __future__ import annotations

from tuimon.app.details import tracks
from tuimon.app.details.page import fact, heading, prose
from tuimon.app.details.tracks import Told
from tuimon.app.panels import gpu_cards, gpus
from tuimon.app.scene import Scene
from tuimon.draw import format as fmt
from tuimon.draw.table import heads
from tuimon.draw.text import Line, cells, cut, cut_line
from tuimon.events import GpuSampled
from tuimon.model.gpu_marks import HOT_C, held_back
from tuimon.model.gpus import JobGpu, fragmentation, of_job
from tuimon.model.surroundings import GpuTracks, Track
from tuimon.model.xids import xid_words

HOW = {
    "pid": "listed by its pid",
    "only": "taken for it: the only process there",
    "pool": "taken for it: its pool is of this size",
}
BAR_MOST = 100
TENSOR = "of cycles, tensor cores at work"
LEAST_PROCESSES = 24


def title(gpu: GpuSampled) -> str:
    """For the top of the page."""
    return f"GPU {gpu.index}: {gpus.short_name(gpu.name)}"


def lines(scene: Scene, index: int, width: int) -> list[Line]:
    """All that is known of one GPU."""
    surroundings = scene.model.surroundings
    gpu = surroundings.gpus.get(index)
    if gpu is None:
        return prose("there is no reading of it any more", width, "note")
    told = surroundings.gpu_tracks.get(index) or GpuTracks()
    job = next((one for one in of_job(surroundings) if one.index == index), None)
    out: list[Line] = []
    if gpus.silent_s(scene, index) is not None:
        late = gpus.silence(scene, width - 2)
        out.append([(" ", "text"), *late])
        out += prose("what stands below is from before", width, "note")
    for mark in gpus.marks_of(scene, gpu):
        words = gpus.words_of(scene, gpu, mark)
        out.append(cut_line([(f" {mark.sign:<2} ", mark.level), (words, mark.level)], width, scene.glyphs.ellipsis))
    if (why := gpus.away(gpu)) is not None and gpu.lost is None:
        out += prose(f"not read: {why}", width, "warn")
    shown = _tracks(gpu, told, job)
    out += [*tracks.lines(scene, shown, width)]
    apart = round((told.latest_ns - told.before_ns) / 1e9) if told.before_ns else None
    out += prose(tracks.span(scene, width, apart), width, "dim")
    out += _parts(scene, index, width)
    out += _memory(scene, gpu, job, width)
    out += _clocks(gpu, told, width)
    out += _processes(scene, gpu, job, width)
    out += _links(gpu, width)
    out += _errors(scene, gpu, told, width)
    return out + _rest(gpu, told, width)


def _tracks(gpu: GpuSampled, of: GpuTracks, job: JobGpu | None) -> list[Told]:
    missing = dict(gpu.missing)
    total = float(gpu.memory_total_bytes or _most(of.memory))
    limit = gpu.power_limit_w or _most(of.power)
    activity = missing.get("activity", "")
    held = held_back(gpu)
    hot = gpu.temperature_c is not None and gpu.temperature_c >= HOT_C
    power = f"mean {gpu.power_mean_w:.0f} W" if gpu.power_mean_w is not None else missing.get("power_w", "")
    mine = f"the job's {gpus.held(job)}" if job is not None and job.memory_bytes is not None else ""
    clock_top = gpu.sm_clock_max_mhz or _most(of.sm_clock)
    running = "some kernel; not how busy" if gpu.utilization is not None else missing.get("utilization", "")
    fan = f"fan {gpu.fan_percent:.0f}%" if gpu.fan_percent is not None else ""
    out = [
        Told("a kernel was running", gpus.percent(gpu.utilization), of.utilization, 100.0, running, scale="100%"),
        Told("SM activity", gpus.percent(gpu.sm_activity), of.sm, 100.0, activity or _occupancy(gpu), scale="100%"),
        Told("tensor activity", gpus.percent(gpu.tensor_activity), of.tensor, 100.0, activity or TENSOR, scale="100%"),
        Told("memory bandwidth", gpus.percent(gpu.dram_activity), of.dram, 100.0, activity or "of its peak", scale="100%"),
        Told(
            "memory", fmt.part_of(gpu.memory_used_bytes, gpu.memory_total_bytes), of.memory,
            total, mine, scale=f"{total / (1 << 30):.0f} GiB",
        ),
        Told(
            "power", gpus.watts(gpu), of.power, limit, power, scale=f"{limit:.0f} W",
        ),
        Told("temperature", gpus.celsius(gpu), of.temperature, 100.0, fan, "warn" if hot else "number", "100 C"),
        Told(
            "SM clock", gpus.clock(gpu), of.sm_clock, clock_top, f"! held back: {', '.join(held)}" if held else "",
            "warn" if held else "number", f"{clock_top:.0f}",
        ),
    ]  # fmt: skip
    if not any(value is not None for value in (*of.sm, *of.tensor, *of.dram)):
        del out[2:4]  # said once is enough
    return out


def _occupancy(gpu: GpuSampled) -> str:
    if gpu.sm_activity is None:
        return "see its parts" if gpu.mig_mode else ""
    return f"of cycles; occupancy {gpu.sm_occupancy:.0f}%" if gpu.sm_occupancy is not None else "of cycles"


def _most(track: Track) -> float:
    return max((value for value in track if value is not None), default=1.0) or 1.0


def _memory(scene: Scene, gpu: GpuSampled, job: JobGpu | None, width: int) -> list[Line]:
    total, used = gpu.memory_total_bytes, gpu.memory_used_bytes
    if not total or used is None:
        return []
    out = heading("memory")
    pool = job.pool if job is not None else None
    mine = job.memory_bytes if job is not None else None
    parts: list[tuple[str, str, int, str]] = []
    if pool is not None:
        parts.append(("A", "allocated", pool.allocated_bytes, "strong"))
        parts.append(("r", "free in its pool", pool.reserved_bytes - pool.allocated_bytes, "number"))
        if job is not None and job.outside_pool_bytes is not None:
            parts.append(("o", "beside its pool", job.outside_pool_bytes, "label"))
    elif mine is not None:
        parts.append(("J", "the job's", mine, "strong"))
    others = used - sum(size for _, _, size, _ in parts)
    if others > 0:
        parts.append(("x", "others'" if mine is not None else "in use, job's or not", others, "dim"))
    if gpu.memory_reserved_bytes:
        parts.append(("D", "driver's", gpu.memory_reserved_bytes, "dim"))
    free = max(0, total - used - (gpu.memory_reserved_bytes or 0))
    room = max(10, min(BAR_MOST, width - 4))
    bar: Line = [("  ", "text")]
    filled = 0
    for letter, _, size, role in parts:
        length = min(room - filled, max(1, round(size / total * room)) if size > 0 else 0)
        bar.append((letter * length, role))
        filled += length
    bar.append((scene.glyphs.grid_horizontal * (room - filled), "dim"))
    out.append(bar)
    words = [f"{letter} {name} {fmt.size(size)}" for letter, name, size, _ in parts]
    legend = ""
    for word in [*words, f"{scene.glyphs.grid_horizontal} free {fmt.size(free)}"]:  # none is broken over two lines
        if legend and cells(legend) + cells(word) + 3 > width - 3:
            out.append([("  ", "text"), (legend, "label")])
            legend = ""
        legend += ("   " if legend else "") + word
    out.append([("  ", "text"), (legend, "label")])
    if job is not None:
        how = f", {HOW[job.how]}" if job.how in HOW else ""
        out += fact("the job's, by NVML", f"{gpus.held(job)}{how}", width)
    if pool is not None:
        broken = fragmentation(pool)
        peak = f", {fmt.size(pool.allocated_peak_bytes)} at most" if pool.allocated_peak_bytes is not None else ""
        out += fact(
            "its pool", f"{fmt.size(pool.reserved_bytes)} reserved, {fmt.size(pool.allocated_bytes)} allocated{peak}", width
        )
        if broken is not None:
            sign = "! " if broken >= gpus.FRAGMENTED else ""
            text = f"{sign}{fmt.percent(broken)}: {fmt.size(pool.inactive_split_bytes)} is free but cannot be given back"
            out += fact("fragmentation", text, width, "warn" if sign else "number")
        if pool.retries is not None or pool.ooms is not None:
            odd = bool(pool.retries or pool.ooms)
            text = ("! " if odd else "") + gpus.emptied(pool)
            out += fact("", text, width, "warn" if odd else "number")
    return out


def _clocks(gpu: GpuSampled, of: GpuTracks, width: int) -> list[Line]:
    out = heading("clocks")
    memory = f"{gpu.memory_clock_mhz:.0f} MHz" if gpu.memory_clock_mhz is not None else fmt.UNKNOWN
    most = f" of {gpu.memory_clock_max_mhz:.0f} MHz" if gpu.memory_clock_max_mhz is not None else ""
    out += fact("memory clock", memory.removesuffix(" MHz") + most if most else memory, width)
    held = held_back(gpu)
    why = gpus.away(gpu) or dict(gpu.missing).get("throttle")
    now = f"not known: {why}" if why else ", ".join(gpu.throttle) or "none"
    out += fact("reasons now", now, width, "note" if why else "warn" if held else "number")
    if of.reasoned:
        shares = [f"{why} {fmt.percent(n / of.reasoned)}" for why, n in of.reasons.most_common(6)]
        out += fact(f"of {fmt.count(of.reasoned)} readings", ", ".join(shares) or "none in any", width)
    if of.energy_j is not None:
        out += fact("energy while watched", f"{fmt.si(of.energy_j, 'J')}", width)
    return out


def _processes(scene: Scene, gpu: GpuSampled, job: JobGpu | None, width: int) -> list[Line]:
    missing = dict(gpu.missing)
    out = heading("processes")
    if not gpu.processes:
        why = gpus.away(gpu) or missing.get("processes")
        return out + prose(f"not known: {why}" if why else "none", width, "note")
    out.append(heads(f"  {'pid':>8}  {'memory':>9}  {'ran':>4}  whose"))
    for one in sorted(gpu.processes, key=lambda one: -(one.memory_bytes or 0))[:LEAST_PROCESSES]:
        ours = one.pid in gpu.job
        guess = job is not None and job.inferred and one.memory_bytes == job.memory_bytes
        whose = "the job's" if ours else "~ taken for the job's" if guess else ""
        part = f"  part {one.gpu_instance}" if one.gpu_instance is not None else ""
        out.append(
            [
                (f"  {one.pid:>8}", "strong" if ours else "text"),
                (f"  {fmt.size(one.memory_bytes):>9}  {gpus.percent(one.sm_percent):>4}", "number"),
                (f"  {scene.glyphs.mark_on if ours or guess else ' '} {whose}{part}", "strong" if ours else "note"),
            ]
        )
    if (more := len(gpu.processes) - LEAST_PROCESSES) > 0:
        out += prose(f"and {more} more", width, "note")
    if "process_memory_bytes" in missing:
        out += prose(f"the job's memory is not known: {missing['process_memory_bytes']}", width, "note")
    return out


def _parts(scene: Scene, index: int, width: int) -> list[Line]:
    parts = [part for key, part in sorted(scene.model.surroundings.mig.items()) if key[0] == index]
    if not parts:
        return []
    out = heading("MIG parts")
    for part in parts:
        sms: Line = [(f"  {part.sms} SMs", "number")] if part.sms is not None else []
        out.append(
            cut_line([("  ", "text"), *gpu_cards.part_line(scene, part, width - 14), *sms], width, scene.glyphs.ellipsis)
        )
    for what, why in dict.fromkeys(pair for part in parts for pair in part.missing):
        out += fact(tracks.in_words(what), f"not available: {why}", width, "note")
    return out


def _links(gpu: GpuSampled, width: int) -> list[Line]:
    told = [
        ("NVLink", gpu.nvlink_rx_bytes_s, gpu.nvlink_tx_bytes_s),
        ("PCIe", gpu.pcie_rx_bytes_s, gpu.pcie_tx_bytes_s),
    ]
    known = [(name, rx, tx) for name, rx, tx in told if rx is not None or tx is not None]
    out = heading("links") if known else []
    for name, rx, tx in known:
        out += fact(name, f"{fmt.si(rx, 'B/s')} in, {fmt.si(tx, 'B/s')} out", width)
    return out


def _errors(scene: Scene, gpu: GpuSampled, of: GpuTracks, width: int) -> list[Line]:
    xids = [one for one in scene.model.surroundings.xids if one.index == gpu.index]
    if gpu.ecc_uncorrected is None and gpu.ecc_corrected is None and not xids:
        return []
    out = heading("errors")
    if gpu.ecc_uncorrected is not None or gpu.ecc_corrected is not None:
        new = (gpu.ecc_uncorrected or 0) - (of.ecc_first or 0)
        since = f", {new} of these while watched" if gpu.ecc_uncorrected and of.ecc_first is not None else ""
        text = f"{fmt.count(gpu.ecc_uncorrected)} uncorrected{since}, {fmt.count(gpu.ecc_corrected)} corrected"
        out += fact(
            "memory (ECC)", f"{'!! ' if gpu.ecc_uncorrected else ''}{text}", width, "bad" if gpu.ecc_uncorrected else "number"
        )
    offset = scene.model.wall_offset_s
    for one in reversed(xids):
        at = fmt.clock(one.t_ns / 1e9 + offset, scene.utc_offset_s) if offset is not None else ""
        words = xid_words(one.xid)
        out += fact(f"x XID {one.xid}", ", ".join(part for part in (at, words) if part) or "while watched", width, "bad")
    return out


def _rest(gpu: GpuSampled, of: GpuTracks, width: int) -> list[Line]:
    out = heading("what it is")
    out += fact("name", gpu.name, width, "gpu")
    for label, value in (("uuid", gpu.uuid), ("bus", gpu.pci_bus_id), ("compute capability", gpu.compute_capability)):
        out += fact(label, value, width) if value else []
    out += fact("device file", f"/dev/nvidia{gpu.minor}", width) if gpu.minor is not None else []
    out += fact("cores", fmt.count(gpu.cores), width) if gpu.cores is not None else []
    if gpu.virtual:
        out += fact("virtual", gpu.virtual, width)
    if gpu.mig_mode is not None:
        out += fact("MIG", "on" if gpu.mig_mode else "off", width)
    out += fact("read", f"{fmt.count(of.readings)} times; the last took {fmt.duration(gpu.took_s)} in the driver", width)
    if gpu.missing:
        out += heading("not available")
        for what, why in gpu.missing:
            out += fact(tracks.in_words(what), cut(why, 400, "~"), width, "note")
    return out
