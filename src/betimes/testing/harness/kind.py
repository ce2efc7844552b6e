"""What happens in the world in memory, and in which order."""

from enum import IntEnum


class WorkerDies(Exception):
    """An attempt takes its worker with it."""


class Kind(IntEnum):
    """What happens, in the order of things that happen at the same moment."""

    END = 0
    TURN = 1
    """Something became of a workflow run: what is next is decided."""
    EXPIRE = 2
    FIRE = 3
    DUE = 4
    LAPSE = 5
    """Something was waited for too long."""
