"""Payloads of nodes: what is known is checked by annotations, what is not becomes a reference.

A payload has the shape of a call's payload: one object by the names of the parameters.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from betimes.sdk.arguments import Arguments
from betimes.sdk.kinds import NoPart, kinds_at, said
from betimes.sdk.reference import AnyNode, Node, Reference, parts_of, written
from betimes.sdk.shapes import Unfit, decoder, is_model, to_plain

MARK = "\0reference"
"""A name that no user's object has: where a reference stood while its surroundings were encoded."""
LITERAL = "$literal"
ESCAPED = "$"

KindOf = Callable[["Reference | AnyNode"], Any]
"""The type that a reference will have, without its path; None when nobody knows."""
Later = Reference | AnyNode


def payload_of(
    arguments: Arguments,
    name: str,
    given: Mapping[str, Any],
    kind_of: KindOf,
) -> tuple[dict[str, Any] | None, list[Later]]:
    """The payload of a node that calls a task, and everything it refers to.

    Raises:
        Unfit: a literal is not what its annotation says, or an output will never be.

    """
    if not given:
        return None, []
    payload: dict[str, Any] = {}
    referred: list[Later] = []
    for parameter, value in given.items():
        wanted = arguments.hints.get(parameter, Any)
        payload[parameter], found = argument_of(value, wanted, f"{name}: {parameter}", kind_of)
        referred += found
    return payload, referred


def argument_of(value: Any, wanted: Any, what: str, kind_of: KindOf) -> tuple[Any, list[Later]]:
    """One argument as a payload holds it, and what it refers to."""
    plain, found = plain_of(value, what)
    try:
        check(plain, found, wanted, kind_of)
        return restored(plain, found), found
    except Unfit as error:
        raise Unfit(f"{what}: {error}") from error


def plain_of(value: Any, what: str) -> tuple[Any, list[Later]]:
    """A value in types of JSON, with marks where references stand, and those references."""
    found: list[Later] = []

    def plain(one: Any) -> Any:
        if isinstance(one, Reference | Node):
            found.append(one)
            return {MARK: len(found) - 1}
        if is_model(type(one)):
            return _model(one, plain)
        return to_plain(one)

    try:
        return msgspec.to_builtins(value, str_keys=True, enc_hook=plain), found
    except (NotImplementedError, TypeError, ValueError) as error:
        raise Unfit(f"{what}: {error}") from error


def _model(value: Any, plain: Callable[[Any], Any]) -> Any:
    """A model; one that was put together unchecked may hold references."""
    try:
        return to_plain(value)
    except ValueError:
        return value.model_dump(mode="json", warnings=False, fallback=plain)


def check(plain: Any, found: list[Later], wanted: Any, kind_of: KindOf) -> None:
    """Compare a value with an annotation, as far as it is known; `Unfit` when it cannot be."""
    mark = marked(plain)
    if mark is not None:
        _check_reference(found[mark], wanted, kind_of)
    elif not any(True for _ in marks(plain)):
        decoder(wanted)(msgspec.json.encode(plain))
    else:
        for name, one, inside in _elements(plain, wanted):
            try:
                check(one, found, inside, kind_of)
            except Unfit as error:
                raise Unfit(f"at {name}: {error}") from error


def _elements(plain: Any, wanted: Any) -> Iterator[tuple[str, Any, Any]]:
    """What is inside of a list or object of which some parts are not known yet."""
    arguments = get_args(wanted)
    origin = get_origin(wanted) or wanted
    if isinstance(plain, list):
        many = origin in {list, set, frozenset} or arguments[1:] == (...,)
        inside = arguments[0] if many and arguments else Any
        for place, one in enumerate(plain):
            yield str(place), one, inside
    elif isinstance(plain, dict):
        members = _members(origin)
        for name, one in plain.items():
            inside = arguments[1] if origin is dict and arguments else members.get(name, Any)
            yield name, one, inside


def _members(kind: Any) -> Mapping[str, Any]:
    try:
        return get_type_hints(kind, include_extras=True) if isinstance(kind, type) else {}
    except NameError:
        return {}


def _check_reference(later: Later, wanted: Any, kind_of: KindOf) -> None:
    kind = kind_of(later)
    if kind is None or wanted is Any or wanted is inspect.Parameter.empty:
        return
    there = kinds_of(later, kind)
    here = kinds_at(wanted)
    if there is not None and here is not None and not there & here:
        raise Unfit(f"expected {said(here)}, got {later!r}, which will be {said(there)}")


def kinds_of(later: Later, kind: Any) -> frozenset[str] | None:
    """The JSON types that a reference will have."""
    try:
        return kinds_at(kind, parts_of(later)[3])
    except NoPart as error:
        raise Unfit(f"{later!r}: {error}") from error


def marked(plain: Any) -> int | None:
    """Which reference a mark stands for."""
    if isinstance(plain, dict) and MARK in plain:
        found: int = plain[MARK]
        return found
    return None


def marks(plain: Any) -> Iterator[int]:
    """All marks below."""
    mark = marked(plain)
    if mark is not None:
        yield mark
    elif isinstance(plain, dict | list):
        for one in plain.values() if isinstance(plain, dict) else plain:
            yield from marks(one)


def restored(plain: Any, found: list[Later]) -> Any:
    """References as definitions write them, and objects that could be taken for one escaped."""
    mark = marked(plain)
    if mark is not None:
        return written(found[mark])
    if isinstance(plain, list):
        return [restored(one, found) for one in plain]
    if not isinstance(plain, dict):
        return plain
    if not any(name.startswith(ESCAPED) for name in plain):
        return {name: restored(one, found) for name, one in plain.items()}
    if any(True for _ in marks(plain)):
        names = ", ".join(name for name in plain if name.startswith(ESCAPED))
        raise Unfit(
            f"expected an object with {names} to be known when the workflow is described, "
            "got one that holds outputs: let a task put it together"
        )
    return {LITERAL: plain}
