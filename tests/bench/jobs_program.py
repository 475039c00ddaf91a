"""The job of every arm: a small training that makes its steps when it is told to. argv: folder, arm, microseconds, regions.

What it is told on FOLDER/in, a line each, and answers on FOLDER/out, a line of JSON each:

    N [REPEATS [REGIONS]]    make N steps: {wall, thread, wall_mean, thread_mean, process, nivcsw, rss, loss}
    ? MICROSECONDS REGIONS   what makes a step of REGIONS that long: {repeats, step_us}
    0                        {steps, calls}, both since the start, and end

Of its own it says {pid, calls} once it is warm.

A step calls REGIONS compiled graphs, half of them forward and half backward, and multiplies a matrix REPEATS times.
It imports nothing of tuimon's.
"""

import json
import os
import resource
import statistics
import sys
import time

folder, arm, step_us, regions = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
import torch  # noqa: E402

torch.manual_seed(0)
torch.set_num_threads(1)
device = os.environ.get("BENCH_DEVICE", "cpu")
trace_step = None
if arm == "traceml":
    import traceml_ai

    traceml_ai.init(mode="auto")
    trace_step = traceml_ai.trace_step

WIDTH = 16


def made(number):
    """A function of its own code, so of its own graph; the first has a break in it, as a fourth of the regions allows."""
    broken = "    torch._dynamo.graph_break()\n" if number == 0 and regions >= 4 else ""
    text = f"def f{number}(x, w):\n    y = torch.tanh(x @ w)\n{broken}    return torch.tanh(y * 1.5 + x)\n"
    scope = {"torch": torch}
    exec(compile(text, f"{folder}/f{number}.py", "exec"), scope)
    return torch.compile(scope[f"f{number}"], backend=os.environ.get("BACKEND", "inductor"))


class Net(torch.nn.Module):
    """So many functions, one behind the other."""

    def __init__(self, count):
        super().__init__()
        self.weights = torch.nn.ParameterList([torch.nn.Parameter(torch.randn(WIDTH, WIDTH) / 4) for _ in range(count)])
        self.functions = [made(number) for number in range(count)]
        self.used = count

    def forward(self, x):
        for at in range(self.used):
            x = self.functions[at](x, self.weights[at])
        return x


def functions(wanted):
    """How many functions have so many regions; the first has two each way where there are four or more in all."""
    return max(1, wanted // 2 - (regions >= 4))


torch.manual_seed(0)
net = Net(functions(regions)).to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
x, y = torch.randn(64, WIDTH, device=device), torch.randn(64, WIDTH, device=device)
block = torch.ones(64, 64, device=device)
state = {"repeats": 0, "steps": 0, "calls": 0}


def body():
    loss = ((net(x) - y) ** 2).mean()
    loss.backward()
    for _ in range(state["repeats"]):
        torch.mm(block, block)
    optimizer.step()
    optimizer.zero_grad()
    if device != "cpu":
        torch.cuda.synchronize()
    state["steps"] += 1
    state["calls"] += 2 * (net.used + (regions >= 4))
    return loss


prof = None
if arm.startswith("profiler"):
    from torch.profiler import ProfilerActivity, profile, schedule

    wait, active = (int(word) for word in arm.split("-")[1:])
    kinds = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if device != "cpu" else [])
    plan = schedule(wait=wait, warmup=1, active=active, repeat=0)
    prof = profile(activities=kinds, schedule=plan, on_trace_ready=lambda _profile: None)


def step():
    if trace_step is not None:
        with trace_step(net):
            loss = body()
    else:
        loss = body()
    if prof is not None:
        prof.step()
    return loss


def length_us(count=40):
    clock = time.thread_time_ns if device == "cpu" else time.perf_counter_ns  # others on the machine do not make it longer
    took = []
    for _ in range(count):
        begin = clock()
        body()
        took.append(clock() - begin)
    return statistics.median(took) / 1e3


def product_us(count=2000):
    # by itself: as a difference of two steps it drowns in their noise where they have many regions
    begin = time.perf_counter_ns()
    for _ in range(count):
        torch.mm(block, block)
    if device != "cpu":
        torch.cuda.synchronize()
    return (time.perf_counter_ns() - begin) / count / 1e3


def calibrate(wanted_us):
    # as many steps whatever comes of it: the losses of all jobs are compared
    state["repeats"] = 0
    length_us()  # the first calls of a graph are not like the others
    bare = length_us()
    each = product_us()
    for _ in range(3):  # the more of them, the less is each
        state["repeats"] = max(0, int((wanted_us - bare) / each))
        took = length_us(8)
        if state["repeats"]:
            each *= max(0.5, (took - bare) / (wanted_us - bare))
    return {"repeats": state["repeats"], "step_us": length_us(20)}


for _ in range(30):
    body()
if prof is not None:
    prof.start()
for _ in range(30):
    step()

commands, answers = open(f"{folder}/in"), open(f"{folder}/out", "w")  # noqa: SIM115


def answer(what):
    answers.write(json.dumps(what) + "\n")
    answers.flush()


def measured(count):
    walls, cpus = [], []
    before = resource.getrusage(resource.RUSAGE_SELF)
    for _ in range(count):
        wall, cpu = time.perf_counter_ns(), time.thread_time_ns()
        loss = step()
        cpus.append(time.thread_time_ns() - cpu)
        walls.append(time.perf_counter_ns() - wall)
    after = resource.getrusage(resource.RUSAGE_SELF)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[1])
    return {
        "wall": statistics.median(walls) / 1e3,
        "thread": statistics.median(cpus) / 1e3,
        "wall_mean": sum(walls) / count / 1e3,
        "thread_mean": sum(cpus) / count / 1e3,
        "process": used / count * 1e6,
        "nivcsw": after.ru_nivcsw - before.ru_nivcsw,
        "rss": pages * os.sysconf("SC_PAGE_SIZE"),
        "loss": loss.item().hex(),
    }


answer({"pid": os.getpid(), "calls": state["calls"]})
for line in commands:
    words = line.split()
    if words[0] == "?":
        net.used = functions(int(words[2]))
        answer(calibrate(float(words[1])))
        continue
    if int(words[0]) == 0:
        break
    if len(words) > 1:
        state["repeats"] = int(words[1])
    if len(words) > 2:
        net.used = functions(int(words[2]))
    answer(measured(int(words[0])))
answer({"steps": state["steps"], "calls": state["calls"]})
