"""The report: what the model knows, as one dict (`build`), and that dict as JSON, text or Markdown (`render`)."""

from tuimon.report.build import SCHEMA, build
from tuimon.report.render import FORMATS, render

__all__ = ["FORMATS", "SCHEMA", "build", "render"]
