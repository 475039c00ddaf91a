"""Waits, collections, profilers and collectives in real torch programs: what is told is what happened, and nothing stays."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.hooked import DYNAMO, TORCH, Outcome, run
from tuimon.events import Samples

pytestmark = pytest.mark.live
pytest.importorskip("torch")


@dataclass(frozen=True, slots=True)
class Row:
    """A sample with what its instrument was told to be."""

    role: str
    name: str
    function: str
    group: str
    thread: int
    flags: int
    begin: int
    end: int


def rows_of(outcome: Outcome, *roles: str) -> list[Row]:
    """The samples of these roles, in the order in which they were sent."""
    told = {message["instrument"]: message for message in outcome.messages if message.get("k") == "added"}
    samples = [row for event in outcome.events if isinstance(event, Samples) for row in event.rows]
    rows = [
        Row(told[n]["role"], told[n]["name"], told[n]["function"], told[n].get("group", ""), thread, flags, begin, end)
        for n, thread, flags, begin, end in samples
    ]
    return [row for row in rows if row.role in roles]


def sites_of(outcome: Outcome, role: str) -> list[dict[str, Any]]:
    """The sites of a role's instruments."""
    numbers = {message["instrument"] for message in outcome.messages if message.get("role") == role}
    return [m for m in outcome.messages if m.get("k") == "site" and m["instrument"] in numbers]


def nothing_left(outcome: Outcome) -> bool:
    return [m["left"] for m in outcome.messages if m.get("k") == "detached"] == [[]] * outcome.sessions


def test_a_loader_is_told_with_workers_and_without(tmp_path: Path) -> None:
    outcome = run(
        """
import gc, os, threading, torch
from torch.utils.data import DataLoader, Dataset, IterableDataset
class Squares(Dataset):
    def __len__(self):
        return 6
    def __getitem__(self, i):
        if i == 0:
            gc.collect()  # also in a forked worker
        return torch.ones(2) * i
class Endless(IterableDataset):
    def __iter__(self):
        return iter(torch.ones(4, 1))
attach()
for options in ({}, {"num_workers": 1}):
    assert sum(1 for _ in DataLoader(Squares(), batch_size=2, **options)) == 3
assert sum(1 for _ in DataLoader(Endless(), batch_size=2)) == 2
again = DataLoader(Squares(), batch_size=3, num_workers=1, persistent_workers=True)
for _ in range(2):
    assert sum(1 for _ in again) == 2
detach()
assert sum(1 for _ in again) == 2
print(threading.get_ident())
""",
        tmp_path,
        after=TORCH,
    )
    rows = rows_of(outcome, "data")
    one, more, start = "_SingleProcessDataLoaderIter.__next__", "_MultiProcessingDataLoaderIter.__next__", "DataLoader.__iter__"
    assert [row.function for row in rows] == (
        [start, *[one] * 4, start, *[more] * 4, start, *[one] * 3, start, *[more] * 3, start, *[more] * 3]
    )
    assert [row.flags for row in rows if row.function == one] == [0, 0, 0, 1, 0, 0, 1]  # StopIteration is an exception
    assert {row.name for row in rows} == {"DataLoader"} and {row.thread for row in rows} == {outcome.values}
    # the threads that collected are those of this process: none was told from a worker
    seen = {message["thread"] for message in outcome.messages if message.get("k") == "thread"}
    assert {row.thread for row in rows_of(outcome, "gc")} <= seen
    starts = [site for site in sites_of(outcome, "data") if site["stack"][-1][2] == "__iter__"]
    assert starts, "to start a worker takes more than a millisecond"
    assert all(site["line"] == site["stack"][-2][1] and "program" in site["stack"][-2][0] for site in starts)
    assert nothing_left(outcome)


