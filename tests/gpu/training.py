"""The job of the check: training steps of a compiled bf16 network, with the hook in it, that tell what torch itself measures.

`tests.support.hooked` runs it: `attach` and `detach` are its names. It goes on the CPU too, smaller, where a device is missing.
"""

PROGRAM = """
import json, os, time
import torch
device, backend, folder = {device!r}, {backend!r}, {folder!r}
cuda = device.startswith("cuda")
width, batch, steps = (4096, 8192, 100) if cuda else (64, 16, 20)
more_s, rest_s = (2.0, 3.5) if cuda else (0.3, 0.0)  # a device's clock and pool tell late, a CPU has neither
torch.manual_seed(0)
network = torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.GELU(), torch.nn.Linear(width, width))
network = network.to(device, torch.bfloat16)
optimizer = torch.optim.SGD(network.parameters(), lr=1e-3)
x = torch.randn(batch, width, device=device, dtype=torch.bfloat16)
compiled = torch.compile(network, backend=backend)

def wait():
    if cuda: torch.cuda.synchronize()

def step():
    loss = compiled(x).float().square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)

attach()
for _ in range(20): step()
wait()
took = []
for _ in range(steps):
    if cuda:
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record(); step(); end.record(); wait()
        took.append(begin.elapsed_time(end))
    else:
        begin = time.perf_counter(); step(); took.append((time.perf_counter() - begin) * 1e3)
_hooked.monitor.sendall(_wire.json_frame({{"cmd": "window", "window": 1, "steps": 5, "most_s": 5.0, "dir": folder}}))
until, seen = time.monotonic() + 20, None
while time.monotonic() < (seen + more_s if seen else until):
    step()
    wait()
    if seen is None and any(name.endswith(".json") for name in os.listdir(folder)):
        seen = time.monotonic()
time.sleep(rest_s)
told = {{"pid": os.getpid(), "torch": torch.__version__, "step_ms": sorted(took)[len(took) // 2]}}
if cuda:
    told["stats"] = {{name: value for name, value in torch.cuda.memory_stats().items() if isinstance(value, int)}}
    properties = torch.cuda.get_device_properties(0)
    told["uuid"] = str(properties.uuid)
detach()
print(json.dumps(told))
"""
