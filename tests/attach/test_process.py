"""The list of processes. Most programs here have a file mapped that looks like libtorch: no torch need be loaded for that."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tuimon.attach.find import belongings, command_lines, family, ranks
from tuimon.attach.find.process import Target, describe, find_targets
from tuimon.attach.refusal import Refused

from .conftest import Start, become_nobody, needs_tracing, until

pytestmark = needs_tracing

TORCH = """
import mmap, os, sys, time
def load_torch(path):
    file = open(path, "rb")
    kept.append(mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ))
    kept.append(mmap.mmap(-1, 200 << 20))
kept = []
def ready():
    os.write(1, b"%d\\n" % os.getpid())
"""
Run = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A file that looks like libtorch from outside."""
    return make_library(tmp_path, "2.13.0+cpu")


def make_library(directory: Path, version: str) -> Path:
    """The same, of any version."""
    place = directory / f"site-{version}" / "torch"
    (place / "lib").mkdir(parents=True)
    (place / "version.py").write_text(f"from typing import Optional\n__version__ = '{version}'\n")
    file = place / "lib" / "libtorch_cpu.so"
    file.write_bytes(bytes(4096))
    return file


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """run(script, *words, env=.., module=..) starts a Python program; it is ended with all that it has started."""
    running: list[subprocess.Popen[bytes]] = []

    def begin(script: str, *words: object, name: str = "train.py", **environment: str) -> subprocess.Popen[bytes]:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(TORCH + script)
        process = subprocess.Popen(
            [sys.executable, str(file), *map(str, words)],
            stdout=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, **environment},
        )
        running.append(process)
        return process

    yield begin
    for process in running:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def pids(process: subprocess.Popen[bytes], count: int = 1) -> list[int]:
    """The pids that a program and its children write when they are ready."""
    assert process.stdout is not None
    return [int(process.stdout.readline()) for _ in range(count)]


def entry(pid: int) -> Target:
    """The list's entry for a process."""
    found = describe(pid)
    assert found is not None
    return found


def shown() -> list[int]:
    """What `tuimon list` shows."""
    return [target.pid for target in find_targets()]


