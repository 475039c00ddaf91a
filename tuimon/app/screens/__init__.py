"""Screens: the panels, and pages of text over them."""
