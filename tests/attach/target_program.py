"""Programs to attach to: target_program.py MODE FILE. FILE holds eight counters that both sides map.

Counters: 0 rounds, 1 faults (each mode says what), 2 hits (an injected script counts itself there).
"""

import mmap
import os
import sys
import threading
import time

mode, path = sys.argv[1], sys.argv[2]
with open(path, "r+b") as file:
    counters = memoryview(mmap.mmap(file.fileno(), 4096)).cast("Q")


def busy():
    number = 0
    while True:
        for step in range(500):
            number += step
        counters[0] += 1


def sleeping():
    counters[0] = 1
    while True:
        time.sleep(600)


def lock():
    counters[0] = 1
    threading.Event().wait()


def idle_threads():
    """The main thread alternates between work and naps; four others sleep."""
    for _ in range(4):
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    while True:
        for _ in range(20):
            counters[0] += 1
        time.sleep(0.02)


def busy_threads():
    def work():
        while True:
            sum(range(1000))

    for _ in range(3):
        threading.Thread(target=work, daemon=True).start()
    busy()


def epoll():
    import selectors
    import socket

    ours, _theirs = socket.socketpair()
    selector = selectors.EpollSelector()
    selector.register(ours, selectors.EVENT_READ)
    while True:
        selector.select(0.01)
        counters[0] += 1


def raw_epoll():
    """C code that does not expect EINTR; each one seen is a fault."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    poller = libc.epoll_create1(0)
    room = ctypes.create_string_buffer(64)
    counters[0] = 1
    while True:
        if libc.epoll_wait(poller, room, 1, 300) < 0:
            counters[1] += 1
        counters[0] += 1


def forking():
    """Forks and starts programs all the time; a child that ends wrongly or does not end is a fault."""
    import select
    import subprocess

    while True:
        child = os.fork()
        if child == 0:
            threading.Lock().acquire()
            os._exit(7)
        # a descriptor to wait on with a limit: a child that hangs must show
        handle = os.pidfd_open(child) if hasattr(os, "pidfd_open") else None
        if handle is not None:
            if not select.select([handle], [], [], 10)[0]:
                counters[1] += 1
                os.kill(child, 9)
            os.close(handle)
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 7:
            counters[1] += 1
        if counters[0] % 10 == 0 and subprocess.run(["true"], check=False).returncode:
            counters[1] += 1
        counters[0] += 1


def memory():
    """Lives in malloc and free."""
    while True:
        blocks = [bytearray(150_000 + 1000 * size) for size in range(16)]
        del blocks
        counters[0] += 1


def floats():
    """A vector sum whose value is known: a lost vector register is a fault."""
    from array import array

    values = array("d", [1.0 / (1 + n) for n in range(2000)])
    import math

    right = math.fsum(values), sum(values)
    while True:
        if (math.fsum(values), sum(values)) != right:
            counters[1] += 1
        counters[0] += 1


def native():
    """Each round is half a second of native code that holds the GIL."""
    while True:
        sum(range(25_000_000))
        counters[0] += 1


def alarms():
    """A signal every millisecond; each lost by the program's own count is none of ours, but it must live."""
    import signal

    def on_alarm(_number, _frame):
        counters[3] += 1

    signal.signal(signal.SIGALRM, on_alarm)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    busy()


def limited(more):
    """May not have more memory than it has, but for so much."""
    import resource

    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[0])
    limit = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    counters[5] = 1
    busy()


def no_memory():
    limited(0)


def no_thread():
    limited(1 << 20)


globals()[mode]()
