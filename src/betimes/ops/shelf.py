"""Where large sealed things are kept outside the database, if anywhere."""

from typing import Protocol


class Shelf(Protocol):
    """Keeps bytes by name. What it is given is sealed already; it need not be trusted with more.

    Every verb may be repeated; `get` of what is not there is None, `delete` of it is no error.
    Trouble of any kind is `Unavailable`.
    """

    @property
    def scheme(self) -> str:
        """The first word of every location here."""
        ...

    async def put(self, name: str, content: bytes) -> None:
        """Keep bytes under a name."""
        ...

    async def get(self, name: str) -> bytes | None:
        """The bytes of a name."""
        ...

    async def delete(self, name: str) -> None:
        """Forget a name."""
        ...
