"""Programs that keep an attach waiting: blocking_program.py MODE FILE SECONDS|FIFO. Counters as in target_program.py.

Counter 0: 1 when it is about to block, 2 when it has come back, then one more per round. Counter 6: set it to have it block,
for SECONDS or until something is written to FIFO. Counter 5: it does.
"""

import ctypes
import hashlib
import mmap
import os
import sys
import threading
import time

mode, path, until = sys.argv[1:]
with open(path, "r+b") as file:
    counters = memoryview(mmap.mmap(file.fileno(), 4096)).cast("Q")


def somebody_asleep():
    threading.Thread(target=threading.Event().wait, daemon=True).start()


def go_on():
    counters[0] = 2
    while True:
        for _ in range(100):
            pass
        counters[0] += 1
        time.sleep(0.001)


def blocked(work):
    counters[0] = 1
    while not counters[6]:
        time.sleep(0.001)
    counters[5] = 1
    work()
    go_on()


def free():
    """Native code without the GIL; another thread is asleep."""
    somebody_asleep()
    alone()


def alone():
    """Native code without the GIL, and nobody else."""
    begin = time.perf_counter()
    hashlib.pbkdf2_hmac("sha256", b"word", b"salt", 50_000)
    amount = int(50_000 * float(until) / (time.perf_counter() - begin))
    blocked(lambda: hashlib.pbkdf2_hmac("sha256", b"word", b"salt", amount))


def held():
    """Native code asleep with the GIL; another thread is asleep without it."""
    somebody_asleep()
    held_alone()


def held_alone():
    """Native code in a read with the GIL, and nobody else."""
    fifo, byte = os.open(until, os.O_RDWR), ctypes.create_string_buffer(1)
    blocked(lambda: ctypes.PyDLL(None).read(fifo, byte, 1))


def held_at_work():
    """Native code that works with the GIL, and nobody else."""
    begin = time.perf_counter()
    sum(range(1_000_000))
    amount = int(1_000_000 * float(until) / (time.perf_counter() - begin))
    blocked(lambda: sum(range(amount)))


def sleeping():
    """Python's own sleep."""
    blocked(lambda: time.sleep(float(until)))


def disk():
    """As in the depths of a file system: a parent waits so for its child of vfork(). SECONDS later the child ends."""
    library = ctypes.PyDLL(os.environ["BLOCK_LIBRARY"])
    blocked(lambda: library.block(int(until)))


def interpreters():
    """The main thread runs code in a sub-interpreter nearly all of the time."""
    try:
        import _interpreters as inner
    except ImportError:
        import _xxsubinterpreters as inner
    other = inner.create()
    run = getattr(inner, "run_string", None) or inner.exec
    while True:
        run(other, f"import time\nend = time.monotonic() + {until}\nwhile time.monotonic() < end: pass\n")
        counters[0] += 1


def signals():
    """Counts every signal that reaches it, by a handler and, for blocked ones, on a thread that waits for them."""
    import signal

    def count(_number, _frame):
        counters[3] += 1

    kept = {signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM}
    waited = {signal.SIGUSR1, signal.SIGUSR2, signal.SIGTRAP, signal.SIGRTMIN, signal.SIGRTMAX}
    for number in set(signal.valid_signals()) - kept:
        signal.signal(number, count)
    signal.pthread_sigmask(signal.SIG_BLOCK, waited)

    def wait():
        while True:
            if signal.sigtimedwait(waited, 5) is not None:
                counters[3] += 1

    threading.Thread(target=wait, daemon=True).start()
    go_on()


globals()[mode]()
