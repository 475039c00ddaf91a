"""Which GPUs the job uses, what it holds there, and what its own allocator says of that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tuimon.events import GpuProcess, GpuSampled, MigSampled, PoolSampled
from tuimon.model.surroundings import Surroundings

CONTEXT_BYTES = 2 << 30
"""A process holds up to so much beside its pool: the context, libraries, buffers of NCCL."""


@dataclass(frozen=True, slots=True)
class JobGpu:
    """A GPU that the job uses."""

    index: int
    memory_bytes: int | None
    """What the job holds there, as the driver lists it."""
    how: str
    """As `GpuSampled.job_how`: "pid", or, inferred, "only" and "pool"; "" where it is not known."""
    pool: PoolSampled | None
    outside_pool_bytes: int | None
    """What it holds beside its pool; None where one of the two is not known."""

    @property
    def inferred(self) -> bool:
        """Whether `memory_bytes` is the memory of a process that is taken for the job."""
        return self.how in ("only", "pool")


def of_job(surroundings: Surroundings) -> list[JobGpu]:
    """The GPUs that the job is known to use, by index; where none is, those that it has open."""
    alone = len(surroundings.pools) == 1 and len([gpu for gpu in surroundings.gpus.values() if gpu.job_here]) == 1
    found = []
    parts: dict[int, list[MigSampled]] = {index: [] for index in surroundings.gpus}
    for part in surroundings.mig.values():
        parts.setdefault(part.gpu, []).append(part)
    pools = {i: pool_of(gpu, surroundings.pools, parts[i], alone=alone) for i, gpu in surroundings.gpus.items()}
    held = {i: _in_parts(parts[i]) for i in surroundings.gpus}
    # CUDA opens all the devices that it may see, so that it is open says something only where nothing better is known
    sure = {i for i, gpu in surroundings.gpus.items() if pools[i] or gpu.job or gpu.process_memory_bytes or held[i]}
    for index in sorted(sure or {i for i, gpu in surroundings.gpus.items() if gpu.job_here}):
        gpu, pool = surroundings.gpus[index], pools[index]
        memory, how = gpu.process_memory_bytes, str(gpu.job_how)
        if memory is None and held[index] is not None:  # of the whole GPU the driver may not tell it
            memory, how = held[index], "pid"
        if memory is None and pool is not None and (process := by_pool(gpu, pool)) is not None:
            memory, how = process.memory_bytes, "pool"
        outside = memory - pool.reserved_bytes if memory is not None and pool is not None else None
        found.append(JobGpu(index, memory, how, pool, outside if outside is None or outside >= 0 else None))
    return found


def _in_parts(parts: Iterable[MigSampled]) -> int | None:
    """What the job holds in the parts of a GPU; None where it is listed in none."""
    sizes = [part.process_memory_bytes for part in parts if part.process_memory_bytes is not None]
    return sum(sizes) if sizes else None


def pool_of(
    gpu: GpuSampled, pools: Mapping[int, PoolSampled], parts: Iterable[MigSampled] = (), *, alone: bool = False
) -> PoolSampled | None:
    """The job's pool on a GPU, or on one of its MIG devices: by uuid, then by bus id. `alone`: the job has one pool and uses
    one GPU, this one if it is there; then it needs neither."""
    theirs = {_uuid(uuid) for uuid in (gpu.uuid, *(part.uuid for part in parts)) if uuid}
    for pool in pools.values():
        if pool.uuid and _uuid(pool.uuid) in theirs:
            return pool
    for pool in pools.values():
        apart = pool.uuid and gpu.uuid and not gpu.mig_mode  # else it may be the uuid of a part
        if not apart and pool.pci_bus_id and gpu.pci_bus_id and _bus(pool.pci_bus_id) == _bus(gpu.pci_bus_id):
            return pool
    if alone and gpu.job_here:
        pool = next(iter(pools.values()))
        known = (pool.uuid and gpu.uuid) or (pool.pci_bus_id and gpu.pci_bus_id)
        return None if known else pool  # known: and they are not the same
    return None


def by_pool(gpu: GpuSampled, pool: PoolSampled) -> GpuProcess | None:
    """The one process of a GPU whose memory is that of the job's pool and what comes with it; None where none or several are.

    For containers: the driver lists the host's pids there, and the job has another one."""
    low, high = pool.reserved_bytes, pool.reserved_bytes + CONTEXT_BYTES
    fitting = [one for one in gpu.processes if one.memory_bytes is not None and low <= one.memory_bytes <= high]
    return fitting[0] if len(fitting) == 1 and not gpu.job and gpu.job_here is not False else None


def fragmentation(pool: PoolSampled) -> float | None:
    """The part of the pool that is free and cannot be given back, as a part of its block is in use. 0 to 1."""
    if pool.inactive_split_bytes is None or pool.reserved_bytes <= 0:
        return None
    return pool.inactive_split_bytes / pool.reserved_bytes


def _uuid(text: str) -> str:
    """torch writes the uuid of a MIG device as that of a GPU."""
    return text.lower().removeprefix("gpu-").removeprefix("mig-")


def _bus(text: str) -> str:
    """One form of an address: "00000000:3B:00.0" and "0000:3b:00.0" are the same; torch may leave the function out."""
    parts = text.lower().partition(".")[0].split(":")
    return ":".join([(parts[0].lstrip("0") or "0") if len(parts) == 3 else "0", *parts[-2:]])
