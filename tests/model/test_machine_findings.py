"""GPUs and the host as findings: what is one, and above all what is not."""

from __future__ import annotations

from typing import Any

from tuimon import events as ev
from tuimon.model import Model
from tuimon.model.findings import Finding, findings
from tuimon.model.ranks.digest import StepDigest
from tuimon.model.ranks.lateness import Lateness
from tuimon.model.steps.account import COMMUNICATION
from tuimon.model.steps.parts import CATEGORIES, StepAccount

S = 1_000_000_000
GIB = 2**30


def gpu(t_s: int, **more: Any) -> ev.GpuSampled:
    """A reading of a GPU that the job uses and that is well."""
    told = {
        "utilization": 100.0, "memory_used_bytes": 79 * GIB, "memory_total_bytes": 80 * GIB, "process_memory_bytes": 78 * GIB,
        "throttle": ("power cap",), "sm_clock_mhz": 1900.0, "sm_clock_max_mhz": 1980.0, "ecc_uncorrected": 2, "job_here": True,
    }  # fmt: skip
    return ev.GpuSampled(t_s * S, 0, "NVIDIA H200", **{**told, **more})


def host(t_s: int, **more: Any) -> ev.HostSampled:
    """A reading of a host."""
    told = {"run_queue_wait_s": 0.1 * t_s, "memory_limit_bytes": 10 * GIB, "memory_group_bytes": 10 * GIB, "oom_kills": 1}
    return ev.HostSampled(t_s * S, 150.0, 2 * GIB, 9, 40.0, 8 * GIB, 64 * GIB, **{**told, **more})


def job(*events: ev.Event, communication: float = 0.1, seconds: int = 40) -> Model:
    """A job with a step a second, of which it spends that part in collectives."""
    model = Model()
    model.apply(events)
    for at in range(seconds):
        parts = [0] * len(CATEGORIES)
        parts[COMMUNICATION] = int(communication * S)
        parts[-1] = S - parts[COMMUNICATION]
        model.steps.accounts.append(StepAccount(at, at * S, (at + 1) * S, tuple(parts), compiled=False))
    return model


def only(model: Model) -> Finding:
    """The one finding there is."""
    (found,) = findings(model)
    return found


def test_a_busy_gpu_that_is_full_and_at_its_power_limit_is_none() -> None:
    pool = ev.PoolSampled(S, 0, None, None, 70 * GIB, 77 * GIB, retries=3, ooms=1)
    assert findings(job(*[gpu(at) for at in range(40)], *[host(at) for at in range(40)], pool)) == []


def test_nothing_read_is_none() -> None:
    bare = {"utilization": None, "throttle": (), "sm_clock_mhz": None, "ecc_uncorrected": None, "process_memory_bytes": None}
    assert findings(job(*[gpu(at, **bare) for at in range(40)], ev.HostSampled(S, *[None] * 6))) == []


def test_a_gpu_that_reads_as_busy_while_the_job_waits_in_collectives() -> None:
    found = only(job(*[gpu(at, sm_activity=12.0, tensor_activity=0.0) for at in range(40)], communication=0.8))
    assert found.kind == "gpu_waiting" and "reads 100% while the job waits" in found.title
    assert any("80% of the time" in one for one in found.evidence) and any("SM activity 12%" in one for one in found.evidence)


def ranks(*shares: float | None, first_s: int = 0) -> Lateness:
    """Ranks with a step a second, of which each spends such a part in collectives; None: one that told no step."""
    lateness = Lateness()
    for key, share in enumerate(shares):
        lateness.join(key, f"rank {key}", rank=key)
        parts = [0] * len(CATEGORIES)
        parts[COMMUNICATION], parts[-1] = int((share or 0.0) * S), int((1 - (share or 0.0)) * S)
        steps = range(first_s, first_s + 40) if share is not None else ()
        lateness.take(key, [StepDigest(0, at, at * S, (at + 1) * S, tuple(parts)) for at in steps])
    return lateness


def waits(*compared: Lateness, world: int = 3) -> Finding:
    """What is said of rank 0, which waits."""
    model = job(*[gpu(at) for at in range(40)], communication=0.8)
    model.target.rank, model.target.world_size = 0, world
    return next(one for one in findings(model, compared) if one.kind == "gpu_waiting")


def test_all_ranks_wait_in_collectives() -> None:
    found = waits(ranks(0.8, 0.75, 0.9))
    assert found.title == "GPU 0 reads 100% while all 3 ranks wait in collectives"
    assert "each rank spends 75% to 90% of its steps there" in found.evidence and "every rank waits" in found.next_step
    assert "all 3 ranks that are compared wait" in waits(ranks(0.8, 0.75, 0.9), world=8).title


def test_a_rank_that_does_not_wait_is_named() -> None:
    found = waits(ranks(0.8, 0.1, 0.9))
    assert found.title.endswith("while rank 0 waits in collectives") and "rank 1" in found.next_step
    assert any("rank 1 10% of their steps" in one for one in found.evidence)


def test_what_is_not_known_of_the_other_ranks_is_said() -> None:
    alone = "this rank's own steps only: the others are not compared with it"
    assert alone in waits().evidence and alone in waits(ranks(0.8, 0.8), ranks(0.8, 0.8)).evidence
    found = waits(ranks(0.8, None, 0.9))
    assert "1 rank told too few steps of that time" in found.evidence and "compared" in found.title
    assert "told too few" in " ".join(waits(ranks(0.8, 0.8, first_s=500)).evidence)


