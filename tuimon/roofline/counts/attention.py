"""Operations of attention: scores = Q K^T, softmax, scores V; heads of queries count, however few heads keys have (GQA).

Only pairs of a query and a key that the causal flag or a window lets through are counted: they are what the algorithm needs,
and what kernels skip whole blocks by. What a mask tensor hides cannot be told from its sizes and is counted. Two products a
pair forward, five backward (the scores are made again): torch/utils/flop_counter.py, which counts all pairs.

Vector operations of a pair: forward scale, subtraction of the maximum, exp, sum, division by it; backward the first three,
dP - D, the product with P and the scale once more; D is a dot product for every query.

Where the queries are fewer than the keys, the mask of SDPA's own definition starts top-left (`torch.tril`), that of
FlashAttention-2 (2.1 and later) and of the kernels that follow it ends bottom-right.
"""

from __future__ import annotations

from typing import Literal

from tuimon.roofline.counts.formulas import Call, Operations, Sizes, Unknown, contraction, elementwise, formula, numel, require

Corner = Literal["top-left", "bottom-right"]

FORWARD = 5
"""Vector operations of a pair."""
BACKWARD = 6


def _below(diagonal: int, queries: int, keys: int) -> int:
    """Pairs (i, j) of that many queries and keys with j - i <= diagonal."""
    # row i holds clamp(i + diagonal + 1, 0, keys) of them: none, then one more with each row, then all
    first = min(max(-diagonal - 1, 0), queries)
    full = min(max(keys - diagonal - 1, first), queries)
    at_first, rising = first + diagonal + 1, full - first
    return rising * at_first + rising * (rising - 1) // 2 + (queries - full) * keys


def pairs(queries: int, keys: int, *, left: int | None, right: int | None, corner: Corner) -> tuple[int, int]:
    """(pairs, queries that have any) where a query may look `left` keys back and `right` keys ahead of its own; None: all."""
    shift = keys - queries if corner == "bottom-right" else 0
    upper = keys if right is None else shift + right
    lower = -queries - 1 if left is None else shift - left - 1
    if lower > upper:
        return 0, 0
    count = _below(min(upper, keys), queries, keys) - _below(max(lower, -queries - 1), queries, keys)
    # a query i has keys where max(0, i + lower + 1) <= min(keys - 1, i + upper)
    begin, end = max(0, -upper), min(queries, keys - lower - 1)
    return count, max(0, end - begin) if keys else 0


def _heads_first(*shapes: Sizes) -> tuple[Sizes, ...]:
    """(batch.., tokens, heads, width) as (batch.., heads, tokens, width)."""
    require(all(len(s) == 4 for s in shapes))
    return tuple((s[0], s[2], s[1], s[3]) for s in shapes)


def _count(
    call: Call,
    q: Sizes,
    k: Sizes,
    v: Sizes,
    *,
    backward: bool,
    corner: Corner = "top-left",
    left: int | None = None,
    right: int | None = None,
    more: int = 0,
) -> Operations:
    """`more`: vector operations of a pair besides (a mask that is added, dropout)."""
    require(len(q) >= 2 and len(k) == len(v) >= 2 and len(q) == len(k))
    require(q[-1] == k[-1] and k[-2] == v[-2])
    if len(q) > 2:
        # fewer heads of keys or values are shared by groups of queries' heads
        require(all(b > 0 and a % b == 0 for other in (k, v) for a, b in zip(q[:-2], other[:-2], strict=True) if a != b))
    heads, width, value_width = numel(q[:-2]), q[-1], v[-1]
    some, rows = pairs(q[-2], k[-2], left=left, right=right, corner=corner)
    if backward:
        matrix = heads * some * (3 * width + 2 * value_width)
        vector = heads * (some * (BACKWARD + more) + rows * max(2 * value_width - 1, 0))
    else:
        matrix = heads * some * (width + value_width)
        vector = heads * (some * (FORWARD + more) - rows)
    return Operations(contraction(matrix, call.dtype()), elementwise(vector, call.dtype()))


def _dropout(call: Call, key: str = "dropout_p") -> int:
    """Two products of a pair: by the mask and by 1 / (1 - p)."""
    return 2 if call.number(key, 0.0) else 0


@formula(
    "scaled_dot_product_attention _scaled_dot_product_attention_math _scaled_dot_product_attention_math_for_mps "
    "_scaled_dot_product_fused_attention_overrideable _scaled_dot_product_efficient_attention "
    "_scaled_dot_product_cudnn_attention "
    "_scaled_dot_product_flash_attention_for_cpu",
    "2 pairs (width + width of values) a head of the queries; causal from the top left "
    "(definition of torch.nn.functional.scaled_dot_product_attention)",
)
def _sdpa(call: Call) -> Operations:
    right = 0 if call.flag("is_causal", False) else None
    more = int(call.has(3) or call.get("mask") is True) + _dropout(call)
    return _count(call, call.sizes(0), call.sizes(1), call.sizes(2), backward=False, right=right, more=more)


@formula(
    "_scaled_dot_product_flash_attention",
    "as scaled_dot_product_attention; causal from the bottom right (FlashAttention-2, change log of 2.1)",
)
def _sdpa_flash(call: Call) -> Operations:
    right = 0 if call.flag("is_causal", False) else None
    q, k, v = (call.sizes(i) for i in range(3))
    return _count(call, q, k, v, backward=False, corner="bottom-right", right=right, more=_dropout(call))


