"""Attaching, detaching and `tuimon run` change nothing that Dynamo counts and no bit of any tensor.

One program with what is hard: breaks in the middle and in a loop, a recompile, the limit, a backward inside a compiled step.
`make cases-neutral` does the same with every case program.
"""

from __future__ import annotations

import sys

import pytest

from tests.cases import neutral

pytestmark = pytest.mark.live
pytest.importorskip("torch")

STEPS = 14
PROGRAM = f"""\
import os, sys, time
import torch

PACE = float(os.environ["PACE"])
time.sleep(float(os.environ["WAIT"]))
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
seen = []

@torch.compile(backend="aot_eager")
def train(x):
    opt.zero_grad()
    loss = net(x).abs().mean()
    print(end="")
    loss.backward()
    opt.step()
    return loss.detach()

@torch.compile(backend="eager")
def pick(x):
    if x.sum().item() > 0:
        x = x + 1
    return x.cos()

@torch.compile(backend="eager")
def read(x):
    for _ in range(2):
        x = x.sin()
        seen.append(x.max().item())
    return x

@torch.compile(backend="eager", dynamic=False)
def grow(x):
    return x * 2

for i in range({STEPS}):
    loss = train(torch.randn(4 + i % 2, 8))
    picked, grown, left = pick(torch.randn(3)), grow(torch.ones(2 + i)), read(torch.ones(2))
    time.sleep(PACE)
"""


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> neutral.Three:
    program = tmp_path_factory.mktemp("neutral") / "program.py"
    program.write_text(PROGRAM)
    return neutral.watch(program, sys.executable, STEPS)


def test_the_program_is_the_same_with_and_without_tuimon(three: neutral.Three) -> None:
    assert three.differences() == []


def test_the_witness_sees_the_compilations_and_the_tensors(three: neutral.Three) -> None:
    """Lest the comparison be one of nothing with nothing."""
    (witness,) = three.alone.values()
    assert len(witness["steps"]) == STEPS and {"net", "opt", "loss", "picked"} <= set(witness["steps"][-1])
    assert witness["steps"][0]["net"] != witness["steps"][-1]["net"]
    assert sum(witness["counters"]["frames"].values()) > 10 and len(witness["metrics"]) > 10
    assert witness["guard failures"] and witness["breaks"]
