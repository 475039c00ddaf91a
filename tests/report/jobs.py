"""Jobs as events, small enough to know every number of their report."""

from __future__ import annotations

from typing import Any

from tests.report.obeys import obeying
from tuimon import events as ev
from tuimon.model import Model
from tuimon.report import build

MS = 1_000_000
FILE = "/home/user/model.py"
EVIL = "size mismatch \x1b[31m\u202e in 'x' | expected 8, actual 5"


def compiled(compile_id: str, t_ms: int, took_s: float, *, line: int = 12, function: str = "forward") -> list[ev.Event]:
    """The start and the end of a forward compilation on the main thread."""
    began = (t_ms * MS) - int(took_s * 1e9)
    return [
        ev.CompileStarted(began, compile_id, 0, function, FILE, line, "MainThread"),
        ev.CompileFinished(
            t_ms * MS, compile_id, "forward", function, FILE, line, "MainThread", began, took_s,
            dynamo_s=took_s, aot_s=took_s * 0.8, inductor_s=took_s * 0.5, triton_s=took_s * 0.2,
        ),
    ]  # fmt: skip


def steady_step(number: int) -> list[tuple[int, int, int, int, int]]:
    """Samples of one 10 ms step: region 0/0 for 2 ms, 1 ms at the boundary, region 1/0 for 2 ms, the optimizer at the end."""
    t = (20_000 + number * 10) * MS
    return [
        (1, 0, 0, t, t + 2 * MS),
        (3, 0, 0, t + 3 * MS, t + 3 * MS),
        (2, 0, 0, t + 3 * MS, t + 5 * MS),
        (4, 0, 0, t + 9 * MS, t + 10 * MS),
    ]


def training(steps: int = 20) -> list[ev.Event]:
    """A job with one graph break that is crossed in each step, a recompile, a refused attempt, GPU and host."""
    found: list[ev.Event] = [
        ev.TargetSeen(
            1 * MS, 4242, "python train.py", "3.11.7", "2.13.0+cpu", "run", 1_700_000_000.0, ("cpu",), recompile_limit=8
        ),
        ev.ThreadSeen(2 * MS, 0, "MainThread"),
        *compiled("0/0", 5_000, 2.0),
        ev.GraphBroke(
            4_000 * MS, "0/0", 0, "Tensor.item()", "Tensor.item()", "GB0001", "forward", FILE, 41, "why", ("do this",)
        ),
        ev.InstrumentAdded(5_000 * MS, 1, "forward", "0/0", "__compiled_fn_1", "forward", FILE, 12, "inductor", 7),
        *compiled("1/0", 6_000, 0.5, line=41, function="resume"),
        ev.InstrumentAdded(6_000 * MS, 2, "forward", "1/0", "__compiled_fn_2", "resume", FILE, 41, "inductor"),
        ev.InstrumentAdded(6_000 * MS, 3, "resume", "0/0", "__resume_at_1", "torch_dynamo_resume_in_forward_at_41", FILE, 41),
        ev.InstrumentAdded(6_000 * MS, 4, "optimizer", None, "SGD", "step", "", 0),
    ]
    rows = [row for step in range(steps) for row in steady_step(step)]
    found.append(ev.Samples(rows[-1][4], tuple(rows)))
    end = 20_000 + steps * 10
    found += [
        ev.GuardsFailed((end + 10) * MS, "0/1", (("0/0", EVIL),)),
        *compiled("0/1", end + 1_000, 0.9),
        ev.CompileStarted((end + 1_100) * MS, "0/2", 0, "forward", FILE, 12, "MainThread"),
        ev.CompileFinished(
            (end + 1_200) * MS, "0/2", "forward", None, None, None, "MainThread", (end + 1_100) * MS, 0.1, refused=True
        ),
        ev.CacheLooked((end + 1_300) * MS, "0/0", "fx_graph", "miss"),
        ev.HookStatus((end + 1_300) * MS, 80, 3, 0.002, (("regions", "on"),)),
        ev.NotAvailable((end + 1_300) * MS, "backward", "no backward graphs in this torch"),
        ev.GpuSampled(
            (end + 1_300) * MS, 0, "H200", 40.0, 10 << 30, 141 << 30, missing=(("power", "not supported on this GPU"),)
        ),
        ev.HostSampled((end + 1_300) * MS, 99.0, 1 << 30, 12, 30.0, 2 << 30, 16 << 30, 0.5, 0, 10, 20),
        ev.TargetEnded((end + 1_400) * MS, "exited", "the program exited with status 0", 0),
    ]
    return found


def model_of(events: list[ev.Event]) -> Model:
    """The model after these events."""
    model = Model()
    model.apply(events)
    return model


def reported(model: Model, **known: Any) -> dict[str, Any]:
    """Its report, which obeys the published schema."""
    return obeying(build(model, **known))
