"""All that is known of one recompile."""

from __future__ import annotations

from tuimon.app.details.page import fact, heading, prose
from tuimon.app.panels.recompiles import limit_use
from tuimon.app.scene import Scene
from tuimon.draw import format as fmt
from tuimon.draw.text import Line
from tuimon.model.parts import Compilation, Recompile
from tuimon.model.phases import parts


def title(recompile: Recompile) -> str:
    """The page's name."""
    compilation = recompile.compilation
    what = "refused recompile" if compilation.refused else "recompile"
    return f"{what} [{compilation.compile_id}] of {compilation.function}"


def lines(scene: Scene, recompile: Recompile, width: int) -> list[Line]:
    """The page: every guard that failed, the cost by phase, how near the limit is."""
    compilation = recompile.compilation
    out = fact("frame", f"{compilation.function} {compilation.file}:{compilation.line}", width, "frame")
    out += fact("when", _when(compilation), width)
    out += fact("thread", compilation.thread, width)
    out += fact("entries of the limit", limit_use(scene, recompile), width)
    if compilation.refused:
        out += prose("The recompile limit refused it: calls that no entry fits run in eager from here on.", width, "bad")
    out += heading("guards that failed, newest entry first")
    if not recompile.failed:
        out += prose("not known: torch told none for this compilation", width, "note")
    for entry, guard in recompile.failed:
        out += fact(f"[{entry}]", guard, width, "recompile")
    out += costs(compilation, width)
    return out


def _when(compilation: Compilation) -> str:
    if compilation.before_attach:
        return "before the attach"
    return f"in step {compilation.step}" if compilation.step is not None else "step not known"


def costs(compilation: Compilation, width: int) -> list[Line]:
    """What the compilation took, in parts that add up to the total."""
    out = heading("what the compilation took")
    for name, value in parts(compilation).items():
        out += fact("aot autograd" if name == "aot" else name, fmt.duration(value), width)
    cache = ", ".join(f"{name} {result}" for name, result in sorted(compilation.cache.items()))
    out += fact("caches", cache or "not asked, as far as is known", width)
    if compilation.failed:
        out += fact("failed", compilation.failed, width, "bad")
    return out
