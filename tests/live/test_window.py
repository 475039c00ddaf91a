"""Profiler windows in real jobs: what they tell, and that nothing a job does with its own profiler is harmed by one.

To open a window beside a profiler of the job's ends the job with a segmentation fault; so each program here has to reach its
end with status 0, which `run` asserts.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.hooked import DYNAMO, TORCH, Outcome, run
from tuimon.events import KernelsSeen

pytestmark = pytest.mark.live

JOB = """
import json, os, tempfile, time, torch
import torch.autograd.profiler as legacy
from torch.profiler import profile, schedule, ProfilerActivity
from tuimon.hook import window as _window
torch.set_num_threads(1)
_window.BEFORE_S = 0.3
CPU = [ProfilerActivity.CPU]
folder = tempfile.mkdtemp(dir=".") if False else tempfile.mkdtemp()
x = torch.randn(16, 16)
net = torch.nn.Linear(16, 16)
optimizer = torch.optim.SGD(net.parameters(), 0.01)
said = {}
def step():
    optimizer.zero_grad(); net(x).sum().backward(); optimizer.step()
def send(**message):
    _hooked.monitor.sendall(_wire.json_frame(message))
def ask(number, steps=3, most_s=5.0, **more):
    send(cmd="window", window=number, steps=steps, most_s=most_s, dir=more.get("dir", folder))
def told(number):
    "The states that tuimon was told of a window, so far."
    return [m["state"] for kind, body in _wire.Decoder().feed(open(OUT, "rb").read()) if kind == 1
            for m in [json.loads(body)] if m.get("k") == "window" and m["window"] == number]
def until(number, *states, work=step):
    deadline = time.monotonic() + 60
    while not set(told(number)) & set(states):
        assert time.monotonic() < deadline, (number, states, told(number))
        work()
def events_of(profile):
    return len(profile.profiler.kineto_results.events())
"""


def in_job(program: str, tmp_path: Path, after: tuple[str, ...] = TORCH) -> Outcome:
    return run(f"OUT = {str(tmp_path / 'frames')!r}\n" + JOB + program, tmp_path, after=after)


def windows(outcome: Outcome) -> dict[int, list[dict[str, Any]]]:
    """What was told of each window."""
    found: dict[int, list[dict[str, Any]]] = {}
    for message in outcome.messages:
        if message.get("k") == "window":
            found.setdefault(message["window"], []).append(message)
    return found


def last(outcome: Outcome) -> dict[int, tuple[str, str]]:
    """The last state of each window, and why."""
    return {number: (told[-1]["state"], told[-1]["why"]) for number, told in windows(outcome).items()}


def test_a_profiler_of_the_job_is_never_met(tmp_path: Path) -> None:
    """Recording, made, waiting, warming up, the older one: refused by name, and the job's own trace is whole."""
    outcome = in_job(
        """
found = {}
with profile(activities=CPU) as p:
    attach(); ask(1); until(1, "refused"); step(); detach()
found["recording"] = events_of(p)

p = profile(activities=CPU, schedule=schedule(wait=2, warmup=2, active=2))
attach(); ask(2); until(2, "refused"); detach()
with p:
    for i in range(6):
        attach(); ask(3 + i); until(3 + i, "refused"); step(); detach(); p.step()
found["scheduled"] = events_of(p)

with legacy.profile() as q:
    attach(); ask(10); until(10, "refused"); step(); detach()
found["legacy"] = len(q.kineto_results.events())

p = profile(activities=CPU); p.prepare_trace()
attach(); ask(11); until(11, "refused"); detach()
p.start_trace(); step(); p.stop_trace()
found["prepared"] = events_of(p)
legacy.KinetoStepTracker.erase_step_count("ProfilerStep")

attach(); ask(12); until(12, "closed"); detach()
print(json.dumps(found))
""",
        tmp_path,
    )
    ends = last(outcome)
    assert ends.pop(12) == ("closed", "")
    assert {state for state, _ in ends.values()} == {"refused"}
    assert "own profiler is recording" in ends[1][1] and "torch.profiler.profile of its own" in ends[2][1]
    assert all("tuimon replay FILE" in why for _, why in ends.values())
    assert all(count > 20 for count in outcome.values.values()), outcome.values
    assert not any(message["left"] for message in outcome.messages if message.get("k") == "detached")


