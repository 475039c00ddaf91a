"""The host and the job's processes on it: cores, waits, memory, limits, threads, and the workers below it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from tuimon.app.panels.frame import PanelLines, bar, labelled, plural
from tuimon.app.scene import Scene
from tuimon.draw import format as fmt
from tuimon.draw.spark import chart
from tuimon.draw.table import heads
from tuimon.draw.text import Line, clean, cut, cut_line, fill, line_cells, pad
from tuimon.events import HostSampled, TreeRow
from tuimon.model.surroundings import ThreadUse, Track

HELD_BACK = 0.05
"""Seconds a second for which a CPU quota holds the group back: worth a sign."""
WAITS = 0.5
"""Cores that the job's threads wait for: worth a sign."""
LEAST_WAIT = 0.005
"""Cores: what is less is none."""
NEAR = 0.95
"""Of a memory limit."""


def cores(percent: float | None) -> str:
    """100 percent = one core."""
    return f"{percent / 100:.2f} cores" if percent is not None else fmt.UNKNOWN


def last(track: Track) -> float | None:
    """The newest value."""
    return track[-1] if track else None


def host_lines(scene: Scene, width: int, height: int = 2) -> PanelLines:
    """The job's process and its host in up to `height` lines, the one that matters most first. Empty where nothing was read."""
    host = scene.model.surroundings.host
    if host is None or height <= 0:
        return []
    group = group_line(scene, width)
    bad = any(role in ("warn", "bad") for _, role in group)
    lines = [job_line(scene, width, [one for _, one in _alarms(scene)] if height == 1 else []), machine_line(scene, width)]
    if below := workers_line(scene, width):
        lines.insert(1, below)
    if bad:
        lines.insert(1, group)  # before the workers: it may be all there is room for
    elif group and height > 2:
        lines.insert(len(lines) - 1, group)
    return lines[:height]


def job_line(scene: Scene, width: int, alarms: Sequence[Line] = ()) -> Line:
    """The job's own process; `alarms` are said on it where nothing else has room for them."""
    of = scene.model.surroundings
    host = of.host
    if host is None:
        return []
    waits = last(of.wait_rate_history)
    starved = waits is not None and waits >= WAITS
    waiting: Line = []
    if waits is None:
        waiting = [*labelled("waited for a core", fmt.duration(host.run_queue_wait_s)), (" since start", "label")]
    elif waits >= LEAST_WAIT:
        waiting = [
            ("! " if starved else "", "warn"),
            *labelled("lacks", f"{waits:.2f} cores", "warn" if starved else "number"),
        ]
    faults: Line = labelled("major faults", fmt.count(host.major_faults))
    if host.minor_faults is not None:
        faults += [(" minor ", "label"), (fmt.count(host.minor_faults), "number")]
    return fill(
        [
            (0, [("job  ", "label"), (cores(host.cpu_percent), "number")]),
            *((0, one) for one in alarms),
            (1, labelled("rss", fmt.size(host.rss_bytes))),
            (2, labelled("threads", fmt.count(host.threads))),
            (0 if starved else 3, waiting),
            (5, labelled("read", fmt.size(host.read_bytes))),
            (6, labelled("written", fmt.size(host.written_bytes))),
            (4, faults),
            (1, labelled("! swapped", fmt.size(host.swap_bytes), "warn") if host.swap_bytes else []),
        ],
        width,
    )


def answer(scene: Scene) -> Line:
    """What holds the job back on the host: limits, want of cores, swapping; else what it has of it. Empty where nothing was
    read."""
    of = scene.model.surroundings
    if of.host is None:
        return []
    alarms = [one for _, one in _alarms(scene)]
    if alarms:
        return alarms[0]
    waits = last(of.wait_rate_history)
    if waits is not None and waits >= WAITS:
        return [(f"the job lacks {waits:.2f} cores: its threads are ready to run, others use the CPU", "warn")]
    if of.host.swap_bytes:
        return [(f"{fmt.size(of.host.swap_bytes)} of the job is swapped out", "warn")]
    lacks = f" and lacks {waits:.2f}" if waits is not None and waits >= LEAST_WAIT else ""
    return [(f"the job has {cores(of.host.cpu_percent)}{lacks}, {fmt.size(of.host.rss_bytes)} resident", "text")]


