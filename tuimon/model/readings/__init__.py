"""Dynamo's guard texts, read kind by kind. `tuimon.model.reading` is the way in."""
