"""The hook in real torch programs: what it sees is what ran, and the program cannot tell that it was there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.hooked import DYNAMO, TORCH, run
from tuimon.model.identity import plain_function

pytestmark = pytest.mark.live

TRAIN = """
import hashlib, json, struct, torch
import torch._dynamo.utils as utils
def train(steps, before_step=lambda i: None):
    torch._dynamo.reset(); utils.counters.clear(); torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 1))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    seen = []
    def loss_of(x):
        h = net(x)
        seen.append(1) if len(seen) > 10**9 else print(end="")
        return h.pow(2).mean()
    compiled = torch.compile(loss_of, backend="aot_eager")
    losses = hashlib.sha256()
    for i in range(steps):
        before_step(i)
        optimizer.zero_grad()
        loss = compiled(torch.randn(6 if i % 10 == 9 else 8, 8))
        loss.backward(); optimizer.step()
        losses.update(struct.pack("<f", loss.item()))
    counters = {k: dict(v) for k, v in utils.counters.items()}
    return losses.hexdigest(), counters
"""


def test_attach_and_detach_change_no_loss_and_no_counter(tmp_path: Path) -> None:
    outcome = run(
        TRAIN
        + """
plain = train(60)
def habit(i):
    if i % 20 == 5: attach()
    if i % 20 == 17: detach()
hooked = train(60, habit)
print(json.dumps({"same": plain == hooked, "plain": plain, "hooked": hooked}))
""",
        tmp_path,
        after=DYNAMO,
    )
    assert outcome.values["same"], outcome.values
    assert outcome.sessions == 3
    assert [m["left"] for m in outcome.messages if m.get("k") == "detached"] == [[], [], []]


def test_from_the_first_line_everything_is_counted_exactly(tmp_path: Path) -> None:
    outcome = run("attach()\n" + TRAIN + "\ntrain(40)\ndetach()\n", tmp_path)
    model = outcome.model
    forward = {r.compile_id: r.calls for r in model.regions.values() if r.direction == "forward" and r.generation == 0}
    assert sum(calls for key, calls in forward.items() if key.startswith("0/")) == 40
    assert sum(calls for key, calls in forward.items() if key.startswith("1/")) == 40
    backward = [r for r in model.regions.values() if r.direction == "backward"]
    assert sum(r.calls for r in backward if r.compile_id.startswith("0/")) == 40
    (boundary,) = model.boundaries.values()
    assert boundary.crossings == 40 and boundary.kind == "Failed to trace builtin operator"
    assert boundary.host.n == 40
    assert model.steps.source == "optimizer" and model.steps.n == 40
    assert sorted(plain_function(r.compilation.function) for r in model.recompiles) == ["loss_of", "loss_of"]
    assert all("size mismatch at index 0. expected 8, actual 6" in r.guard for r in model.recompiles)


def test_late_attach_knows_the_past(tmp_path: Path) -> None:
    outcome = run(
        TRAIN + "\ntrain(40, lambda i: attach() if i == 30 else None)\ndetach()\n", tmp_path, how="injected", after=DYNAMO
    )
    model = outcome.model
    (boundary,) = model.boundaries.values()
    assert boundary.before_attach and boundary.breaks >= 1 and boundary.kind == "Failed to trace builtin operator"
    assert boundary.function == "loss_of" and boundary.crossings == 10
    assert [r.compilation.before_attach for r in model.recompiles] == [True, True]
    assert all("size mismatch" in r.guard for r in model.recompiles)
    assert all(r.before_attach for r in model.regions.values()) and sum(r.initial.n for r in model.regions.values()) == 0
    assert sum(r.calls for r in model.regions.values() if r.direction == "forward") == 20
    assert sum(r.calls for r in model.regions.values() if r.direction == "backward") == 20
    assert model.history is not None and model.history.graphs == 4


def test_a_graph_is_traced_to_its_backward_without_any_id(tmp_path: Path) -> None:
    outcome = run(
        """