def test_a_profiler_that_starts_in_a_window_finds_it_closed(tmp_path: Path) -> None:
    outcome = in_job(
        """
import warnings; warnings.simplefilter("ignore")
from torch.autograd import profiler_legacy
found = {}
number = 0
def opened():
    global number
    number += 1
    attach(); ask(number, steps=1000); until(number, "open")
    return number

for kind in ("plain", "scheduled", "prepared", "older"):
    opened()
    if kind == "plain":
        with profile(activities=CPU) as p: step(); step()
    elif kind == "scheduled":
        with profile(activities=CPU, schedule=schedule(wait=0, warmup=1, active=1, repeat=1)) as p:
            for _ in range(3): step(); p.step()
    elif kind == "prepared":
        p = torch.profiler.profiler._KinetoProfile(activities=CPU)
        p.prepare_trace(); step(); p.start_trace(); step(); p.stop_trace()
    if kind == "older":
        with legacy.profile() as q: step()
        found[kind] = len(q.kineto_results.events())
    else:
        found[kind] = events_of(p)
    until(number, "cancelled")
    ask(100 + number); until(100 + number, "refused")   # and for good
    detach()

opened()
with profiler_legacy.profile() as r: step()
found["legacy"] = len(r.function_events)
until(number, "cancelled")
detach()

attach(); ask(50); until(50, "closed"); detach()
print(json.dumps(found))
""",
        tmp_path,
    )
    ends = last(outcome)
    assert ends.pop(50) == ("closed", "")
    assert [state for number, (state, _) in sorted(ends.items())] == ["cancelled"] * 5 + ["refused"] * 4
    assert "starts a profiler of its own" in ends[1][1] and "the job profiles itself" in ends[101][1]
    assert all(count > 20 for count in outcome.values.values()), outcome.values
    cancelled = [told[-1] for number, told in windows(outcome).items() if number < 10]
    assert all(message["job_s"] > 0 for message in cancelled)
    assert not any(message["left"] for message in outcome.messages if message.get("k") == "detached")


def test_the_ends_of_a_hook_with_an_open_window(tmp_path: Path) -> None:
    """Detached, abandoned by tuimon, and left behind in a forked child: nothing records any more."""
    outcome = in_job(
        """
control = torch._C._autograd
before = {name: vars(legacy)[name] for name in ("_prepare_profiler", "_enable_profiler")}
found = {}
attach(); ask(1, steps=1000); until(1, "open"); detach()
found["detached"] = [vars(legacy)[name] is before[name] for name in before]
with profile(activities=CPU) as p: step()
found["then"] = events_of(p)

attach(); ask(2, steps=1000); until(2, "open")
child = os.fork()
if child == 0:
    step()
    memory = _window._memory()
    for _ in range(2000): x @ x
    grown = _window._memory() - memory
    with profile(activities=CPU) as p: step()
    os._exit(0 if events_of(p) > 20 and grown < 1 << 20 else 1)
found["child"] = os.waitpid(child, 0)[1]
found["still"] = _hooked.session.window._opened is not None
hooked = _hooked
hooked.monitor.shutdown(socket.SHUT_RDWR); hooked.server.join(60); hooked.reader.join(60)
found["abandoned"] = [vars(legacy)[name] is before[name] for name in before]
with profile(activities=CPU) as p: step()
found["then too"] = events_of(p)

attach(); ask(3); until(3, "closed")       # nobody reads its file, and tuimon goes
found["written"] = os.listdir(folder)
_hooked.monitor.shutdown(socket.SHUT_RDWR); _hooked.server.join(60); _hooked.reader.join(60)
found["swept"] = os.listdir(folder)
print(json.dumps(found))
""",
        tmp_path,
    )
    found = outcome.values
    assert found["detached"] == found["abandoned"] == [True, True]
    assert found["child"] == 0 and found["still"]
    assert found["then"] > 20 and found["then too"] > 20
    assert len(found["written"]) == 1 and found["swept"] == []


