"""Which rank of which job a process is, as its environment says: the one it was started with, which is all that shows outside.

A program that sets its rank later (the ranks of `torch.multiprocessing.spawn` do) is not known by it from outside.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple


class Place(NamedTuple):
    """A process's place in a job; what is not known is None."""

    rank: int | None
    local_rank: int | None
    world_size: int | None
    job: str | None
    """A name that a person gave, or the scheduler's number."""


NOWHERE = Place(None, None, None, None)

# (rank, local rank, world size), in the order in which they are believed: a launcher's own words before the scheduler's
_WORDS = (
    ("RANK", "LOCAL_RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_SIZE"),
    ("HOROVOD_RANK", "HOROVOD_LOCAL_RANK", "HOROVOD_SIZE"),
    ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"),
)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NAMES = (("SLURM_JOB_NAME", "SLURM_JOB_ID"), ("PBS_JOBNAME", "PBS_JOBID"), ("LSB_JOBNAME", "LSB_JOBID"))


def place(environment: Mapping[str, str]) -> Place:
    """Rank, local rank, world size and job name, from the environment of a process."""
    words = _WORDS[:-1] if _is_batch_script(environment) else _WORDS
    for rank_word, local_word, size_word in words:
        rank = number(environment.get(rank_word))
        local = number(environment.get(local_word))
        size = number(environment.get(size_word))
        if rank is None and local is not None and size is not None and environment.get("NODE_RANK") == "0":
            rank = local  # Lightning tells its processes no more; on the first node the two are the same
        if rank is not None:
            return Place(rank, local, size, job_name(environment))
    return Place(None, number(environment.get("LOCAL_RANK")), number(environment.get("WORLD_SIZE")), job_name(environment))


def _is_batch_script(environment: Mapping[str, str]) -> bool:
    """Whether it runs in a Slurm batch script outside of any `srun`: its SLURM_PROCID is the script's then, always 0."""
    return environment.get("ENVIRONMENT") == "BATCH" and "SLURM_STEP_ID" not in environment


def job_name(environment: Mapping[str, str]) -> str | None:
    """The job's name: that of torchrun if somebody chose it, else the scheduler's, else torchrun's own."""
    run = environment.get("TORCHELASTIC_RUN_ID") or None
    if run == "none":  # torchrun's default
        run = None
    if run is not None and not _UUID.fullmatch(run):
        return run
    for name_word, id_word in _NAMES:
        name, identity = environment.get(name_word), environment.get(id_word)
        if name or identity:
            return f"{name} ({identity})" if name and identity else name or identity
    return run


def number(text: str | None) -> int | None:
    """A whole number from 0 on; None for anything else."""
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 10 else None
