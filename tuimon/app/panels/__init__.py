"""The panels: one pure function each, from a scene and a view to lines of (text, role). No screen library in here."""