import json, torch
from tuimon.hook.graphs import autograd_functions
functions = [torch.compile(lambda x, k=k: (x * k).sin().sum(), backend="aot_eager") for k in (2.0, 3.0)]
pairs = []
for f in functions:
    before = set(globals())
    f(torch.ones(3, requires_grad=True)).backward()
    (name,) = [k for k in set(globals()) - before if k.startswith("__compiled_fn")]
    pairs.append([made._aot_id for made in autograd_functions(globals()[name])])
inference = torch.compile(lambda x: x.cos(), backend="aot_eager")
before = set(globals())
inference(torch.ones(3))
(name,) = [k for k in set(globals()) - before if k.startswith("__compiled_fn")]
print(json.dumps([pairs, autograd_functions(globals()[name])]))
""",
        tmp_path,
        after=DYNAMO,
    )
    pairs, inference = outcome.values
    assert [len(pair) for pair in pairs] == [1, 1] and pairs[0] != pairs[1] and inference == []


def test_detach_leaves_the_very_objects(tmp_path: Path) -> None:
    outcome = run(
        """
import json, logging, sys, threading, torch, torch._dynamo
from torch._dynamo.output_graph import OutputGraph
def f(x):
    y = x.sin(); print(end=""); return y.cos()
g = torch.compile(f, backend="aot_eager")
x = torch.ones(3, requires_grad=True)
g(x).sum().backward()
made = [c for c in torch.autograd.Function.__subclasses__() if c.__name__ == "CompiledFunction"]
def look():
    R = torch.autograd.profiler.record_function
    return [
        {k: id(v) for k, v in globals().items() if k.startswith(("__compiled_fn", "__resume_at"))},
        id(OutputGraph.install_global_unsafe), [id(vars(c)["backward"]) for c in made],
        id(R.__enter__), id(R.__exit__), len(logging.getLogger("torch.__trace").handlers),
        [type(finder).__name__ for finder in sys.meta_path], threading.active_count(),
    ]
before = look()
attach(); during = look(); g(x).sum().backward()
detach(); after = look()
g(x).sum().backward()
print(json.dumps({"same": before == after, "differs": before != during, "before": before, "after": after}))
""",
        tmp_path,
        after=DYNAMO,
    )
    assert outcome.values["differs"]
    assert outcome.values["same"], outcome.values


def test_resume_functions_with_free_variables_reset_and_generations(tmp_path: Path) -> None:
    outcome = run(
        """
import torch
attach()
def make(scale):
    def f(x):
        y = x * scale; print(end=""); return y + scale
    return f
for generation in range(3):
    g = torch.compile(make(2.0), backend="eager")
    for _ in range(5): g(torch.ones(3))
    torch._dynamo.reset()
detach()
""",
        tmp_path,
        after=TORCH,
    )
    model = outcome.model
    assert sorted({r.generation for r in model.regions.values()}) == [0, 1, 2]
    assert [b.crossings for b in model.boundaries.values()] == [5, 5, 5]
    assert [r.calls for r in model.regions.values()] == [5] * 6


def test_a_compiled_optimizer_compiles_nothing_more_and_its_steps_are_seen(tmp_path: Path) -> None:
    program = """
import json, torch, torch._dynamo.utils as utils
net = torch.nn.Linear(8, 4); optimizer = torch.optim.SGD(net.parameters(), lr=.1)
HOOK
@torch.compile(backend="eager")
def step(x):
    loss = net(x).sum(); loss.backward(); optimizer.step(); optimizer.zero_grad(); return loss
for _ in range(6): step(torch.ones(2, 8))
DONE
print(json.dumps({k: dict(v) for k, v in utils.counters.items()}))
"""
    plain = run(program.replace("HOOK", "").replace("DONE", ""), tmp_path, after=DYNAMO)
    hooked = run(program.replace("HOOK", "attach()").replace("DONE", "detach()"), tmp_path, after=DYNAMO)
    assert plain.values == hooked.values
    assert (hooked.model.steps.source, hooked.model.steps.n) == ("optimizer", 6)


def test_two_optimizers_are_one_step(tmp_path: Path) -> None:
    outcome = run(
        """
