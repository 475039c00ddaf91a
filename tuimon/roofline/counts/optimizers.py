"""Operations of functions of lists of tensors: fused optimizers and `torch._foreach_*`.

How many tensors belong to which list is told by the argument "lists", [k, k, ..]; without it a list's result tells.
"""

from __future__ import annotations

from tuimon.roofline.counts.elementwise import POINTWISE
from tuimon.roofline.counts.formulas import Call, Operations, Unknown, elementwise, formula, numel, require
from tuimon.roofline.dtypes import is_float


def _first_list(call: Call) -> int:
    """Elements of the first list, which the results have too."""
    if call.outputs:
        return sum(numel(s) for _, s in call.outputs)
    lists = call.get("lists")
    if not isinstance(lists, (list, tuple)) or not lists or not all(isinstance(n, int) and n > 0 for n in lists):
        raise Unknown("the lengths of the lists are not known")
    require(len(call.inputs) >= sum(lists) and all(n == lists[0] for n in lists))
    require(all(is_float(d) for d, _ in call.inputs[: lists[0]]))
    return sum(numel(s) for _, s in call.inputs[: lists[0]])


def _scaled(call: Call) -> int:
    """One more for a gradient that is divided by the loss's scale: scale and found_inf come behind the lists as a pair."""
    lists = call.get("lists") or ()
    return int(isinstance(lists, (list, tuple)) and len(call.inputs) - sum(lists) >= 2)


@formula(
    "_fused_adam _fused_adamw",
    "13 for every parameter: lerp 3, second moment 4, denominator 3, step 3; decay of weights 2 more "
    "(aten/native/cuda/fused_adam_utils.cuh)",
)
def _adam(call: Call) -> Operations:
    decay = 2 if call.number("weight_decay") else 0
    return Operations(0, _first_list(call) * (13 + decay + _scaled(call)))


@formula(
    "_fused_sgd",
    "2 for every parameter; decay of weights 2, momentum 3 after the first step, Nesterov 2 "
    "(aten/native/cuda/FusedSgdKernel.cu)",
)
def _sgd(call: Call) -> Operations:
    each = 2 + (2 if call.number("weight_decay") else 0) + _scaled(call)
    if call.number("momentum"):
        each += (0 if call.flag("is_first_step") else 3) + (2 if call.flag("nesterov") else 0)
    return Operations(0, _first_list(call) * each)


def _foreach(name: str) -> None:
    each = POINTWISE[name]
    factor = {"add": "alpha", "sub": "alpha", "addcmul": "value", "addcdiv": "value"}.get(name)

    @formula(f"_foreach_{name}", f"{each} for every element of the first list (as {name})")
    def give(call: Call) -> Operations:
        scaled = factor is not None and call.get(factor, 1) not in (1, 1.0)
        return Operations(0, _first_list(call) * (each + scaled))


_NAMES = "add sub mul div addcmul addcdiv lerp sqrt rsqrt exp log pow reciprocal sigmoid"
for _name in _NAMES.split():
    _foreach(_name)


@formula("_foreach_norm", "2 for every element of every list: squares, sums and roots (as linalg_vector_norm)")
def _foreach_norm(call: Call) -> Operations:
    if call.get("ord", 2) not in (2, 2.0):
        raise Unknown("norm of another order")
    return Operations(0, sum(elementwise(2 * numel(s), d) for d, s in call.inputs))