def machine_line(scene: Scene, width: int) -> Line:
    """The whole host."""
    host = scene.model.surroundings.host
    if host is None:
        return []
    share = None
    if host.host_memory_used_bytes is not None and host.host_memory_total_bytes:
        share = host.host_memory_used_bytes / host.host_memory_total_bytes
    used = f"{host.host_cpu_percent:.0f}%" if host.host_cpu_percent is not None else fmt.UNKNOWN
    of = f" of {host.cores} cores" if host.cores is not None else " cpu"
    pressed = [f"{what} {value:.0f}%" for what, value in host.pressure if value >= 1]
    return fill(
        [
            (0, [("host ", "label"), (used, "number"), (of, "label")]),
            (1, labelled("memory", fmt.part_of(host.host_memory_used_bytes, host.host_memory_total_bytes))),
            (2, [(bar(share, 10, scene.glyphs), "spark-dim")]),
            (3, labelled("waits for", ", ".join(pressed)) if pressed else []),
        ],
        width,
    )


def group_line(scene: Scene, width: int) -> Line:
    """The limits of its control group, and whether they hold it back; empty where there is none."""
    of = scene.model.surroundings
    host = of.host
    if host is None:
        return []
    parts: list[tuple[int, Line]] = []
    pinned = host.cores_allowed is not None and host.cores is not None and host.cores_allowed < host.cores
    if host.quota_cores is not None or pinned:
        allowed = host.cores_allowed if host.cores_allowed is not None else host.quota_cores
        parts.append((1, [("may use ", "label"), (f"{allowed:g}", "number"), (f" of {fmt.count(host.cores)} cores", "label")]))
    alarms = dict(_alarms(scene))
    if "quota" in alarms:
        parts.append((0, alarms["quota"]))
    elif host.throttled_s:
        parts.append((3, [("held back ", "label"), (fmt.duration(host.throttled_s), "number"), (" in all", "label")]))
    if (share := held_share(host)) is not None and host.throttled_periods:
        parts.append((4, [(fmt.percent(share), "number"), (" of periods", "label")]))
    if "memory" in alarms:
        parts.append((0, alarms["memory"]))
    elif host.memory_limit_bytes is not None:
        parts.append((2, labelled("memory limit", fmt.part_of(host.memory_group_bytes, host.memory_limit_bytes))))
    if "kills" in alarms:
        parts.append((0, alarms["kills"]))
    return [("group ", "label"), *fill(parts, width - 6)] if parts else []


def _alarms(scene: Scene) -> list[tuple[str, Line]]:
    """Where the limits of its control group hurt."""
    of = scene.model.surroundings
    host = of.host
    out: list[tuple[str, Line]] = []
    if host is None:
        return out
    held = last(of.throttled_history)
    if held is not None and held >= HELD_BACK:
        out.append(("quota", [(f"! held back by its quota {held:.2f} s a second", "warn")]))
    limit = host.memory_limit_bytes
    if limit is not None and host.memory_group_bytes is not None and host.memory_group_bytes >= NEAR * limit:
        out.append(("memory", labelled("! memory limit", fmt.part_of(host.memory_group_bytes, limit), "warn")))
    if host.oom_kills:
        out.append(("kills", [(f"!! {plural(host.oom_kills, 'process', 'processes')} killed for memory", "bad")]))
    return out


def held_share(host: HostSampled) -> float | None:
    """The part of the quota's periods in which it held the group back."""
    if not host.periods or host.throttled_periods is None:
        return None
    return min(1.0, host.throttled_periods / host.periods)


def workers(scene: Scene) -> dict[str, list[TreeRow]]:
    """The processes below the job by what they do."""
    tree = scene.model.surroundings.tree
    found: dict[str, list[TreeRow]] = defaultdict(list)
    for row in tree.rows if tree is not None else ():
        if row.kind != "job":
            found[row.kind].append(row)
    return found