import torch
attach()
a, b = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
oa, ob = torch.optim.Adam(a.parameters()), torch.optim.Adam(b.parameters())
for _ in range(7):
    b(a(torch.ones(2, 4))).sum().backward(); oa.step(); ob.step()
detach()
""",
        tmp_path,
        after=TORCH,
    )
    assert (outcome.model.steps.source, outcome.model.steps.n) == ("optimizer", 7)


def test_a_region_that_raises_threads_and_forks(tmp_path: Path) -> None:
    outcome = run(
        """
import json, os, threading, torch
attach()
def backend(graph, inputs):
    calls = []
    def run(*args):
        calls.append(1)
        if len(calls) == 3: raise ZeroDivisionError("the job's own")
        return graph.forward(*args)
    return run
f = torch.compile(lambda x: x + 1, backend=backend)
caught = 0
for _ in range(4):
    try: f(torch.ones(2))
    except ZeroDivisionError: caught += 1
def work():
    for _ in range(10): f(torch.ones(2))
threads = [threading.Thread(target=work, name=f"worker-{i}") for i in range(3)]
[t.start() for t in threads]; [t.join() for t in threads]
child = os.fork()
if child == 0:
    queued = len(_hooked.session.outbox.queue)
    for _ in range(100): f(torch.ones(2))
    os._exit(len(_hooked.session.outbox.queue) - queued)
status = os.waitpid(child, 0)[1]
f(torch.ones(2))
detach()
print(json.dumps([caught, status]))
""",
        tmp_path,
        after=TORCH,
    )
    assert outcome.values == [1, 0]
    (region,) = outcome.model.regions.values()
    assert region.calls == 4 + 30 + 1 and region.raised == 1
    names = [m["name"] for m in outcome.messages if m.get("k") == "thread"]
    assert "main" in names and len(names) > 1 and len(set(names)) == len(names)


def test_an_instrument_that_fails_is_switched_off_and_named(tmp_path: Path) -> None:
    outcome = run(
        """
import json, torch
attach()
_hooked.session._regions._wrap = lambda *a, **k: 1 / 0
f = torch.compile(lambda x: x + 1, backend="eager")
values = [float(f(torch.zeros(1))) for _ in range(3)]
detach()
print(json.dumps(values))
""",
        tmp_path,
        after=TORCH,
    )
    assert outcome.values == [1.0] * 3
    assert "ZeroDivisionError" in outcome.model.coverage.instruments["regions"]
    assert "ZeroDivisionError" in outcome.model.coverage.not_available["regions"]


def test_torchscript_still_reads_record_function(tmp_path: Path) -> None:
    outcome = run(
        """
import json, torch
import torch.autograd.profiler as profiler
attach()
@torch.jit.script
def f(x: torch.Tensor) -> torch.Tensor:
    with profiler.record_function("named"):
        return x + 1
print(json.dumps(float(f(torch.zeros(1)))))
detach()
""",
        tmp_path,
        after=TORCH,
    )
    assert "1.0" in outcome.stdout


def test_compiled_graphs_of_the_past_are_not_kept_alive(tmp_path: Path) -> None:
    outcome = run(
        """
import gc, json, torch, weakref
attach()
made = set()
for k in range(5):
    f = torch.compile(lambda x, k=k: (x * k).sin().sum(), backend="aot_eager")
    f(torch.ones(3, requires_grad=True)).backward()
    made |= {weakref.ref(c) for c in torch.autograd.Function.__subclasses__() if c.__name__ == "CompiledFunction"}
    del f
    torch._dynamo.reset()
gc.collect()
alive = sum(1 for reference in made if reference() is not None)
placed = len(_hooked.session._regions._placed)
detach()
print(json.dumps([len(made), alive, placed]))
""",
        tmp_path,
        after=TORCH,
    )
    count, alive, placed = outcome.values
    assert count >= 5 and (alive, placed) == (0, 0)


def test_a_user_s_function_of_the_same_name_is_left_alone(tmp_path: Path) -> None:
    outcome = run(
        """
