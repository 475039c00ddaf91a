"""Programs of many kinds that take steps, each with what it knows of them itself; see `test_steps_programs`.

Each calls `attach()` somewhere, `middle()` once in every step that a person would call one, and `stall(step)` where it loses
60 ms. Where nothing but calls tells the steps, `within` stands for `middle`, of a call of what `n` has compiled: the instant is
one at which its region ran, however long the thread waited for a core before or behind it.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.support.hooked import Outcome
from tests.support.watched import iterations

PRELUDE = """
import json, os, random, sys, threading, time, torch
torch.manual_seed(0)
torch.set_num_threads(1)
truth = {"middles": [], "stalls": []}
def middle():
    truth["middles"].append(time.monotonic_ns())
def within(function, *args):
    result = function(*args)
    truth["middles"].append(ran[0])
    return result
def stall(step):
    began = time.monotonic_ns()
    time.sleep(0.06)
    truth["stalls"].append([step, (began + time.monotonic_ns()) // 2])
def work():
    time.sleep(0.002)
def mlp(n=16):
    return torch.nn.Sequential(torch.nn.Linear(n, n), torch.nn.Tanh(), torch.nn.Linear(n, n))
def c(f):
    return torch.compile(f, backend="eager")
ran = [0]
def noting(graph, _inputs):
    def run(*args):
        ran[0] = time.monotonic_ns()
        return graph.forward(*args)
    return run
def n(f):
    return torch.compile(f, backend=noting)
"""
END = """
detach()
print(json.dumps(truth))
"""


@dataclass(frozen=True)
class Program:
    """A program, and what is to be told of it."""

    text: str
    source: str
    from_begin: bool = True
    """Whether tuimon is there for the first step."""
    needs_heads: bool = False
    """Whether it takes the passages of loop heads (Python 3.12) to tell the steps; elsewhere it is said that it cannot be."""
    needs_turns: bool = False
    """Whether it takes them to tell what comes behind an optimizer; elsewhere that may be told of the step behind its own."""


PROGRAMS: dict[str, Program] = {
    "gan": Program(
        """
d, g = mlp(), mlp()
opt_d, opt_g = torch.optim.Adam(d.parameters()), torch.optim.Adam(g.parameters())
cd, cg = c(d), c(g)
attach()
for step in range(24):
    opt_d.zero_grad()
    cd(torch.randn(4, 16)).mean().backward()
    opt_d.step()
    middle()
    if step == 9: stall(step)
    opt_g.zero_grad()
    cg(torch.randn(4, 16)).mean().backward()
    opt_g.step()
    work()
""",
        "optimizer",
    ),
    "gan, joined in the middle": Program(
        """
d, g = mlp(), mlp()
opt_d, opt_g = torch.optim.Adam(d.parameters()), torch.optim.Adam(g.parameters())
cd, cg = c(d), c(g)
loader = torch.utils.data.DataLoader(torch.randn(120, 16), batch_size=4)
for step, x in enumerate(loader):
    opt_d.zero_grad()
    cd(x).mean().backward()
    opt_d.step()
    if step == 4: attach()
    middle()
    if step == 12: stall(step)
    opt_g.zero_grad()
    cg(torch.randn(4, 16)).mean().backward()
    opt_g.step()
    work()
""",
        "optimizer",
        from_begin=False,
    ),
    "critic": Program(
        """
d, g = mlp(), mlp()
opt_d, opt_g = torch.optim.Adam(d.parameters()), torch.optim.Adam(g.parameters())
cd, cg = c(d), c(g)
attach()
for step in range(8):
    for _ in range(3):
        opt_d.zero_grad()
        cd(torch.randn(4, 16)).mean().backward()
        middle()
        opt_d.step()
    opt_g.zero_grad()
    cg(torch.randn(4, 16)).mean().backward()
    opt_g.step()
""",
        "optimizer",
    ),
    "accumulation and a scheduler": Program(
        """
net = mlp()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 20)
cn = c(net)
attach()
for step in range(20):
    for micro in range(4):
        (cn(torch.randn(4, 16)).mean() / 4).backward()
        if step == 7 and micro == 2: stall(step)
    middle()
    opt.step()
    schedule.step()
    opt.zero_grad()
""",
        "optimizer",
    ),
    "a compiled optimizer": Program(
        """
net = mlp()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
opt_step, cn = c(opt.step), c(net)
attach()
for step in range(20):
    opt.zero_grad(set_to_none=step != 11)
    cn(torch.randn(4, 16)).mean().backward()
    middle()
    if step == 9: stall(step)
    if step == 12: opt.param_groups[0]["lr"] = 0.05
    opt_step()
""",
        "optimizer",
    ),
    "two compiled optimizers": Program(
        """
a, b = mlp(), mlp()
opt_a, opt_b = torch.optim.SGD(a.parameters(), lr=0.1), torch.optim.SGD(b.parameters(), lr=0.1)
step_a, step_b, ca, cb = c(opt_a.step), c(opt_b.step), c(a), c(b)
attach()
for step in range(20):
    opt_a.zero_grad()
    ca(torch.randn(4, 16)).mean().backward()
    step_a()
    middle()
    if step == 9: stall(step)
    if step == 12: opt_a.param_groups[0]["lr"] = 0.05
    opt_b.zero_grad()
    cb(torch.randn(4, 16)).mean().backward()
    step_b()
""",
        "optimizer",
    ),
    "a function that calls the optimizer, compiled": Program(
        """
net = mlp()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
cn = c(net)
@torch.compile(backend="eager")
def update():
    opt.step()
attach()
for step in range(20):
    opt.zero_grad()
    cn(torch.randn(4, 16)).mean().backward()
    middle()
    if step == 9: stall(step)
    update()
    if step == 14: stall(step)
    work()
""",
        "optimizer",
    ),
    "a scaler that skips": Program(
        """
net = mlp()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=4.0, enabled=True)
cn = c(net)
attach()
for step in range(24):
    opt.zero_grad()
    loss = cn(torch.randn(4, 16)).mean()
    if step == 10: loss = loss * float("inf")
    scaler.scale(loss).backward()
    if step != 10: middle()
    scaler.step(opt)
    scaler.update()
