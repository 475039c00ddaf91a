"""Slow steps: the rule, the fold that finds them, and the names of their causes."""
