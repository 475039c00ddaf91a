"""tuimon: a live monitor in the terminal for a PyTorch process that is already running."""

__version__ = "0.1.0"
