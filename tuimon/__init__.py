"""tuimon: a live monitor in the terminal for a PyTorch process that is already running."""

__version__ = "0.1.0"

_step = None
"""What `step` calls; tuimon's hook puts something here while it is in the process."""


def step() -> None:
    """Begin a step, where the job's own loop knows best: from this call to the next is one step on tuimon's screen.

    Call it in the loop, not within a function that is compiled. Without tuimon attached it does nothing.
    """
    if _step is not None:
        _step()
