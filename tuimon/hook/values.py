"""Values of the job's own objects, read without running any code of the job.

The expressions are those of Dynamo's guard texts: `m`, `self._modules['d'].training`, `len(G['seen'])`, `x.size()[0]`. Python
would ask the objects for them, and an object can answer by code of its own: a property, a `__getattr__`, a key that compares
itself. So all of it goes by the slots that C fills: a type's own list of bases, an instance's `__dict__`, the storage of the
built-in containers. What cannot be read that way has no value here.
"""

import ast
import collections
import enum
import sys
import types
import weakref

from .remains import Mortal

LONGEST_GUARD = 500  # characters; longer ones are relations of many sizes, of which no one value tells anything
LONGEST = 200  # characters of an expression and of a value
MOST = 8  # expressions of one record
MOST_KEYS = 4096  # keys of a dict that are compared
SHORT = 60  # characters of a string that are shown

# types by their ids: to look for a type in a set asks it for its hash, and its metaclass may be the job's
_PLAIN = frozenset(map(id, (bool, int, float, complex, str, bytes, type(None))))
_KEYS = frozenset(map(id, (bool, int, float, str, bytes, type(None))))
_READABLE = frozenset(map(id, (types.FunctionType, types.MethodType, types.CellType, types.CodeType)))
_SLOTS = frozenset(map(id, (types.GetSetDescriptorType, types.MemberDescriptorType)))
bases = type.__dict__["__mro__"].__get__
members = type.__dict__["__dict__"].__get__
text = str.__str__
"""A plain string of one whose class may be the job's: names of types and functions can be such."""
_name = type.__dict__["__name__"].__get__
_LENGTHS = (list, tuple, dict, set, frozenset, str, bytes, range, collections.deque)
_NOTHING = object()
_PARSE = ast.PyCF_ONLY_AST


class Unreadable(Exception, metaclass=Mortal):
    """The value cannot be had without running code of the job."""


def type_name(value):
    """The name of a value's type."""
    return name_of(type(value))


def name_of(kind):
    """The name of a type."""
    return text(_name(kind))


def is_a(value, kind):
    """`isinstance` that never asks the value: where a type is no subclass, Python's own looks at the value's `__class__`."""
    return kind is not None and issubclass(type(value), kind)


def namespace(value):
    """An instance's own `__dict__`, None where it has none or where its class puts something else in that place."""
    for owner in bases(type(value)):
        held = members(owner).get("__dict__")
        if held is not None:
            found = held.__get__(value) if id(type(held)) in _SLOTS else None
            return found if type(found) is dict else None
    return None


def item(table, key):
    """What a dict holds under a key of a built-in type; `Unreadable` where there is none. No key of the job is asked."""
    if dict.__len__(table) <= MOST_KEYS and id(type(key)) in _KEYS:
        try:
            pairs = list(dict.items(table))
        except RuntimeError:  # another thread has put something in
            raise Unreadable from None
        for known, held in pairs:
            if type(known) is type(key) and known == key:
                return held
    raise Unreadable