@formula(
    "_scaled_dot_product_flash_attention_for_cpu_backward _scaled_dot_product_efficient_attention_backward "
    "_scaled_dot_product_cudnn_attention_backward _cudnn_attention_backward "
    "_scaled_dot_product_fused_attention_overrideable_backward "
    "_scaled_dot_product_flash_attention_backward",
    "2 pairs (3 width + 2 width of values) a head of the queries (torch/utils/flop_counter.py "
    "sdpa_backward_flop_count, causal pairs)",
)
def _sdpa_backward(call: Call) -> Operations:
    corner: Corner = "bottom-right" if call.operator == "_scaled_dot_product_flash_attention_backward" else "top-left"
    # of these schemas that of the efficient one alone has a default
    right = 0 if call.flag("is_causal", False if "efficient" in call.operator else None) else None
    q, k, v = (call.sizes(i) for i in (1, 2, 3))
    require(call.sizes(0)[-1] == v[-1])
    masked = call.get("mask") is True or (call.operator.endswith("for_cpu_backward") and call.has(6))
    return _count(call, q, k, v, backward=True, corner=corner, right=right, more=_dropout(call) + masked)


def _window(call: Call) -> tuple[int | None, int | None]:
    """(left, right) of FlashAttention's arguments; a negative number or None is no bound, causal bounds the right."""
    sides = [call.get(key) for key in ("window_size_left", "window_size_right")]
    if not all(s is None or isinstance(s, int) for s in sides):
        raise Unknown("the window is not known")
    left, right = (s if s is not None and s >= 0 else None for s in sides)
    if call.flag("is_causal", call.get("causal")):
        right = 0 if right is None else min(right, 0)
    return left, right


def _one_length(call: Call, first: int, last: int) -> None:
    """Lengths of sequences that are packed one behind the other stand in a tensor: known only where there is one sequence."""
    for place in range(first, min(last, len(call.inputs))):
        sizes = call.sizes(place)
        if len(sizes) == 1 and sizes[0] != 2:
            raise Unknown("sequences of unknown lengths")


def _packed(q: Sizes, k: Sizes, v: Sizes) -> tuple[Sizes, ...]:
    return _heads_first(*((1, *s) if len(s) == 3 else s for s in (q, k, v)))


@formula(
    "_flash_attention_forward flash_attn._flash_attn_forward",
    "2 pairs (width + width of values) a head of the queries, sizes being (batch, tokens, heads, width); causal from "
    "the bottom "
    "right, a sliding window counts (aten/native/transformers/cuda/attention.cu, FlashAttention-2); packed sequences "
    "are not known",
)
def _flash(call: Call) -> Operations:
    if len(call.sizes(0)) == 3:
        require(call.has(3))
        _one_length(call, 3, 5)
    left, right = _window(call)
    q, k, v = _packed(call.sizes(0), call.sizes(1), call.sizes(2))
    return _count(call, q, k, v, backward=False, corner="bottom-right", left=left, right=right, more=_dropout(call))


@formula(
    "_flash_attention_backward flash_attn._flash_attn_backward",
    "2 pairs (3 width + 2 width of values) a head of the queries, sizes and mask as in _flash_attention_forward",
)
def _flash_backward(call: Call) -> Operations:
    if len(call.sizes(1)) == 3:
        _one_length(call, 6, 8)
        require(any(len(call.sizes(i)) == 1 for i in range(6, min(8, len(call.inputs)))))
    left, right = _window(call)
    q, k, v = _packed(call.sizes(1), call.sizes(2), call.sizes(3))
    return _count(call, q, k, v, backward=True, corner="bottom-right", left=left, right=right, more=_dropout(call))


_CUSTOM: dict[int, tuple[int | None, Corner]] = {0: (None, "top-left"), 1: (0, "top-left"), 2: (0, "bottom-right")}
"""custom_mask_type (aten/native/transformers/cuda/mem_eff_attention/kernel_forward.h) -> (right, corner)."""


def _custom(call: Call) -> tuple[int | None, int | None, Corner]:
    kind, window = call.get("custom_mask_type"), call.get("window_size")
    if kind not in _CUSTOM or not (window is None or isinstance(window, int)):
        raise Unknown("the mask is not known")
    right, corner = _CUSTOM[kind]
    return (window - 1 if window else None), right, corner


@formula(
    "_efficient_attention_forward",
    "as _flash_attention_forward; custom_mask_type tells the corner of a causal mask (mem_eff_attention/kernel_forward.h)",
)
def _efficient(call: Call) -> Operations:
    _one_length(call, 3, 6)
    left, right, corner = _custom(call)
    q, k, v = _heads_first(call.sizes(0), call.sizes(1), call.sizes(2))
    more = _dropout(call) + int(call.has(3) and len(call.sizes(3)) == 4)
    return _count(call, q, k, v, backward=False, corner=corner, left=left, right=right, more=more)


@formula("_efficient_attention_backward", "as _flash_attention_backward; mask as in _efficient_attention_forward")
def _efficient_backward(call: Call) -> Operations:
    # behind the values: bias (4-D), out (4-D), then the packed lengths, if any
    after = [i for i in range(4, len(call.inputs)) if len(call.sizes(i)) == 4]
    require(bool(after))
    _one_length(call, after[-1] + 1, after[-1] + 3)
    left, right, corner = _custom(call)
    q, k, v = _heads_first(call.sizes(1), call.sizes(2), call.sizes(3))
    return _count(call, q, k, v, backward=True, corner=corner, left=left, right=right, more=_dropout(call))


@formula("_cudnn_attention_forward", "as scaled_dot_product_attention; packed sequences are not known")
def _cudnn(call: Call) -> Operations:
    if len(call.sizes(0)) != 4 or any(len(call.sizes(i)) == 1 for i in range(3, len(call.inputs))):
        raise Unknown("sequences of unknown lengths")
    return _sdpa(call)
