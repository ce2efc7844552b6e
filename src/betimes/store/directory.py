"""A directory that keeps sealed bytes: files that are either whole or not there."""

import asyncio
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from betimes.domain.errors import Bug, Unavailable

T = TypeVar("T")
FOLDER_MODE, FILE_MODE = 0o700, 0o600
FRESH = ".fresh"
NAME = re.compile(r"[0-9a-f-]+/[0-9a-f-]+\.[0-9]+")
"""A tenant, a blob and the version of its key: nothing that could lead out of the directory."""


class DirectoryShelf:
    """Keeps each name in a file of its own; the part before the slash is a folder."""

    scheme = "directory"

    def __init__(self, root: Path) -> None:
        self._root = root

    async def put(self, name: str, content: bytes) -> None:
        """Keep bytes under a name."""
        await _beside(lambda: self._put(self._place(name), content))

    async def get(self, name: str) -> bytes | None:
        """The bytes of a name."""
        return await _beside(lambda: _read(self._place(name)))

    async def delete(self, name: str) -> None:
        """Forget a name."""
        await _beside(lambda: self._place(name).unlink(missing_ok=True))

    def _place(self, name: str) -> Path:
        if not NAME.fullmatch(name):
            raise Bug(f"not a name of ours: {name!r}")
        return self._root / name

    def _put(self, place: Path, content: bytes) -> None:
        """Write beside the place, then move there: a crash leaves a whole file or none."""
        self._root.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        place.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        fresh = place.with_name(place.name + FRESH)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(place)
        folder = os.open(place.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _read(place: Path) -> bytes | None:
    try:
        return place.read_bytes()
    except FileNotFoundError:
        return None


async def _beside(work: Callable[[], T]) -> T:
    """On a thread, because disks make an event loop wait."""
    try:
        return await asyncio.to_thread(work)
    except OSError as error:
        raise Unavailable(f"the directory of blobs: {error.strerror}") from error
