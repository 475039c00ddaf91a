"""The only code of the hook that runs in every step: the functions that stand in for a region or a resume function.

`here` is a list of one item, true while the session lasts and in this process: a forked child has our wrappers but no sender,
and a timer that is still called after the detach must be silent.

Rules for these bodies. C functions only, bound to local names when the timer is made: under Dynamo's frame callback a Python
call would be looked at. One append a call. Nothing that can block, log or allocate more than the sample.

A sample is a tuple, in the order of `wire.SAMPLE`: (number, thread's ident, flags, begin ns, end ns). To pack it here costs a
microsecond more in a real step, whose caches are cold; hot, in a loop of nothing else, one would not see it.
"""

import time
from _thread import get_ident
from operator import itemgetter

RAISED = 1


def call_timer(fn, number, outbox, here):
    """A function that calls `fn` and puts one sample for the call."""
    now, ident, dropped, limit = time.monotonic_ns, get_ident, outbox.dropped, outbox.limit
    queue = outbox.queue
    put, raised = queue.append, RAISED

    def region(*args, **kwargs):
        begin = now()
        try:
            result = fn(*args, **kwargs)
        except BaseException:
            if here[0]:
                if len(queue) < limit:
                    put((number, ident(), raised, begin, now()))
                else:
                    dropped[0] += 1
            raise
        if here[0]:
            if len(queue) < limit:
                put((number, ident(), 0, begin, now()))
            else:
                dropped[0] += 1
        return result

    return region


def sized_timer(fn, number, outbox, here, sizes):
    """As `call_timer`, for a graph that takes sizes as arguments: each set of them has an instrument of its own.

    `sizes`: a `sizes.Sizes`, of which one call in Python is made for each set that has not come before.
    """
    now, ident, dropped, limit = time.monotonic_ns, get_ident, outbox.dropped, outbox.limit
    queue = outbox.queue
    put, raised, own = queue.append, RAISED, number
    of, known, fresh = itemgetter(*sizes.places), sizes.numbers.get, sizes.fresh

    def region(*args, **kwargs):
        begin = now()
        try:
            result = fn(*args, **kwargs)
        except BaseException:
            if here[0]:
                if len(queue) < limit:
                    put((own, ident(), raised, begin, now()))
                else:
                    dropped[0] += 1
            raise
        if here[0]:
            if len(queue) < limit:
                end = now()
                try:
                    number = known(of(args)) or fresh(of(args))
                except Exception:  # noqa: BLE001 - another call than Dynamo makes; the job must never see it
                    number = own
                put((number, ident(), 0, begin, end))
            else:
                dropped[0] += 1
        return result

    return region


def resume_timer(fn, number, outbox, here):
    """A function that puts a sample with begin == end and then calls `fn`: the end of a boundary."""
    now, ident, dropped, limit = time.monotonic_ns, get_ident, outbox.dropped, outbox.limit
    queue = outbox.queue
    put = queue.append

    def resume(*args, **kwargs):
        if here[0]:
            if len(queue) < limit:
                at = now()
                put((number, ident(), 0, at, at))
            else:
                dropped[0] += 1
        return fn(*args, **kwargs)

    return resume


def cost_of_a_call(outbox_type):
    """What one timed call adds, in ns: the median over batches of an empty call with the timer less one without."""
    outbox = outbox_type(None)

    def nothing(argument):
        return argument

    timed = call_timer(nothing, 0, outbox, [True])
    now = time.perf_counter_ns
    costs = []
    for _ in range(9):
        begin = now()
        for _ in range(20):
            timed(0)
        middle = now()
        for _ in range(20):
            nothing(0)
        costs.append((2 * middle - begin - now()) / 20)
    outbox.queue.clear()
    return max(0.0, sorted(costs)[4])
