"""Widgets: thin shells around pure drawing."""
