"""The only code of the hook that runs in every step: the functions that stand in for a region or a resume function.

`outbox.room` is a list of one item: how many entries the queue may hold. It is 0 once the session is over and in a forked
child, which has our wrappers but no sender: a timer that is still called is silent then. So a call asks one thing.

Rules for these bodies. C functions only, bound to names before any call: under Dynamo's frame callback a Python call would be
looked at. One append a call. Nothing that can block, log or allocate more than the sample. They take arguments by position
alone, as Dynamo's code gives them to a graph and to a resume function, and autograd to a backward (tests/live/test_positional):
a `**kwargs` costs a dictionary a call.

A sample is a tuple, in the order of `wire.SAMPLE`: (number, thread's ident, flags, begin ns, end ns). To pack it here costs a
microsecond more in a real step, whose caches are cold; hot, in a loop of nothing else, one would not see it.
"""

import time
from _thread import get_ident
from operator import itemgetter

RAISED = 1

now, ident = time.monotonic_ns, get_ident


def call_timer(fn, number, outbox):
    """A function that calls `fn` and puts one sample for the call."""
    queue, room, dropped = outbox.queue, outbox.room, outbox.dropped
    put = queue.append

    def region(*args):
        begin = now()
        try:
            result = fn(*args)
        except BaseException:
            if len(queue) < room[0]:
                put((number, ident(), RAISED, begin, now()))
            elif room[0]:
                dropped[0] += 1
            raise
        if len(queue) < room[0]:
            put((number, ident(), 0, begin, now()))
        elif room[0]:
            dropped[0] += 1
        return result

    return region


def sized_timer(fn, number, outbox, sizes):
    """As `call_timer`, for a graph that takes sizes as arguments: each set of them has an instrument of its own.

    `sizes`: a `sizes.Sizes`, of which one call in Python is made for each set that has not come before.
    """
    queue, room, dropped = outbox.queue, outbox.room, outbox.dropped
    put = queue.append
    of, known, fresh = itemgetter(*sizes.places), sizes.numbers.get, sizes.fresh

    def region(*args):
        begin = now()
        try:
            result = fn(*args)
        except BaseException:
            if len(queue) < room[0]:
                put((number, ident(), RAISED, begin, now()))
            elif room[0]:
                dropped[0] += 1
            raise
        if len(queue) < room[0]:
            end = now()
            try:
                one = known(of(args)) or fresh(of(args))
            except Exception:  # noqa: BLE001 - another call than Dynamo makes; the job must never see it
                one = number
            put((one, ident(), 0, begin, end))
        elif room[0]:
            dropped[0] += 1
        return result

    return region


def resume_timer(fn, number, outbox):
    """A function that puts a sample with begin == end and then calls `fn`: the end of a boundary."""
    queue, room, dropped = outbox.queue, outbox.room, outbox.dropped
    put = queue.append

    def resume(*args):
        if len(queue) < room[0]:
            at = now()
            put((number, ident(), 0, at, at))
        elif room[0]:
            dropped[0] += 1
        return fn(*args)

    return resume


def cost_of_a_call(outbox_type):
    """What one timed call adds, in ns: the median over batches of an empty call with the timer less one without."""
    outbox = outbox_type(None)

    def nothing(argument):
        return argument

    timed = call_timer(nothing, 0, outbox)
    clock = time.perf_counter_ns
    costs = []
    for _ in range(9):
        begin = clock()
        for _ in range(20):
            timed(0)
        middle = clock()
        for _ in range(20):
            nothing(0)
        costs.append((2 * middle - begin - clock()) / 20)
    outbox.queue.clear()
    return max(0.0, sorted(costs)[4])