def test_a_collection_in_the_loop_is_told_with_its_line(tmp_path: Path) -> None:
    outcome = run(
        """
import gc, json, torch
heap = [[i] for i in range(200000)]
attach()
def step(i):
    if i % 2:
        gc.collect()
    return torch.ones(2) * i
for i in range(4):
    step(i)
during = len(gc.callbacks)
detach()
print(json.dumps([step.__code__.co_firstlineno + 2, [during, len(gc.callbacks)]]))
""",
        tmp_path,
        after=TORCH,
    )
    line, callbacks = outcome.values
    assert callbacks == [1, 0] and nothing_left(outcome)
    full = [row for row in rows_of(outcome, "gc") if row.flags >> 8 & 0xFF == 2]
    sites = [site for site in sites_of(outcome, "gc") if site["line"] == line]
    assert len(sites) == 2 and {site["t"] for site in sites} <= {row.end for row in full}
    codes = {message["code"]: message["function"] for message in outcome.messages if message.get("k") == "code"}
    assert [codes[site["code"]] for site in sites] == ["step", "step"]
    assert all(site["stack"][-1][1:] == [line, "step"] for site in sites)


def test_a_profilers_window_is_told(tmp_path: Path) -> None:
    outcome = run(
        """
import torch, torch.profiler as profiler
from torch.autograd import profiler as legacy
attach()
window = profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
with profiler.profile(activities=[profiler.ProfilerActivity.CPU], schedule=window) as p:
    for i in range(6):
        torch.ones(8).sum()
        p.step()
with legacy.profile():
    torch.ones(3).sum()
detach()
with profiler.profile(activities=[profiler.ProfilerActivity.CPU]):
    torch.ones(3).sum()
""",
        tmp_path,
        after=TORCH,
    )
    rows = rows_of(outcome, "profiler")
    assert [row.name for row in rows if row.name.endswith("step")] == ["torch.profiler step"] * 6
    assert [row.name for row in rows if row.function.startswith("profile.st") and not row.name.endswith("step")] == [
        "torch.profiler start",
        "torch.profiler stop",
    ]
    assert {"torch.autograd.profiler start", "torch.autograd.profiler stop"} <= {row.name for row in rows}
    assert nothing_left(outcome)


def test_the_engine_and_the_threads_clock(tmp_path: Path) -> None:
    outcome = run(
        """
import json, threading, time, torch
from torch.compiler import _patch_engine_backward
attach()
w = torch.ones(3, requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1)
for i in range(3):
    w.sin().sum().backward()
    torch.autograd.grad(w.sin().sum(), w)
    opt.step()
    time.sleep(0.003)
before = torch.autograd.graph._engine_run_backward
with _patch_engine_backward():
    detach()  # while torch traces without Dynamo
after = torch.autograd.graph._engine_run_backward
w.sin().sum().backward()
same = after is torch.autograd._engine_run_backward
print(json.dumps([time.thread_time_ns(), before is not after, same, after.__code__.co_name]))
""",
        tmp_path,
        after=DYNAMO,
    )
    used, replaced, same, name = outcome.values
    assert (replaced, same, name) == (True, True, "_engine_run_backward") and nothing_left(outcome)
    rows = rows_of(outcome, "engine", "optimizer", "cpu")
    assert [row.role for row in rows if row.role != "cpu"] == ["engine", "engine", "optimizer"] * 3
    read = [row for row in rows if row.role == "cpu"]
    assert len(read) >= 3 and [row.end for row in read] == sorted(row.end for row in read) and read[-1].end <= used


