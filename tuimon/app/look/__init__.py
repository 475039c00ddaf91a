"""Themes: how roles look, in whatever colours the terminal has."""
