"""Guard texts as torch writes them, and how each is to be read: (text, kind, subject, before, now).

Those of torch 2.13 were taken from recompiles that were provoked; those in the manner of 2.9 name locals `L['x']`, and tell no
class behind an identity.
"""

from __future__ import annotations

_CPU = "DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)"
_LINE = "                                  # return x + m  # project/model.py:36 in forward"
_ZERO_ONE = (
    "0/1: 2 <= x.size()[0]  # return x  # project/model.py:24 in f (user code shown is first use of this value--the guard "
    "itself is not due user code but due to 0/1 specialization in the framework; to avoid specialization try "
    "torch._dynamo.decorators.mark_unbacked(tensor, dim))"
)
_INTEGER = (
    " (HINT: torch.compile considers integer attributes of the nn.Module to be static. If you are observing recompilation, you "
    "might want to make this integer dynamic using torch._dynamo.config.allow_unspec_int_on_nn_module = True, or convert this "
    "integer into a tensor.)"
)

Case = tuple[str, str, str, "str | None", "str | None"]

TORCH_2_13: list[Case] = [
    ("0/0: tensor 'x' size mismatch at index 0. expected 3, actual 4", "size", "x", "3", "4"),
    (_ZERO_ONE, "size", "x", "2 or more", None),
    (f"0/0: 2 <= x.size()[0] <= 5{_LINE}", "size", "x", "2 to 5", None),
    (f"0/0: (x.size()[0] % 2) == 0{_LINE} (_dynamo/variables/tensor.py:2606 in f)", "size", "x", "divisible by 2", None),
    (f"0/0: x.size()[0] == y.size()[0]{_LINE}", "size", "x", "x.size()[0] == y.size()[0]", None),
    (f"0/0: x.size()[1] == 16{_LINE}", "size", "x", "16", None),
    ("0/0: tensor 'x' stride mismatch at index 0. expected 4, actual 1", "stride", "x", "4", "1"),
    ("0/0: tensor 'x' rank mismatch. expected 1, actual 2", "rank", "x", "1", "2"),
    ("0/0: tensor 'x' dtype mismatch. expected Float, actual Double", "dtype", "x", "float32", "float64"),
    ("0/0: tensor '___from_numpy(n)' dtype mismatch. expected Double, actual Float", "dtype", "n", "float64", "float32"),
    ("0/0: tensor 'x' requires_grad mismatch. expected requires_grad=0", "requires_grad", "x", "False", "True"),
    ("0/0: tensor 'x' requires_grad mismatch. expected requires_grad=1", "requires_grad", "x", "True", "False"),
    (
        f"0/0: tensor 'x' dispatch key set mismatch. expected {_CPU}, actual {_CPU.replace('CPU', 'Meta')}",
        "device",
        "x",
        "cpu",
        "meta",
    ),
    (
        f"0/0: tensor 'x' dispatch key set mismatch. expected {_CPU}, actual {_CPU.replace('(CPU', '(SparseCPU')}",
        "layout",
        "x",
        "strided",
        "sparse",
    ),
    (
        f"0/0: tensor 'x' dispatch key set mismatch. expected {_CPU}, actual {_CPU.replace('Select,', 'Select, Conjugate,')}",
        "view",
        "x",
        "none",
        "Conjugate",
    ),
    (
        f"0/0: tensor 'x' dispatch key set mismatch. expected {_CPU}, actual DispatchKeySet(CPU, BackendSelect)",
        "inference tensor",
        "x",
        "an ordinary tensor",
        "a tensor of inference mode",
    ),
    (
        "0/0: tensor 'x' Tensor device index mismatch. Expected device index to be 0, got 1",
        "device",
        "x",
        "0",
        "1",
    ),
    (
        "0/0: expected type of 'x' to be a tensor type, ' but found <class 'torch.nn.parameter.Parameter'>",
        "type",
        "x",
        "Tensor",
        "Parameter",
    ),
    ("0/0: expected type of 'x' to be a tensor type, ' but found <class '__main__.Sub'>", "type", "x", "Tensor", "Sub"),
    (f"0/0: x is m{_LINE}", "identity", "x", "one object", "two objects"),
    (f"0/0: mask is None{_LINE}", "none", "mask", "None", None),
    (f"0/0: mask is not None{_LINE}", "none", "mask", "not None", "None"),
    (f"0/0: m == 1{_LINE}", "value", "m", "1", None),
    (f"0/0: m == -1{_LINE}", "value", "m", "-1", None),
    (f"0/0: m == 1.5{_LINE}", "value", "m", "1.5", None),
    (f"0/0: m == True{_LINE}", "value", "m", "True", None),
    (f"0/0: m == 'a'{_LINE}", "value", "m", "'a'", None),
    (f"0/0: ___check_obj_id(m, 139872577533840), type=<class '__main__.E'>{_LINE}", "identity", "m", "E", None),
    (f"0/0: len(l) == 1{_LINE}", "list length", "l", "1", None),
    ("0/0: len(d) != 1", "list length", "d", "1", None),
    (f"0/0: not a{_LINE}", "list length", "a", "0", None),
    (f"0/0: not G['seen']{_LINE}", "list length", "seen", "0", None),
    (f"0/0: ___dict_contains('a', d){_LINE}", "dict keys", "d", "with 'a'", "without 'a'"),
    (f"0/0: not ___dict_contains('a', k){_LINE}", "dict keys", "k", "without 'a'", "with 'a'"),
    (f"0/0: set.__contains__(s, 'a'){_LINE}", "dict keys", "s", "with 'a'", "without 'a'"),
    (f"0/0: list(dict.keys(d))[0] == 'a'{_LINE}", "dict keys", "d", "'a'", None),
    (
        f"0/0: ___check_obj_id(f.__code__, 139873166142688), type=<class 'code'>{_LINE}",
        "identity",
        "f",
        "a function",
        "another function",
    ),
    (f"0/0: f.keywords['other'] == 1{_LINE}", "value", "f.keywords['other']", "1", None),
    (f"0/0: o.k == 1{_LINE}", "value", "o.k", "1", None),
    (
        f"0/0: ___check_type_id(o, 94086963223056), type=<class '__main__.Obj'>{_LINE} (HINT: type Obj)",
        "type",
        "o",
        "Obj",
        None,
    ),
    (f"0/0: s.n == 0{_LINE}{_INTEGER}", "module attribute", "s.n", "0", None),
    (f"0/0: s._modules['d'].training == True{_LINE}", "training", "s.d.training", "True", "False"),
    (
        "0/0: ___check_type_id(fn._modules['0'], 94086908232064), type=<class 'torch.nn.modules.linear.Linear'>"
        f"{_LINE} (HINT: type Linear)",
        "type",
        "fn[0]",
        "Linear",
        None,
    ),
    (
        f"0/0: self.param_groups[0]['lr'] == 0.01{_LINE}",
        "learning rate",
        "the learning rate of parameter group 0",
        "0.01",
        None,
    ),
    (f"0/0: ___stack0 == 0.5{_LINE}", "stack value", "the value read at the break", "0.5", None),
    ("0/0: GLOBAL_STATE changed: grad_mode ", "global state", "grad mode", None, None),
    ("0/0: GLOBAL_STATE changed: autocast(cpu)_enabled ", "global state", "autocast", None, None),
    ("0/0: GLOBAL_STATE changed: default_dtype ", "global state", "the default dtype", None, None),
    ("0/0: GLOBAL_STATE changed: num_threads ", "global state", "torch's number of threads", None, None),
    ("0/0: GLOBAL_STATE changed: deterministic_algorithms ", "global state", "the use of deterministic algorithms", None, None),
    ("0/0: GLOBAL_STATE changed: something_new ", "global state", "something_new", None, None),
    ("0/0: ___check_torch_function_mode_stack()", "global state", "torch function modes", None, None),
    ('0/0: Duplicate tensors found: ["a", "b"]', "duplicate", "a", "different tensors", "one tensor"),
    (f"0/0: G['G1'] == 1.0{_LINE}", "value", "G1", "1.0", None),
    (f"0/0: len(G['GL']) == 1{_LINE}", "list length", "GL", "1", None),
    (f"0/0: r.stop == 3{_LINE}", "value", "r.stop", "3", None),
    (f"0/0: d.a == 1{_LINE}", "value", "d.a", "1", None),
    (f"0/0: (type(f) is float and __math_isnan(f)){_LINE}", "value", "f", "nan", None),
    (f"0/0: hasattr(o, 'extra'){_LINE}", "attribute", "o.extra", "there", "missing"),
    (f"0/0: not ___dict_contains('extra', o.__dict__){_LINE}", "attribute", "o.extra", "missing", "there"),
    ("0/0: Cache line invalidated because L['history'] got deallocated", "deallocated", "history", "alive", "gone"),
    (
        "0/0: Cache line invalidated because L['___stack0'] got deallocated",
        "deallocated",
        "an object on the stack at the graph break before",
        "alive",
        "gone",
    ),
    (
        "0/0: BACKEND_MATCH failure: torch.compile detected different backend callables. Cached backend: _TorchCompileWrapper("
        "compiler='eager', dynamic=None) (id=0x7f369eb92b10). New backend: _TorchCompileWrapper(compiler='aot_eager', "
        "dynamic=None) (id=0x7f369efca750). If this is unexpected, wrap your backend in functools.partial (or reuse ..)",
        "backend",
        "backend",
        "_TorchCompileWrapper(compiler='eager', dynamic=None)",
        "_TorchCompileWrapper(compiler='aot_eager', dynamic=None)",
    ),
    ("0/0: Unexpected recompilation: runtime guards failed even though they passed", "unknown", "", None, None),
]