RANK = """
import ctypes, json, os, sys, torch, torch.distributed as dist
from torch._C._distributed_c10d import ProcessGroup, Work
rank = int(os.path.basename(os.path.dirname(__file__)))
store = dist.FileStore(os.path.join(os.path.dirname(os.path.dirname(__file__)), "store"), 2)
before = dict(vars(ProcessGroup)), dict(vars(Work))
attach()
during = vars(ProcessGroup)["allreduce"]
dist.init_process_group("gloo", rank=rank, world_size=2, store=store)
x = torch.ones(4)
for i in range(3):
    dist.all_reduce(x)
work = dist.all_reduce(x, async_op=True)
dist.broadcast(torch.ones(1), 0)  # another tensor: the two run at the same time
work.wait()
dist.barrier()
pair = dist.new_group([0, 1])
dist.all_reduce(x, group=pair)
got = [None, None]
dist.all_gather_object(got, rank)
if rank:
    dist.send(x, 0)
else:
    dist.recv(x, 1)
detach()
same = (dict(vars(ProcessGroup)), dict(vars(Work))) == before
y = torch.ones(2)
dist.all_reduce(y)
print(json.dumps([during is not before[0]["allreduce"], same, got, y.tolist(), x.tolist()]))
dist.destroy_process_group()
"""