import json, torch
class CompiledFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * 2
    @staticmethod
    def backward(ctx, grad): return grad * 2
before = vars(CompiledFunction)["backward"]
attach()
f = torch.compile(lambda x: CompiledFunction.apply(x).sum(), backend="aot_eager", fullgraph=True)
x = torch.ones(3, requires_grad=True)
f(x).backward()
untouched = vars(CompiledFunction)["backward"] is before
detach()
print(json.dumps([untouched, x.grad.tolist()]))
""",
        tmp_path,
        after=TORCH,
    )
    assert outcome.values == [True, [2.0, 2.0, 2.0]]


def test_what_somebody_wrapped_around_us_is_silent_after_the_detach(tmp_path: Path) -> None:
    outcome = run(
        """
import json, torch
from torch._dynamo.output_graph import OutputGraph
f = torch.compile(lambda x: x + 1, backend="eager"); f(torch.ones(2))
attach()
ours = OutputGraph.install_global_unsafe
OutputGraph.install_global_unsafe = lambda self, name, value: ours(self, name, value)
queue = _hooked.session.outbox.queue
detach()
torch._dynamo.reset()
g = torch.compile(lambda x: x * 3, backend="eager")
for _ in range(100): g(torch.ones(2))
regions = [v for k, v in globals().items() if k.startswith("__compiled_fn")]
placed = [v.__code__.co_filename for v in regions if "hook" in v.__code__.co_filename]
print(json.dumps([len(queue), placed]))
""",
        tmp_path,
        after=DYNAMO,
    )
    assert outcome.values == [0, []]
    (goodbye,) = [m for m in outcome.messages if m.get("k") == "detached"]
    assert goodbye["left"] == ["OutputGraph.install_global_unsafe"]


def test_leaving_before_torch_comes_disturbs_no_import(tmp_path: Path) -> None:
    outcome = run(
        """
import json, sys
asked = []
class Other:
    @staticmethod
    def find_spec(name, path=None, target=None): asked.append(name)
attach()
path = sys.meta_path
sys.meta_path.insert(1, Other)
import torch
detach()
loaded = {name for name in sys.modules if name.startswith("torch.") and getattr(sys.modules[name], "__file__", "")}
never = [name for name in loaded if name not in asked and sys.modules[name].__spec__ is not None
         and sys.modules[name].__spec__.name == name and sys.modules[name].__file__.endswith(".py")]
print(json.dumps([never, [type(f).__name__ for f in sys.meta_path if "Arrival" in type(f).__name__]]))
""",
        tmp_path,
    )
    assert outcome.values == [[], []]
    assert outcome.model.coverage.instruments["steps"] == "on"


def test_an_install_that_the_detach_overtakes_leaves_nothing(tmp_path: Path) -> None:
    """A thread of the job is held in the middle of it while the hook leaves; the hook waits for it, and where it does not."""
    outcome = run(
        """
import json
import torch.autograd.profiler as profiler
R = profiler.record_function
plain = vars(R)["__enter__"], vars(R)["__exit__"]
found, patience = [], _session.GATE_S
class Gate:
    def __init__(self): self.lock, self.release = threading.Lock(), lambda: self.lock.release()
    def acquire(self, blocking=True, timeout=-1):
        if timeout > 0: hold.set()  # the hook leaves, and waits
        return self.lock.acquire(blocking, timeout)
for _session.GATE_S in (0.0, patience):
    hold, held = threading.Event(), threading.Event()
    del profiler.record_function
    attach()
    profiler.record_function = R
    session = _hooked.session
    session._gate, session.torch_is_there = Gate(), lambda: None  # the hook's thread does not try
    timers = session._steps._timers
    def slowly(*originals):
        held.set(); hold.wait(); return timers(*originals)
    session._steps._timers = slowly
    takes, take = [], session._take_torch
    session._take_torch = lambda: (takes.append(1), take())
    install = lambda: _session.Session.torch_is_there(session)
    thread = threading.Thread(target=install); thread.start(); held.wait()
    install()  # another thread of the job: comes back
    detach()
    waited = session.instruments.get("steps") == "on"
    hold.set(); thread.join(); install()
    found.append([waited, len(takes), (vars(R)["__enter__"], vars(R)["__exit__"]) == plain])
