"""GPUs and the host: what they do to the job. A number alone is none; what it costs or endangers is.

A GPU that is full is what a caching allocator makes of it, and one at its power limit does what it should: neither is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import TYPE_CHECKING

from tuimon.events import GpuSampled
from tuimon.model.about import About
from tuimon.model.findings.finding import Finding, many
from tuimon.model.findings.ranks import who_is_late
from tuimon.model.gpu_marks import held_back
from tuimon.model.gpus import of_job
from tuimon.model.steps.account import COMMUNICATION
from tuimon.model.xids import xid_words

if TYPE_CHECKING:
    from tuimon.model.model import Model
    from tuimon.model.ranks.lateness import Lateness

RESIDENT, WAITING = 90.0, 0.5
"""Percent of utilisation that reads as busy; and the part of its steps' time that a job waits in collectives then."""
NCCL = ("nccldevkernel", "ncclkernel", "rccl")
"""How names of kernels begin in which collectives run."""
OVERLAP = 5.0
"""Percent of tensor activity from which on the GPU computes while the job waits."""
LONG_NS = 20_000_000_000
LEAST_READINGS = 20
OFTEN = 0.5
THROTTLED, LEAST_PERIODS, THROTTLED_S = 0.25, 100, 1.0
"""Of the periods of a CPU quota; how many there must have been; and the time it cost."""
STARVED_CORES, STARVED_READINGS = 1.0, 30
NEAR, OWN = 0.95, 0.8
"""Of a memory limit: what the group has in use, page cache included, and what of it is the job's own."""


def find(model: Model, compared: Iterable[Lateness] = ()) -> list[Finding]:
    """All of these; a healthy job has none. `compared`: of each job of which several ranks are watched, what these do."""
    gpus = [*_waiting(model, compared), *_held_back(model), *_broken(model), *_full(model)]
    return [*gpus, *_quota(model), *_starved(model), *_memory(model)]


def _readings(model: Model, index: int) -> list[GpuSampled]:
    return list(model.slowness.outside.gpus.get(index, ()))


def _waiting(model: Model, compared: Iterable[Lateness]) -> list[Finding]:
    """GPUs that read as busy while their job waits in a collective: its kernel spins there."""
    compared = list(compared)
    found = []
    for gpu in of_job(model.surroundings):
        busy: list[GpuSampled] = []
        for one in reversed(_readings(model, gpu.index)):
            if one.utilization is None or one.utilization < RESIDENT:
                break
            busy.insert(0, one)
        if not busy or busy[-1].t_ns - busy[0].t_ns < LONG_NS:
            continue
        began, ended = busy[0].t_ns, busy[-1].t_ns
        steps = [one for one in model.steps.accounts if one.begin_ns >= began and one.end_ns <= ended]
        took = sum(one.took_ns for one in steps)
        waited = sum(one.parts[COMMUNICATION] for one in steps)
        if took < (ended - began) / 2:
            continue
        shown = ""
        if waited < WAITING * took:
            # NCCL's collectives return at once: the host waits elsewhere for them, and only kernels tell what for
            number, share = _collective_kernels(model, began, ended)
            if share < WAITING:
                continue
            shown = f"for at least {share:.0%} of profiler window {number} no kernels but those of collectives ran (NCCL)"
        tensor = _known([one.tensor_activity for one in busy])
        if tensor and median(tensor) > OVERLAP:
            continue
        low, high = min(_known([one.utilization for one in busy])), max(_known([one.utilization for one in busy]))
        read = f"{high:.0f}%" if round(low) == round(high) else f"{low:.0f}-{high:.0f}%"
        evidence = [
            f"utilization {read} for {(ended - began) / 1e9:.0f} s: a kernel was resident, no more (NVML)",
            shown or f"{waited / took:.0%} of the time of {many(len(steps), 'step')} in collectives (the hook's timers)",
        ]
        if sm := _known([one.sm_activity for one in busy]):
            evidence.append(f"SM activity {median(sm):.0f}%" + (f", tensor {median(tensor):.0f}%" if tensor else "") + " (GPM)")
        who, more, step = _who_waits(model, compared, began, ended, () if shown else compared)
        title = f"GPU {gpu.index} reads {read} while {who} in collectives"
        cost_s = None if shown else waited / 1e9
        found.append(Finding("gpu_waiting", title, "", cost_s, (*evidence, *more), step, about=_gpu(gpu.index)))
    return found


