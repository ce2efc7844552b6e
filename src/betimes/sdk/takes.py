"""Tasks by the arguments they take, for type checkers alone.

`Task[P, R, F]` knows its parameters as a whole, and a type checker cannot say "each of them, or a
node that results in it". It can say so for one, two or three of them.
"""

from typing import Any, ParamSpec, Protocol, TypeAlias, TypeVar

from betimes.sdk.prepared import Prepared
from betimes.sdk.reference import Node

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A")
A_contra = TypeVar("A_contra", contravariant=True)
B_contra = TypeVar("B_contra", contravariant=True)
C_contra = TypeVar("C_contra", contravariant=True)
D_contra = TypeVar("D_contra", contravariant=True)

Given: TypeAlias = A | Node[A] | list[Node[Any]] | dict[str, Node[Any]]
"""An argument, a node that results in it, or nodes in a list or object: those are checked later."""


class Takes(Protocol[P, R]):
    """A task, or a configured one."""

    def prepare(self, *args: P.args, **kwargs: P.kwargs) -> Prepared[R]:
        """As tasks have it."""
        ...


class TakesNothing(Protocol[R]):
    """One that can be called without arguments."""

    def prepare(self) -> Prepared[R]:
        """As tasks have it."""
        ...


class TakesOne(Protocol[A_contra, R]):
    """With one."""

    def prepare(self, one: A_contra, /) -> Prepared[R]:
        """As tasks have it."""
        ...


class TakesTwo(Protocol[A_contra, B_contra, R]):
    """With two."""

    def prepare(self, one: A_contra, two: B_contra, /) -> Prepared[R]:
        """As tasks have it."""
        ...


class TakesThree(Protocol[A_contra, B_contra, C_contra, R]):
    """With three."""

    def prepare(self, one: A_contra, two: B_contra, three: C_contra, /) -> Prepared[R]:
        """As tasks have it."""
        ...


class TakesFour(Protocol[A_contra, B_contra, C_contra, D_contra, R]):
    """With four."""

    def prepare(
        self, one: A_contra, two: B_contra, three: C_contra, four: D_contra, /
    ) -> Prepared[R]:
        """As tasks have it."""
        ...


class TakesEach(Protocol[A_contra, R]):
    """With an element first and whatever else it needs."""

    def prepare(self, one: A_contra, /, *args: Any, **kwargs: Any) -> Prepared[R]:
        """As tasks have it."""
        ...
