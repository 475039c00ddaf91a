"""How soon keys are answered on a slow line. Prints lines; asserts nothing.

    python -m tests.bench.keys [--line tty,ssh,real]

At 9,600 bit/s the seconds from a key until the first, second or last row is another one, and until the screen that it leads to
is there: behind a bare line ("tty"), behind one that takes all at once and passes it on ("ssh"), and by ssh from a real sshd
through a proxy that carries 960 bytes a second each way ("real").
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import shutil
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.bench.screen import ROOT, environment, program
from tests.support.slow_line import SlowLine

RATE = 960.0
WIDTH, HEIGHT = 80, 24
WARM_S = 25.0
KEYS = (
    ("space", " ", "FROZEN"),
    ("2", "2", "2 boundaries"),
    ("esc", "\x1b", ""),
    ("w", "w", ""),
    ("esc", "\x1b", ""),
    ("enter", "\r", ""),
    ("esc", "\x1b", ""),
    ("?", "?", "help"),
    ("esc", "\x1b", ""),
    ("/", "/", "filter"),
)


def say(text: str) -> None:
    """A line."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def keys(on: SlowLine, height: int) -> Iterator[str]:
    """Lines on how soon each key is answered."""
    on.until(lambda: on.sees("Hz"), 90.0)
    on.go_on(WARM_S)
    on.most_under_way, carried, began = 0, on.carried, time.monotonic()
    on.go_on(8.0)
    yield f"carries {(on.carried - carried) / (time.monotonic() - began):.0f} B/s, at most {on.most_under_way} B under way"
    worst = 0.0
    for name, key, wanted in KEYS:
        before, most = list(on.screen.display), on.most_under_way
        on.most_under_way = 0
        pressed = time.monotonic()
        on.write(key)
        first = on.until(_changed(on, before, height), 15.0)
        seen = on.until(lambda wanted=wanted: on.sees(wanted), 15.0) if wanted else None  # type: ignore[misc]
        there = time.monotonic() - pressed
        worst = max(worst, first if first is not None else 99.0)
        told = "nothing within 15 s" if first is None else f"{first:.2f} s"
        if wanted:
            told += f", there after {there:.2f} s" if seen is not None else f", no {wanted!r} within 15 s"
        yield f"{name:>6}: {told} ({on.most_under_way} B under way)"
        on.most_under_way = max(most, on.most_under_way)
        on.go_on(3.0)
    yield f"worst {worst:.2f} s to the first change"


def _changed(on: SlowLine, before: list[str], height: int) -> Callable[[], bool]:
    return lambda: any(on.screen.display[y] != before[y] for y in (0, 1, height - 1))


class Proxy:
    """Passes connections on to a port of this machine, at so many bytes a second each way."""

    def __init__(self, port: int, rate: float) -> None:
        self._to, self._rate = port, rate
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """No more connections."""
        self._server.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._server.accept()
                far = socket.create_connection(("127.0.0.1", self._to))
                for side in (near, far):
                    side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    side.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=(source, sink), daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(96):
                time.sleep(len(data) / self._rate)
                sink.sendall(data)
        for side in (source, sink):
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)


def real_line(folder: Path, scene: str, width: int, height: int) -> Iterator[str]:
    """The keys over a real ssh."""
    from tests.live.test_jobs_over_ssh import Shell

    shell = Shell(folder)
    proxy = Proxy(shell.port, RATE)
    try:
        env = environment(str(folder))
        told = " ".join(f"{name}={shlex.quote(env[name])}" for name in ("PYTHONPATH", "PYTHONUTF8", "XDG_CONFIG_HOME"))
        there = f"cd {ROOT}; exec env {told} {shlex.join(program(scene))}"
        argv = [*shlex.split(shell.command("shell")), "-tt", "-p", str(proxy.port), "127.0.0.1", there]
        on = SlowLine(argv, width, height, env, rate=1e9)
        try:
            yield from keys(on, height)
        finally:
            on.close()
    finally:
        proxy.close()
        shell.process.terminate()
        shell.process.wait()


def main() -> int:
    """Measure, and say it."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.keys", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--line", default="tty,ssh,real", help="some of them (default: all)")
    args = parser.parse_args()
    say(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for line in args.line.split(","):
        with tempfile.TemporaryDirectory() as folder:
            if line == "real":
                if shutil.which("ssh") is None or shutil.which("sshd", path="/usr/sbin:/usr/bin:/sbin") is None:
                    say("real: no ssh or sshd here")
                    continue
                found = real_line(Path(folder), "busy", WIDTH, HEIGHT)
            else:
                env = environment(folder, SSH_CONNECTION="192.0.2.1 1 192.0.2.2 22")
                on = SlowLine(program("busy"), WIDTH, HEIGHT, env, rate=RATE, mode="tty" if line == "tty" else "ssh")
                found = keys(on, HEIGHT)
            for told in found:
                say(f"{line:>4} {RATE:.0f} B/s, {WIDTH}x{HEIGHT}: {told}")
            if line != "real":
                on.close()
    say(f"load {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
