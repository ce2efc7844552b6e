"""What is wrong with a value, in words: what was expected, and what was got.

The decoder names the kind of its complaint and the place. What it leaves out, the choices there
were and the value that was there, is looked up in the shape and in what was sent.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

SHOWN_MAX = 60
CHOICES_MAX = 40
_PLACE = re.compile(r" - at `(?P<key>key in )?\$?(?P<path>[^`]*)`$")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_BOUND = re.compile(r"Expected `(?P<kind>\w+)` (?P<sign><=|>=|<|>) (?P<bound>\S+)")
_LENGTH = re.compile(r"Expected `(?P<kind>\w+)` of length (?P<sign><=|>=|==) (?P<bound>\d+)")
_PATTERN = re.compile(r"Expected `str` matching regex (?P<pattern>.*)")
_KIND = re.compile(r"Expected `(?P<wanted>[^`]*)`, got `(?P<got>[^`]*)`")
_MISSING = re.compile(r"Object missing required field `(?P<name>[^`]*)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>[^`]*)`")
_CHOICE = re.compile(r"Invalid (?:enum )?value (?P<got>.*)")
SIGNS = {"<=": "at most", ">=": "at least", "<": "less than", ">": "more than", "==": "exactly"}
KINDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
PARTS = {"str": "characters", "array": "items", "object": "members", "bytes": "bytes"}


class Complaint(msgspec.Struct):
    """One thing that is wrong, with its place; `unknown` names a member nobody knows."""

    sentence: str
    pointer: str = ""
    unknown: str | None = None
    too_many: bool = False
    """Whether a list has more items than it may."""


def complaint_of(message: str, kind: Any, value: Any) -> Complaint:
    """The decoder's message about a value that was to be of a kind."""
    steps: list[str] = []
    found = _PLACE.search(message)
    if found is not None:
        steps = [name or place for name, place in _STEP.findall(found["path"])]
        message = message[: found.start()]
    pointer = "".join(f"/{escaped(step)}" for step in steps)
    kinds = _at([_kind_of(kind)], steps)
    got = _value_at(value, steps)
    for pattern, tell in _TELLERS:
        if (said := pattern.fullmatch(message)) is not None:
            unknown = said["name"] if pattern is _UNKNOWN else None
            too_many = pattern is _LENGTH and (said["kind"], said["sign"]) == ("array", "<=")
            return Complaint(tell(said, kinds, got), pointer, unknown, too_many)
    return Complaint(message, pointer)


