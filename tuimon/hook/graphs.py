"""Which backward belongs to which forward graph, where torch keeps no id with it.

A forward graph that AOTAutograd made is a chain of closures around `CompiledFunction.apply`, the autograd function whose
`backward` runs the other half. A graph that came out of a cache has lost the compile context that would name it; the chain
is still there.
"""

import functools
import types

FARTHEST = 14  # links; the chains of torch 2.9 to 2.14 have four to six up to the autograd function
MOST = 400  # objects looked at for one graph


def is_autograd_function(value):
    """Whether a class is one that AOTAutograd made, and not a user's of the same name."""
    return value.__name__ == "CompiledFunction" and value.__module__.startswith("torch._functorch") and "_aot_id" in vars(value)


def behind(graph, wanted, held):
    """What stands behind a compiled graph's callable: [(what, whether it was reached as a backward)], nearest first.

    `wanted` gives what it takes a value to be, or None; `held` what a value holds that can be called.
    """
    found, told, seen, near = [], set(), set(), [(graph, False)]
    for _ in range(FARTHEST):
        further = []
        for value, backward in near:
            if id(value) in seen or len(seen) > MOST:
                continue
            seen.add(id(value))
            what = wanted(value)
            if what is not None:
                if id(what) not in told:
                    told.add(id(what))
                    found.append((what, backward))
            elif not isinstance(value, type):
                further += [(one, backward) for one in held(value)]
            elif is_autograd_function(value):
                halves = [(vars(value).get(name), name == "compiled_bw") for name in ("compiled_fw", "compiled_bw")]
                further += [(getattr(half, "__func__", half), way) for half, way in halves if half is not None]
        near = further
    return found


def autograd_functions(graph):
    """The `CompiledFunction` classes behind a compiled graph's callable: one as a rule, none for a graph without gradients."""
    return [value for value, _ in behind(graph, _autograd_function, held_by)]


def _autograd_function(value):
    return value if isinstance(value, type) and is_autograd_function(value) else None


def held_by(value):
    """What a function, a partial or a method holds that can be called."""
    if isinstance(value, types.FunctionType):
        held = list(vars(value).values())
        for cell in value.__closure__ or ():
            try:
                held.append(cell.cell_contents)
            except ValueError:
                continue  # a variable that has no value yet
    elif isinstance(value, functools.partial):
        held = [value.func, *value.args, *value.keywords.values()]
    elif isinstance(value, (types.MethodType, types.BuiltinMethodType)):
        held = [value.__self__, getattr(value, "__func__", None)]
    else:
        return []
    return [item for item in held if callable(item)]
