"""The fold over events: what is known about a target, and nothing else."""

from tuimon.model.model import Model

__all__ = ["Model"]