def workers_line(scene: Scene, width: int) -> Line:
    """How many of each kind, and what they take together; empty where the job has none."""
    tree = scene.model.surroundings.tree
    parts: list[tuple[int, Line]] = []
    for at, (kind, some) in enumerate(workers(scene).items()):
        used = [row.cpu_percent for row in some if row.cpu_percent is not None]
        resident = [row.rss_bytes for row in some if row.rss_bytes is not None]
        name = {"other": "other process"}.get(kind, kind)
        many = "es" if kind == "other" else "s"
        line: Line = [(f"{len(some)} ", "number"), (name + many if len(some) > 1 else name, "label")]
        line += [(" ", "text"), (f"{sum(used) / 100:.2f} cores" if used else fmt.UNKNOWN, "number")]
        line += [(" ", "text"), (fmt.size(sum(resident)) if resident else fmt.UNKNOWN, "number")]
        parts.append((at, line))
    if tree is not None and tree.left_out:
        parts.append((9, [(f"{tree.left_out} more not told", "note")]))
    return [("with ", "label"), *fill(parts, width - 5)] if parts else []


# ---------------------------------------------------------------------------------------------- threads and the tree


def busiest(scene: Scene) -> list[ThreadUse]:
    """The threads that are known, those that use or want a core first."""
    known = scene.model.surroundings.threads.values()
    return sorted(known, key=lambda one: (-(one.share or 0.0) - (one.wait_share or 0.0), one.native))


def thread_lines(scene: Scene, width: int, most: int) -> PanelLines:
    """Heads, and a line for each of the busiest."""
    of = scene.model.surroundings
    shown = [one for one in busiest(scene) if one.share is not None][:most]
    if not shown:
        return []
    titles = heads(f"{'name':<16}{'core':>9}  {'waits':>6}  {'on':>4}")
    lines: PanelLines = [[*heads(f"{'thread':>8}"), (" ", "text"), *titles]]
    for one in shown:
        starved = one.wait_share is not None and one.wait_share >= WAITS
        main = of.tree is not None and bool(of.tree.rows) and of.tree.rows[0].pid == one.native
        waits = f"{one.wait_share * 100:.0f}%" if one.wait_share is not None else fmt.UNKNOWN
        line: Line = [
            (f"{one.native:>8} ", "dim"),
            (pad(cut(clean(one.name) or fmt.UNKNOWN, 15, scene.glyphs.ellipsis), 16), "strong" if main else "text"),
            (f"{(one.share or 0.0) * 100:>8.0f}%", "number"),
            (f"  {waits:>6}", "warn" if starved else "number"),
            (f"  {one.core if one.core is not None else fmt.UNKNOWN:>4}", "dim"),
        ]
        rest = width - line_cells(line) - 2
        if rest >= 6:
            line += [("  ", "text"), (bar(min(1.0, one.share or 0.0), min(20, rest), scene.glyphs), "spark-dim")]
        if starved:
            line += [(" !", "warn")]
        lines.append(cut_line(line, width, scene.glyphs.ellipsis))
    return lines


def tree_lines(scene: Scene, width: int, most: int) -> PanelLines:
    """Heads, and a line for each process, indented below its parent."""
    tree = scene.model.surroundings.tree
    if tree is None or not tree.rows or most <= 0:
        return []
    lines: PanelLines = [heads(f"{'pid':>8}  {'cores':>6}  {'rss':>8}  {'waited':>8}  {'i/o':>10}  {'state':<8}  process")]
    placed = list(in_tree(tree.rows))
    shown = placed if len(placed) + bool(tree.left_out) <= most else placed[: most - 1]
    for row, depth in shown:
        used = f"{row.cpu_percent / 100:.2f}" if row.cpu_percent is not None else fmt.UNKNOWN
        moved = f"{fmt.size(row.io_bytes_s)}/s" if row.io_bytes_s is not None else fmt.UNKNOWN
        odd = row.state in ("zombie", "disk", "stopped")
        indent = "  " * min(depth, 6)
        what = clean(row.name) if row.kind in ("other", "job") else f"{row.kind} {clean(row.name)}"
        line: Line = [
            (f"{row.pid:>8}", "dim"),
            (f"  {used:>6}  {fmt.size(row.rss_bytes):>8}", "number"),
            (f"  {fmt.duration(row.run_queue_wait_s):>8}  {moved:>10}", "number"),
            (f"  {('! ' if odd else '') + row.state:<8}  ", "warn" if odd else "dim"),
            (f"{indent}{what}", "strong" if row.kind == "job" else "text"),
        ]
        lines.append(cut_line(line, width, scene.glyphs.ellipsis))
    if rest := len(placed) - len(shown) + tree.left_out:
        lines.append([(f"{'':>8}  and {rest} more", "note")])
    return lines