def _collective_kernels(model: Model, began: int, ended: int) -> tuple[int, float]:
    """Of the latest profiler window between these times: its number, and the least part of it in which the device that did most
    ran nothing but kernels of NCCL. (0, 0.0) where there is none."""
    for window in reversed(model.windows):
        seen = model.kernels.get(window.number)
        within = (
            window.begin_ns is not None and window.end_ns is not None and began <= window.begin_ns <= window.end_ns <= ended
        )
        if seen is None or not within or not seen.busy or seen.end_ns <= seen.begin_ns:
            continue
        device, busy_ns = max(seen.busy, key=lambda one: one[1])
        rows = [(row[0].lower().startswith(NCCL), row[7]) for row in seen.rows if row[5] == device]
        collectives, others = (sum(ns for is_one, ns in rows if is_one == which) for which in (True, False))
        alone_ns = min(collectives, busy_ns - others)  # the others may overlap each other, too
        return window.number, max(0.0, min(1.0, alone_ns / (seen.end_ns - seen.begin_ns)))
    return 0, 0.0


def _who_waits(
    model: Model, compared: Sequence[Lateness], began: int, ended: int, telling: Sequence[Lateness]
) -> tuple[str, list[str], str]:
    """("all 4 ranks wait", more evidence, the next step) for the time in which this rank does.

    `telling`: those of `compared` whose ranks tell how long they were in collectives.
    """
    own, size = model.target.rank, model.target.world_size
    told = [one.in_collectives(began, ended, own) for one in telling] if own is not None else []
    told = [one for one in told if len(one) > 1]
    step = who_is_late(model, compared)
    if own is None or len(told) != 1:  # of two jobs that have a rank of this number, it is not known which is this one's
        who = "the job waits" if own is None else f"rank {own} waits"
        return who, [] if own is None else ["this rank's own steps only: the others are not compared with it"], step
    shares = told[0]
    known = {rank: share for rank, share in shares.items() if share is not None}
    working = {rank: share for rank, share in known.items() if share < WAITING}
    unknown = len(shares) - len(known)
    more = [f"{many(unknown, 'rank')} told too few steps of that time"] if unknown else []
    if working:
        least = sorted(working, key=lambda rank: working[rank])[:4]
        listed = ", ".join(f"rank {rank} {working[rank]:.0%}" for rank in least)
        rest = f" and {len(working) - len(least)} more" if len(working) > len(least) else ""
        more.insert(0, f"not so the ranks that it may wait for: {listed}{rest} of their steps in collectives")
        return f"rank {own} waits", more, f"look at rank {least[0]}: what it does while the others wait"
    low, high = min(known.values(), default=0.0), max(known.values(), default=0.0)
    more.insert(0, f"each rank spends {low:.0%} to {high:.0%} of its steps there")
    every = not unknown and len(known) == size
    who = f"all {len(known)} ranks wait" if every else f"all {len(known)} ranks that are compared wait"
    return who, more, "every rank waits, so none is late: look at the network, and at py-spy dump for what hangs"


def _held_back(model: Model) -> list[Finding]:
    found = []
    for gpu in of_job(model.surroundings):
        latest = _readings(model, gpu.index)[-60:]
        reasons = [held_back(one) for one in latest]
        held = [one for one in reasons if one]
        if len(latest) < LEAST_READINGS or len(held) < OFTEN * len(latest):
            continue
        names = ", ".join(dict.fromkeys(name for one in held for name in one))
        evidence = [f"in {len(held)} of the last {many(len(latest), 'reading')}: {names} (NVML, clock event reasons)"]
        clocks = _known([one.sm_clock_mhz for one in latest])
        if clocks and latest[-1].sm_clock_max_mhz:
            evidence.append(f"SM clock {median(clocks):.0f} of {latest[-1].sm_clock_max_mhz:.0f} MHz (NVML)")
        step = "look at its cooling and its power limit (nvidia-smi -q -d PERFORMANCE,POWER,TEMPERATURE)"
        title = f"GPU {gpu.index} is held back: {names}"
        found.append(Finding("gpu_held_back", title, "", None, tuple(evidence), step, about=_gpu(gpu.index)))
    return found


def _broken(model: Model) -> list[Finding]:
    around = model.surroundings
    found = []
    for index in sorted(around.gpus):
        gpu = around.gpus[index]
        if gpu.lost is not None:
            step = "see the kernel's log (dmesg | grep -i xid); the GPU has to be reset, or the machine started anew"
            evidence = (f"{gpu.lost} (NVML)",)
            found.append(Finding("gpu_lost", f"GPU {index} is lost", "", None, evidence, step, about=_gpu(index)))
        first = around.gpu_tracks[index].ecc_first
        if first is not None and gpu.ecc_uncorrected is not None and gpu.ecc_uncorrected > first:
            grew = many(gpu.ecc_uncorrected - first, "error")
            evidence = (f"{grew} while watched, {gpu.ecc_uncorrected} since the driver was loaded (NVML)",)
            step = "results may be wrong: end the job at its next checkpoint and have the GPU reset (nvidia-smi -q -d ECC)"
            title = f"GPU {index} has memory errors that ECC could not correct"
            found.append(Finding("gpu_ecc", title, "", None, evidence, step, about=_gpu(index)))
    for (where, number), times in around.xid_counts.items():
        gpu_words = "a GPU" if where is None else f"GPU {where}"
        step = f"look XID {number} up in NVIDIA's list, and see the kernel's log (dmesg | grep -i xid) for the process"
        evidence = (f"told {many(times, 'time')} while watched (NVML events)",)
        title = f"the driver reports XID {number} on {gpu_words}: {xid_words(number)}"
        found.append(Finding("xid", title, "", None, evidence, step, about=_gpu(where)))
    return found


