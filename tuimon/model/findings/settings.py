"""Settings of the process that make compilation void, or silence about it worthless."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tuimon.model.about import About
from tuimon.model.findings.finding import Finding, many

if TYPE_CHECKING:
    from tuimon.model.model import Model


def find(model: Model) -> list[Finding]:
    """One for each such setting."""
    found = []
    for name, value in model.target.options:
        one = None
        if name == "dynamo" and value.startswith("disabled"):
            one = _disabled(value)
        elif name == "stance":
            one = _stance(model, value)
        elif name == "guards" and value == "off":
            one = _guards()
        elif name == "suppress_errors" and value.lower() == "true":
            one = _errors(model)
        if one is not None:
            found.append(replace(one, about=About("settings", name)))
    return found


def _disabled(value: str) -> Finding:
    by = value.removeprefix("disabled").strip()
    return Finding(
        "disabled",
        f"nothing is compiled: Dynamo is {value}",
        "",
        None,
        (f"Dynamo is {value}",),
        f"take the setting away ({by.removeprefix('by ')}) and start the job again" if by else "enable Dynamo again",
    )


def _stance(model: Model, value: str) -> Finding | None:
    counted = [frame.eager_calls for frame in model.frames.values() if frame.eager_calls]
    evidence = [f"the stance is {value}"]
    if counted:
        evidence.append(f"{many(sum(counted), 'call')} ran in eager since the attach")
    if value.startswith("force_eager"):
        title = "every compiled function runs in eager: torch.compiler.set_stance('force_eager') is in force"
        step = "leave the stance, or set it back to 'default', where the job should be compiled"
    elif value.startswith("eager_on_recompile"):
        title = "calls that no cache entry fits run in eager: torch.compiler.set_stance('eager_on_recompile') is in force"
        step = "warm up with every kind of input before the stance is set, or set it back to 'default'"
    else:
        return None  # the others compile, or raise where someone sees it
    return Finding("stance", title, "", None, tuple(evidence), step, sum(counted) if counted else None)


def _guards() -> Finding:
    return Finding(
        "guards off",
        "guards are not evaluated (skip_guard_eval_unsafe): that no recompile is seen says nothing",
        "",
        None,
        ("the stance skips the evaluation of guards",),
        "make sure that every kind of input was compiled before; a wrong graph gives wrong results without a word",
    )


def _errors(model: Model) -> Finding:
    failed = [one for one in model.compilations if one.failed and not one.refused]
    return Finding(
        "suppress_errors",
        "errors of the compiler are swallowed (torch._dynamo.config.suppress_errors): what fails runs in eager without a word",
        "",
        None,
        (f"{many(len(failed), 'compilation')} failed so far" if failed else "no compilation has failed so far",),
        "set suppress_errors to False and see what fails",
    )