def in_tree(rows: tuple[TreeRow, ...]) -> Iterator[tuple[TreeRow, int]]:
    """Each process behind its parent with its depth; siblings as they come. One whose parent is not told stands at depth 1."""
    below: dict[int, list[TreeRow]] = defaultdict(list)
    known = {row.pid for row in rows}
    roots = [row for row in rows if row.parent not in known or row.kind == "job"]
    for row in rows:
        if row not in roots:
            below[row.parent].append(row)
    done: set[int] = set()
    waiting = [(row, 0 if row.kind == "job" else 1) for row in reversed(roots)]
    while waiting:
        row, depth = waiting.pop()
        if row.pid in done:
            continue
        done.add(row.pid)
        yield row, depth
        waiting += [(one, depth + 1) for one in reversed(below[row.pid])]


# ---------------------------------------------------------------------------------------------- charts


def cpu_chart(scene: Scene, width: int, height: int) -> PanelLines:
    """The job's CPU use over the latest readings, full height = all the cores it has used at most (at least one)."""
    history = list(scene.model.surroundings.cpu_history)
    known = [value for value in history if value is not None]
    if not known or height <= 0:
        return []
    top = max(100.0, -(-max(known) // 100) * 100)
    label = f"{top / 100:.0f} core{'s' if top > 100 else ''}"
    return named_chart(scene, "job cpu", history, label, top, width, height, "spark-dim")


def named_chart(
    scene: Scene, name: str, history: Sequence[float | None], label: str, top: float, width: int, height: int, role: str
) -> PanelLines:
    """A chart over all the width, with its top, its name and its zero beside it as far as there are lines for them."""
    rows = chart(history, max(1, width - 10), height, top, scene.glyphs)
    words = [label, *([name] if height > 1 else []), *[""] * (height - 3), *(["0"] if height > 2 else [])]
    return [[(f"{word:>8} ", "axis"), (row, role)] for word, row in zip(words, rows, strict=True)]


def fill_room(scene: Scene, width: int, height: int, above: PanelLines | None = None) -> PanelLines:
    """What a panel with room has below the host's lines: the CPU chart, the busiest threads, the tree. `above` stands over the
    CPU chart where the threads have room as well."""
    out: PanelLines = []
    if height <= 0:
        return out
    tree = scene.model.surroundings.tree
    many = len(tree.rows) if tree is not None else 0
    known = sum(one.share is not None for one in scene.model.surroundings.threads.values())
    if height < 6:
        return cpu_chart(scene, width, min(height, 4))
    if above and height >= 6 + len(above) + min(known, 3):
        out += [*above, []]
    out += cpu_chart(scene, width, 3)
    threads = min(known, max(3, min(6, height // 4)))
    left = height - len(out)
    if known and left >= 3:
        out += [[], *thread_lines(scene, width, min(threads, left - 2))]
    left = height - len(out)
    if many > 1 and left >= 6:  # heads and a few rows: the line of the workers says as much as one or two
        out += [[], *tree_lines(scene, width, left - 2)]
    return [cut_line(line, width, scene.glyphs.ellipsis) if line and line_cells(line) > width else line for line in out][
        :height
    ]


def in_brief(scene: Scene) -> str:
    """The job's process in a few words, where its line has gone to the GPUs."""
    host = scene.model.surroundings.host
    if host is None or host.cpu_percent is None:
        return ""
    return f"job {cores(host.cpu_percent)}, rss {fmt.size(host.rss_bytes)}"