def _full(model: Model) -> list[Finding]:
    """The job's allocator had to give its cache back, or found no memory, while it was watched."""
    found = []
    for device, pool in model.surroundings.pools.items():
        first = model.surroundings.pools_first[device]
        retries, ooms = _grew(first.retries, pool.retries), _grew(first.ooms, pool.ooms)
        if not retries and not ooms:
            continue
        evidence = [f"reserved {pool.reserved_bytes / 2**30:.1f} GiB, allocated {pool.allocated_bytes / 2**30:.1f} GiB (torch)"]
        if retries:
            evidence.append(f"{many(retries, 'time')} all cached blocks were given back to find room (num_alloc_retries)")
        if ooms:
            evidence.append(f"{many(ooms, 'time')} there was no room at all (num_ooms)")
        step = "a smaller batch, or PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True where much of the pool is free and split"
        gpu = next((job.index for job in of_job(model.surroundings) if job.pool is pool), None)
        title = f"the memory of the job's device {device} is full"
        found.append(Finding("gpu_full", title, "", None, tuple(evidence), step, about=_gpu(gpu)))
    return found


def _quota(model: Model) -> list[Finding]:
    first, last = model.surroundings.host_first, model.surroundings.host
    if first is None or last is None:
        return []
    periods, held = _grew(first.periods, last.periods), _grew(first.throttled_periods, last.throttled_periods)
    lost = (last.throttled_s - first.throttled_s) if last.throttled_s is not None and first.throttled_s is not None else 0.0
    if periods is None or held is None or periods < LEAST_PERIODS or held < THROTTLED * periods or lost < THROTTLED_S:
        return []
    evidence = [f"held back in {held:,} of {periods:,} periods, {lost:.1f} s in all (cpu.stat of the control group)"]
    if last.quota_cores is not None:
        evidence.append(f"the quota is {last.quota_cores:g} cores (its CPU limits)")
    step = "raise the CPU limit of the container or of the group, or run fewer threads and workers in it"
    title = "the CPU quota of its control group holds the job back"
    return [Finding("cpu_quota", title, "", None, tuple(evidence), step, about=About("host", ""))]


def _starved(model: Model) -> list[Finding]:
    around = model.surroundings
    waits = _known(list(around.wait_rate_history)[-STARVED_READINGS:])
    uses = _known(list(around.cpu_history)[-STARVED_READINGS:])
    if len(waits) < STARVED_READINGS or not uses:
        return []
    waited, used = median(waits), median(uses) / 100
    if waited < STARVED_CORES or waited <= used:
        return []
    evidence = (f"its threads waited for {waited:.1f} cores and had {used:.1f}, in the median (/proc/PID/task/*/schedstat)",)
    step = "give the job cores of its own, or set fewer threads (OMP_NUM_THREADS, loader workers)"
    title = "the job waits for cores more than it runs"
    return [Finding("cpu_starved", title, "", None, evidence, step, about=About("host", ""))]


def _memory(model: Model) -> list[Finding]:
    first, last = model.surroundings.host_first, model.surroundings.host
    if first is None or last is None:
        return []
    kills = _grew(first.oom_kills, last.oom_kills)
    limit, used, own = last.memory_limit_bytes, last.memory_group_bytes, last.rss_bytes
    near = limit and used is not None and own is not None and used >= NEAR * limit and own >= OWN * limit
    if not near and not kills:
        return []
    evidence = []
    if kills:
        evidence.append(f"{many(kills, 'kill')} for want of memory in the group while watched (memory.events)")
    if limit and used is not None and own is not None:
        words = f"{used / 2**30:.1f} of {limit / 2**30:.1f} GiB in use in the control group"
        evidence.append(f"{words}; the job's own memory is {own / 2**30:.1f} GiB")
    title = f"the job's control group {'has run' if kills else 'is nearly'} out of memory"
    step = "raise its memory limit, or use fewer loader workers"
    return [Finding("oom_near", title, "", None, tuple(evidence), step, about=About("host", ""))]


def _gpu(index: int | None) -> About:
    """That GPU, or the host where it is not known which."""
    return About("host", "") if index is None else About("gpu", f"gpu {index}")


def _grew(before: int | None, after: int | None) -> int | None:
    """None where it is not known, or another counter is read now."""
    return None if before is None or after is None or after < before else after - before


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]
