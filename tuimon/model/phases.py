"""A compilation's time divided into parts that add up: one account, for the screen and for the reports."""

from __future__ import annotations

from tuimon.model.parts import Compilation

PARTS = ("dynamo", "aot", "inductor", "triton")


def parts(compilation: Compilation) -> dict[str, float | None]:
    """A compilation's time as {total, dynamo, aot, inductor, triton, other}: disjoint, in seconds.

    torch's own figures are nested: Dynamo's contains that of AOTAutograd, which contains Inductor's, which contains the wait
    for the kernels' builds ("triton", also where they are C++). A part that torch gives no figure for is None.
    """
    nested = (compilation.dynamo_s, compilation.aot_s, compilation.inductor_s, compilation.triton_s)
    found: dict[str, float | None] = {"total": compilation.total_s}
    inner = 0.0
    own: dict[str, float | None] = {}
    for name, value in reversed(list(zip(PARTS, nested, strict=True))):
        # a backward compiled on its own has no Dynamo or AOT time around its Inductor time: nothing to subtract from
        own[name] = None if value is None else max(0.0, value - inner)
        inner = max(inner, value or 0.0)
    found.update((name, own[name]) for name in PARTS)
    found["other"] = None if compilation.total_s is None else max(0.0, compilation.total_s - inner)
    return found
