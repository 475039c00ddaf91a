"""What the machine did to a step, from readings that are further apart than steps are long."""

from __future__ import annotations

import pytest

from tuimon import events as ev
from tuimon.model.slow.outside import MOST_READINGS, MOST_THREADS, Outside, Outsiders

MS = 1_000_000
TID = 5


def read(*readings: tuple[float, float], native: int = TID, **more: object) -> Outsiders:
    """Readings of a thread: (at ms, has waited ms in all)."""
    found = Outsiders()
    for at, waited in readings:
        found.thread(ev.ThreadSampled(round(at * MS), native, waited / 1e3, 0.0, **more))  # type: ignore[arg-type]
    return found


def look(found: Outsiders, begin: float, end: float, usual: float = 2.0, cpu: tuple[tuple[float, float], ...] = ()) -> Outside:
    clock = [(round(at * MS), round(used * MS)) for at, used in cpu]
    return found.look(TID, round(begin * MS), round(end * MS), round(usual * MS), clock)


def waited(outside: Outside) -> float | None:
    return None if outside.waited_ns is None else outside.waited_ns / MS


QUIET = [(float(at), 0.0) for at in range(0, 1000, 100)]


def test_nothing_read_is_nothing_known() -> None:
    assert look(Outsiders(), 10, 20) == Outside()
    assert waited(look(read((500, 0)), 10, 20)) is None  # first read after it
    assert waited(look(read((0, 0), (5, 0)), 10, 20)) is None  # last read before it


def test_a_wait_within_the_bracket_is_the_steps_up_to_its_length() -> None:
    found = read(*QUIET, (1000, 0), (1100, 50))
    assert waited(look(found, 1020, 1080)) == 50
    assert waited(look(found, 1020, 1050)) == 30


def test_readings_within_the_step_are_certain() -> None:
    found = read(*QUIET, (1000, 0), (1100, 60), (1200, 160), (1300, 170))
    assert waited(look(found, 1050, 1250)) == 50 + 100 + 10


def held(*readings: tuple[float, float, str]) -> Outsiders:
    """Readings of a thread: (at ms, has run ms in all, by what it is held)."""
    found = Outsiders()
    for at, ran, by in readings:
        found.thread(ev.ThreadSampled(round(at * MS), TID, 0.0, ran / 1e3, stopped=by))
    return found


def test_for_how_long_it_was_held() -> None:
    found = held((0, 0, ""), (100, 30, "signal"), (200, 30, "signal"), (300, 80, ""), (400, 180, ""))
    outside = look(found, 10, 390)
    assert (outside.stopped_ns, outside.stopped_by) == (70 * MS + 100 * MS + 50 * MS, "signal")
    assert outside.evidence[0].startswith("in state T, stopped, in 2 of 3 readings within it (/proc/PID/task/5/stat")
    assert look(found, 10, 390, cpu=((10, 0), (390, 200))).stopped_ns == 180 * MS  # for longer it was on no core
    assert look(found, 210, 390).stopped_ns == 0  # held in a step before
    assert look(found, 310, 390) == look(held((300, 80, ""), (400, 180, "")), 310, 390)
    traced = look(held((0, 0, ""), (100, 0, "tracer"), (200, 100, "")), 10, 190)
    assert traced.stopped_by == "tracer" and "held by a tracer" in traced.evidence[0]


def test_a_thread_that_sleeps_was_not_held_all_the_time_around_the_one_reading_that_saw_it_so() -> None:
    """A tracer that looks at a job holds it for a moment; what the job waits for lies in the same tenth of a second."""
    before = [(float(at), at / 10, "") for at in range(0, 2100, 100)]  # on a core for a tenth of its time
    once = look(held(*before, (2100, 200, "tracer"), (2200, 200, ""), (2300, 210, "")), 2005, 2295)
    assert once.stopped_ns == pytest.approx(0.1 * (95 + 100) * MS) and "in 1 of 2 readings" in once.evidence[0]
    often = look(held(*before, *((at, 200, "signal") for at in range(2100, 2600, 100)), (2600, 200, "")), 2005, 2595)
    assert often.stopped_ns == pytest.approx((0.1 * 95 + 400 + 0.1 * 95) * MS)
    busy = [(float(at), float(at), "") for at in range(0, 2100, 100)]
    assert look(held(*busy, (2100, 2030, "signal"), (2200, 2080, "")), 2005, 2195).stopped_ns == pytest.approx((70 + 50) * MS)


def test_the_cpu_clock_caps_it() -> None:
    found = read(*QUIET, (1000, 0), (1100, 50))
    running = look(found, 1020, 1080, cpu=((1020, 0), (1080, 55)))
    assert waited(running) == 5 and running.off_ns == 5 * MS
    assert "on a core for 55.0 ms of 60.0 ms" in running.evidence[0]
    assert look(found, 1020, 1080, cpu=((1020, 0),)).off_ns is None
    half = look(found, 1020, 1080, cpu=((1020, 0), (1060, 40)))  # of the last 20 ms nothing is known
    assert half.off_ns == 20 * MS


