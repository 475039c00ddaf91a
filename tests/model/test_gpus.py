"""GPUs in the model: tracks, silence, the job's part, marks."""

from __future__ import annotations

from typing import Any

from tuimon import events as ev
from tuimon.app.still import still
from tuimon.model import Model
from tuimon.model.gpu_marks import marks
from tuimon.model.gpus import of_job, pool_of

S = 1_000_000_000
GIB = 2**30


def gpu(t_s: int, index: int = 0, **more: Any) -> ev.GpuSampled:
    """A reading."""
    return ev.GpuSampled(t_s * S, index, "NVIDIA H200", 97.0, 60 * GIB, 140 * GIB, **more)


def pool(**more: Any) -> ev.PoolSampled:
    """Ten GiB."""
    told = {"device": 0, "uuid": None, "pci_bus_id": None, "allocated_bytes": 8 * GIB, "reserved_bytes": 10 * GIB}
    return ev.PoolSampled(S, **{**told, **more})


def model_of(*events: ev.Event) -> Model:
    """What has taken them in."""
    model = Model()
    model.apply(events)
    return model


def test_silence_of_one_gpu_is_ended_by_itself_alone() -> None:
    model = model_of(ev.GpuSilent(S, 1, 3.0, "a"), ev.GpuSilent(S, 2, 5.0, "b"), gpu(2, 0))
    assert model.surroundings.silent is not None and model.surroundings.silent.index == 2
    model.apply([gpu(3, 2)])
    assert model.surroundings.silent.index == 1
    model.apply([ev.GpuSilent(4 * S, 1, None, "")])
    assert model.surroundings.silent is None


def test_parts_go_with_the_mode() -> None:
    part = ev.MigSampled(S, 0, 1, "MIG 1g.18gb", "1g.18gb", None, 3, 0, 5, 6)
    model = model_of(gpu(1, mig_mode=True), part)
    assert list(model.surroundings.mig) == [(0, 1)]
    model.apply([gpu(2, mig_mode=None)])
    assert model.surroundings.mig
    model.apply([gpu(3, mig_mode=False)])
    assert not model.surroundings.mig


def test_a_part_that_was_removed_goes() -> None:
    def part(t_s: int, number: int) -> ev.MigSampled:
        return ev.MigSampled(t_s * S, 0, number, "MIG 1g.18gb", "1g.18gb", None, 3, 0, 5, 6)

    model = model_of(gpu(1, mig_mode=True), part(1, 0), part(1, 1), gpu(2, mig_mode=True), part(2, 0))
    model.apply([gpu(3, mig_mode=True), part(3, 0)])  # once it may have been slow
    assert list(model.surroundings.mig) == [(0, 0), (0, 1)]
    model.apply([gpu(4, mig_mode=True), part(4, 0)])
    assert list(model.surroundings.mig) == [(0, 0)]
    model.apply([ev.MigSampled(5 * S, 0, 0, "", "", None, None, None, None, None, missing=(("part", "it is gone"),))])
    assert not model.surroundings.mig


def test_a_still_stands() -> None:
    threads = [ev.ThreadSampled(at * S, 7, None, float(at)) for at in (1, 3)]
    model = model_of(gpu(1), ev.XidSeen(S, 0, 79), pool(), *threads)
    image = still(model).surroundings
    model.apply([gpu(2), ev.XidSeen(S, 0, 80), pool(device=1), ev.ThreadSampled(6 * S, 7, None, 9.0)])
    assert len(image.gpu_history[0]) == len(image.gpu_tracks[0].power) == image.gpu_tracks[0].readings == 1
    assert image.gpu_history[0] is image.gpu_tracks[0].utilization
    assert len(image.xids) == len(image.pools) == 1 and image.threads[7].share == 1.0


