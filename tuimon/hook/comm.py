"""Communication: timers on the methods of `torch.distributed`'s process groups, and on the wait for what they began.

Every collective of `torch.distributed` in eager code ends in one of these methods of C++, whatever the backend. The functions
`torch.distributed.*` themselves must stay what they are: Dynamo knows them by identity. What C++ begins by itself (the
all-reduce of DistributedDataParallel, collectives of compiled graphs) passes none of them.

A collective's number in its group, which all ranks count alike, goes with its sample, and with that of the wait for it.
"""

import sys
import time
import types
import weakref
from _thread import get_ident
from functools import partial

from .remains import Mortal
from .sites import LONG_NS

INSTRUMENT = "communication"
MODULE = "torch._C._distributed_c10d"
ALIKE = (
    "allreduce", "allreduce_coalesced", "broadcast", "reduce", "gather", "scatter", "barrier", "monitored_barrier",
    "allgather", "_allgather_base", "all_gather_single", "allgather_coalesced", "all_gather_single_coalesced",
    "allgather_into_tensor_coalesced", "reduce_scatter", "_reduce_scatter_base", "reduce_scatter_single",
    "reduce_scatter_single_coalesced", "reduce_scatter_tensor_coalesced", "alltoall", "alltoall_base", "all_to_all_single",
    "_end_coalescing",
)  # fmt: skip
"""Methods that all ranks of a group call in the same order: these have a number."""
SINGLE = ("send", "recv", "recv_anysource")
SEQUENCE = 8  # bits to shift, in a sample's flags
_MASK = 0xFFFFFF
MOST_WORKS = 1024  # of which it is known what they are a wait for


class Communication(metaclass=Mortal):
    """Times collectives and waits from the moment `torch.distributed` is there."""

    def __init__(self, hook):
        self._hook = hook
        self._on = False
        self._groups = {}  # id of a group -> (weak reference to it, its name, {method: (number, number of the wait)}, [counts])
        self._works = {}  # id of a work -> (weak reference to it, instrument of the wait, sequence number)
        self._others = None

    def watch(self):
        """Put the timers in; does nothing where `torch.distributed` is not loaded yet, or the second time."""
        module = sys.modules.get(MODULE)
        if self._on or module is None or not self._hook.can_skip or not _is_loaded("torch.distributed"):
            return
        group, work = getattr(module, "ProcessGroup", None), getattr(module, "Work", None)
        self._on = True
        if group is None or work is None:
            self._hook.instrument(INSTRUMENT, f"this torch has no {MODULE}.ProcessGroup")
            return
        for method in (*ALIKE, *SINGLE):
            self._put(group, method, self._begins(method))
        self._put(work, "wait", self._waits)
        self._hook.instrument(INSTRUMENT, "on")

    def _put(self, owner, name, make):
        # the very object in the class, not what `getattr` makes of it: a pybind method put back as that would not know `self`
        original = vars(owner).get(name)
        if original is None:
            return
        function = make(original)
        self._hook.skip(function)
        # of the same type: Dynamo does not look into such a method, but into a function it would
        ours = function if isinstance(original, types.FunctionType) else type(original)(function)
        setattr(owner, name, ours)
        self._hook.undo.attribute(owner, name, ours, original)

    # ---------------------------------------------------------------- what runs on the job's threads

    def _begins(self, method):
        now, here, guard, began = time.monotonic_ns, self._hook.here, self._hook.guarded, self._began

        def make(fn):
            def collective(*args, **kwargs):
                begin, work, raised = now(), None, 1
                try:
                    work = fn(*args, **kwargs)
                    raised = 0
                    return work
                finally:
                    if here[0]:
                        guard(INSTRUMENT, began, None, method, args, work, raised, begin, now())

            return collective

        return make

    def _waits(self, fn):
        now, here, guard, waited = time.monotonic_ns, self._hook.here, self._hook.guarded, self._waited

        def wait(*args, **kwargs):
            begin, raised = now(), 1
            try:
                result = fn(*args, **kwargs)
                raised = 0
                return result
            finally:
                if here[0]:
                    guard(INSTRUMENT, waited, None, args, raised, begin, now())

        return wait

    def _began(self, method, args, work, raised, begin, end):
        if not args:
            return
        group = args[0]
        entry = self._groups.get(id(group))
        if entry is None or entry[0]() is not group:
            entry = self._group(group)
        numbers = entry[2].get(method)
        if numbers is None:
            numbers = entry[2][method] = self._tell(method, entry[1])
        sequence = self._sequence(group, entry[3]) if method not in SINGLE and not raised else 0
        self._row(numbers[0], sequence, raised, begin, end)
        if work is not None:
            if len(self._works) >= MOST_WORKS:
                self._works.clear()
            key = id(work)
            # the callback is C alone, `pop(key, reference)`: it runs wherever the job drops the work
            self._works[key] = (weakref.ref(work, partial(self._works.pop, key)), numbers[1], sequence)

    def _waited(self, args, raised, begin, end):
        work = args[0] if args else None
        entry = self._works.get(id(work))
        if entry is not None and entry[0]() is work:
            self._row(entry[1], entry[2], raised, begin, end)
            return
        if self._others is None:  # begun before the attach, or by C++
            self._others = self._added("wait", "Work.wait", "")
        self._row(self._others, 0, raised, begin, end)

    def _row(self, number, sequence, raised, begin, end):
        outbox = self._hook.outbox
        if len(outbox.queue) < outbox.limit:
            outbox.queue.append((number, get_ident(), sequence << SEQUENCE | raised, begin, end))
            if end - begin >= LONG_NS:
                self._hook.sites.tell("communication", number, begin, end)
        else:
            outbox.dropped[0] += 1

    def _group(self, group):
        key = id(group)
        try:
            name = str(group.group_name)
        except Exception:  # noqa: BLE001 - a group that C++ has made may have none
            name = ""
        entry = (weakref.ref(group, partial(self._groups.pop, key)), name, {}, [True])
        self._groups[key] = entry
        return entry

    def _tell(self, method, group):
        """Instruments of a method of a group: of the call, and of the wait for what it began."""
        return (
            self._added(method, f"ProcessGroup.{method}", group),
            self._added(f"wait for {method}", "Work.wait", group),
        )

    def _added(self, name, function, group):
        number = self._hook.next_number()
        self._hook.send_added(number, "communication", None, name, function, "", 0, False, group=group)
        return number

    @staticmethod
    def _sequence(group, counts):
        """The group's count of collectives, of which this was the last one; 0 where its backend has none."""
        if counts[0]:
            try:
                return group._get_sequence_number_for_group() & _MASK
            except Exception:  # noqa: BLE001 - a backend without numbers says so by an exception
                counts[0] = False
        return 0


def _is_loaded(name):
    spec = getattr(sys.modules.get(name), "__spec__", None)
    return spec is not None and getattr(spec, "_initializing", False) is not True