""",
        "optimizer",
    ),
    "LBFGS": Program(
        """
net = mlp()
opt = torch.optim.LBFGS(net.parameters(), max_iter=4)
cn = c(net)
x = torch.randn(4, 16)
attach()
for step in range(20):
    def closure():
        opt.zero_grad()
        loss = cn(x).square().mean()
        loss.backward()
        return loss
    if step == 6: stall(step)
    middle()
    opt.step(closure)
""",
        "optimizer",
    ),
    "a checkpoint behind the optimizer": Program(
        """
net = mlp()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
cn = c(net)
attach()
for step in range(20):
    opt.zero_grad()
    cn(torch.randn(4, 16)).mean().backward()
    middle()
    opt.step()
    if step == 12: stall(step)
""",
        "optimizer",
    ),
    "a server": Program(
        """
import queue
net = n(mlp(256))
requests = queue.Queue()
def ask():
    for number in range(6):
        time.sleep(0.05)
        requests.put(number)
    requests.put(None)
threading.Thread(target=ask, daemon=True).start()
attach()
step = 0
with torch.no_grad():
    while (request := requests.get()) is not None:
        x = torch.randn(256, 256)
        for token in range(8):
            x = within(net, x)
            if step == 21: stall(step)
            step += 1
""",
        "inferred",
    ),
    "reinforcement": Program(
        """
policy, opt = mlp(), None
cp = c(policy)
attach()
for step in range(10):
    total = 0
    for move in range(60):
        total = total + cp(torch.randn(1, 16)).mean()
    middle()
    if step == 6: stall(step)
    total.backward()
    with torch.no_grad():
        for p in policy.parameters():
            p -= 0.01 * p.grad
            p.grad = None
""",
        "inferred",
    ),
    "an evaluation behind the optimizer": Program(
        """
net, other = mlp(), mlp()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
cn, co = c(net), c(other)
def evaluate():
    with torch.no_grad():
        for _ in range(5):
            co(torch.randn(4, 16))
attach()
for step in range(40):
    opt.zero_grad()
    cn(torch.randn(4, 16)).mean().backward()
    middle()
    opt.step()
    if step % 10 == 9:
        evaluate()
        stall(step)
        evaluate()
""",
        "optimizer",
    ),
    "an evaluation behind the optimizer, from a loader": Program(
        """
net = mlp()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
cn = c(net)
held_out = torch.utils.data.DataLoader(torch.randn(12, 16), batch_size=4)
attach()
for step, x in enumerate(torch.utils.data.DataLoader(torch.randn(160, 16), batch_size=4)):
    opt.zero_grad()
    cn(x).mean().backward()
    middle()
    opt.step()
    if step % 10 == 9:
        net.eval()
        with torch.no_grad():
            for y in held_out: cn(y)
        stall(step)
        with torch.no_grad():
            for y in held_out: cn(y)
        net.train()
""",
        "optimizer",
        needs_turns=True,
    ),
    "epochs and validation": Program(
        """
net = mlp()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
cn = c(net)
attach()
step = 0
for epoch in range(3):
    for x in torch.utils.data.DataLoader(torch.randn(40, 16), batch_size=4):
        cn(x).mean().backward()
        if step == 14: stall(step)
        middle()
        opt.step()
        opt.zero_grad()
        step += 1
    with torch.no_grad():
        for x in torch.utils.data.DataLoader(torch.randn(20, 16), batch_size=4):
            cn(x)
""",
        "optimizer",
    ),
    "epochs and validation by hand": Program(
        """
net = mlp()
cn = c(net)
attach()
step = 0
for epoch in range(3):
    for _ in range(10):
        loss = cn(torch.randn(4, 16)).mean()
        middle()
        loss.backward()
        if step == 14: stall(step)
        with torch.no_grad():
            for p in net.parameters():
                p -= 0.01 * p.grad
                p.grad = None
        step += 1
    with torch.no_grad():
        for _ in range(5):
            cn(torch.randn(4, 16))