def escaped(name: str) -> str:
    """A name as a step of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def _bound(said: re.Match[str], kinds: Sequence[inspect.Type], got: Any) -> str:
    del kinds
    bound = said["bound"].removesuffix(".0")
    return f"expected {_named(said['kind'])} of {SIGNS[said['sign']]} {bound}, got {_plain(got)}"


def _length(said: re.Match[str], kinds: Sequence[inspect.Type], got: Any) -> str:
    del kinds
    parts = PARTS.get(said["kind"], "parts")
    size = len(got) if isinstance(got, str | list | dict | bytes) else "another number"
    return (
        f"expected {_named(said['kind'])} of {SIGNS[said['sign']]} {said['bound']} {parts}, "
        f"got {size}"
    )


def _pattern(said: re.Match[str], kinds: Sequence[inspect.Type], got: Any) -> str:
    words = next((text for kind in kinds if (text := _described(kind))), None)
    return f"expected {words or 'text that matches ' + said['pattern']}, got {_plain(got)}"


def _kind(said: re.Match[str], kinds: Sequence[inspect.Type], got: Any) -> str:
    del got
    choices = _choices(kinds)
    wanted = _either(choices) if choices else _either(map(_named, said["wanted"].split(" | ")))
    return f"expected {wanted}, got {_named(said['got'])}"


def _missing(said: re.Match[str], kinds: Sequence[inspect.Type], got: Any) -> str:
    del kinds, got
    return f"expected the member `{said['name']}`, which is missing"


def _unknown(said: re.Match[str], kinds: Sequence[inspect.Type], got: Any) -> str:
    del got
    names = sorted({one.encode_name for kind in kinds for one in _members(kind)})
    there = (
        f"expected members out of {', '.join(names[:CHOICES_MAX])}" if names else "expected none"
    )
    return f"{there}, got the unknown field `{said['name'][:SHOWN_MAX]}`"


def _choice(said: re.Match[str], kinds: Sequence[inspect.Type], got: Any) -> str:
    del got
    return f"expected {_either(_choices(kinds)) or 'something else'}, got {said['got'][:SHOWN_MAX]}"


_Teller = Callable[[re.Match[str], Sequence[inspect.Type], Any], str]
_TELLERS: Sequence[tuple[re.Pattern[str], _Teller]] = (
    (_BOUND, _bound),
    (_LENGTH, _length),
    (_PATTERN, _pattern),
    (_KIND, _kind),
    (_MISSING, _missing),
    (_UNKNOWN, _unknown),
    (_CHOICE, _choice),
)


@cache
def _kind_of(kind: Any) -> inspect.Type:
    return inspect.type_info(kind)


def _at(kinds: Sequence[inspect.Type], steps: Sequence[str]) -> list[inspect.Type]:
    """What may stand at a place, in any of the shapes that have it."""
    found = list(_plainly(kinds))
    for step in steps:
        found = list(_plainly(inner for kind in found for inner in _inside(kind, step)))
    return found


def _plainly(kinds: Iterable[inspect.Type]) -> Iterator[inspect.Type]:
    """Without what only wraps: descriptions stay with what they describe."""
    for kind in kinds:
        if isinstance(kind, inspect.UnionType):
            yield from _plainly(kind.types)
        elif isinstance(kind, inspect.Metadata) and isinstance(kind.type, inspect.UnionType):
            yield from _plainly(kind.type.types)
        else:
            yield kind


def _bare(kind: inspect.Type) -> inspect.Type:
    return kind.type if isinstance(kind, inspect.Metadata) else kind


def _inside(kind: inspect.Type, step: str) -> Iterator[inspect.Type]:
    bare = _bare(kind)
    if isinstance(bare, inspect.StructType):
        if step == bare.tag_field and bare.tag is not None:
            yield inspect.LiteralType(values=(bare.tag,))
        yield from (one.type for one in bare.fields if one.encode_name == step)
    elif isinstance(bare, inspect.ListType | inspect.SetType | inspect.FrozenSetType):
        yield bare.item_type
    elif isinstance(bare, inspect.DictType):
        yield bare.value_type


def _members(kind: inspect.Type) -> Sequence[inspect.Field]:
    bare = _bare(kind)
    return bare.fields if isinstance(bare, inspect.StructType) else ()


def _choices(kinds: Sequence[inspect.Type]) -> list[str]:
    found: list[str] = []
    for kind in map(_bare, kinds):
        if isinstance(kind, inspect.LiteralType):
            found += [str(value) for value in kind.values]
        elif isinstance(kind, inspect.EnumType):
            found += [str(one.value) for one in kind.cls]
    return list(dict.fromkeys(found))


def _described(kind: inspect.Type) -> str | None:
    schema = kind.extra_json_schema if isinstance(kind, inspect.Metadata) else None
    words = (schema or {}).get("description")
    return None if words is None else str(words).rstrip(".")


def _value_at(value: Any, steps: Sequence[str]) -> Any:
    for step in steps:
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


def _named(kind: str) -> str:
    return KINDS.get(kind, kind)


def _either(words: Iterable[str]) -> str:
    listed = list(words)
    return " or ".join(filter(None, (", ".join(listed[:-1]), *listed[-1:])))


def _plain(got: Any) -> str:
    """A value in a line; a number in a query is text that looks like one."""
    if isinstance(got, str) and _is_number(got):
        return got[:SHOWN_MAX]
    return repr(got)[:SHOWN_MAX] if isinstance(got, str | int | float) else "something else"


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?\d+(\.\d+)?", text) is not None
