"""Which instrument a call of a graph with dynamic sizes belongs to: one for each set of sizes, up to a number.

Dynamo hands such a graph the sizes themselves, as plain ints among its arguments, each under the name of its symbol. So calls
that do other amounts of work are told apart without looking at a tensor.
"""

import sys
from operator import itemgetter

from .remains import Mortal

MOST = 64  # sets of sizes of one graph; the calls at others stay under the graph's own number


class Sizes(metaclass=Mortal):
    """The sizes that one graph takes, and the instruments of those that have come."""

    def __init__(self, hook, number, symbols):
        self._hook = hook
        self._number = number
        self._names = [name for _, name in symbols]
        self.places = [place for place, _ in symbols]
        self.numbers = {}
        """An int, or a tuple of ints where there are several -> the instrument."""
        self._of = itemgetter(*self.places)
        self.about = ()
        """(compile id, name, function, file, line) that the graph's own instrument was told with."""

    @classmethod
    def taken_by(cls, hook, number, graph):
        """Those of a graph of Dynamo's (its `OutputGraph`); None where its sizes are fixed."""
        symbols = symbols_of(graph)
        return cls(hook, number, symbols) if symbols else None

    def of(self, args):
        """The instrument of a call with these arguments. Never raises."""
        try:
            return self.numbers.get(self._of(args)) or self.fresh(self._of(args))
        except Exception:  # noqa: BLE001 - another call than Dynamo makes; the job must never see it
            return self._number

    def fresh(self, values):
        """The instrument for values that have none yet."""
        if len(self.numbers) >= MOST:
            return self._number
        sizes = values if type(values) is tuple else (values,)
        if not all(type(size) is int for size in sizes):
            return self._number
        number, told = self._hook.next_number(), list(zip(self._names, sizes))  # noqa: B905 - 3.10 syntax
        self._hook.send_variant(number, self._number, told, self.about)
        # after it is told: another thread's sample must not come first. Two that are first at once make two; both are right
        self.numbers[values] = number
        return number


def symbols_of(graph):
    """[(place, name)] of the sizes that a graph of Dynamo's takes as arguments; none for one of fixed sizes."""
    number = getattr(sys.modules.get("torch"), "SymInt", None)
    made = getattr(graph, "graph", None)
    if number is None or made is None:
        return []
    taken = [node for node in made.nodes if node.op == "placeholder"]
    values = [node.meta.get("example_value") for node in taken]
    return [(place, str(value)) for place, value in enumerate(values) if isinstance(value, number)]