def test_two_ranks_count_their_collectives_alike_and_go_on_after_the_detach(tmp_path: Path) -> None:
    outcomes: dict[int, Outcome] = {}

    def rank(number: int) -> None:
        folder = tmp_path / str(number)
        folder.mkdir()
        outcomes[number] = run(RANK, folder)

    threads = [threading.Thread(target=rank, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 2
    for outcome in outcomes.values():
        assert outcome.values == [True, True, [0, 1], [2.0, 2.0], [32.0] * 4]
        assert nothing_left(outcome)
    told = [
        [(row.name, row.group, row.flags >> 8) for row in rows_of(outcomes[number], "communication")] for number in range(2)
    ]
    alike = [[each for each in one if each[0] not in ("send", "recv", "wait for send", "wait for recv")] for one in told]
    assert alike[0] == alike[1]
    reduced = [(name, number) for name, group, number in alike[0] if "allreduce" in name and group == alike[0][0][1]]
    numbers = [number for name, number in reduced if name == "allreduce"]
    assert len(numbers) == 4 and numbers == list(range(numbers[0], numbers[0] + 4)) and numbers[0] > 0
    assert sorted(number for name, number in reduced if name != "allreduce") == numbers
    at = [name for name, _, _ in alike[0]]
    assert at.index("broadcast") < len(at) - 1 - at[::-1].index("wait for allreduce")  # waited for behind it
    assert {name for name, _, number in told[0] + told[1] if number == 0} >= {"send", "recv"}
    assert len({group for name, group, _ in alike[0] if name == "allreduce"}) == 2


def test_torch_that_comes_after_the_attach_is_watched_and_a_forked_child_is_silent(tmp_path: Path) -> None:
    outcome = run(
        """
import gc, json, os, sys, tempfile, time
attach()
assert "torch" not in sys.modules
import torch, torch.profiler, torch.distributed as dist
from torch.utils.data import DataLoader
wanted = ("collections", "data waits", "engine", "profiler", "communication")
deadline = time.monotonic() + 60
while any(_hooked.session.instruments.get(name) != "on" for name in wanted) and time.monotonic() < deadline:
    time.sleep(0.01)
dist.init_process_group("gloo", rank=0, world_size=1, store=dist.FileStore(tempfile.mkdtemp() + "/store", 1))
w = torch.ones(2, requires_grad=True)
def all_of_it():
    for batch in DataLoader(torch.ones(4, 2), batch_size=2):
        (w * batch).sum().backward()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as p:
        p.step()
    gc.collect()
read, write = os.pipe()
if os.fork() == 0:
    queue = _hooked.session.outbox.queue
    queue.clear()
    all_of_it()
    os.write(write, json.dumps([len(queue), len(gc.callbacks), _hooked.session.outbox.dropped]).encode())
    os._exit(0)
child = json.loads(os.read(read, 100))
os.wait()
all_of_it()
dist.all_reduce(torch.ones(1))  # not in the child, which lacks gloo's threads
detach()
print(json.dumps(child))
""",
        tmp_path,
    )
    assert outcome.values == [0, 0, [0]]
    assert {"data", "engine", "gc", "profiler", "communication", "cpu"} <= {
        row.role for row in rows_of(outcome, "data", "engine", "gc", "profiler", "communication", "cpu")
    }
    assert nothing_left(outcome)


def test_attach_and_detach_leave_the_very_objects(tmp_path: Path) -> None:
    outcome = run(
        """
import gc, json, sys, torch, torch.profiler
from torch._C._distributed_c10d import ProcessGroup, Work
from torch.utils.data import DataLoader
kept = []
def look():
    holders = (ProcessGroup, Work, DataLoader, torch.profiler.profile, torch.profiler._KinetoProfile)
    holders += (torch.autograd.profiler.profile, torch.autograd.profiler.record_function, torch.autograd.graph, torch.autograd)
    now = [list(vars(holder).items()) for holder in holders] + [list(gc.callbacks)]
    kept.append(now)  # no address is used twice
    return [[(name, id(value)) for name, value in one] if one and type(one[0]) is tuple else list(map(id, one)) for one in now]
def unlike(one, other):
    return sum(set(left) != set(right) for left, right in zip(one, other))
before = look()
found = []
for _ in range(3):
    attach(); during = look(); detach(); after = look()
    found.append([unlike(before, during), unlike(before, after)])
print(json.dumps(found))
""",
        tmp_path,
        after=TORCH,
    )
    assert outcome.values == [[10, 0]] * 3
    assert nothing_left(outcome)


def test_compiled_functions_that_call_them_break_where_and_why_they_did(tmp_path: Path) -> None:
    """Dynamo looks at what stands in for a function as it looked at the function."""
    outcome = run(
        """
import json, logging, re, tempfile, torch, torch.distributed as dist, torch.profiler
from torch.utils.data import DataLoader
logging.getLogger("torch._dynamo").setLevel(logging.CRITICAL)
dist.init_process_group("gloo", rank=0, world_size=1, store=dist.FileStore(tempfile.mkdtemp() + "/store", 1))
w, x = torch.ones(2, 2, requires_grad=True), torch.ones(2, 2)
loader = DataLoader(torch.ones(4, 2), batch_size=2)
profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
def backward(x):
    (x @ w).sum().backward()
    return x + 1
def gradient(x):
    return torch.autograd.grad((x @ w).sum(), w)[0]
def engine(x):
    arguments = ((x @ w).sum(),), (torch.ones(()),), False, False, ()
    torch.autograd.graph._engine_run_backward(*arguments, allow_unreachable=True, accumulate_grad=True)
    return x + 1
def steps(x):
    profiler.step()
    return x + 1
def loads(x):
    for batch in loader:
        x = x + batch.sum()
    return x
def waits(x):
    y = x * 2
    dist.all_reduce(y, async_op=True).wait()
    return y + 1
def synchronises(x):
    dist.barrier()
    return x + 1
def compile_all():
    found = []
    for f in (backward, gradient, engine, steps, loads, waits, synchronises):
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        f = torch.compile(f, backend="eager")
        for _ in range(2):
            f(x)
        counters = torch._dynamo.utils.counters.items()
        found.append({k: {re.sub("0x[0-9a-f]+", "#", n): c for n, c in v.items()} for k, v in counters})
    return found
compile_all()
plain = compile_all()
attach()
hooked = compile_all()
detach()
after = compile_all()
breaks = sum(len(one.get("graph_break", ())) for one in plain)
torch._dynamo.reset()
kept = [torch.compile(f, backend="eager") for f in (backward, gradient, steps, loads, waits, synchronises)]
def call_all():
    return [f(x).sum().item() for f in kept], {k: dict(v) for k, v in torch._dynamo.utils.counters.items()}
call_all()
before = call_all()
attach()
during = call_all()
detach()
unlike = [[a, b, c] for a, b, c in zip(plain, hooked, after) if not a == b == c]
print(json.dumps([breaks, unlike, before == during == call_all()]))
""",
        tmp_path,
        after=DYNAMO,
    )
    breaks, unlike, kept = outcome.values
    assert unlike == [] and breaks > 4
    assert kept, "guards of what was compiled before hold, and break none"
    assert nothing_left(outcome)
