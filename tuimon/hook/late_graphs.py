"""Graphs that were compiled before the attach by a backend that keeps them as they are ("eager", "aot_eager" and the like).

Such a backend calls the graph's own `forward`, so the graph is reached from the compiled callable. It is written down here by
reading its nodes: names, targets, arguments, and of what flows between them dtype, sizes and strides. None of torch's own
printing is called, for that asks the symbolic shapes, which other threads may be at.
"""

import sys

from .graphs import behind, held_by

MOST_NODES = 20_000  # some 10 us each, on the hook's thread
CALLED_BY = ("forward", "_lazy_forward")
DEEPEST = 4  # lists within lists, in arguments


def graph_modules(graph):
    """[(torch.fx graph, whether it was found as a backward)] behind a compiled graph's callable, nearest first."""
    return behind(graph, _called_graph, held_by)


def _called_graph(value):
    return _graph_of(getattr(value, "__self__", None)) if getattr(value, "__name__", "") in CALLED_BY else None


def _graph_of(value):
    """The graph of a torch.fx GraphModule; None for anything else. A class's own attributes are not asked: no code runs."""
    if not any(base.__module__ == "torch.fx.graph_module" and base.__name__ == "GraphModule" for base in type(value).__mro__):
        return None
    return vars(value).get("_graph")


def written(graph):
    """(text, whether it is on aten's level) of a torch.fx graph, in the form in which torch prints one.

    Raises ValueError where it is too large, and what comes of a torch that keeps its nodes in another way.
    """
    places, lines, last, aten = [], [], "", True
    for count, node in enumerate(graph.nodes):
        if count >= MOST_NODES:
            raise ValueError(f"more than {MOST_NODES} nodes")
        annotation = _annotation(node.meta.get("val", node.meta.get("example_value")))
        told = f'{node.name}: "{annotation}"' if annotation else node.name
        if node.op == "placeholder":
            places.append(told)
        elif node.op == "output":
            last = f"return {_text(node.args[0] if node.args else None)}"
        else:
            aten = aten and (node.op == "get_attr" or (node.op == "call_function" and _is_aten(node.target)))
            in_place = _in_place(node)
            lines.append(f"{in_place};  {told} = {_text(node.args[0])}" if in_place else f"{told} = {_right(node)}")
    body = "\n        ".join([*lines, last])
    return f"class GraphModule(torch.nn.Module):\n    def forward(self, {', '.join(places)}):\n        {body}\n", aten


def _is_aten(target):
    return type(target).__name__ == "OpOverload" or getattr(target, "__module__", "") in ("_operator", "math")


def _in_place(node):
    """A statement such as "a += b"; "" for a node that is none."""
    if node.op != "call_function" or getattr(node.target, "__module__", "") != "_operator":
        return ""
    form = sys.modules["torch.fx.graph"].inplace_methods.get(node.target.__name__, "")
    return form.format(*[_text(one) for one in node.args])


def _right(node):
    """What stands on the right of a node's "="."""
    words = [_text(one) for one in node.args]
    if node.op == "get_attr":
        return "self.attribute"
    if node.op == "call_method":
        return f"{words[0]}.{node.target}({', '.join([*words[1:], *_named(node)])})"
    if node.op != "call_function":  # a module: what it computes is not written in this graph
        return f"torch.ops.module.call({', '.join(words)})"
    target = node.target
    name, module = getattr(target, "__name__", ""), getattr(target, "__module__", "")
    if module == "_operator":
        if name == "getitem":
            return f"{words[0]}[{words[1]}]"
        forms = sys.modules["torch.fx.graph"]
        if name in forms.magic_methods:
            return forms.magic_methods[name].format(*words)
    if target is getattr and isinstance(node.args[1], str) and node.args[1].isidentifier():
        return f"{words[0]}.{node.args[1]}"
    return f"{sys.modules['torch.fx.node']._get_qualified_name(target)}({', '.join([*words, *_named(node)])})"


def _named(node):
    return [f"{name} = {_text(one)}" for name, one in node.kwargs.items()]


def _text(value, depth=0):
    """An argument as text: nodes by their names, plain values as Python writes them; anything else is not told."""
    if type(value).__name__ == "Node" and type(value).__module__ == "torch.fx.node":
        return value.name
    if value is None or type(value) in (bool, int, float, str):
        return repr(value)
    if depth < DEEPEST and isinstance(value, (list, tuple)):
        parts = ", ".join([_text(one, depth + 1) for one in value])
        return f"[{parts}]" if isinstance(value, list) else f"({parts}{',' if len(value) == 1 else ''})"
    if depth < DEEPEST and type(value) is slice:
        return f"slice({', '.join([_text(one, depth + 1) for one in (value.start, value.stop, value.step)])})"
    if type(value).__module__ == "torch" and type(value).__name__ in ("dtype", "device", "layout", "memory_format"):
        return str(value)
    return "..."


def _annotation(value):
    """As torch prints a value's type, "f32[16, 64][64, 1]"; "" for what is no plain tensor and no size."""
    kind = type(value)
    if kind.__module__ == "torch" and kind.__name__ in ("SymInt", "SymFloat", "SymBool"):
        return f"Sym({_size(value)})"
    if (kind.__module__, kind.__name__) not in (
        ("torch._subclasses.fake_tensor", "FakeTensor"),
        ("torch", "Tensor"),
        ("torch.nn.parameter", "Parameter"),
    ):
        return ""
    short = getattr(sys.modules.get("torch.fx.graph"), "dtype_abbrs", {}).get(value.dtype)
    if short is None or str(value.layout) != "torch.strided":
        return ""
    return f"{short}[{', '.join(map(_size, value.shape))}][{', '.join(map(_size, value.stride()))}]"


def _size(value):
    """A size: digits, or the expression that torch gave it; it is not asked again, for that would look into the shapes."""
    return str(value) if type(value) is int else str(value.node._expr)
