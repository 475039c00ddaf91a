"""The arguments of a call, given as texts in graphs and in traces, as JSON: those that `events.arguments` lists, no others."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from tuimon.events.arguments import PLACES

UNKNOWN = '{"known": false}'
"""An argument that counts is there, but cannot be read."""

MASKS = {
    "scaled_dot_product_attention": 3,
    "_scaled_dot_product_attention_math": 3,
    "_scaled_dot_product_fused_attention_overrideable": 3,
    "_scaled_dot_product_flash_attention_for_cpu": 5,
    "_scaled_dot_product_flash_attention_for_cpu_backward": 8,
    "_scaled_dot_product_efficient_attention": 3,
    "_scaled_dot_product_efficient_attention_backward": 4,
    "_scaled_dot_product_cudnn_attention": 3,
    "_scaled_dot_product_cudnn_attention_backward": 8,
    "_efficient_attention_forward": 3,
    "_efficient_attention_backward": 4,
    "_cudnn_attention_forward": 3,
    "_cudnn_attention_backward": 8,
}
"""Attention -> where its mask or bias stands, if it is given one: what that leaves out is counted all the same."""

MASK_NAMES = ("attn_mask", "attn_bias")

_INTEGER = re.compile(r"-?\d{1,18}")
_REAL = re.compile(r"-?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:e[+-]?\d{1,3})?")
_QUOTED = re.compile(r"'[^']{0,200}'|\"[^\"]{0,200}\"")
_BARE = re.compile(r"[A-Za-z_]{1,40}")
_WORDS = {"True": True, "False": False, "true": True, "false": False, "None": None}
_MOST = 16
"""Items of a list of arguments."""

_NOTHING = object()


def counts(operator: str) -> bool:
    """Whether any argument of the operator counts. It is named as in a row, with "torch." or without."""
    return bool(_places(operator))


def told(
    operator: str,
    find: Callable[[int, str], str | None],
    tensor: Callable[[int], bool],
    *,
    bare: bool = False,
    more: Mapping[str, Any] | None = None,
) -> str:
    """The arguments of one call as JSON, "" where none that counts is given.

    `find` gives the text of the argument at a place, or of that name; None where there is none. `tensor` tells whether a
    tensor stands at a place. `bare`: words without quotes are texts (in a trace; in a graph they are names of values).
    `more` is told with them.
    """
    found: dict[str, Any] = dict(more or {})
    mask = MASKS.get(operator.removeprefix("torch."))
    if mask is not None and tensor(mask):
        found["mask"] = True
    for name, place in _places(operator).items():
        text = find(place, name)
        if text is None:
            continue
        value = _value(text, bare)
        if value is _NOTHING:
            return UNKNOWN
        found[name] = value
    return json.dumps(found, sort_keys=True) if found else ""


def _places(operator: str) -> Any:
    plain = operator.removeprefix("torch.")
    return PLACES.get(plain) or PLACES.get(plain.rstrip("_")) or {}


def _value(text: str, bare: bool) -> Any:
    """The value that a literal stands for; _NOTHING where it is none."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _REAL.fullmatch(text):
        return float(text)
    if _QUOTED.fullmatch(text):
        return text[1:-1]
    if text[:1] in "[(" and text[-1:] in "])" and len(text) <= 400:
        items = [_value(part, bare) for word in text[1:-1].split(",") if (part := word.strip())]
        return _NOTHING if len(items) > _MOST or _NOTHING in items else items
    return text if bare and _BARE.fullmatch(text) else _NOTHING
