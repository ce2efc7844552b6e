"""What stands beside each setting: its sentence, its bounds, and whether it may be shown."""

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields
from datetime import timedelta
from functools import cache
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

Bound = int | float | timedelta
ENVIRONMENT_PREFIX = "BETIMES_"


@dataclass(frozen=True, slots=True)
class Rule:
    """Documentation and limits of one setting, written next to its type."""

    says: str
    least: Bound | None = None
    most: Bound | None = None
    choices: tuple[str, ...] = ()
    secret: bool = False


@dataclass(frozen=True, slots=True)
class Key:
    """One setting as the outside world addresses it."""

    path: str
    kind: Any
    optional: bool
    default: Any
    rule: Rule

    @property
    def group(self) -> str:
        """The table it stands in."""
        return self.path.partition(".")[0]

    @property
    def name(self) -> str:
        """Its name inside the table."""
        return self.path.partition(".")[2]

    @property
    def environment_name(self) -> str:
        """The variable that sets it: the path in capitals, flat."""
        return ENVIRONMENT_PREFIX + self.path.replace(".", "_").upper()


@cache
def keys_of(settings: type) -> Mapping[str, Key]:
    """Every key of a settings tree, in the order of its declaration."""
    groups = get_type_hints(settings)
    found = [
        _key(group.name, entry, get_type_hints(groups[group.name], include_extras=True))
        for group in fields(settings)
        for entry in fields(groups[group.name])
    ]
    return MappingProxyType({key.path: key for key in found})


def _key(group: str, entry: Field[Any], hints: dict[str, Any]) -> Key:
    hint = hints[entry.name]
    if get_origin(hint) is not Annotated:
        raise TypeError(f"{group}.{entry.name} has no Rule; every setting explains itself")
    kind, rule = get_args(hint)
    if entry.default is MISSING:
        raise TypeError(f"{group}.{entry.name} has no default; a bare start must work")
    optional = isinstance(kind, UnionType) and NoneType in get_args(kind)
    if optional:
        (kind,) = (part for part in get_args(kind) if part is not NoneType)
    return Key(f"{group}.{entry.name}", kind, optional, entry.default, rule)