def test_a_window_tells_what_ran_what_it_cost_and_how_it_was_bounded(tmp_path: Path) -> None:
    outcome = in_job(
        """
found = {}
os.environ["NSYS_PROFILING_SESSION_ID"] = "1"
attach(); ask(1); until(1, "refused"); detach()
del os.environ["NSYS_PROFILING_SESSION_ID"]
os.environ["KINETO_USE_DAEMON"] = "1"
attach(); ask(2); until(2, "refused")
del os.environ["KINETO_USE_DAEMON"]
ask(3, dir="/nowhere"); until(3, "refused")
ask(4); ask(5); until(5, "refused"); until(4, "closed")
found["trace"] = json.load(open(os.path.join(folder, f"tuimon-window-{os.getpid()}-4.json")))
ask(6, steps=1000); until(6, "open"); send(cmd="window_cancel", window=6); until(6, "cancelled")
ask(7, most_s=0.3); until(7, "closed", work=lambda: time.sleep(0.01))      # no steps in it
memory, _window.MOST_MEMORY = _window.MOST_MEMORY, -1
ask(8, steps=1000); until(8, "closed")
_window.MOST_MEMORY = memory
_window.MOST_EVENTS = 1
ask(9, steps=1000); until(9, "closed")
detach()
print(json.dumps(found))
""",
        tmp_path,
    )
    ends = last(outcome)
    assert "Nsight Systems (NSYS_PROFILING_SESSION_ID)" in ends[1][1] and "dynolog" in ends[2][1]
    assert "the job cannot write to /nowhere" in ends[3][1] and "window 4 is not over yet" in ends[5][1]
    assert ends[6] == ("cancelled", "as asked")
    assert ends[7] == ("closed", "0.3 s were over before 3 steps")
    assert "memory grew by" in ends[8][1] and "as many events as a window may have" in ends[9][1]
    waiting, opened, closed = windows(outcome)[4]
    assert [waiting["state"], opened["state"], closed["state"]] == ["waiting", "open", "closed"]
    assert closed["steps"] >= 3 and closed["job_s"] > 0 and closed["slower"] > 0
    assert closed["begin_ns"] < closed["end_ns"]
    events = outcome.values["trace"]["traceEvents"]
    shapes = [event["args"].get("Input Dims") for event in events if event.get("name") == "aten::addmm"]
    assert len(shapes) >= 3 and shapes[0][:3] == [[16], [16, 16], [16, 16]]
    seen = {event.window: event for event in outcome.events if isinstance(event, KernelsSeen)}
    (products,) = [row for row in seen[4].rows if row[1] == "aten::addmm"]
    assert products[6] == seen[4].steps == closed["steps"], "cut to whole steps, of one product each"
    assert closed["begin_ns"] <= seen[4].begin_ns < seen[4].end_ns <= closed["end_ns"]
    assert not any(message["left"] for message in outcome.messages if message.get("k") == "detached")


CYCLES = int(os.environ.get("TUIMON_CYCLES", "20"))
"""How often the two start at the same time; raise it to look for what happens seldom."""


def test_windows_and_profilers_that_start_at_the_same_time(tmp_path: Path) -> None:
    outcome = in_job(
        f"CYCLES = {CYCLES}\n"
        + """
import random
_window.BEFORE_S = 0.0
random.seed(0)
found = []
for n in range(CYCLES):
    attach(); ask(n, steps=1000)
    kind = n % 4
    if kind == 3:
        p = profile(activities=CPU, schedule=schedule(wait=0, warmup=1, active=1, repeat=1))
    deadline = time.monotonic() + random.random() * 0.012
    while time.monotonic() < deadline:
        x @ x
    if kind == 0:
        with profile(activities=CPU) as p: step()
        found.append(events_of(p))
    elif kind == 1:
        with legacy.profile() as q: step()
        found.append(len(q.kineto_results.events()))
    elif kind == 2:
        p = torch.profiler.profiler._KinetoProfile(activities=CPU)
        p.prepare_trace(); x @ x; p.start_trace(); step(); p.stop_trace()
        found.append(events_of(p))
    else:
        with p:
            for _ in range(3): step(); p.step()
        found.append(events_of(p))
    until(n, "refused", "cancelled")
    detach()
print(json.dumps(found))
""",
        tmp_path,
    )
    assert len(outcome.values) == CYCLES and min(outcome.values) > 20
    assert not any(message["left"] for message in outcome.messages if message.get("k") == "detached")
    assert not any(told[-1]["state"] == "closed" for told in windows(outcome).values())


def test_a_compiled_job_is_the_same_with_a_window(tmp_path: Path) -> None:
    """Its losses to the bit and all that Dynamo counts; and the regions stand in the trace by their compile ids."""
    outcome = in_job(
        """
import torch._dynamo.utils as utils
def job(number=None):
    torch._dynamo.reset(); utils.counters.clear(); torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    compiled = torch.compile(lambda x: net(x).square().mean(), backend="aot_eager")
    losses = []
    def one():
        optimizer.zero_grad()
        loss = compiled(torch.randn(6 if len(losses) == 150 else 8, 16))
        loss.backward(); optimizer.step()
        losses.append(loss.item())
    for _ in range(100): one()
    if number is not None:
        ask(number, steps=5); until(number, "open", work=one)
        until(number, "closed", work=one)
    while len(losses) < 400: one()
    return losses[:400], {name: dict(value) for name, value in utils.counters.items()}
plain = job()
attach(); watched = job(1); detach()
print(json.dumps(plain == watched))
""",
        tmp_path,
        after=DYNAMO,
    )
    assert outcome.values is True
    (seen,) = [event for event in outcome.events if isinstance(event, KernelsSeen)]
    regions = {compile_id: calls for compile_id, calls, _ in seen.regions}
    assert set(regions) >= {"0/0", "0/0<"} or set(regions) >= {"0/1", "0/1<"}
    assert sum(regions.values()) == 2 * seen.steps > 0, regions