def test_what_is_usual_comes_off_the_rest_of_the_bracket() -> None:
    busy = [(float(at), at / 2) for at in range(0, 2100, 100)]
    found = read(*busy)
    assert waited(look(found, 1010, 1020)) == pytest.approx(5, abs=0.1)
    outside = look(found, 1010, 1020, usual=2)
    assert outside.usual_wait_ns == pytest.approx(1 * MS, rel=0.01) and outside.wait_rate == pytest.approx(0.5)


def test_an_id_that_was_given_away_is_no_reading() -> None:
    assert waited(look(read((0, 500), (100, 3)), 10, 20)) is None


def test_faults_and_waits_for_devices_are_evidence() -> None:
    found = read((0, 0), major_faults=10, io_wait_s=1.0)
    found.thread(ev.ThreadSampled(100 * MS, TID, 0.0, 0.0, 410, None, 1.08))
    outside = look(found, 10, 90)
    assert (outside.major_faults, outside.io_wait_ns) == (400, pytest.approx(80 * MS, rel=0.01))
    assert any("400 major page faults" in line and "/proc/PID/task/5/stat" in line for line in outside.evidence)


def test_the_other_threads_of_the_job() -> None:
    found = Outsiders()
    for at, waited in [*((float(at), 0.0) for at in range(0, 1000, 100)), (1000.0, 0.0), (1100.0, 70.0)]:
        found.thread(ev.ThreadSampled(round(at * MS), TID, min(1, waited) / 1e3, at / 1e3 * 0.9))
        found.thread(ev.ThreadSampled(round(at * MS), 6, waited / 1e3, at / 1e3 * 0.8))  # of its team
        found.thread(ev.ThreadSampled(round(at * MS), 7, waited / 1e3 + 0.02, at / 1e3 * 0.01))  # hardly ever runs
    outside = look(found, 1010, 1090)
    assert outside.waited_ns == MS and outside.others_waited_ns == 70 * MS
    del found.threads[6]
    assert look(found, 1010, 1090).others_waited_ns is None


def test_quota_swap_and_pressure() -> None:
    found = Outsiders()
    found.host(ev.HostSampled(0, None, None, None, None, None, None, swap_bytes=0, throttled_s=1.0))
    pressed = (("cpu", 50.0), ("memory", 31.0), ("io", 2.0))
    found.host(
        ev.HostSampled(
            1000 * MS, None, None, None, None, None, None, swap_bytes=512_000_000, throttled_s=1.25, pressure=pressed
        )
    )
    outside = look(found, 100, 200)
    assert outside.throttled_s == 0.25
    told = " ".join(outside.evidence)
    assert (
        "512 MB swapped out" in told
        and "memory pressure 31%" in told
        and "io pressure" not in told
        and "throttled for 0.25 s" in told
    )


@pytest.mark.parametrize(
    ("throttle", "clock", "told"),
    [
        (("thermal (hardware)",), 1100.0, "GPU 0: thermal (hardware), 1.10 of 1.90 GHz"),
        (("thermal (hardware)",), 1850.0, ""),
        (("idle",), 300.0, ""),
        ((), 1100.0, ""),
    ],
)
def test_a_gpu_is_held_back_only_with_a_reason_and_a_lower_clock(throttle: tuple[str, ...], clock: float, told: str) -> None:
    found = Outsiders()
    for second in range(5):
        found.gpu(ev.GpuSampled(second * 1000 * MS, 0, "H200", 90.0, 0, 0, sm_clock_mhz=1900.0, sm_clock_max_mhz=1980.0))
    found.gpu(ev.GpuSampled(5000 * MS, 0, "H200", 90.0, 0, 0, sm_clock_mhz=clock, sm_clock_max_mhz=1980.0, throttle=throttle))
    assert look(found, 4200, 4900).gpu == told


def test_it_is_settled_when_the_thread_was_read_after_it() -> None:
    found = read((0, 0), (100, 0))
    assert found.settled(TID, 90 * MS) and not found.settled(TID, 110 * MS)
    assert found.settled(None, 110 * MS) and found.settled(TID + 1, 110 * MS)  # nobody reads that one


def test_memory_is_bounded() -> None:
    found = Outsiders()
    for at in range(MOST_THREADS + 10):
        found.thread(ev.ThreadSampled(at, at, 0.0, 0.0))
    for at in range(MOST_READINGS + 10):
        found.thread(ev.ThreadSampled(1000 + at, 3, 0.0, 0.0))
    assert len(found.threads) == MOST_THREADS and max(map(len, found.threads.values())) <= MOST_READINGS
