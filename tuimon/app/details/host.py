"""The page of the host: the job's process over time, limits of its control group, its threads, the processes below it."""

from __future__ import annotations

from tuimon.app.details import tracks
from tuimon.app.details.page import fact, heading, prose
from tuimon.app.details.tracks import Told
from tuimon.app.panels import host as panel
from tuimon.app.panels.surroundings import no_gpu
from tuimon.app.scene import Scene
from tuimon.draw import format as fmt
from tuimon.draw.spark import nice_top
from tuimon.draw.text import Line
from tuimon.events import HostSampled

ALL = 1 << 10
GIB = 1 << 30

TITLE = "host and the job's processes"


def lines(scene: Scene, width: int) -> list[Line]:
    """All that is known of it."""
    of = scene.model.surroundings
    out: list[Line] = []
    if not of.gpus:
        out += prose(no_gpu(scene) or "no GPU reading yet", width, "note")
    host = of.host
    if host is None:
        return out + heading("host") + prose("no reading yet", width, "note")
    told = _tracks(scene, host)
    out += tracks.lines(scene, told, width)
    out += prose(tracks.span(scene, width), width, "dim")
    out += _process(scene, host, width)
    out += _limits(host, width)
    busiest = panel.thread_lines(scene, width - 2, ALL)
    out += heading("threads (the first, and the busiest; over two seconds)")
    out += [[("  ", "text"), *line] for line in busiest] or prose("not read yet", width, "note")
    out += heading("processes, the job first")
    tree = panel.tree_lines(scene, width - 2, ALL)
    out += [[("  ", "text"), *line] for line in tree] or prose("not read yet", width, "note")
    if of.tree is not None and len(of.tree.rows) > 1 and host.tree_cpu_percent is not None:
        together = (
            f"{panel.cores(host.tree_cpu_percent)}, {fmt.size(host.tree_rss_bytes)} (pages that they share count in each)"
        )
        out += fact("together", together, width)
    if host.missing:
        out += heading("not available")
        for what, why in host.missing:
            out += fact(tracks.in_words(what), why, width, "note")
    return out


def _tracks(scene: Scene, host: HostSampled) -> list[Told]:
    of = scene.model.surroundings
    most = max((value for value in of.cpu_history if value is not None), default=100.0)
    cores = max(1.0, -(-most // 100))
    memory = nice_top(max((value for value in of.rss_history if value is not None), default=1.0) / GIB) * GIB
    waits = panel.last(of.wait_rate_history)
    wait_top = nice_top(max([value for value in of.wait_rate_history if value is not None] or [0.0]) or 0.1)
    held = panel.last(of.throttled_history)
    held_top = nice_top(max([value for value in of.throttled_history if value is not None] or [0.0]) or 0.1)
    starved = waits is not None and waits >= panel.WAITS
    back = held is not None and held >= panel.HELD_BACK
    rss_top = f"{memory / GIB:g} GiB"
    out = [
        Told("the job's cpu", panel.cores(host.cpu_percent), of.cpu_history, 100 * cores, _split(host), scale=f"{cores:.0f}"),
        Told("resident memory", fmt.size(host.rss_bytes), of.rss_history, memory, _swapped(host), scale=rss_top),
        Told(
            "waits for a core", f"{waits:.2f} cores" if waits is not None else fmt.UNKNOWN, of.wait_rate_history, wait_top,
            ("! " if starved else "") + "ready to run, and no core free", "warn" if starved else "number", f"{wait_top:g}",
        ),
    ]  # fmt: skip
    if host.quota_cores is not None or host.throttled_s is not None:
        value = f"{held:.2f} s/s" if held is not None else fmt.UNKNOWN
        note = ("! " if back else "") + "by its quota, sum over cores"
        role = "warn" if back else "number"
        out.append(Told("held back", value, of.throttled_history, held_top, note, role, f"{held_top:g} s"))
    return out


def _split(host: HostSampled) -> str:
    if host.user_s is None or host.system_s is None or host.user_s + host.system_s <= 0:
        return ""
    return f"{fmt.percent(host.system_s / (host.user_s + host.system_s))} of it in the kernel, since it began"


def _swapped(host: HostSampled) -> str:
    return f"! {fmt.size(host.swap_bytes)} swapped out" if host.swap_bytes else ""


def _since(now: float | None, first: float | None) -> float | None:
    return now - first if now is not None and first is not None and now >= first else None


def _process(scene: Scene, host: HostSampled, width: int) -> list[Line]:
    first = scene.model.surroundings.host_first or host
    out = heading("the job's process (since it began; while watched)")

    def both(label: str, now: float | None, before: float | None, words: str, bytes_: bool = False) -> list[Line]:
        show = fmt.size if bytes_ else fmt.count
        return fact(label, f"{show(now)}{words}; {show(_since(now, before))}", width)

    out += fact("threads", fmt.count(host.threads), width)
    waited = _since(host.run_queue_wait_s, first.run_queue_wait_s)
    out += fact("waited for a core", f"{fmt.duration(host.run_queue_wait_s)}, all threads; {fmt.duration(waited)}", width)
    out += both("major page faults", host.major_faults, first.major_faults, "")
    out += both("minor page faults", host.minor_faults, first.minor_faults, "")
    out += both("read", host.read_bytes, first.read_bytes, "", True)
    out += both("written", host.written_bytes, first.written_bytes, "", True)
    out += heading("the host")
    used = f"{host.host_cpu_percent:.0f}%" if host.host_cpu_percent is not None else fmt.UNKNOWN
    out += fact("cpu", f"{used} of {fmt.count(host.cores)} cores", width)
    out += fact("memory", fmt.part_of(host.host_memory_used_bytes, host.host_memory_total_bytes), width)
    if host.pressure:
        text = ", ".join(f"{what} {value:.1f}%" for what, value in host.pressure)
        out += fact("some task waited for", f"{text} (of the last ten seconds)", width)
    return out


def _limits(host: HostSampled, width: int) -> list[Line]:
    out = heading(f"limits{f' (control group {host.cgroup})' if host.cgroup else ''}")
    allowed = f"{host.cores_allowed:g} of {fmt.count(host.cores)}" if host.cores_allowed is not None else fmt.UNKNOWN
    out += fact("cores it may use", allowed, width)
    out += fact("CPU quota", f"{host.quota_cores:g} cores" if host.quota_cores is not None else "none", width)
    if host.throttled_s is not None:
        share = panel.held_share(host)
        of = f", in {fmt.percent(share)} of {fmt.count(host.periods)} periods" if share is not None else ""
        out += fact(
            "held back by it", f"{fmt.duration(host.throttled_s)}{of}", width, "warn" if (share or 0) > 0.25 else "number"
        )
    if host.memory_limit_bytes is not None:
        near = (host.memory_group_bytes or 0) >= panel.NEAR * host.memory_limit_bytes
        text = (
            f"{'! ' if near else ''}{fmt.part_of(host.memory_group_bytes, host.memory_limit_bytes)} in use, page cache included"
        )
        out += fact("memory limit", text, width, "warn" if near else "number")
    else:
        out += fact("memory limit", "none", width)
    if host.oom_kills is not None:
        text = f"{'!! ' if host.oom_kills else ''}{host.oom_kills}"
        out += fact("killed for memory", text, width, "bad" if host.oom_kills else "number")
    return out
