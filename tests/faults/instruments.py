"""Each instrument of the hook in turn: raising when it is put in, at a later call, when it is taken out.

The hook is put into a process that trains (over a socket pair, without the injection). The failing is put where all instruments
pass: `Session.guarded` calls what may fail, `Undo` puts back. The job's losses have to be those of before, under the hook and
after it; nothing may reach the job; the instrument is told as failed, and what could not be put back is told as left.
"""

from __future__ import annotations

import random

from .table import ROOT, Tries, in_a_job

PROGRAM = """
import io, json, os, random, socket, sys, threading
sys.path.insert(0, {root!r})
import torch
from tuimon.hook import session as _session, undo as _undo, wire
torch.manual_seed(0); torch.set_num_threads(1)
net = torch.nn.Linear(8, 8)
first = {{name: value.clone() for name, value in net.state_dict().items()}}
@torch.compile(backend="aot_eager", dynamic=False)
def loss_of(x):
    y = net(x)
    torch._dynamo.graph_break()
    return y.pow(2).mean()
def epoch(batch=4):
    net.load_state_dict(first)
    optimizer, source, losses = torch.optim.SGD(net.parameters(), 0.1), torch.Generator().manual_seed(1), []
    for _ in range(5):
        optimizer.zero_grad(); loss = loss_of(torch.randn(batch, 8, generator=source)); loss.backward(); optimizer.step()
        losses.append(loss.item())
    return losses
reached = []
threading.excepthook = lambda what: reached.append(repr(what.exc_value))
sys.unraisablehook = lambda what: reached.append(repr(what.exc_value))
class Asked(Exception): pass
def raises(*args, **named): raise Asked("as asked")
guarded, add = _session.Session.guarded, _undo.Undo.add
calls, entries, plan = {{}}, [], {{"guarded": None, "at": 0, "undo": None, "really": True}}
def faulty(self, name, function, otherwise, *args):
    calls[name] = calls.get(name, 0) + 1
    if name == plan["guarded"] and calls[name] >= plan["at"]: function = raises
    return guarded(self, name, function, otherwise, *args)
def faulty_add(self, name, put_back):
    entries.append(name)
    if name != plan["undo"]: return add(self, name, put_back)
    def fails():
        if plan["really"]: put_back()
        raise Asked("as asked")
    return add(self, name, fails)
_session.Session.guarded, _undo.Undo.add = faulty, faulty_add
def drain(monitor, into):
    decoder = wire.Decoder()
    while data := monitor.recv(1 << 20):
        into += [wire.read_json(body) for kind, body in decoder.feed(data) if kind == wire.JSON_FRAME]
rights = {{batch: epoch(batch) for batch in (4, 5)}}
def one(**wanted):
    plan.update({{"guarded": None, "at": 0, "undo": None, "really": True}}, **wanted)
    calls.clear(); entries.clear(); reached.clear()
    torch._dynamo.reset()
    epoch()  # compiled before the attach; batch 5, under it
    job, monitor = socket.socketpair()
    session = _session.Session(job, {{}}, {{}})
    said = []
    try: session.install()
    except Exception as error: return f"install raised {{error!r}}"
    server, reader = threading.Thread(target=session.serve, daemon=True), threading.Thread(target=drain, args=(monitor, said))
    server.start(); reader.start()
    wrong = [batch for batch in (4, 5, 4) if epoch(batch) != rights[batch]]
    monitor.sendall(wire.json_frame({{"cmd": "window", "window": 1, "steps": 1, "dir": "/tmp"}}))
    wrong += [batch for batch in (4, 5) if epoch(batch) != rights[batch]]
    server.join(0.15)
    monitor.sendall(wire.json_frame({{"cmd": "detach"}}))
    server.join(30)
    if server.is_alive(): return "the hook is still in"
    job.shutdown(socket.SHUT_RDWR); job.close(); reader.join(30); monitor.close()
    wrong += [batch for batch in (4, 5) if epoch(batch) != rights[batch]]
    if wrong: return f"the losses are others at batches {{wrong}}"
    if reached: return f"it has reached the job: {{reached}}"
    goodbye = [message for message in said if message.get("k") == "detached"]
    if len(goodbye) != 1: return f"{{len(goodbye)}} goodbyes"
    states = {{name: state for message in said for name, state in (message.get("instruments") or {{}}).items()}}
    fired = plan["guarded"] is not None and calls.get(plan["guarded"], 0) >= plan["at"]
    if fired and "Asked" not in states.get(plan["guarded"], ""): return f"not told as failed: {{states.get(plan['guarded'])}}"
    left = goodbye[0]["left"]
    if plan["undo"] in entries and not any(name.startswith(plan["undo"]) for name in left): return f"not told as left: {{left}}"
    if plan["undo"] is None and left: return f"left: {{left}}"
    return ""
print(json.dumps(one()), flush=True)
names, places = sorted(calls), sorted(set(entries))
chance = random.Random(int(sys.argv[2]))
many = dict(calls)
tries = [dict(guarded=name, at=1) for name in names]
tries += [dict(guarded=name, at=max(2, chance.randint(1, many[name]))) for name in names]
tries += [dict(undo=name) for name in places]
if int(sys.argv[1]) < len(tries): tries = chance.sample(tries, int(sys.argv[1]))
else: tries += [dict(undo=name, really=False) for name in places]  # what is not taken out at all comes last: it stays
for wanted in tries:
    said = one(**wanted)
    print(json.dumps(said and f"{{wanted}}: {{said}}"), flush=True)
"""


def raising(tries: int, chance: random.Random) -> Tries:
    """Each instrument at its first call and at a later one, and each thing that is put back; where it is short, some."""
    return in_a_job(PROGRAM.format(root=str(ROOT)), tries, chance)
