"""Programs to attach to: target_program.py MODE FILE [SECONDS]. FILE holds eight counters that both sides map.

Counters: 0 rounds, 1 faults (each mode says what), 2 hits (an injected script counts itself there).
"""

import mmap
import os
import sys
import threading
import time

mode, path = sys.argv[1], sys.argv[2]
long_s = float(sys.argv[3]) if len(sys.argv) > 3 else 20.0
with open(path, "r+b") as file:
    counters = memoryview(mmap.mmap(file.fileno(), 4096)).cast("Q")
one_at_a_time = threading.Lock()  # for scripts that count themselves from threads of their own


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


def forking_from_two_threads():
    """Forks some 50 times a second on the main thread while another one forks and starts programs; a hung child is a fault."""
    import select
    import subprocess

    def one(code):
        child = os.fork()
        if child == 0:
            threading.Lock().acquire()
            threading.current_thread()
            os._exit(code)
        handle = os.pidfd_open(child)
        if not select.select([handle], [], [], 20)[0]:
            counters[1] += 1
            os.kill(child, 9)
        os.close(handle)
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != code:
            counters[1] += 1

    def another():
        while True:
            one(8)
            if subprocess.run(["true"], check=False).returncode:
                counters[1] += 1
            counters[3] += 1

    threading.Thread(target=threading.Event().wait, daemon=True).start()  # somebody asleep, to be borrowed
    threading.Thread(target=another, daemon=True).start()
    while True:
        one(7)
        end = time.monotonic() + 0.015
        while time.monotonic() < end:  # as a job between two forks: it runs
            pass
        counters[0] += 1


def states_and_forks():
    """Forks while threads that C code has made come and go: each makes its thread state without the GIL.

    Where CPython lacks the fix of python/cpython#112275 some of the children hang; each is a fault.
    """
    import ctypes
    import select

    libc = ctypes.CDLL(None)
    nothing = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(lambda _: None)

    def come_and_go():
        thread = ctypes.c_ulong()
        while True:
            libc.pthread_create(ctypes.byref(thread), None, nothing, None)
            libc.pthread_join(thread, None)
            counters[3] += 1

    threading.Thread(target=come_and_go, daemon=True).start()
    while True:
        child = os.fork()
        if child == 0:
            threading.Lock().acquire()
            os._exit(7)
        handle = os.pidfd_open(child)
        if not select.select([handle], [], [], 5)[0]:
            counters[1] += 1
            os.kill(child, 9)
        os.close(handle)
        os.waitpid(child, 0)
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


def checksum():
    """Vector arithmetic whose result is known, with numpy where there is one."""
    try:
        import numpy
    except ImportError:
        floats()
    values = numpy.random.default_rng(0).standard_normal((200, 200))

    def result():
        return (numpy.sin(values) * values + values @ values).tobytes()

    right = result()
    while True:
        if result() != right:
            counters[1] += 1
        counters[0] += 1


def _amount(function, seconds):
    """For which amount `function` takes so long."""
    amount = 1000
    while True:
        begin = time.perf_counter()
        function(amount)
        took = time.perf_counter() - begin
        if took > 0.05:
            return int(amount * seconds / took)
        amount *= 4


def native_free():
    """Each round is `long_s` of native code without the GIL."""
    import hashlib

    def work(amount):
        return hashlib.pbkdf2_hmac("sha256", b"word", b"salt", amount)

    amount = _amount(work, long_s)
    counters[0] = 1
    while True:
        work(amount)
        counters[0] += 1


def native_held():
    """Each round is `long_s` of native code that holds the GIL."""
    amount = _amount(lambda amount: sum(range(amount)), long_s)
    counters[0] = 1
    while True:
        sum(range(amount))
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