def windowed(collectives_ms: int, others_ms: int, busy_ms: int, at_s: int = 10) -> list[ev.Event]:
    """A window of a second, with kernels for so long; `busy_ms` of it are filled."""

    def row(kernel: str, ms: int) -> ev.KernelRow:
        return (kernel, "", (), "", None, 0, 4, ms * 1_000_000, 1, 9)

    rows = (
        row("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", collectives_ms),
        row("gemm", others_ms),
    )
    return [
        ev.WindowChanged((at_s + 1) * S, 4, "closed", steps=1, begin_ns=at_s * S, end_ns=(at_s + 1) * S),
        ev.KernelsSeen((at_s + 1) * S, 4, rows, 0, S, busy=((0, busy_ms * 1_000_000),)),
    ]


def test_on_a_gpu_a_profiler_window_tells_of_collectives_that_the_host_does_not_wait_in() -> None:
    readings = [gpu(at) for at in range(40)]
    found = only(job(*readings, *windowed(800, 150, 950)))
    assert found.kind == "gpu_waiting" and "at least 80% of profiler window 4" in found.evidence[1]
    assert found.cost_s is None  # a window says nothing of the other steps
    # they run beside the computing, which hides them; or long before
    assert findings(job(*readings, *windowed(800, 600, 900))) == []
    assert findings(job(*readings, *windowed(0, 300, 900))) == []
    assert findings(job(*[gpu(at) for at in range(40, 80)], *windowed(800, 150, 950), seconds=80)) == []


def test_a_gpu_that_computes_meanwhile_is_none() -> None:
    assert findings(job(*[gpu(at, tensor_activity=30.0) for at in range(40)], communication=0.8)) == []


def test_waiting_is_none_without_steps_of_that_time() -> None:
    assert findings(job(*[gpu(at + 100) for at in range(40)], communication=0.8)) == []
    assert findings(job(*[gpu(at) for at in range(10)], communication=0.8)) == []


def test_a_gpu_that_others_use_is_none() -> None:
    others = [gpu(at, process_memory_bytes=None, job_here=False) for at in range(40)]
    assert findings(job(*others, communication=0.8)) == []


def test_a_gpu_that_is_too_hot() -> None:
    found = only(job(*[gpu(at, throttle=("thermal (hardware)",), sm_clock_mhz=1100.0) for at in range(40)]))
    assert found.kind == "gpu_held_back" and "thermal (hardware)" in found.title
    assert any("1100 of 1980 MHz" in one for one in found.evidence)


def test_a_gpu_that_was_lost_and_why() -> None:
    found = findings(job(gpu(1), gpu(2, lost="GPU is lost", utilization=None), ev.XidSeen(2 * S, 0, 79)))
    assert {one.kind for one in found} == {"gpu_lost", "xid"}


def test_a_flood_of_one_error_hides_no_other_and_is_counted_to_its_end() -> None:
    flood = [ev.XidSeen(at * S, 0, 31) for at in range(2, 202)]
    model = job(gpu(1), ev.XidSeen(S, 0, 79), *flood)
    told = {one.title.partition(":")[0]: one.evidence[0] for one in findings(model)}
    assert told["the driver reports XID 31 on GPU 0"].startswith("told 200 times")
    assert told["the driver reports XID 79 on GPU 0"].startswith("told 1 time ")
    assert {one.xid for one in model.surroundings.xids} == {79, 31} and model.surroundings.xids[-1].t_ns == 201 * S


def test_memory_errors_count_from_the_attach() -> None:
    found = only(job(gpu(1), gpu(2, ecc_uncorrected=3)))
    assert found.kind == "gpu_ecc" and "1 error while watched, 3 since" in found.evidence[0]


def test_an_allocator_that_gave_its_cache_back_while_watched() -> None:
    pools = [ev.PoolSampled(at * S, 0, None, None, 70 * GIB, 77 * GIB, retries=at, ooms=0) for at in (3, 5)]
    found = only(job(*pools))
    assert found.kind == "gpu_full" and "2 times" in found.evidence[1]


def test_a_quota_that_holds_the_job_back() -> None:
    quota = {"cgroup": "v2", "quota_cores": 2.0}
    first = host(1, periods=100, throttled_periods=0, throttled_s=0.0, **quota)
    found = only(job(first, host(31, periods=400, throttled_periods=150, throttled_s=9.0, **quota)))
    assert found.kind == "cpu_quota" and "150 of 300 periods" in found.evidence[0]
    assert findings(job(first, host(31, periods=50, throttled_periods=40, throttled_s=9.0, **quota))) == []  # another group's


def test_a_job_that_waits_for_cores() -> None:
    found = only(job(*[host(at, run_queue_wait_s=3.0 * at) for at in range(40)]))
    assert found.kind == "cpu_starved" and "3.0 cores and had 1.5" in found.evidence[0]


def test_memory_that_runs_out() -> None:
    near = ev.HostSampled(S, 1.0, 9 * GIB, 9, 1.0, 1, 2, memory_limit_bytes=10 * GIB, memory_group_bytes=10 * GIB)
    assert only(job(near)).kind == "oom_near"
    assert only(job(host(1), host(2, oom_kills=2))).title == "the job's control group has run out of memory"
