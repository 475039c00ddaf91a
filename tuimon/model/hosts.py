"""Which graph breaks make the host wait for a value, by the nature of the operation.

That is knowledge about the kind of break, not evidence from this job: what was seen at its boundary stands apart from it.
"""

from __future__ import annotations

import re

_READS = re.compile(
    r"""Tensor\.(?:item|tolist|numpy|__bool__|__index__|__int__|__float__|nonzero|cpu)\(\)
    | ^Dynamic\ shape\ operator | ^Data[- ]dependent | data-dependent\ (?:output|control|branching)
    | ^Dynamic\ slicing\ with\ Tensor | ^Indexing\ .+\ with\ non-scalar\ tensor | ^unsupported\ index\(Tensor\)
    | ^repr\(\)\ on\ tensor | ^torch\.cond:\ improper\ predicate | guard_scalar\ branch""",
    re.VERBOSE | re.IGNORECASE,
)
_DOES_NOT = re.compile(
    r"""torch\.compiler\.disable | graph_break\(\) | skip_frame\(\) | step_unsupported\(\)
    | function\ marked\ as\ skipped | ^logging\. | ^Failed\ to\ trace\ builtin\ operator | debugging\ function
    | context\ manager | contextlib | ^Unsupported\ context | ^Data\ pointer\ comparison
    | ^Observed\ exception | ^Unsupported\ (?:function|method)\ call | ^Unsupported\ Tensor\.(?:backward|requires_grad_)\(\)
    | ^Unsupported\ (?:hasattr|inspect|event|next) | ^call_method\ on\ generator | ^Attempt\ to\ trace\ generator
    | ^graph\ break\ in\ (?:loop|inlined) | ^Graph\ break\ in\ inlined | ^Import\ failure | ^Bad\ import
    | ^Attempted\ to\ (?:inline|read|wrap|reconstruct) | ^Reconstruction\ failure | ^Missing\ bytecode
    | bytecode\ not\ supported
    | ^autograd\.grad | ^async_op=True | ^P2P\ | ^Tensor\.(?:random_|uniform_|retain_grad) | ^torch\.Generator
    | ^getattr\(\) | ^setattr\(\) | hooks?\b.*require | ^optimizer: | ^copy\.deepcopy""",
    re.VERBOSE | re.IGNORECASE,
)
_WRITES_TENSOR = re.compile(r"`(?:print|str|repr|format|float|int|bool)`.*\bTensor", re.DOTALL)
"""Writing a tensor out, or making a number of it, reads it: `print` of a text does not."""


def reads_host(kind: str, explanation: str = "") -> bool | None:
    """Whether a break of this kind reads a value from the device.

    `kind` is Dynamo's graph-break type, `explanation` its text about it. True: the host must have the value to go on; False:
    nothing in the break itself reads one; None: the kind does not tell.
    """
    if _READS.search(kind):
        return True
    if _WRITES_TENSOR.search(explanation[:2000]):
        return True
    return False if _DOES_NOT.search(kind) else None