def now(guard, local, everywhere):
    """[(expression, value)] for each expression of a guard's text that can be read: names in `local`, `G[..]` in `everywhere`.

    Both are dicts. The expressions stand as in the text; of a container under `not`, its `len(..)` is given.
    """
    if len(guard) > LONGEST_GUARD or "\\" in guard or "\n" in guard or "\0" in guard:
        return []  # a backslash can make the parser warn, and a warning is the job's to see
    try:
        tree = compile(guard, "<guard>", "eval", _PARSE, True)
        return _Reader(guard, local, everywhere).all_of(tree.body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []  # most guards are sentences


class _Reader(metaclass=Mortal):
    """Evaluates the expressions of one guard."""

    def __init__(self, text, local, everywhere):
        self._text = text.encode()  # the parser counts bytes
        self._local = local
        self._everywhere = everywhere
        self._found = {}

    def all_of(self, node):
        self._look(node, False)
        return list(self._found.items())

    def _look(self, node, negated):
        kind = type(node)
        if kind is ast.Constant:
            return
        if kind in (ast.Name, ast.Attribute, ast.Subscript, ast.Call):
            value = self._try(node)
            if value is not _NOTHING:
                length = _length(value) if negated else None
                if length is not None:
                    self._keep(f"len({self._source(node)})", length)
                else:
                    self._keep(self._source(node), value)
                return
            if kind is not ast.Call or _contains(node.func):
                return
            parts = node.args
            if _named(node.func, "___check_type_id") and parts:
                value = self._try(parts[0])
                if value is not _NOTHING:
                    self._keep(f"type({self._source(parts[0])})", type(value))
                return
        elif kind is ast.Compare:
            parts = [node.left, *node.comparators]
        elif kind is ast.BoolOp:
            parts = node.values
        elif kind is ast.BinOp:
            parts = [node.left, node.right]
        elif kind is ast.UnaryOp:
            self._look(node.operand, type(node.op) is ast.Not)
            return
        else:
            return
        for part in parts:
            self._look(part, False)

    def _source(self, node):
        return self._text[node.col_offset : node.end_col_offset].decode()

    def _keep(self, expression, value):
        if len(expression) <= LONGEST:
            self._found[expression] = words(value)[:LONGEST]

    def _try(self, node):
        try:
            return self._value(node)
        except Exception:  # noqa: BLE001 - unreadable, gone, or changed by another thread meanwhile
            return _NOTHING

    def _value(self, node):
        kind = type(node)
        if kind is ast.Name:
            return item(self._local, node.id)
        if kind is ast.Attribute:
            return attribute(self._value(node.value), node.attr)
        if kind is ast.Subscript:
            index = _constant(node.slice)
            if type(node.value) is ast.Name and node.value.id == "G":
                return item(self._everywhere, index)
            if type(node.value) is ast.Call and type(node.value.func) is ast.Attribute:
                sizes = self._of_tensor(node.value)
                if sizes is not None:
                    return tuple.__getitem__(sizes, index)
            return element(self._keys(node.value), index)
        if kind is ast.Call and not node.keywords:
            return self._called(node)
        raise Unreadable

    def _keys(self, node):
        """The value of a node; of `list(dict.keys(d))` and `list(d)` the list."""
        if type(node) is ast.Call and _named(node.func, "list") and len(node.args) == 1:
            inner = node.args[0]
            if type(inner) is ast.Call and _method(inner.func) == ("dict", "keys") and len(inner.args) == 1:
                inner = inner.args[0]
            held = self._value(inner)
            if is_a(held, dict) and dict.__len__(held) <= MOST_KEYS:
                return list(dict.keys(held))
            raise Unreadable
        return self._value(node)

    def _called(self, node):
        arguments = node.args
        if _named(node.func, "len") and len(arguments) == 1:
            length = _length(self._value(arguments[0]))
            if length is not None:
                return length
        elif _named(node.func, "type") and len(arguments) == 1:
            return type(self._value(arguments[0]))
        elif _named(node.func, "getattr") and len(arguments) == 2:
            return attribute(self._value(arguments[0]), _constant(arguments[1]))
        elif _method(node.func) in _GETTERS and len(arguments) == 2:
            return element(self._value(arguments[0]), _constant(arguments[1]))
        elif not arguments and type(node.func) is ast.Subscript:  # G['name'](): a weak reference
            reference = self._value(node.func)
            if type(reference) is weakref.ReferenceType:
                return reference()
        elif not arguments and type(node.func) is ast.Attribute:
            told = self._of_tensor(node)
            if told is not None:
                return told
        raise Unreadable

    def _of_tensor(self, node):
        """`x.size()`, `x.stride()`, `x.dim()`, `x.storage_offset()` of a plain tensor or parameter; None of anything else.

        A subclass, or a mode that the job has put on, would be asked by torch: no subclass here, and no modes meanwhile.
        """
        if node.func.attr not in ("size", "stride", "dim", "storage_offset"):
            return None
        tensor = self._value(node.func.value)
        torch, c = sys.modules.get("torch"), sys.modules.get("torch._C")
        parameter = getattr(sys.modules.get("torch.nn.parameter"), "Parameter", None)
        base, quiet = getattr(c, "TensorBase", None), getattr(c, "DisableTorchFunction", None)
        kind = type(tensor)
        if base is None or quiet is None or not (kind is torch.Tensor or kind is parameter):
            return None
        with quiet():
            return getattr(base, node.func.attr)(tensor)


_GETTERS = (("dict", "__getitem__"), ("list", "__getitem__"), ("tuple", "__getitem__"))


def _named(node, name):
    return type(node) is ast.Name and node.id == name


def _method(node):
    return (node.value.id, node.attr) if type(node) is ast.Attribute and type(node.value) is ast.Name else None


def _contains(node):
    """Whether a guard asks a container for a key: what came is plain from the guard, and the container has no short value."""
    return _named(node, "___dict_contains") or (type(node) is ast.Attribute and node.attr == "__contains__")


def _constant(node):
    if type(node) is ast.UnaryOp and type(node.op) is ast.USub and type(node.operand) is ast.Constant:
        return -node.operand.value
    if type(node) is ast.Constant and id(type(node.value)) in _KEYS:
        return node.value
    raise Unreadable


def _length(value):
    for kind in _LENGTHS:
        if issubclass(type(value), kind):
            return kind.__len__(value)
    return None


def element(value, index):
    """`value[index]` of a list, a tuple or a dict, or of a class made from one; whatever that class overrides is not asked."""
    if is_a(value, dict):
        return item(value, index)
    for kind in (list, tuple):
        if is_a(value, kind):
            return kind.__getitem__(value, index)
    raise Unreadable


def attribute(value, name):
    """`value.name` where it is stored: a slot, the instance's `__dict__`, a module's tables or, if it is plain, the class."""
    if is_a(value, types.ModuleType):
        return item(namespace(value) or {}, name)
    of_class = _NOTHING
    for owner in bases(type(value)):
        of_class = members(owner).get(name, _NOTHING)
        if of_class is not _NOTHING:
            break
    kind = type(of_class)
    if kind is types.MemberDescriptorType:
        return of_class.__get__(value)
    if kind is types.GetSetDescriptorType and id(type(value)) in _READABLE:
        return of_class.__get__(value)
    if of_class is not _NOTHING and id(kind) not in _PLAIN and kind is not types.FunctionType:
        raise Unreadable  # a property, or another thing that answers for the instance
    table = namespace(value)
    if table is not None:
        try:
            return item(table, name)
        except Unreadable:
            pass
        for tables in ("_parameters", "_buffers", "_modules") if is_a(value, module_type()) else ():
            try:
                return item(item(table, tables), name)
            except Unreadable:
                continue
    if id(kind) in _PLAIN:
        return of_class
    raise Unreadable


def module_type():
    """`torch.nn.Module`, None where torch is not there."""
    return getattr(sys.modules.get("torch.nn.modules.module"), "Module", None)


def words(value):
    """A value in words: plain ones as Python writes them, the names of enum members, functions and classes; else the type's."""
    kind = type(value)
    if kind is str or kind is bytes:
        return repr(value[:SHORT])
    if kind is int and value.bit_length() > 256:
        return "int of more than 256 bits"
    if id(kind) in _PLAIN:
        return repr(value)
    if kind is types.FunctionType:
        return f"function {text(value.__name__)}"
    if kind is types.CodeType:
        return f"code of {text(value.co_name)}"
    if kind is type or is_a(value, type):
        return name_of(value)
    if is_a(value, enum.Enum):
        name = (namespace(value) or {}).get("_name_")
        return f"{name_of(kind)}.{name}" if type(name) is str else name_of(kind)
    torch = sys.modules.get("torch")
    if kind is getattr(torch, "dtype", None) or kind is getattr(torch, "device", None):
        return repr(value)
    return name_of(kind)
