"""Ranks of one job beside one another: what is told of a step, who is late, who waits for whom."""