""",
        "inferred",
    ),
    "blocks compiled one by one": Program(
        """
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = mlp(256)
    def forward(self, x):
        return self.net(x) + x
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(n(Block()) for _ in range(6))
    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x
model = Model()
attach()
with torch.no_grad():
    for step in range(30):
        x = within(model, torch.randn(256, 256))
        if step == 15: stall(step)
        work()
""",
        "inferred",
        needs_heads=True,
    ),
    "blocks compiled one by one, in a plain loop": Program(
        """
blocks = [mlp(256) for _ in range(6)]
compiled = [n(block) for block in blocks]
attach()
with torch.no_grad():
    for step in range(30):
        x = torch.randn(256, 256)
        for number, block in enumerate(compiled):
            x = within(block, x) if number == 2 else block(x)
        if step == 15: stall(step)
        work()
""",
        "inferred",
        needs_heads=True,
    ),
    "callbacks without a loop": Program(
        """
import sched
net = n(mlp(256))
events = sched.scheduler(time.monotonic, time.sleep)
def serve(step):
    within(net, torch.randn(256, 256))
    if step == 14: stall(step)
    if step < 29: events.enter(0.002, 1, serve, (step + 1,))
attach()
events.enter(0, 1, serve, (0,))
with torch.no_grad():
    events.run()
""",
        "inferred",
    ),
    "two threads that train": Program(
        """
torch._dynamo.config.recompile_limit = 64
def train(n, told):
    net = mlp()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    cn = c(net)
    for step in range(n):
        cn(torch.randn(4, 16)).mean().backward()
        if told: middle()
        opt.step()
        opt.zero_grad()
attach()
other = threading.Thread(target=train, args=(20, False))
train(1, True)
other.start()
train(39, True)
other.join()
""",
        "optimizer",
    ),
    "compiled functions within one": Program(
        """
inner = c(lambda x: x.sin())
@n
def outer(x):
    return inner(x) + 1
@torch._dynamo.disable
def between(x):
    return inner(x)
@torch.compile(backend="eager")
def broken(x):
    return between(x.cos()) * 2
attach()
with torch.no_grad():
    for step in range(30):
        x = within(outer, torch.randn(1_000_000))
        if step == 17: stall(step)
        broken(x)
        work()
""",
        "inferred",
    ),
    "fit() of a library": Program(
        """
import types
library = types.ModuleType("fitting")
exec(compile('''
def fit(step, n, callbacks):
    for number in range(n):
        for each in callbacks: each(number)
        step(number)
''', os.path.join(os.path.dirname(json.__file__), "fitting.py"), "exec"), vars(library))
net = c(mlp())
def training_step(number):
    loss = net(torch.randn(4, 16)).mean()
    middle()
    loss.backward()
    if number == 13: stall(number)
attach()
library.fit(training_step, 25, [lambda number: work()])
""",
        "inferred",
    ),
    "a loader that is a generator": Program(
        """
net = mlp()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
cn = c(net)
now = 0
def batches(n):
    global now
    for number in range(n):
        if number in (8, 16): stall(number)
        yield torch.randn(4, 16)
attach()
for x in batches(24):
    cn(x).mean().backward()
    middle()
    opt.step()
    opt.zero_grad()
""",
        "optimizer",
    ),
}


def differences(program: Program, outcome: Outcome, *, heads: bool) -> list[str]:
    """What tuimon tells of a program's steps that is not so. `heads`: passages of loop heads are told on its Python."""
    steps, truth = outcome.model.steps, outcome.values
    accounts = list(steps.accounts)
    if program.needs_heads and not heads:
        said = steps.how if steps.source is not None else steps.why_not
        sure = [one.index for one in accounts if one.index_certain][2:]
        found = [] if "mark the steps" in said else [f"it is not said that marks would help: {said!r}"]
        return [*found, f"steps {sure[:9]} are told as if they were certain"] if sure else found
    found = []
    if steps.source != program.source:
        found.append(f"steps are told by {steps.source}, not by {program.source}: {steps.how}{steps.why_not}")
        return found
    wanted = len(truth["middles"])
    places = iterations(accounts, truth["middles"])
    offsets = {place - one.index for place, one in zip(places, accounts, strict=True) if place is not None}
    if len(offsets) > 1 or (program.from_begin and offsets != {0}):
        found.append(f"indices are off by {sorted(offsets)}")
    if None in places[2:]:
        found.append(f"steps {[one.index for one, place in zip(accounts, places, strict=True) if place is None]} are none")
    if not wanted - max(offsets, default=0) - 2 <= steps.n <= wanted:
        found.append(f"{steps.n} of {wanted} steps")
    if any(sum(one.parts) != one.took_ns or min(one.parts) < 0 for one in accounts):
        found.append("an account does not add up")
    for step, at_ns in truth["stalls"]:
        for one, place in zip(accounts, places, strict=True):
            if (
                one.begin_ns < at_ns <= one.end_ns
                and place != step
                and one.index_certain
                and (heads or not program.needs_turns)
            ):
                found.append(f"what happened in step {step} is told of step {place}, as if that were certain")
    return found