TORCH_2_9: list[Case] = [
    ("0/0: tensor 'L['x']' size mismatch at index 1. expected 8, actual 6", "size", "x", "8", "6"),
    (
        "0/0: tensor 'L['self']._modules['w']' dtype mismatch. expected Float, actual Half",
        "dtype",
        "self.w",
        "float32",
        "float16",
    ),
    ("0/0: L['m'] == 1  # return x * m  # model.py:9 in f", "value", "m", "1", None),
    ("0/0: 2 <= L['x'].size()[0]  # return x  # model.py:9 in f", "size", "x", "2 or more", None),
    ("0/0: ___check_type_id(L['o'], 94086963223056)  # return o.k  # model.py:9 in f", "type", "o", None, None),
    ("0/0: ___check_obj_id(L['m'], 7637200)  # return m(x)  # model.py:9 in f", "identity", "m", None, None),
    ("0/0: len(L['l']) == 1  # return x * len(l)  # model.py:9 in f", "list length", "l", "1", None),
    ("0/0: list(L['d'].keys()) == ['a', 'b']  # for k in d  # model.py:9 in f", "dict keys", "d", "['a', 'b']", None),
    ("0/0: list(dict.keys(L['d'])) == ['a']  # for k in d  # model.py:9 in f", "dict keys", "d", "['a']", None),
    ("0/0: not hasattr(L['o'], 'extra')  # model.py:9 in f", "attribute", "o.extra", "missing", "there"),
    ("0/0: __math_isnan(L['f'])  # return x * f  # model.py:9 in f", "value", "f", "nan", None),
    ("0/0: L['mask'] is None  # model.py:9 in f", "none", "mask", "None", None),
    ("0/0: ___check_global_state()", "global state", "torch's global state", None, None),
    ("0/0: Duplicate tensor found where not expected! L['a'] and L['b']", "duplicate", "a", "different tensors", "one tensor"),
]
