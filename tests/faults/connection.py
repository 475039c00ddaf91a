"""The connection between the hook and tuimon: torn at any byte, in both directions, and with any byte of it another one."""

from __future__ import annotations

import random
import socket
import threading
from typing import Any

from tests.sources.test_live_anything import MESSAGES, SAMPLES
from tuimon.attach.connection import Session
from tuimon.hook import wire
from tuimon.model import Model
from tuimon.report import build
from tuimon.sources.live import LiveDecoder

from .table import ROOT, CannotTry, Tries, in_a_job

FRAMES = [wire.json_frame(message) for message in MESSAGES] + [wire.samples_frame(SAMPLES * 8)]
STREAM = b"".join(FRAMES)
FLIPS = (0x01, 0x80)


def torn_on_the_way_here(tries: int, chance: random.Random) -> Tries:
    """The stream ends in the middle of a frame: what came before it is handed on, the end is told once, no thread stays."""
    ends = [sum(map(len, FRAMES[: number + 1])) for number in range(len(FRAMES))]
    first = len(STREAM) - len(FRAMES[-1])  # the frame of samples: a good part of the cuts
    for number in range(tries):
        at = chance.randrange(first, len(STREAM)) if number % 2 else chance.randrange(len(STREAM))
        ours, its = socket.socketpair()
        taken: list[tuple[int, bytes]] = []
        ended: list[str] = []
        over = threading.Event()
        session = Session(ours, wire.Decoder(), [], pid=1, hello={}, how="run")
        session.start(
            lambda kind, body, taken=taken: taken.append((kind, body)),  # type: ignore[misc]
            lambda how, ended=ended, over=over: (ended.append(how), over.set())[1],  # type: ignore[misc]
        )
        cut = chance.randrange(at + 1)  # the bytes come in two pieces
        its.sendall(STREAM[:cut])
        its.sendall(STREAM[cut:at])
        its.close()
        told = over.wait(30)
        session.close()
        whole = sum(end <= at for end in ends)
        if not told or ended != ["connection closed"] or len(taken) != whole:
            yield f"cut at byte {at}: {len(taken)} of {whole} frames handed on, ended {ended}"
        elif any(thread.name.startswith("tuimon reader") for thread in threading.enumerate()):
            yield f"cut at byte {at}: the reader's thread is still there"
        else:
            yield ""


def flipped(tries: int, chance: random.Random) -> Tries:
    """One bit of the stream is another: the decoder refuses it or gives events, which the model takes and a report tells."""
    places = [(at, flip) for at in range(len(STREAM)) for flip in FLIPS]
    if tries < len(places):
        places = sorted(chance.sample(places, tries))
    elif tries > len(places):
        raise CannotTry(f"there are {len(places)} places")
    before: list[Any] = []
    for number, (at, flip) in enumerate(places):
        stream = bytearray(STREAM)
        stream[at] ^= flip
        try:
            events = _events(bytes(stream))
            if number % 16 == 0 or len(events) != len(before):
                model = Model()
                model.apply(events)
                build(model)
            before = events
            yield ""
        except Exception as error:  # noqa: BLE001 - whatever comes is what is looked for
            yield f"byte {at} ^ {flip:#x}: {type(error).__name__}: {error}"


def _events(stream: bytes) -> list[Any]:
    decoder, live, events = wire.Decoder(), LiveDecoder(None, "job.py", "run"), []
    try:
        for kind, body in decoder.feed(stream):
            events += live.frame(kind, body)
    except wire.WireError:
        pass
    return events


# the hook's end: a job that trains, into which the hook is put again and again, each time with another thing said to it
AT_THE_HOOK = """
import json, os, random, socket, struct, sys, threading, time
sys.path.insert(0, {root!r})
import torch
from tuimon.hook import session as _session, wire
torch.manual_seed(0); torch.set_num_threads(1)
net = torch.nn.Linear(8, 8)
first = {{name: value.clone() for name, value in net.state_dict().items()}}
@torch.compile(backend="aot_eager")
def loss_of(x):
    y = net(x)
    torch._dynamo.graph_break()
    return y.pow(2).mean()
def epoch():
    net.load_state_dict(first)
    optimizer, source, losses = torch.optim.SGD(net.parameters(), 0.1), torch.Generator().manual_seed(1), []
    for _ in range(5):
        optimizer.zero_grad(); loss = loss_of(torch.randn(4, 8, generator=source)); loss.backward(); optimizer.step()
        losses.append(loss.item())
    return losses
right = epoch(); epoch()
chance = random.Random(int(sys.argv[2]))
def frame(body, kind=1, length=None): return struct.pack("<BI", kind, len(body) if length is None else length) + body
COMMANDS = [{{"cmd": "window", "window": 1, "steps": 2, "dir": "/nowhere"}}, {{"cmd": "window_cancel", "window": 1}}]
THINGS = [
    lambda: (whole := b"".join(frame(json.dumps(one).encode()) for one in COMMANDS))[: chance.randrange(len(whole))],
    lambda: bytes(byte ^ (1 << chance.randrange(8) if at == hit else 0) for hit in [chance.randrange(80)]
                  for at, byte in enumerate(frame(json.dumps(COMMANDS[0]).encode()))),
    lambda: frame(json.dumps({{"cmd": chance.choice(["", "x", None, [], {{}}, 7, "window", "step"]),
        "window": chance.choice([None, -1, "x", [], 1e99, 2**70]),
        "steps": chance.choice([None, -1, "x", 2**70])}}).encode()),
    lambda: frame(b"", length=64 << 20) + bytes(chance.randrange(1 << 20)),
    lambda: frame(b"", length=(64 << 20) + 1),
    lambda: frame(b"", length=2**32 - 1),
    lambda: frame(b"[" * chance.randrange(100_000)),
    lambda: os.urandom(chance.randrange(1, 5000)),
    lambda: frame(bytes(chance.randrange(1, 40)), kind=2),
    lambda: frame(b"{{}}", kind=chance.randrange(3, 256)),
]
def one(number):
    job, monitor = socket.socketpair()
    session = _session.Session(job, {{}}, {{}})
    session.install()
    server = threading.Thread(target=session.serve, daemon=True)
    server.start()
    reader = threading.Thread(target=drain, args=(monitor,), daemon=True)
    reader.start()
    if epoch() != right: return "the losses are others under the hook"
    try: monitor.sendall(THINGS[number % len(THINGS)]())
    except OSError: pass  # it has hung up on us already
    if epoch() != right: return "the losses are others after what was said"
    try: monitor.shutdown(socket.SHUT_RDWR)
    except OSError: pass
    server.join(30)
    if server.is_alive(): return "the hook is still in"
    reader.join(30); job.close(); monitor.close()
    if session.undo._entries: return "not put back: " + str(session.undo._entries)
    if epoch() != right: return "the losses are others after the end"
    return ""
def drain(monitor):
    try:
        while monitor.recv(1 << 20): pass
    except OSError: pass
one(0)
before = len(os.listdir("/proc/self/fd")), threading.active_count()
for number in range(int(sys.argv[1])):
    said = one(number)
    now = len(os.listdir("/proc/self/fd")), threading.active_count()
    said = said or ("" if now == before else f"descriptors and threads {{before}} -> {{now}}")
    print(json.dumps(said and f"{{number % len(THINGS)}}: {{said}}"), flush=True)
"""


def torn_on_the_way_there(tries: int, chance: random.Random) -> Tries:
    """What tuimon says is cut, changed, unknown or endless: the hook takes itself out, and the job trains on as it did."""
    return in_a_job(AT_THE_HOOK.format(root=str(ROOT)), tries, chance)
