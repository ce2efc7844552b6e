"""Which process owns the server: whoever holds the lock on one file beside the cluster.

The kernel frees the lock when its holder dies, so it is never stale, and pids play no part.
"""

import fcntl
import os
from pathlib import Path


class OwnerLock:
    """Ownership of one data directory, for as long as it is held."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def take(cls, path: Path) -> "OwnerLock | None":
        """The lock, or None when a living process holds it."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        # For the reader of a message only; the lock itself is what counts.
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        return cls(descriptor)

    def release(self) -> None:
        """Let another process own the server. The file stays: removing it would race."""
        os.close(self._descriptor)


def holder_of(path: Path) -> str:
    """Who wrote itself into the lock file last, for a message."""
    try:
        return f"process {int(path.read_text())}"
    except (OSError, ValueError):
        return "another process"
