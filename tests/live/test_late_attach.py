"""Attached in the middle: of a compilation, forward or backward, or of a job that has compiled all that it needs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.hooked import DYNAMO, Outcome, run
from tuimon import events as ev
from tuimon.hook.now import PHASES

pytestmark = pytest.mark.live


def compile_held(tmp_path: Path, direction: str) -> Outcome:
    """Attach while Inductor builds the kernels of a forward or backward graph, look for a while, let it go on."""
    waits = 0 if direction == "forward" else 1
    return run(
        f"""
import threading, time, torch, torch._inductor.codecache as codecache
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4, bias=False)
    def forward(self, x):
        return self.layer(x)  # no kernel of Inductor's own, whose build would take most of the time
net = torch.compile(Net())
x = torch.ones(2, 4, requires_grad=True)
ready, go, left = threading.Event(), threading.Event(), [{waits}]
real = codecache.PyCodeCache.load_by_key_path.__func__
def load_by_key_path(cls, *args, **kwargs):
    if left[0] == 0:
        ready.set()
        go.wait(100)  # kernels that take their time
    left[0] -= 1
    return real(cls, *args, **kwargs)
codecache.PyCodeCache.load_by_key_path = classmethod(load_by_key_path)
def job():
    net(x).backward(torch.ones(2, 4))
thread = threading.Thread(target=job, name="job")
thread.start()
assert ready.wait(100)
try:
    attach()
    time.sleep(0.3)
finally:
    go.set()
thread.join()
detach()
""",
        tmp_path,
        how="injected",
    )


def cold(outcome: Outcome) -> list[dict[str, Any]]:
    """The messages about what was under way."""
    return [message for message in outcome.messages if message.get("k") == "compiling"]


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_a_compilation_under_way_is_named_at_once(tmp_path: Path, direction: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TORCHINDUCTOR_COMPILE_THREADS", "1")
    outcome = compile_held(tmp_path, direction)
    first = cold(outcome)[0]
    assert (first["direction"], first["compile_id"]) == (direction, "0/0")
    assert first["phase"] == "generating code" and first["phase"] in {words for _, _, words in PHASES}
    assert first["function"] == "forward" and first["file"].endswith("program.py")
    assert 0 < first["wall"] - first["since_wall"] < 100
    assert first["thread"].startswith("job") or direction == "backward"  # that one runs where autograd does
    (ack,) = [message for message in outcome.messages if message.get("k") == "ack"]
    assert 0 <= first["t"] - ack["t"] < 1_000_000_000
    started = [event for event in outcome.events if isinstance(event, ev.CompileStarted) and event.before_attach]
    assert [(event.compile_id, event.direction, event.since_known) for event in started] == [("0/0", direction, True)]
    # it comes to its end like any other, and what follows is told live
    ended = [one for one in outcome.model.compilations if one.direction == direction]
    assert [one.compile_id for one in ended] == ["0/0"] and outcome.model.running == {}
    assert ended[0].began_ns <= first["t"] <= ended[0].ended_ns
    assert outcome.model.frames["0:0"].name == "Net.forward"


BEFORE = """
import logging, torch, torch._dynamo
logging.getLogger("torch._dynamo").setLevel(logging.CRITICAL)
torch._dynamo.config.recompile_limit = 3
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)
    def forward(self, x):
        y = self.layer(x)
        print(
            end="")
        return y.sin()
net = torch.compile(Net(), backend="eager")
wrapped = torch.compile(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh()), backend="eager")
@torch.compile(backend="eager", dynamic=False)
def limited(x): return x.sin()
@torch.compile(backend="eager")
def looped(x):
    for i in range(3):
        x = x + 1
        torch._dynamo.graph_break()
    return x
def closed(k):
    @torch.compile(backend="eager")
    def same(x): return x * k
    return same
pair = [closed(2.0), closed(3.0)]
def go(n):
    for i in range(n):
        net(torch.ones(2, 4)); wrapped(torch.ones(2, 4)); looped(torch.ones(3)); limited(torch.ones(i % 6 + 1))
        pair[i % 2](torch.ones(3))
go(6); attach(); go(12); detach()
"""


@pytest.mark.parametrize("python", [sys.executable, "/opt/py/v3.12/bin/python"])
def test_all_that_runs_is_known_with_what_runs_in_eager(tmp_path: Path, python: str) -> None:
    if not Path(python).exists():
        pytest.skip(f"there is no {python} here")
    model = run(BEFORE, tmp_path, how="injected", after=DYNAMO, python=python).model
    lines = (tmp_path / "program.py").read_text().splitlines()
    breaks_at = lines.index("        print(") + 1  # of the call's two lines the first
    frames = {frame.name: frame for frame in model.frames.values()}
    assert all(frame.before_attach for frame in frames.values())
    assert frames["limited"].refused_compile_id is not None and frames["limited"].limit == 3
    assert (frames["limited"].compiled_calls, frames["limited"].eager_calls) == (6, 6)
    assert frames["looped"].skipped and frames["looped"].entries == []
    assert "Sequential" in frames and len({frame.code for frame in frames.values()}) == len(frames)
    (resumed,) = [one for one in model.boundaries.values() if not one.skipped_frame]
    assert resumed.line == breaks_at and resumed.crossings == 12 and resumed.before_attach
    (skipped,) = [one for one in model.boundaries.values() if one.skipped_frame]
    assert skipped.before_attach and skipped.kind == "Call to `torch._dynamo.graph_break()`"
    if python == sys.executable and sys.version_info < (3, 12):
        assert "frames.eager_calls" in model.coverage.not_available
    else:
        assert frames["looped"].eager_calls == 12 and skipped.crossings == 36 and skipped.counted.startswith("by line")
