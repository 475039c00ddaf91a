"""The page of a finding: what it costs, its evidence, the next step, and what it is about."""

from __future__ import annotations

from tuimon.app.details import source_page
from tuimon.app.details.page import fact, heading, prose
from tuimon.app.details.paged import Build, Paged, Source, linked, paged
from tuimon.app.panels import findings
from tuimon.app.scene import Scene
from tuimon.draw import format as fmt
from tuimon.model import Model
from tuimon.model.findings import Finding

ABOUT = {
    "boundary": "the boundary",
    "recompile": "the recompile",
    "compilation": "the compilation",
    "frame": "the frame",
    "region": "the region",
    "step": "the step",
    "gpu": "the GPU",
    "host": "the host",
    "rank": "the ranks",
    "settings": "the settings",
    "point": "the point",
}
"""What more is known of."""


def title(finding: Finding) -> str:
    """The page's name."""
    return f"finding: {finding.kind.replace('_', ' ')}"


def build(key: str, known: Finding) -> Build:
    """The page of the finding of this key; `known` is it as it was when the page was opened: it may be over by now."""

    def page(scene: Scene, width: int) -> Paged:
        now = findings.find(scene, key)
        return _page(scene, now or known, now is None, width)

    return page


def _page(scene: Scene, finding: Finding, over: bool, width: int) -> Paged:
    out = prose(finding.title, width, "warn", indent=1)
    if over:
        out += prose("it does not stand out any more; this is how it was", width, "note")
    cost = f"{fmt.duration(finding.cost_s)} so far" if finding.cost_s is not None else "not known"
    out += fact("costs", cost, width)
    to = source_of(scene.model, finding)
    if finding.where:
        out += linked(fact("where", finding.where, width, "place"), to)
    out += fact("next step", finding.next_step, width, "strong")
    out += heading("evidence")
    for line in finding.evidence:
        parts = prose(line, width, "text", indent=4)
        out += [[(f"  {scene.glyphs.bullet} ", "text"), *parts[0][1:]], *parts[1:]]
    if finding.about is not None:
        out += heading("more")
        out += linked(prose(f"all that is known of {ABOUT.get(finding.about.kind, 'it')}", width, "label"), finding.about)
    return paged(out, findings.sentence(finding))


def source_of(model: Model, finding: Finding) -> Source | None:
    """The line of source that it names, with what Dynamo said of it; None where it names none."""
    file, _, number = finding.where.rpartition(":")
    if not file or not number.isdecimal() or not int(number):
        return None
    about = finding.about
    boundary = model.boundaries.get(about.key) if about is not None and about.kind == "boundary" else None
    if boundary is not None:
        whole = source_page.of_boundary(boundary)
        if whole is not None and (whole.file, whole.line) == (file, int(number)):
            return whole
    return Source(file, int(number), "", (finding.title, f"hint: {finding.next_step}"))
