"""What Textual is about to write, without the writing: which rows have changed. The painter renders them, once."""

from __future__ import annotations

from textual._compositor import ChopsUpdate, Compositor, LayoutUpdate


class RowsOnly(Compositor):
    """A compositor whose updates tell rows and hold nothing."""

    def render_full_update(self, simplify: bool = False) -> LayoutUpdate:
        """All rows."""
        if simplify:  # for a picture in a file
            return super().render_full_update(simplify=simplify)
        self._dirty_regions.clear()
        return LayoutUpdate([], self.size.region)

    def render_partial_update(self) -> ChopsUpdate | None:
        """Those in which something is to be painted."""
        regions = self._dirty_regions.copy()
        self._dirty_regions.clear()
        return ChopsUpdate([], list(self._regions_to_spans(regions)), []) if regions else None
