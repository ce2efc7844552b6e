"""What workflow runs and their nodes can be; the numbers are stored and never reused."""

from enum import IntEnum, unique


@unique
class NodeState(IntEnum):
    """The life of a node in one workflow run."""

    WAITING = 0
    """Something that it needs has not ended."""
    READY = 1
    """Nothing is missing but its gate."""
    RUNNING = 2
    SUCCEEDED = 3
    FAILED = 4
    SKIPPED = 5
    """Its condition did not hold, or a person did not want it."""
    CANCELLED = 6
    """The workflow run was stopped before or while it ran, or somebody cancelled its run."""

    @property
    def is_final(self) -> bool:
        """Whether nothing but a retry of the workflow run changes it again."""
        return self >= NodeState.SUCCEEDED


@unique
class WorkflowState(IntEnum):
    """The life of a workflow run."""

    RUNNING = 0
    SUCCEEDED = 1
    FAILED = 2
    CANCELLED = 3

    @property
    def is_final(self) -> bool:
        """Whether it is over."""
        return self is not WorkflowState.RUNNING


@unique
class Stop(IntEnum):
    """Why a workflow run starts no more of its ordinary nodes."""

    FAILURE = 1
    """A node failed, and the first failure ends it all."""
    TIMEOUT = 2
    """Its time is up."""
    CANCEL = 3
    """Somebody cancelled it; what cleans up still runs."""
    ABANDON = 4
    """Somebody cancelled it and wants not even its cleaning up."""
