"""The faults, in the order of the table. Those that a test of a room shows best are that test, run again."""

from __future__ import annotations

from . import attaching, clocks, connection, disk, instruments, monitors, screen
from .table import Fault, by_tests

FAULTS = (
    Fault("monitor killed while it attaches or streams, losses to the bit", 5, 500, monitors.killed),
    Fault("monitor killed with a profiler window open", 3, 50, monitors.killed_in_a_window),
    Fault("monitor stopped (SIGSTOP; 30 s each), counts exact", 1, 5, monitors.stopped),
    Fault("monitor stopped until the queue is full, dropped exact", 1, 5, monitors.overflowing),
    Fault(
        "line cut (SIGHUP), with the screen and over ssh",
        0,
        3,
        by_tests(
            "tests/app/test_terminal.py",
            "tests/relay/test_far.py",
            "tests/relay/test_near.py",
            "-k",
            "signal or hangs or SIGHUP or cut",
        ),
    ),
    Fault("terminal resized, 1 x 1 to 400 x 150", 60, 1000, screen.resized),
    Fault("disk full: -o of report, comparison, export", 5, 20, disk.written),
    Fault("disk full: the job's TMPDIR, with a profiler window", 2, 20, disk.of_the_job),
    Fault("connection torn inside a frame, hook to tuimon", 60, 200, connection.torn_on_the_way_here),
    Fault("connection torn inside a frame or mad, tuimon to hook", 10, 200, connection.torn_on_the_way_there),
    Fault("one bit of the stream flipped, two at every byte", 300, 2 * len(connection.STREAM), connection.flipped),
    Fault(
        "job forks, executes, is daemonised",
        0,
        3,
        by_tests("tests/attach/test_lost.py", "-k", "fork or exec or harmless"),
    ),
    Fault("torch._dynamo.reset() under way", 0, 10, by_tests("tests/live/test_hook.py", "-k", "reset")),
    Fault("the job raises inside a region", 0, 10, by_tests("tests/live/test_hook.py", "-k", "raises")),
    Fault("target exits during the attach", 8, 200, attaching.exits),
    Fault("target executes another program during the attach", 4, 100, attaching.execs),
    Fault("target has only just begun, and ends", 8, 500, attaching.begins),
    Fault("profiler windows on a job under way", 2, 300, monitors.windows),
    Fault("each instrument raising: first call, a later one, taken out", 6, 1000, instruments.raising),
    Fault("two monitors at once, one of them killed", 3, 50, attaching.two_at_once),
    Fault("wall clock set back and on: the job's, tuimon's", 2, 4, clocks.jumps),
)