def test_a_pool_is_matched_by_uuid_then_by_bus_id() -> None:
    there = gpu(1, uuid="GPU-ab", pci_bus_id="00000000:3B:00.0", job_here=True)
    assert pool_of(there, {0: pool(uuid="ab")}) is not None
    assert pool_of(there, {0: pool(pci_bus_id="0000:3b:00")}) is not None
    assert pool_of(there, {0: pool(uuid="cd", pci_bus_id="0000:3b:00")}, alone=True) is None
    assert pool_of(there, {0: pool()}) is None
    assert pool_of(there, {0: pool()}, alone=True) is not None


def test_a_job_in_a_part_of_a_gpu_is_on_that_gpu_with_its_pool() -> None:
    def part(number: int, **more: Any) -> ev.MigSampled:
        return ev.MigSampled(
            S, 0, number, "MIG 1g.18gb", "1g.18gb", f"MIG-aa-{number}", 3 + number, 0, 5 * GIB, 16 * GIB, **more
        )

    # the driver does not tell the processes of the whole GPU; torch has the uuid of the part, and calls it a GPU's
    there = gpu(1, uuid="GPU-ab", pci_bus_id="00000000:3B:00.0", mig_mode=True)
    parts = [part(0), part(1, process_memory_bytes=11 * GIB)]
    (job,) = of_job(model_of(gpu(1, 1), there, *parts, pool(uuid="GPU-AA-1")).surroundings)
    assert (job.index, job.memory_bytes, job.how, job.outside_pool_bytes) == (0, 11 * GIB, "pid", GIB)
    assert job.pool is not None
    # also where it may not be seen which parts there are
    (unseen,) = of_job(model_of(there, pool(uuid="GPU-aa-1", pci_bus_id="0000:3b:00")).surroundings)
    assert unseen.pool is not None and unseen.memory_bytes is None


def test_where_the_pids_are_the_hosts_the_job_is_told_by_its_pool_only_if_one_fits() -> None:
    held = (ev.GpuProcess(900, 11 * GIB), ev.GpuProcess(901, 40 * GIB))
    (job,) = of_job(model_of(gpu(1, processes=held, job_here=True), pool()).surroundings)
    assert (job.memory_bytes, job.how, job.outside_pool_bytes, job.inferred) == (11 * GIB, "pool", GIB, True)
    both = (ev.GpuProcess(900, 11 * GIB), ev.GpuProcess(901, 11 * GIB))
    (job,) = of_job(model_of(gpu(1, processes=both, job_here=True), pool()).surroundings)
    assert job.memory_bytes is None and job.how == ""


def test_an_open_device_is_the_jobs_only_where_nothing_better_is_known() -> None:
    opened = [gpu(1, index, job_here=True) for index in range(2)]
    assert [one.index for one in of_job(model_of(*opened).surroundings)] == [0, 1]
    held = gpu(2, 1, job_here=True, process_memory_bytes=GIB, job_how="pid")
    assert [one.index for one in of_job(model_of(*opened, held).surroundings)] == [1]


def test_marks_have_a_sign_each() -> None:
    assert marks(gpu(1, temperature_c=60.0, throttle=("idle", "power cap"), sm_clock_mhz=1900.0, sm_clock_max_mhz=1980.0)) == ()
    bad = marks(gpu(1, temperature_c=91.0, ecc_uncorrected=1))
    assert [(one.sign, one.kind) for one in bad] == [("!!", "ecc"), ("!!", "hot")]
    slow = gpu(1, temperature_c=91.0, throttle=("thermal (hardware)", "power cap"), sm_clock_mhz=900.0, sm_clock_max_mhz=1980.0)
    assert [one.words for one in marks(slow)] == ["held back: thermal (hardware), power cap"]
    xids = [ev.XidSeen(S, 0, 79), ev.XidSeen(S, 1, 13)]
    assert [one.words for one in marks(gpu(2, lost="gone"), xids=xids)] == ["lost: gone", "XID 79"]
    assert marks(gpu(2000), xids=xids) == ()
