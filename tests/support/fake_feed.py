"""Scripted feeds: the events of a made-up job, folded by the real model, for the screens to show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tuimon import events as ev
from tuimon.model import Model
from tuimon.model.ranks.jobs import Jobs

S = 1_000_000_000
MS = 1_000_000
US = 1_000
ATTACHED = 1_000 * S
WALL = 1_790_000_000.0
"""Unix time of the attach: fixed, so that the pictures are."""

LONG = "a_function_whose_name_goes_on_and_on_" * 14
WIDE = "学習ループの順伝播関数"

MODEL = "/home/user/project/model.py"
TRAIN = "/home/user/project/train.py"


class FakeFeed:
    """A feed that hands out what a test gives it."""

    def __init__(self, events: Iterable[ev.Event] = (), title: str = "train.py", rank: int | None = None) -> None:
        self.model = Model()
        self.title = title
        self.rank = rank
        self.label = "4242" if rank is None else f"rank {rank}"
        self.host: str | None = None
        self.pid: int | None = 4242 + (rank or 0)
        self.job: str | None = None
        self.silent: tuple[float, str | None] | None = None
        self.pending: list[ev.Event] = list(events)
        self.detached = 0
        self.waiting: float | None = None
        self.commands: list[dict[str, object]] = []
        self.deaf: str | None = None
        """Why it takes no commands."""

    def give(self, *events: ev.Event) -> None:
        """Events for the next drain."""
        self.pending.extend(events)

    def drain(self) -> list[ev.Event]:
        """What was given since the last call."""
        events, self.pending = self.pending, []
        return events

    def show(self, on: bool) -> None:
        """Nothing: it has all its events."""

    def command(self, message: dict[str, object]) -> str | None:
        """Keeps it."""
        self.commands.append(message)
        return self.deaf

    def detach(self) -> None:
        """Counts that it was called."""
        self.detached += 1

    def nvml_waiting(self) -> float | None:
        """What the test said."""
        return self.waiting

    def silence(self) -> tuple[float, str | None] | None:
        """What the test said."""
        return self.silent


class FakeFleet:
    """Several of them."""

    def __init__(self, members: Sequence[FakeFeed]) -> None:
        self.members = list(members)
        self.title = f"{len(self.members)} ranks of train.py"
        self.jobs = Jobs()
        self.detached = 0

    def compare(self) -> None:
        """As the real one does."""
        for at, member in enumerate(self.members):
            self.jobs.see(at, member.model, job=member.job, host=member.host)

    def detach(self) -> None:
        """Counts that it was called."""
        self.detached += 1


class Script:
    """Writes the events of a job down, with a clock of its own."""

    def __init__(self) -> None:
        self.events: list[ev.Event] = []
        self.t = ATTACHED
        self._instrument = 0

    def add(self, event: ev.Event) -> None:
        """One more event."""
        self.events.append(event)

    def attach(self, torch: str | None = "2.13.0", command: str = "python train.py --size small") -> None:
        """The target, its thread and its host."""
        self.add(
            ev.TargetSeen(
                self.t,
                pid=4242,
                command=command,
                python="3.11.7",
                torch=torch,
                how="injected",
                wall_s=WALL,
                devices=("cpu",) if torch else (),
                recompile_limit=3,
            )
        )
        self.add(ev.ThreadSeen(self.t, 1, "main"))

    def compile(
        self,
        compile_id: str,
        function: str,
        file: str = MODEL,
        line: int = 12,
        took_s: float = 2.5,
        failed: Sequence[tuple[str, str]] = (),
        refused: bool = False,
        before: bool = False,
    ) -> None:
        """A compilation from begin to end."""
        began = self.t
        if not before:
            self.add(ev.CompileStarted(self.t, compile_id, 0, function, file, line, "main"))
        if failed:
            self.add(ev.GuardsFailed(self.t, compile_id, tuple(failed), before))
        self.t += int(took_s * S)
        self.add(
            ev.CompileFinished(
                self.t,
                compile_id,
                "forward",
                function,
                file,
                line,
                "main",
                began,
                None if refused else took_s,
                dynamo_s=None if refused else took_s * 0.2,
                aot_s=None if refused else took_s * 0.1,
                inductor_s=None if refused else took_s * 0.6,
                entries_before=int(compile_id.rsplit("/", 1)[1]),
                refused=refused,
                before_attach=before,
            )
        )

    def breaks(
        self,
        compile_id: str,
        line: int,
        reason: str,
        kind: str,
        file: str = MODEL,
        requested: bool = False,
    ) -> None:
        """A graph break."""
        self.add(
            ev.GraphBroke(
                self.t,
                compile_id,
                0,
                reason,
                kind,
                "GB0059",
                "forward",
                file,
                line,
                explanation="Dynamo does not know how to trace this call.",
                hints=("Move it out of the compiled function.", "Mark it with torch.compiler.disable."),
                requested=requested,
                stack=((TRAIN, 88, "<module>"), (file, line, "forward")),
            )
        )

    def instrument(self, role: ev.Role, compile_id: str | None, function: str, file: str = MODEL, line: int = 12) -> int:
        """A timer on something that runs; gives its number."""
        self._instrument += 1
        self.add(
            ev.InstrumentAdded(
                self.t, self._instrument, role, compile_id, f"__{role}_{self._instrument}", function, file, line, "inductor", 17
            )
        )
        return self._instrument

    def host(self, cpu: float = 98.0) -> None:
        """A reading of the host."""
        self.add(
            ev.HostSampled(
                self.t,
                cpu,
                1_288_490_188,
                23,
                61.0,
                9_663_676_416,
                33_567_539_200,
                run_queue_wait_s=1.25,
                major_faults=12,
                read_bytes=412_000_000,
                written_bytes=8_000_000,
            )
        )

    def status(self, samples: int, dropped: int = 0, hook_s: float = 0.004) -> None:
        """What the hook says of itself."""
        self.add(ev.HookStatus(self.t, samples, dropped, hook_s, (("regions", "on"), ("steps", "on"))))


class Job:
    """A training job with a logger in its forward pass, an `.item()` in a loop, and a ragged batch."""

    def __init__(self) -> None:
        self.script = Script()
        self.step = 0
        script = self.script
        script.attach()
        script.t += 50 * MS
        script.compile("0/0", "forward", took_s=3.2)
        script.breaks("0/0", 41, "Unsupported call: logging.Logger.info", "Attempted to call function marked as skipped")
        self.forward = script.instrument("forward", "0/0", "forward")
        self.logger = script.instrument("resume", "0/0", "torch_dynamo_resume_in_forward_at_41", line=41)
        script.compile("1/0", "torch_dynamo_resume_in_forward_at_41", line=41, took_s=1.1)
        script.breaks("1/0", 57, "Tensor.item() call", "Unsupported Tensor.item() call with capture_scalar_outputs=False")
        self.middle = script.instrument("forward", "1/0", "torch_dynamo_resume_in_forward_at_41", line=41)
        self.item = script.instrument("resume", "1/0", "torch_dynamo_resume_in_forward_at_57", line=57)
        script.compile("2/0", "loss_fn", file=TRAIN, line=30, took_s=0.6)
        script.breaks("2/0", 33, "Graph break requested", "Call to torch._dynamo.graph_break()", file=TRAIN, requested=True)
        self.loss = script.instrument("forward", "2/0", "loss_fn", file=TRAIN, line=30)
        self.asked = script.instrument("resume", "2/0", "torch_dynamo_resume_in_loss_fn_at_33", file=TRAIN, line=33)
        self.backward = script.instrument("backward", "0/0", "forward")
        self.optimizer = script.instrument("optimizer", None, "SGD.step")
        script.add(ev.GpuUnavailable(script.t, "no NVIDIA driver on this machine (libnvidia-ml.so.1 not found)"))

    def steps(self, count: int, length_ms: float = 24.0) -> None:
        """So many steps, each a little longer or shorter than the one before."""
        script = self.script
        for _ in range(count):
            begin = script.t
            factor = 1 + 0.12 * ((self.step * 7919) % 13 - 6) / 6
            unit = int(length_ms * factor * MS)
            rows = []
            t = begin
            for instrument, part in ((self.forward, 0.12), (self.middle, 0.2), (self.loss, 0.05), (self.backward, 0.3)):
                end = t + int(unit * part)
                rows.append((instrument, 1, 0, t, end))
                t = end
                if instrument == self.forward:
                    t += int(unit * 0.09)
                    rows.append((self.logger, 1, 0, t, t))
                elif instrument == self.middle:
                    for _ in range(1):
                        t += int(unit * 0.17)
                        rows.append((self.item, 1, 0, t, t))
                elif instrument == self.loss:
                    t += int(unit * 0.001)
                    rows.append((self.asked, 1, 0, t, t))
            end = begin + unit
            rows.append((self.optimizer, 1, 0, end - MS, end))
            script.t = end
            script.add(ev.Samples(end, tuple(rows)))
            self.step += 1

    def ragged(self, entry: int, size: int) -> None:
        """A batch of another size: a recompile."""
        guard = f"tensor 'x' size mismatch at index 0. expected 32, actual {size}"
        self.script.compile(f"0/{entry}", "forward", took_s=1.9, failed=[(f"0/{entry - 1}", guard)])
        self.script.instrument("forward", f"0/{entry}", "forward")


def busy() -> list[ev.Event]:
    """A job with two costly boundaries, a requested one, recompiles up to a refusal, and some hundred steps."""
    job = Job()
    job.steps(120)
    job.ragged(1, 17)
    job.steps(60)
    job.ragged(2, 9)
    job.script.compile(
        "0/3", "forward", failed=[("0/2", "tensor 'x' rank mismatch. expected 2, actual 3")], refused=True, took_s=0.01
    )
    for second in range(40):
        job.steps(2)
        job.script.host(80 + 7 * (second % 5))
    job.script.add(ev.Line(job.script.t, "epoch 1: loss 2.3012", "job"))
    job.script.status(4812, hook_s=0.0042)
    return job.script.events


def compiling() -> list[ev.Event]:
    """The same job in the middle of a compilation."""
    job = Job()
    job.steps(30)
    script = job.script
    script.status(700)
    script.add(ev.CompileStarted(script.t, "0/1", 0, "forward", MODEL, 12, "main"))
    script.add(ev.PhaseBegan(script.t, "0/1", "entire_frame_compile", "main"))
    script.add(ev.PhaseBegan(script.t + 800 * MS, "0/1", "inductor_compile", "main"))
    script.t += int(3.2 * S)
    script.host()
    return script.events


def empty() -> list[ev.Event]:
    """Attached, and nothing else yet."""
    script = Script()
    script.attach()
    script.add(ev.GpuUnavailable(script.t, "no NVIDIA driver on this machine (libnvidia-ml.so.1 not found)"))
    return script.events


def waiting() -> list[ev.Event]:
    """A job that has not imported torch yet."""
    script = Script()
    script.attach(torch=None)
    return script.events


def attaching() -> list[ev.Event]:
    """Nothing known yet: tuimon is about to attach."""
    return [ev.Attaching(ATTACHED, "attaching to process 4242, Python 3.11")]


def blocked() -> list[ev.Event]:
    """The job does not let the hook in yet."""
    sentence = "the main thread of process 4242 runs native code that holds the GIL"
    return [*attaching(), ev.Attaching(ATTACHED + 12 * S, sentence, 12.2)]


def ended() -> list[ev.Event]:
    """The busy job, over."""
    events = busy()
    last = max(event.t_ns for event in events)
    return [*events, ev.TargetEnded(last + S, "exited", "killed by signal 9 (out of memory?)", -9)]


def gpus(count: int = 2) -> list[ev.Event]:
    """The busy job on a node with GPUs."""
    events = [event for event in busy() if not isinstance(event, ev.GpuUnavailable)]
    last = max(event.t_ns for event in events)
    for reading in range(30):
        for index in range(count):
            events.append(
                ev.GpuSampled(
                    last + reading * S,
                    index,
                    "NVIDIA H100 80GB HBM3",
                    float((index * 31 + reading * 17) % 101),
                    (60 - index) << 30,
                    80 << 30,
                    power_w=611.0,
                    power_limit_w=700.0,
                    temperature_c=64.0,
                    sm_clock_mhz=1980.0,
                    sm_clock_max_mhz=1980.0,
                    throttle=("power cap",) if index == 1 else (),
                    missing=(("memory_clock_mhz", "not supported on this GPU"),),
                )
            )
    return events


def many(rows: int = 3000) -> list[ev.Event]:
    """Thousands of regions, boundaries and recompiles."""
    script = Script()
    script.attach()
    numbers = []
    for at in range(rows):
        script.compile(f"{at}/0", f"layer_{at}.forward", line=at + 1, took_s=0.001)
        script.breaks(f"{at}/0", at + 5, f"reason {at}", f"kind {at % 7}")
        numbers.append(script.instrument("forward", f"{at}/0", f"layer_{at}.forward", line=at + 1))
        script.compile(f"{at}/1", f"layer_{at}.forward", line=at + 1, took_s=0.001, failed=[(f"{at}/0", f"guard {at}")])
    optimizer = script.instrument("optimizer", None, "Adam.step")
    for _ in range(3):
        samples = []
        for at, number in enumerate(numbers):
            samples.append((number, 1, 0, script.t, script.t + 1000 + at))
            script.t += 2000 + at
        samples.append((optimizer, 1, 0, script.t, script.t))
        script.add(ev.Samples(script.t, tuple(samples)))
    return script.events


def awkward() -> list[ev.Event]:
    """Names that are long, wide, or not meant for a terminal."""
    script = Script()
    script.attach(command=f"python {WIDE}.py \x1b[31m[bold]red[/bold]\x07 " + LONG)
    for at, name in enumerate(
        (LONG, WIDE, "\x1b]0;evil\x07\u202egnp.exe", "[bold]markup[/]", "e\u0301\u200d\U0001f468\u200d\U0001f469")
    ):
        file = f"/home/user/{name}.py"
        script.compile(f"{at}/0", name, file=file, line=at + 1)
        script.breaks(f"{at}/0", at + 3, f"reason {name}\nsecond line", f"kind {name}", file=file)
        script.compile(f"{at}/1", name, file=file, line=at + 1, failed=[(f"{at}/0", f"guard {name} {LONG}")])
        script.instrument("forward", f"{at}/0", name, file=file, line=at + 1)
        script.add(ev.Line(script.t, f"{name} {LONG}", "job"))
    script.add(ev.GpuSampled(script.t, 0, WIDE, None, None, None, missing=(("utilization", "not supported"),)))
    script.add(ev.NotAvailable(script.t, f"thing {WIDE}", f"because {LONG}"))
    return script.events


REFUSAL = (
    "the kernel lets only a parent trace its children (kernel.yama.ptrace_scope = 1): run tuimon as root, "
    "or start the job with `tuimon run`, or set it to 0 with `sysctl kernel.yama.ptrace_scope=0`"
)


def fleet(size: int = 8) -> FakeFleet:
    """Ranks of one job, of which some are in trouble: 2 waits to be attached to, 3 was refused, 4 is slow, 5 compiles, 6 is
    stopped, 7 has ended; of more, the rest run."""
    troubles = {2: blocked, 3: list, 5: compiling, 7: ended}
    members = []
    for rank in range(size):
        events = troubles[rank]() if rank in troubles else _rank_events(rank, slow=rank == 4)
        if rank == 3:
            events = [*attaching(), ev.TargetEnded(ATTACHED + S, "refused", REFUSAL)]
        feed = FakeFeed(events, "python train.py --size small", rank)
        feed.silent = (41.0, "stopped") if rank == 6 else (None if rank in (2, 3, 7) else (0.4, None))
        members.append(feed)
    return FakeFleet(members)


def _rank_events(rank: int, slow: bool) -> list[ev.Event]:
    job = Job()
    for second in range(20):
        job.steps(3 if slow else 5, 40.0 if slow else 24.0)
        job.script.host(80 + 3 * (second % 7))
    job.script.status(3000)
    return job.script.events


SCENES = {
    "nothing": list,
    "empty": empty,
    "waiting": waiting,
    "busy": busy,
    "compiling": compiling,
    "attaching": attaching,
    "blocked": blocked,
    "ended": ended,
    "gpus": gpus,
    "awkward": awkward,
}
"""Name -> events, for tests that go over all of them."""
