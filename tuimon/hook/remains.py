"""What is left of the hook once it is out: freed at once, without the job's garbage collector.

Functions know their module's names and those know the functions; a class is in its own list of bases. Such circles wait for
the collector, and what has lived for some hundred steps waits for a full collection, which a job of torch's size begins only
after tens of thousands of objects more: one attach after the other adds to the job's memory. To begin one ourselves would
stop the job for as long as it takes. So the collector's own question is asked of our objects alone: is each of them known by
nobody but the others? If so they are taken apart. If not (a thread of the job is in a function of ours, somebody has wrapped
one) nothing is touched, and the collector sees to it one day.
"""


class Mortal(type):
    """The type of every class of the hook: such a class can be freed without the collector."""

    def mro(cls):
        """The class and its bases, as ever; without the class itself once it has been given up."""
        return [object] if "given_up" in vars(cls) else type.mro(cls)


def let_go(roots, package):
    """Free what is reached from the list `roots` if all of it that is ours is known nowhere else; gives whether it was so.

    The list is emptied then, and as it was otherwise.

    `package` is the name of the hook's package. This function is among what is freed: whoever calls it calls a copy that has
    other globals, so it uses none.
    """
    import gc
    import sys
    import types

    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return False  # other threads run at any time, so nothing can be counted
    module_of = type.__dict__["__module__"].__get__  # runs no code of a foreign class
    holders = (dict, list, set, tuple, staticmethod, classmethod, property, types.CellType, types.MethodType)
    holders += (types.BuiltinMethodType, types.GetSetDescriptorType, types.MemberDescriptorType)
    globals_of_ours = {id(vars(one)) for one in roots if isinstance(one, types.ModuleType)}

    def is_ours(one):
        if type(one) is types.FunctionType:
            return id(one.__globals__) in globals_of_ours
        if type(one) is types.ModuleType:
            return id(vars(one)) in globals_of_ours
        module = module_of(one if issubclass(type(one), type) else type(one))
        return type(module) is str and module.partition(".")[0] == package

    def known_among(objects):
        known = dict.fromkeys(map(id, objects), 0)
        for other in gc.get_referents(*objects):
            if id(other) in known:
                known[id(other)] += 1
        return list(known.values())

    count_of_roots = len(roots)
    objects = [object(), *roots]  # the first is known to nobody: it tells how many references the counting itself makes
    roots.clear()
    seen = {*map(id, objects), id(sys.modules), id(vars(sys.modules["builtins"]))}
    at = 0
    while at < len(objects):
        for other in gc.get_referents(objects[at]):
            if id(other) not in seen and gc.is_tracked(other) and (type(other) in holders or is_ours(other)):
                seen.add(id(other))
                objects.append(other)
        at += 1
        if at > 20000:  # the hook is some two thousand: something of the job's is within reach
            roots += objects[1 : count_of_roots + 1]
            return False
    other = None

    # the references are counted in one call in C, during which no other thread runs; nothing may have moved around it
    known = known_among(objects)
    counted = list(map(sys.getrefcount, objects))
    if known_among(objects) != known:
        roots += objects[1 : count_of_roots + 1]
        return False
    lives = {id(one): one for one, count, inside in zip(objects, counted, known) if count - inside > counted[0]}  # noqa: B905
    near = list(lives.values())
    while near:
        if is_ours(near[-1]):
            roots += objects[1 : count_of_roots + 1]
            return False
        for other in gc.get_referents(near.pop()):
            if id(other) in seen and id(other) not in lives:
                lives[id(other)] = other
                near.append(other)

    rest = [one for one in objects if id(one) not in lives]
    for one in rest:
        if is_ours(one) and not issubclass(type(one), (type, types.ModuleType, types.FunctionType)):
            vars(one).clear()
    classes = [one for one in rest if issubclass(type(one), type)]
    for one in sorted(classes, key=lambda one: type(one) is type):  # their type has to be whole until the last of them
        for name in list(vars(one)):
            if name not in ("__dict__", "__module__", "__doc__"):
                delattr(one, name)
        if type(one) is not type:
            one.given_up = True
            one.__bases__ = one.__bases__  # asks for `mro` again
    # what a thread of the job finds meanwhile (`gc.get_objects`) can still be asked for the module and the name of its class
    names_of = {id(table) for one in classes for table in gc.get_referents(one) if type(table) is dict}
    for one in rest:
        if id(one) in names_of:
            one.pop("__dict__", None)
        elif type(one) in (dict, list, set):
            one.clear()
        elif type(one) is types.CellType:
            one.cell_contents = None
    return True
