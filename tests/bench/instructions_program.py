"""The job of tests.bench.instructions, which runs under callgrind. argv: arm, path of cg.so, steps, warm-up steps.

Arms: nothing, tuimon, parts (the hook, with one of its instruments left out in turn), profiler-W-A, traceml. Each counted
stretch is dumped under "NAME STEPS". Backend aot_eager: inductor's code may have instructions that valgrind does not know.
"""

import ctypes
import os
import socket
import sys
import threading
import time

arm, library, steps, warm = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
os.environ["OMP_NUM_THREADS"] = "1"
import torch  # noqa: E402

torch.set_num_threads(1)
callgrind = ctypes.CDLL(library)
trace_step = None
if arm == "traceml":
    import traceml_ai

    traceml_ai.init(mode="auto")
    trace_step = traceml_ai.trace_step


class Net(torch.nn.Module):
    """Two regions forward, two backward, one resume."""

    def __init__(self, n=16):
        super().__init__()
        self.a, self.b = torch.nn.Linear(n, n), torch.nn.Linear(n, n)

    def forward(self, x):
        x = torch.relu(self.a(x))
        torch._dynamo.graph_break()
        return self.b(torch.relu(x))


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
compiled = torch.compile(net, backend="aot_eager")
x = torch.randn(4, 16)


def body():
    compiled(x).mean().backward()
    optimizer.step()
    optimizer.zero_grad()


prof = None


def step():
    if trace_step is None:
        body()
    else:
        with trace_step(net):
            body()
    if prof is not None:
        prof.step()


def count(name, n):
    callgrind.cg_on()
    if prof is None:
        step()  # the first under instrumentation is translated
    callgrind.cg_zero()
    for _ in range(n):
        step()
    callgrind.cg_dump(f"{name} {n}".encode())
    callgrind.cg_off()


class Hooked:
    """The hook in this process; what it sends is read and thrown away."""

    def __init__(self):
        from tuimon.hook import session, wire

        self.detach = wire.json_frame({"cmd": "detach"})
        self.job, self.monitor = socket.socketpair()
        hook = session.Session(self.job, {}, {})
        hook.install()
        self.threads = [threading.Thread(target=self.read), threading.Thread(target=hook.serve)]
        for thread in self.threads:
            thread.start()

    def read(self):
        while self.monitor.recv(1 << 20):
            pass

    def close(self):
        self.monitor.sendall(self.detach)
        self.threads[1].join()
        self.job.close()
        self.threads[0].join()
        self.monitor.close()


def left_out():
    """(name, what to put in the place of instruments: owner, attribute, value)."""
    from tuimon.hook import collect, session, thread_clock, timers, waits
    from tuimon.hook import steps as hook_steps

    def nothing(*_args, **_kwargs):
        return None

    clocks = [(collect.Collections, "watch", nothing), (thread_clock.ThreadClock, "watch", nothing)]
    regions = [(session.Regions, "watch", nothing), (session.Regions, "place_existing", nothing)]
    # not the function itself: code that resumes is put into a place that looks for a function of its own
    bare = [(timers, "resume_timer", lambda fn, *_: lambda *args: fn(*args))]
    yield "all in", []
    yield "without record_function", [(hook_steps.Steps, "watch", nothing)]
    yield "without engine", [(waits.Waits, "watch", nothing)]
    yield "without regions", regions
    yield "without backward", [(session.Regions, "find_backwards", nothing)]
    yield "without resume", bare
    yield "without gc and thread clock", clocks


def parts():
    count("off", steps)
    for name, places in left_out():
        saved = [(owner, attribute, vars(owner)[attribute]) for owner, attribute, _ in places]
        for owner, attribute, value in places:
            setattr(owner, attribute, value)
        hooked = Hooked()
        for _ in range(warm):
            step()
        time.sleep(0.3)  # whatever the hook does once, it has done by then
        count(name, steps)
        hooked.close()
        for owner, attribute, value in saved:
            setattr(owner, attribute, value)
        for _ in range(5):
            step()


for _ in range(12):
    body()
if arm == "parts":
    parts()
else:
    if arm == "tuimon":
        Hooked()
    elif arm.startswith("profiler"):
        from torch.profiler import ProfilerActivity, profile, schedule

        wait, active = (int(word) for word in arm.split("-")[1:])
        steps = wait + 1 + active
        prof = profile(
            activities=[ProfilerActivity.CPU],
            schedule=schedule(wait=wait, warmup=1, active=active, repeat=0),
            on_trace_ready=lambda _profile: None,
        )
        prof.start()
        warm = steps  # a whole cycle, with what is done once in it
    for _ in range(warm):
        step()
    count(arm, steps)
os._exit(0)
