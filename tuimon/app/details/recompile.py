"""All that is known of one recompile."""

from __future__ import annotations

from tuimon.app.details.page import fact, heading, prose
from tuimon.app.details.paged import Source, linked
from tuimon.app.panels.frames import calls_words
from tuimon.app.panels.recompiles import limit_use
from tuimon.app.scene import Scene
from tuimon.draw import format as fmt
from tuimon.draw.names import function_name
from tuimon.draw.text import Line, clean
from tuimon.model.about import About
from tuimon.model.parts import Compilation, Recompile
from tuimon.model.phases import parts
from tuimon.model.reading import reading, reading_of


def title(recompile: Recompile) -> str:
    """The page's name."""
    compilation = recompile.compilation
    what = "refused recompile" if compilation.refused else "recompile"
    return f"{what} [{compilation.compile_id}] of {function_name(compilation.function)}"


def lines(scene: Scene, recompile: Recompile, width: int) -> list[Line]:
    """The page: what changed and what helps, how near the limit is, the cost by phase, and Dynamo's own text."""
    compilation = recompile.compilation
    told = reading_of(scene.model, recompile)
    out = prose(told.sentence, width, "recompile")
    if told.before is not None or told.now is not None:
        out += fact("the graph is for", told.before or "", width)
        out += fact("now", told.now or "not known", width)
    if told.why:
        out += fact("likely because", told.why, width, "text")
    helps = told.advice or ("nothing to do: it happens once" if told.expected else "keep what the guard names the same")
    out += fact("what usually helps", helps, width, "strong" if told.advice else "text")
    out += heading("where and when")
    to = None
    if compilation.file and compilation.line:
        to = Source(compilation.file, compilation.line, function_name(compilation.function), _said(told.sentence, helps))
    place = f"{function_name(compilation.function)} {compilation.file}:{compilation.line}"
    out += linked(fact("frame", place, width, "frame"), to)
    if compilation.owner:
        out += fact("of", compilation.owner, width, "frame")
    out += fact("when", _when(compilation), width, "warn" if compilation.late else "number")
    out += fact("thread", compilation.thread, width)
    out += fact("entries of the limit", limit_use(scene, recompile), width)
    frame = scene.model.frames.get(compilation.frame) if compilation.frame else None
    if frame is not None:
        calls = fact("the frame's calls", calls_words(scene.model, frame), width)
        out += linked(calls, About("frame", frame.key))
    if compilation.refused:
        out += prose(
            "The recompile limit refused it: calls that no entry fits run in eager from here on; the entries go on serving.",
            width,
            "bad",
        )
    if not compilation.refused:  # nothing was compiled
        out += costs(compilation, width)
    out += heading("Dynamo's own text: why each entry did not fit, newest first")
    if not recompile.failed:
        out += prose("not known: torch told none for this compilation", width, "note")
    for entry, guard in recompile.failed:
        told_of_it = reading(guard, dict(recompile.now), owner=compilation.owner).sentence
        out += linked(fact(f"[{entry}]", told_of_it, width, "recompile"), _made(scene, compilation, entry))
        out += prose(guard, width, "source", indent=4)
    for expression, value in recompile.now:
        out += fact("read in that call", f"{expression} = {value}", width)
    return out


def _made(scene: Scene, compilation: Compilation, entry: str) -> About | None:
    """The compilation that made an entry of the same frame; None where it is not known."""
    key = f"{compilation.generation}:{entry}:{compilation.direction}"
    return About("compilation", key) if any(one.key == key for one in scene.model.compilations) else None


def _said(sentence: str, helps: str) -> tuple[str, ...]:
    """Above the source: why it was compiled again, and what helps."""
    return f"recompiled: {sentence}", f"hint: {helps}"


def sentence(scene: Scene, recompile: Recompile) -> str:
    """The recompile as a text for a ticket."""
    made = recompile.compilation
    told = reading_of(scene.model, recompile)
    what = "refused at the limit" if made.refused else f"took {fmt.duration(made.total_s)}"
    helps = f"; what usually helps: {told.advice}" if told.advice else ""
    name = function_name(made.function)
    return clean(f"recompile [{made.compile_id}] of {name} at {made.file}:{made.line} {what}: {told.sentence}{helps}")


def _when(compilation: Compilation) -> str:
    if compilation.before_attach:
        return "before the attach"
    step = f"in step {compilation.step}" if compilation.step is not None else "step not known"
    if compilation.late:
        return f"{step}, late: {compilation.steady_before} steps in a row had none before it"
    return step


def costs(compilation: Compilation, width: int) -> list[Line]:
    """What the compilation took, in parts that add up to the total."""
    out = heading("what the compilation took")
    for name, value in parts(compilation).items():
        out += fact("aot autograd" if name == "aot" else name, fmt.duration(value), width)
    for name, value in (("of it, collecting garbage", compilation.gc_s), ("of it, autotuning", compilation.autotune_s)):
        if value:
            out += fact(name, fmt.duration(value), width)
    out += fact("caches", _caches(compilation) or "not asked, as far as is known", width)
    if compilation.restarts:
        out += fact("restarts", f"{compilation.restarts}: {', '.join(compilation.restart_reasons)}".rstrip(": "), width)
    if compilation.failed:
        out += fact("failed", compilation.failed, width, "bad")
    return out


def _caches(compilation: Compilation) -> str:
    told = []
    for name, results in sorted(compilation.caches.items()):
        told += [f"{name} {result}{f' {times}x' if times > 1 else ''}" for result, times in sorted(results.items()) if times]
    if not told:
        told = [f"{name} {result}" for name, result in sorted(compilation.cache.items())]
    return ", ".join(told)