print(json.dumps(found))
""",
        tmp_path,
    )
    assert outcome.values == [[False, 1, True], [True, 1, True]]
    assert [m["left"] for m in outcome.messages if m.get("k") == "detached"] == [[], []]


def test_a_region_that_goes_or_a_session_that_ends_while_it_is_placed(tmp_path: Path) -> None:
    outcome = run(
        """
import json, torch
from torch._dynamo.output_graph import OutputGraph
f = torch.compile(lambda x: (x * 2).sin().sum(), backend="aot_eager")
def regions(): return {k: v for k, v in globals().items() if k.startswith("__compiled_fn")}
f(torch.ones(3, requires_grad=True)).backward()
(gone,) = regions()
wrap = _session.Regions._wrap
def dropping(self, scope, name, *rest):
    wrapper = wrap(self, scope, name, *rest)
    value = scope.pop(name); kept.append(value); return wrapper
kept = []
_session.Regions._wrap = dropping
attach(); dropped = gone not in globals(); detach()
_session.Regions._wrap = wrap
globals()[gone] = kept[0]

find = _session.Regions.find_backwards
def late(self, *rest):
    if not rest[0]:
        detach()
    return find(self, *rest)
_session.Regions.find_backwards = late
attach()
g = torch.compile(lambda x: (x * 3).cos().sum(), backend="aot_eager")
g(torch.ones(3, requires_grad=True)).backward()
made = [c for c in torch.autograd.Function.__subclasses__() if c.__name__ == "CompiledFunction"]
ours = [vars(c)["backward"].__func__ for c in made] + list(regions().values())
print(json.dumps([dropped, len(made), [o.__code__.co_filename for o in ours if "hook" in o.__code__.co_filename]]))
""",
        tmp_path,
        after=DYNAMO,
    )
    assert outcome.values == [True, 2, []]


def test_a_record_on_its_way_misses_no_handler_when_the_hook_leaves(tmp_path: Path) -> None:
    outcome = run(
        """
import json, logging
log = logging.getLogger("torch.__trace"); log.setLevel(logging.DEBUG); log.propagate = False
class Leaving(logging.Handler):
    def handle(self, record): detach()
class Last(logging.Handler):
    def handle(self, record): seen.append(record.getMessage())
seen = []
attach(); log.addHandler(Leaving()); log.addHandler(Last())
log.debug("one")
print(json.dumps([seen, len(log.handlers)]))
""",
        tmp_path,
    )
    assert outcome.values == [["one"], 2]


LATE_BACKWARD = """
import json, torch, torch._dynamo.utils as utils
net = torch.nn.Linear(8, 1); optimizer = torch.optim.SGD(net.parameters(), lr=.1)
def train():
    torch._dynamo.reset(); utils.counters.clear()
    @torch.compile(backend="aot_eager")
    def step(x):
        optimizer.zero_grad(); loss = net(x).abs().mean(); loss.backward(); optimizer.step(); return loss.detach()
    for _ in range(3): step(torch.ones(2, 8))
    return {k: dict(v) for k, v in utils.counters.items()}
"""


def test_a_backward_that_is_compiled_late_compiles_nothing_of_the_log(tmp_path: Path) -> None:
    """Before torch, after torch and after the session: the same counters as without, and as with a handler of the job's own."""
    outcome = run(
        "attach()\n"
        + LATE_BACKWARD
        + """
import logging
train(); first = train(); detach()  # a process's very first may have a frame more
plain = train()
attach(); attached = train(); detach()
after = train()
class Own(logging.Handler):
    def handle(self, record): pass
logging.getLogger("torch.__trace").addHandler(Own())
own = train()
attach(); both = train(); detach()
print(json.dumps([[first == plain, attached == plain, after == plain, own == plain, own == both], first, plain, own, both]))
""",
        tmp_path,
    )
    assert outcome.values[0] == [True, True, True, False, True], outcome.values
