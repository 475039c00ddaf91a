"""Panel 5 and its pages: any machine at any size, signs and colours, what is inferred, what is silent, and the host."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.app.test_panels import draw, scene, sound, text
from tests.support.fake_feed import S
from tests.support.gpu_scenes import GIB, MACHINES, eight, gpu, host, lost, mig, no_gpu, one, processes, silent
from tests.support.monitor import Driven, drive, settings
from tuimon import events as ev
from tuimon.app.details.opening import open_page
from tuimon.app.details.tracks import in_words
from tuimon.app.panels import gpus
from tuimon.app.panels.all import BY_ID
from tuimon.app.panels.frame import fitted
from tuimon.app.panels.host import in_tree
from tuimon.app.plan import plan
from tuimon.app.scene import PanelView
from tuimon.draw.glyphs import GLYPH_SETS
from tuimon.draw.text import Line
from tuimon.sources.nvml import words

PANEL = BY_ID["surroundings"]
AWKWARD = "\x1b[31m[b]\u202eevil\x07 " + "long name " * 60


def shown(events: list[ev.Event], width: int = 80, height: int = 21, view: PanelView | None = None, **more: object) -> str:
    return text(draw(PANEL, scene(events, **more), width, height, True, view))  # type: ignore[arg-type]


def page(events: list[ev.Event], key: str, width: int = 80) -> str:
    what = scene(events)
    opened = open_page("surroundings", what, key)
    assert opened is not None
    return text([[("text", ""), (opened[0], "")], *opened[1](what, width).lines])  # type: ignore[list-item]


def roles(lines: list[Line], words: str) -> set[str]:
    return {role for line in lines for part, role in line if words in part}


def awkward() -> list[ev.Event]:
    """Names and reasons that are not fit for a terminal, and values that are not there."""
    t = 2_000 * S
    none = dict.fromkeys(
        ("utilization", "memory_used_bytes", "memory_total_bytes", "power_w", "power_limit_w", "temperature_c", "sm_clock_mhz")
    )
    missing = tuple((field, AWKWARD) for field in (*none, "activity", "processes"))
    tree = ev.ProcessTreeSampled(
        t, (ev.TreeRow(1, 1, "other", AWKWARD, None, None, "zombie"), ev.TreeRow(2, 3, "worker", "", None, None, "")), 5
    )
    return [
        gpu(t, 0, name=AWKWARD, throttle=(AWKWARD,), missing=missing, processes=(), job=(), **none),
        gpu(t, 1, lost=AWKWARD, missing=(("gpu", AWKWARD),)),
        gpu(t, 2, missing=(("gpu", AWKWARD),), virtual="vgpu"),
        ev.MigSampled(t, 0, 0, AWKWARD, "", None, None, None, None, None),
        ev.GpuSilent(t, 0, 1e6, AWKWARD),
        ev.XidSeen(t, None, 2**31),
        ev.PoolSampled(t, 0, None, None, 5, 3, inactive_split_bytes=7),
        ev.HostSampled(t, None, None, None, None, None, None, missing=(("rss", AWKWARD),), pressure=(("cpu", 99.0),)),
        ev.ThreadSampled(t, 9, 0.0, 0.0, name=AWKWARD),
        ev.ThreadSampled(t + 3 * S, 9, 1.0, 2.0, name=AWKWARD),
        tree,
    ]


@pytest.mark.parametrize("glyphs", sorted(GLYPH_SETS))
@pytest.mark.parametrize("name", [*sorted(MACHINES), "awkward", "many"])
def test_any_machine_at_any_size(name: str, glyphs: str) -> None:
    many = [gpu(1000 * S, index, index) for index in range(40)]
    events = awkward() if name == "awkward" else many if name == "many" else MACHINES[name]()
    what = scene(events, glyphs)
    keys = PANEL.keys(what, PanelView())
    sizes = ((1, 1), (3, 2), (9, 4), (40, 5), (47, 7), (60, 9), (60, 10), (79, 3), (80, 21), (119, 37), (200, 57))
    for width, height in sizes:
        for cursor in (None, keys[0], keys[-1], "gone"):
            view = PanelView(cursor=cursor)
            sound(draw(PANEL, what, width, height, True, view), width, height, glyphs)
    for key in (*keys, "gone"):
        opened = open_page("surroundings", what, key)
        assert opened is not None
        for width in (10, 40, 80, 120, 200):
            lines = opened[1](what, width).lines
            sound(fitted(lines, width, len(lines), what.glyphs), width, len(lines), glyphs)


def test_eight_fit_in_80x24_with_numbers_histories_and_signs() -> None:
    lines = shown(eight()).split("\n")
    rows = [line for line in lines if line[1:2].isdigit() and "/700 W" in line]
    assert len(rows) == 8
    assert all("%" in row and "GiB" in row and " C" in row for row in rows)
    assert [row.split()[0] for row in rows if "●" in row] == ["0", "1", "2", "3"]
    assert "!!" in rows[2] and " ! " in rows[3] and " ! " in rows[5] and "!" not in rows[0]
    assert "GPU 3 held back: power cap" in "\n".join(lines)
    assert "idle" not in "\n".join(lines)  # a GPU at rest is not held back


def test_eight_share_a_line_in_which_each_has_its_number() -> None:
    lines = shown(eight(), 80, 3).split("\n")
    assert [word for word in lines[1].split() if word[0].isdigit() and "●" in word] == ["0●", "1●", "2●", "3●"]
    assert "2● 92 !!" in lines[1] and "5  90 !" in lines[1] and " 7   0" in lines[1]
    assert "job on GPU 0-3; util: a kernel was running, not how busy" in lines[0]
    assert "job  4.70 cores" in lines[2]
    many = [gpu(1000 * S, index, index) for index in range(16)]
    assert "16 GPUs" in shown([*many, host(1000 * S)], 80, 3)  # too many for a line: their range


def test_a_few_lines_of_eight_have_history_and_the_sign_stands_at_the_gpu() -> None:
    which, util, history, memory = shown(eight(), 48, 7).split("\n")[1:5]
    assert "2●!!" in which and "3●!" in which and "5 !" in which
    assert util.startswith(" util%") and "!" not in util
    assert set("".join(history.split())) <= set(map(chr, range(0x2800, 0x2900)))
    assert "99!" in memory
    assert "91!!" in shown(eight(), 48, 9)  # the heat comes where there is one more line


def test_one_gpu_in_one_line_has_activity_beside_its_utilisation() -> None:
    title, line, _ = shown(one(), 80, 3).split("\n")
    assert "util  89%" in line and "sm  47%  tensor  22%" in line and "62.0/80.0 GiB" in line
    assert "util: a kernel was running, not how busy" in title


def test_a_gpu_in_parts_in_one_line_tells_the_jobs_part() -> None:
    line = shown(mig(), 80, 3).split("\n")[1]
    all_in_parts = [gpu(1000 * S, index, mig_mode=True, utilization=None) for index in range(8)]
    assert shown(all_in_parts, 80, 2).count("MIG") == 8
    assert "MIG, 4 parts" in line and "0.0● 3g.40gb  18.0/39.0 GiB" in line and "in all 29.0/80.0 GiB" in line


def test_the_only_gpu_has_a_chart_over_the_hosts() -> None:
    lines = shown(one()).split("\n")
    named = [" ".join(line.split()[:2]) for line in lines if "gpu util" in line or "job cpu" in line]
    assert named == ["gpu util", "job cpu"]
    assert "gpu util" not in shown(eight())


def test_what_stands_out_has_a_colour_and_a_sign() -> None:
    lines = draw(PANEL, scene(eight()), 80, 21)
    assert roles(lines, "91 C") == {"bad"} and roles(lines, "!!") == {"bad"}
    assert roles(lines, "79.0/80.0 GiB") == {"warn"}
    small = draw(PANEL, scene(eight()), 80, 5)
    assert "!!" in text(small) and "91 C" not in roles(small, "number")


def test_utilisation_is_not_called_busy_and_activity_stands_beside_it() -> None:
    whole = shown(one())
    assert "util: a kernel was running, not how busy" in whole
    assert "sm tensor" in whole and "47%" in whole and "22%" in whole
    card = shown(one(), 80, 7)
    assert "a kernel was running  89%" in card and "sm  47%  tensor  22%" in card
    without = shown(MACHINES["container"]())
    assert "tensor " not in without.split("\n")[1]
    assert without.count("no SM or tensor activity beside it") == 1


def test_an_inferred_memory_has_a_tilde_and_its_reason() -> None:
    whole = shown(MACHINES["container"]())
    assert "~61.0 GiB" in whole and "~ taken for the job's: the only process there" in whole
    assert "~61.0 GiB, taken for it: the only process there" in page(MACHINES["container"](), "gpu 0")
    assert "~" not in shown(one(), 80, 4).replace("~ taken", "")


def test_the_jobs_pool_stands_beside_what_the_driver_sees() -> None:
    whole = shown(MACHINES["pool"](), 119, 37)
    for fact in (
        "41.0 GiB allocated",
        "57.0 GiB reserved",
        "! 33.3% fragmented",
        "! 3 retries, 1 OOM",
        "NVML 59",
    ):
        assert fact in whole, fact
    told = page(MACHINES["pool"](), "gpu 0")
    assert "o beside its pool 2.00 GiB" in told and "x others' 3.00 GiB" in told
    assert "33.3%: 19.0 GiB is free but cannot be given back" in told


def test_a_silent_driver_is_said_and_its_gpu_steps_back() -> None:
    for width, height in ((80, 2), (80, 4), (48, 7), (80, 21)):
        lines = shown(silent(), width, height)
        assert "NVML not answering for 12 s on GPU 1" in lines, (width, height)
    before, during = (shown(events, 80, 3).split("\n") for events in (silent()[:-11], silent()))
    assert before[1][:20] == during[1][:20] and "not answering" in during[2]  # no line moves: it takes the host's
    assert "job  " in before[2] and "job 4.70 cores" in during[0]
    lines = draw(PANEL, scene(silent()), 80, 21)
    assert roles(lines, "90%") == {"quiet"} and "number" in roles(lines, "89%")
    last = max(event.t_ns for event in silent())
    back = [*silent(), ev.GpuSilent(last + S, 1, None, "")]
    assert "not answering" not in shown(back)
    assert "NVML not answering for 12 s" in shown(one(), nvml_waiting_s=12.0)  # where no source tells it


def test_a_lost_gpu_stays_a_row_with_its_reason_and_hides_no_other() -> None:
    lines = shown(lost()).split("\n")
    row = next(line for line in lines if line.startswith(" 2 "))
    assert " x " in row and "it fell off the bus" in row and "XID 79" in row
    assert sum("/700 W" in line for line in lines) == 3
    assert "lost" in shown(lost(), 80, 4)
    told = page(lost(), "gpu 2")
    assert "x XID 79" in told and "x  GPU lost: it fell off the bus" in told
    assert "XID 79: the GPU has fallen off the bus" in told
    assert "reasons now           not known" in told and "\n  none" not in told and "0 GiB" not in told


def test_parts_are_rows_below_their_gpu() -> None:
    lines = shown(mig()).split("\n")
    assert any(line.split()[:2] == ["0.0", "●"] and "3g.40gb" in line for line in lines)
    assert "tells no utilisation of a GPU in MIG mode" in "\n".join(lines)
    assert "MIG parts" in page(mig(), "gpu 0 part 1") and "42 SMs" in page(mig(), "gpu 0")


def test_without_a_gpu_there_is_one_line_and_the_room_is_the_hosts() -> None:
    for height in (2, 4, 7, 21):
        assert shown(no_gpu(), 80, height).count("no GPU") == 1
    whole = shown(no_gpu())
    for fact in (
        "8 loader workers",
        "may use 4 of 64 cores",
        "! held back by its quota 0.30 s a second",
        "pt_autograd_0",
        "waits",
    ):
        assert fact in whole, fact
    told = page(no_gpu(), "host", 120)
    for fact in (
        "minor page faults",
        "memory limit          14.0/16.0 GiB",
        "16.3% of 6590 periods",
        "ptxas",
        "read                  412",
    ):
        assert fact in told, fact


@pytest.mark.parametrize("kind", ["mismatch", "no permission"])
def test_a_gpu_that_is_not_read_is_not_called_none_and_what_to_do_is_not_cut_off(kind: str) -> None:
    code = {"mismatch": words.LIB_RM_VERSION_MISMATCH, "no permission": words.NO_PERMISSION}[kind]
    t = 2_000 * S
    events = [ev.GpuUnavailable(t, words.cannot_start(code), kind), host(t)]  # type: ignore[arg-type]
    for width, height in ((80, 21), (119, 37), (60, 21)):
        whole = " ".join(shown(events, width, height).split())
        assert "GPU not read: " in whole and words.cannot_start(code) in whole
        assert "no GPU" not in whole
    small = shown(events, 80, 2).split("\n")
    assert "GPU not read: " in small[0] and "…" not in small[0] and "job  " in small[1]


def test_where_its_limits_hurt_stands_on_the_jobs_only_line() -> None:
    assert "! held back by its quota 0.30 s a second" in shown(no_gpu(), 80, 2)
    assert "! memory limit 62.0/64.0 GiB" in shown(MACHINES["container"](), 80, 3)
    for height in (4, 5):
        lines = shown(no_gpu(), 48, height)  # before what it may use, and before its workers
        assert "! held back by its quota" in lines


def test_the_tree_has_each_process_behind_its_parent_once() -> None:
    rows = processes(0).rows
    placed = [(row.pid, depth) for row, depth in in_tree(rows)]
    assert placed[0] == (4242, 0) and sorted(pid for pid, _ in placed) == sorted(row.pid for row in rows)
    assert placed[placed.index((4400, 1)) + 1] == (4500, 2)
    circle = (ev.TreeRow(1, 2, "other", "a", None, None, ""), ev.TreeRow(2, 1, "other", "b", None, None, ""))
    assert len(list(in_tree(circle))) <= 2  # a pid that was used again makes no endless page


def test_near_its_memory_limit_and_swapped_out_are_said() -> None:
    t = 2_000 * S
    near = host(t, memory_limit_bytes=16 * GIB, memory_group_bytes=16 * GIB - 1, swap_bytes=GIB, oom_kills=2, cgroup="v2")
    whole = shown([near], 119, 37)
    assert (
        "! memory limit 16.0/16.0 GiB" in whole
        and "!! 2 processes killed for memory" in whole
        and "! swapped 1.00 GiB" in whole
    )


@pytest.mark.parametrize(
    ("field", "told"),
    [
        ("sm_clock_max_mhz", "SM clock maximum"),
        ("pcie_rx_bytes_s", "PCIe in"),
        ("power_w", "power"),
        ("throttle", "clock reasons"),
        ("process_memory_bytes", "the job's memory"),
        ("utilization", "utilization"),
    ],
)
def test_fields_have_names_for_a_person(field: str, told: str) -> None:
    assert in_words(field) == told


def test_ranges() -> None:
    assert gpus.ranges([0, 1, 2, 5, 7, 8]) == "0-2, 5, 7, 8"
    assert gpus.ranges([]) == ""


def test_columns_do_not_shrink() -> None:
    view = PanelView()
    first = shown(eight(), view=view).split("\n")[1]
    quiet = [replace(event, power_w=9.0) if isinstance(event, ev.GpuSampled) else event for event in eight()]
    assert shown(quiet, view=view).split("\n")[1] == first


def test_the_first_gpu_gets_a_line_beside_the_hosts() -> None:
    assert plan(80, 24).panels["surroundings"].height == 2
    with_gpus = plan(80, 24, gpus=True)
    assert with_gpus.panels["surroundings"].height == 3
    assert sum(box.height for box in with_gpus.panels.values()) == 21
    assert plan(200, 60, gpus=True).panels["surroundings"].height > plan(200, 60).panels["surroundings"].height


def test_keys_choose_a_gpu_and_enter_opens_it() -> None:
    async def body(on: Driven) -> None:
        await on.press("5", "j", "j", "j")
        assert on.line("▸2")
        await on.press("enter")
        assert on.text.startswith(" GPU 2: H100 80GB HBM3") and "a kernel was running" in on.text
        await on.press("escape", "G")
        assert on.line("▸job")
        await on.press("enter")
        assert "host and the job's processes" in on.text
        await on.press("escape", "escape", "g", "enter")
        assert on.text.startswith(" GPU 0")

    drive(eight(), (80, 24), body)


@pytest.mark.parametrize("theme", ["mono", "dark"])
def test_in_ascii_and_without_colours_the_signs_stand(theme: str) -> None:
    async def body(on: Driven) -> None:
        await on.press("5")
        assert on.text.isascii()
        assert " x " in on.line("it fell off the bus")
        assert " *" in on.line("611/700 W")

    drive(lost(), (80, 24), body, settings("ascii", theme))


def test_the_page_follows_what_comes() -> None:
    async def body(on: Driven) -> None:
        await on.press("5", "j", "enter")
        last = max(event.t_ns for event in one())
        on.feed.give(gpu(last + S, 0, 60, utilization=3.0, temperature_c=93.0))
        await on.tick()
        assert "3%" in on.line("a kernel was running") and "93 C" in on.line("!!")

    drive(one(), (80, 24), body)