def test_what_it_says_of_a_program(start: Start) -> None:
    program = start(
        "sleeping", environment={"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "TORCHELASTIC_RUN_ID": "nightly"}
    )
    target = entry(program.pid)
    assert (target.kind, target.rank, target.local_rank, target.world_size, target.job) == ("job", 3, 1, 8, "nightly")
    assert target.attachable and target.how in ("injected", "remote_exec") and target.why is None
    assert target.python == "{}.{}".format(*sys.version_info)
    assert target.has_torch is False and target.gpus == [] and target.container is None
    assert "sleeping" in target.command
    assert 0 <= target.age < 300
    assert program.pid not in shown()  # no torch in it


def test_program_with_torch_is_shown(run: Run, library: Path) -> None:
    program = run("load_torch(sys.argv[1]); ready(); time.sleep(600)", library)
    pids(program)
    target = entry(program.pid)
    assert target.has_torch and target.kind == "job" and program.pid in shown()
    assert belongings.torch_version(program.pid, str(library)) == "2.13.0+cpu"


def test_rank_that_has_not_loaded_torch_is_shown_below_its_launcher(run: Run) -> None:
    script = (
        "import subprocess\n"
        "if len(sys.argv) > 1: ready(); time.sleep(600)\n"
        "program = sys.argv[0].replace('torchrun', 'train.py')\n"
        "subprocess.run([sys.executable, program, 'rank'], env={**os.environ, 'RANK': '0'})\n"
    )
    run(script, "rank", name="train.py")
    launcher = run(script, name="torchrun")
    (rank,) = pids(launcher)
    listed = {target.pid: target for target in find_targets()}
    assert listed[launcher.pid].kind == "launcher" and listed[launcher.pid].code == "launcher"
    assert listed[rank].has_torch is False and listed[rank].parent == launcher.pid and listed[rank].rank == 0


def test_script_of_a_shell_leads_where_it_has_started_several_jobs(run: Run, library: Path, tmp_path: Path) -> None:
    run("", library)
    file = tmp_path / "go.sh"
    command = f"RANK=$rank {sys.executable} {tmp_path / 'job.py'} {library} &"
    file.write_text(f"for rank in 0 1; do {command} done; wait\n")
    (tmp_path / "job.py").write_text(TORCH + "load_torch(sys.argv[1]); ready(); time.sleep(600)")
    shell = subprocess.Popen(["/bin/sh", str(file)], stdout=subprocess.PIPE, start_new_session=True)
    try:
        jobs = pids(shell, 2)
        listed = {target.pid: target for target in find_targets()}
        assert listed[shell.pid].kind == "launcher" and {listed[job].parent for job in jobs} == {shell.pid}
    finally:
        os.killpg(shell.pid, signal.SIGKILL)
        shell.communicate()


FORKING = """
load_torch(sys.argv[1])
if os.fork() == 0:
    if len(sys.argv) > 3:
        import ctypes
        ctypes.CDLL(None).prctl(15, sys.argv[3].encode(), 0, 0, 0)
    ready()
    time.sleep(600)
while sys.argv[2] == "works":
    sum(range(1000))
os.wait()
"""


@pytest.mark.parametrize(
    ("version", "parent", "name", "kinds"),
    [
        ("2.13.0", "works", "", ("job", "worker")),  # a pool's worker
        ("2.13.0", "works", "pt_data_worker", ("job", "loader worker")),
        ("2.13.0", "works", "pt_gloo_runloop", ("job", "job")),  # has a process group of its own
        ("2.13.0", "waits", "", ("launcher", "job")),  # start_processes(start_method="fork")
        ("2.1.0", "waits", "", ("job", "worker")),  # this torch does not name its workers: it could be one
        ("2.1.0", "waits", "pt_gloo_runloop", ("launcher", "job")),
    ],
)
def test_forked_children(run: Run, tmp_path: Path, version: str, parent: str, name: str, kinds: tuple[str, str]) -> None:
    program = run(FORKING, make_library(tmp_path, version), parent, *([name] if name else []))
    (child,) = pids(program)
    until(lambda: (entry(program.pid).kind, entry(child).kind) == kinds)
    assert entry(child).parent == program.pid
    if kinds[1] == "loader worker":
        assert entry(child).code == "loader-worker" and str(program.pid) in str(entry(child).why)


SPAWNING = """
import multiprocessing
def work(library, own):
    if library:
        load_torch(library)
    ready()
    time.sleep(600)
if __name__ == "__main__":
    if sys.argv[2] == "loads":
        load_torch(sys.argv[1])
    worker = multiprocessing.get_context("spawn").Process(target=work, args=(sys.argv[1], False))
    worker.start()
    worker.join()
"""


def test_worker_of_a_server_is_a_job_and_the_supervisor_is_none(run: Run, library: Path) -> None:
    server = run(SPAWNING, library, "supervises")
    (worker,) = pids(server)
    until(lambda: entry(worker).kind == "job" and entry(server.pid).kind == "launcher")
    assert worker in shown()


def test_spawned_process_that_is_still_starting_is_not_offered(run: Run, library: Path) -> None:
    script = SPAWNING.replace(
        "def work", "if __name__ != '__main__':\n    load_torch(sys.argv[1]); ready(); time.sleep(600)\ndef work"
    )
    program = run(script, library, "loads")
    (child,) = pids(program)
    assert entry(child).kind == "worker" and child not in shown()


def test_program_started_with_its_parents_command_line_is_a_job(run: Run, library: Path) -> None:
    """Lightning starts its ranks so."""
    script = (
        "import subprocess\nload_torch(sys.argv[1])\n"
        "if 'LOCAL_RANK' not in os.environ:\n"
        "    rank = {'LOCAL_RANK': '1', 'NODE_RANK': '0', 'WORLD_SIZE': '2'}\n"
        "    subprocess.Popen([sys.executable, *sys.argv], env={**os.environ, **rank})\n"
        "ready()\nwhile True: sum(range(1000))\n"
    )
    program = run(script, library)
    (child,) = [pid for pid in pids(program, 2) if pid != program.pid]
    target = entry(child)
    assert (target.kind, target.parent, target.rank, target.world_size) == ("job", program.pid, 1, 2)
    assert entry(program.pid).kind == "job"


def test_notebook_kernel_is_a_job(run: Run, library: Path) -> None:
    kernel = run(
        "load_torch(sys.argv[1]); ready(); time.sleep(600)", library, "-f", "kernel.json", name="ipykernel_launcher.py"
    )
    pids(kernel)
    assert entry(kernel.pid).kind == "job" and kernel.pid in shown()


def test_other_users_process(run: Run, library: Path, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    program = run("load_torch(sys.argv[1]); ready(); time.sleep(600)", library, JOB="x")
    pids(program)
    source = Path(family.__file__).resolve().parents[2]
    script = (
        f"import sys; sys.path.insert(0, {str(source)!r})\n"
        "from tuimon.attach.find.process import describe\n"
        f"target = describe({program.pid})\nprint(target.kind, target.has_torch, target.gpus, target.attachable, target.code)\n"
    )
    python = "/usr/bin/python3"
    try:
        ran = subprocess.run([python, "-c", script], preexec_fn=become_nobody, capture_output=True, text=True, check=False)
    except OSError:
        pytest.skip("no Python here that another user can run")
    if ran.returncode:
        pytest.skip(f"another user cannot run tuimon here: {ran.stderr.strip().splitlines()[-1]}")
    assert ran.stdout.split() == ["job", "None", "None", "False", "uid"]


def test_process_in_namespaces_of_its_own(library: Path, tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(TORCH + "load_torch(sys.argv[1]); ready(); time.sleep(600)")
    with subprocess.Popen(
        ["unshare", "-mp", "--fork", "--mount-proc", "--kill-child", sys.executable, str(file), str(library)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as outer:
        assert outer.stdout is not None and outer.stderr is not None
        said = outer.stdout.readline()
        if not said:
            pytest.skip(f"no namespaces here: {outer.stderr.read().decode().strip()}")
        try:
            assert int(said) == 1
            inner = next(target for target in find_targets() if target.command[-1:] == [str(library)])
            assert inner.container == "yes" and inner.attachable and inner.kind == "job"
        finally:
            outer.kill()


def test_not_us() -> None:
    assert os.getpid() not in [target.pid for target in find_targets(everything=True)]


def test_stopped_program_says_what_to_do(start: Start) -> None:
    program = start("busy")
    os.kill(program.pid, signal.SIGSTOP)
    until(lambda: entry(program.pid).code == "stopped")
    target = entry(program.pid)
    assert not target.attachable and target.how is None
    assert target.why is not None and "kill -CONT" in target.why


# ----------------------------------------------------------------------------------------------------- without processes


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("/opt/bin/python3.11 /opt/bin/torchrun --nproc-per-node 2 train.py", "torchrun"),
        ("python -u -W ignore -m torch.distributed.run train.py", "torch.distributed.run"),
        ("python -m torch.distributed.launch train.py", "torch.distributed.launch"),
        ("python /site/torch/distributed/run.py train.py", "torch.distributed.run"),
        ("python /opt/bin/accelerate launch train.py", "accelerate"),
        ("python -m accelerate.commands.launch train.py", "accelerate.commands.launch"),
        ("python /opt/bin/deepspeed train.py", "deepspeed"),
        ("python -u -m deepspeed.launcher.launch --world_info=x train.py", "deepspeed.launcher.launch"),
        ("mpirun -n 2 python train.py", "mpirun"),
        ("srun python train.py", "srun"),
        ("slurmstepd: [42.0]", "slurmstepd"),
        ("python train.py --launcher torchrun", None),
        ("python -m mytorchrun", None),
        ("python -c print('torchrun')", None),
        ("python", None),
    ],
)
def test_launchers(command: str, name: str | None) -> None:
    assert command_lines.launcher(command.split()) == name


def test_our_own_command_lines() -> None:
    assert command_lines.is_tuimon(["python", "-m", "tuimon", "attach", "1"])
    assert command_lines.is_tuimon(["/usr/bin/python3", "/usr/local/bin/tuimon", "list"])
    assert command_lines.is_tuimon(["python", "-I", "-S", "-c", "from tuimon.attach.inject.helper import main"])
    assert not command_lines.is_tuimon(["python", "train.py", "--monitor", "tuimon"])
    assert not command_lines.is_tuimon(["python", "-m", "tuimonitor"])


def test_shells() -> None:
    assert command_lines.is_script_of_a_shell(["bash", "-e", "train.sh"])
    assert command_lines.is_script_of_a_shell(["/bin/sh", "-c", "python train.py"])
    assert not command_lines.is_script_of_a_shell(["-bash"]) and not command_lines.is_script_of_a_shell([])


@pytest.mark.parametrize(
    ("environment", "place"),
    [
        ({"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "8"}, (3, 1, 8, None)),
        ({"RANK": "0", "WORLD_SIZE": "2", "SLURM_PROCID": "5", "SLURM_NTASKS": "9"}, (0, None, 2, None)),
        ({"SLURM_PROCID": "5", "SLURM_NTASKS": "9", "SLURM_LOCALID": "1", "SLURM_JOB_ID": "77"}, (5, 1, 9, "77")),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "9", "ENVIRONMENT": "BATCH", "SLURM_JOB_NAME": "a"}, (None, None, None, "a")),
        ({"SLURM_JOB_NAME": "llama", "SLURM_JOB_ID": "77", "TORCHELASTIC_RUN_ID": "none"}, (None, None, None, "llama (77)")),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}, (1, 1, 2, None)),
        ({"PMI_RANK": "1", "PMI_SIZE": "2"}, (1, None, 2, None)),
        ({"NODE_RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "4"}, (None, 1, 4, None)),
        ({"RANK": "x", "WORLD_SIZE": "-1"}, (None, None, None, None)),
        ({}, (None, None, None, None)),
    ],
)
def test_place_in_the_environment(
    environment: dict[str, str], place: tuple[int | None, int | None, int | None, str | None]
) -> None:
    assert ranks.place(environment) == place


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("12", 12), ("", None), ("x", None), (None, None), ("-1", None)])
def test_numbers_in_the_environment(text: str | None, number: int | None) -> None:
    assert ranks.number(text) == number


IDENTITY = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (f"0::/system.slice/docker-{IDENTITY}.scope", IDENTITY[:12]),
        (f"12:pids:/docker/{IDENTITY}", IDENTITY[:12]),
        (f"0::/kubepods.slice/kubepods-pod12.slice/cri-containerd-{IDENTITY}.scope", IDENTITY[:12]),
        (f"5:cpu:/kubepods/burstable/pod12ab/{IDENTITY}", IDENTITY[:12]),
        (f"0::/machine.slice/libpod-{IDENTITY}.scope/container", IDENTITY[:12]),
        ("0::/lxc.payload.web/init.scope", "web"),
        ("0::/user.slice/user-1000.slice/session-3.scope", None),
        ("0::/", None),
    ],
)
def test_container_in_the_cgroup(line: str, name: str | None) -> None:
    assert belongings.container_in_cgroup(f"{line}\n") == name


def test_gpus() -> None:
    fds = ["/dev/nvidia0", "/dev/nvidia3", "/dev/nvidiactl", "/dev/nvidia-uvm", "/tmp/x"]
    mapped = "7f00-7f01 rw-s 0 00:06 9 /dev/nvidia3\n"
    cuda = "7f00-7f01 r-xp 0 00:06 9 /usr/lib/libcuda.so.1\n"
    assert belongings.gpus(fds, "", {}) == [0, 3]
    assert belongings.gpus(fds, mapped, {}) == [3]  # all are open, this one is in use
    assert belongings.gpus([], cuda, {"CUDA_VISIBLE_DEVICES": "2,1"}) == [1, 2]
    assert belongings.gpus([], cuda, {"CUDA_VISIBLE_DEVICES": "MIG-1"}) is None
    assert belongings.gpus([], cuda, {}) is None
    assert belongings.gpus([], "", {"CUDA_VISIBLE_DEVICES": "2"}) == []
    assert belongings.gpus(None, None, {}) is None


def test_refusals_name_the_process() -> None:
    with pytest.raises(Refused):
        from tuimon.attach.find.choice import choose

        choose([2**22 + 5], False)
