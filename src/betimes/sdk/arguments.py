"""The parameters of a handler as one JSON object, checked by their annotations.

Worked out when first needed and not when the function is decorated: annotations may name what is
defined further down in the file.
"""

import inspect
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, get_type_hints

import msgspec

from betimes.sdk.context import Context
from betimes.sdk.shapes import Unfit, decoder, encode, schema_of

NAMED = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.KEYWORD_ONLY,
)
CONTEXT_NAME = "ctx"
MISSING = object()
"""What a parameter has that the payload does not name: the function's own default is used."""


class Arguments:
    """How a function is called from a payload, and how a call becomes one."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self._function = function
        self._name = name
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind not in NAMED:
                raise TypeError(
                    f"expected named parameters in {name!r}, got {parameter}: each of them "
                    "becomes a member of the payload"
                )

    @cached_property
    def hints(self) -> Mapping[str, Any]:
        """Annotations, resolved."""
        try:
            return get_type_hints(self._function, include_extras=True)
        except NameError as error:
            raise TypeError(
                f"expected annotations of {self._name!r} that can be resolved when it is first "
                f"used, got {error}"
            ) from error

    @cached_property
    def takes_context(self) -> bool:
        """Whether the first parameter is the context: annotated as one, or bare and named ctx."""
        for parameter in inspect.signature(self._function).parameters.values():
            if parameter.name in self.hints:
                kind = self.hints[parameter.name]
                return isinstance(kind, type) and issubclass(kind, Context)
            return parameter.name == CONTEXT_NAME
        return False

    @cached_property
    def signature(self) -> inspect.Signature:
        """The parameters that come from the payload."""
        signature = inspect.signature(self._function)
        parameters = list(signature.parameters.values())[1 if self.takes_context else 0 :]
        return signature.replace(parameters=parameters)

    @cached_property
    def shape(self) -> type[msgspec.Struct]:
        """All parameters as one structure."""
        fields: list[tuple[str, Any, Any]] = []
        for parameter in self.signature.parameters.values():
            given: dict[str, Any] = {"name": parameter.name}
            if parameter.default is not inspect.Parameter.empty:
                given["default_factory"] = _missing
            kind = self.hints.get(parameter.name, Any)
            fields.append((f"p_{parameter.name}", kind, msgspec.field(**given)))
        try:
            return msgspec.defstruct(
                f"{self._name} arguments", fields, kw_only=True, forbid_unknown_fields=True
            )
        except TypeError as error:
            raise self._unfit(error) from error

    @cached_property
    def _read(self) -> Callable[[bytes], Any]:
        try:
            return decoder(self.shape)
        except TypeError as error:
            raise self._unfit(error) from error

    def _unfit(self, error: TypeError) -> TypeError:
        return TypeError(f"expected annotations JSON can hold in {self._name!r}: {error}")

    @cached_property
    def schema(self) -> dict[str, Any] | None:
        """The JSON Schema of the payload; null stands for no arguments where none is needed."""
        schema = schema_of(self.shape)
        if schema is not None and self._all_optional:
            return {"anyOf": [{"$ref": schema.pop("$ref")}, {"type": "null"}], **schema}
        return schema

    @cached_property
    def _all_optional(self) -> bool:
        empty = inspect.Parameter.empty
        return all(one.default is not empty for one in self.signature.parameters.values())

    def encode(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bytes | None:
        """The payload of a call; None when it has no arguments.

        Raises:
            TypeError: arguments are missing or too many, as in any call.
            Unfit: an argument is not what its annotation says.

        """
        given = self.signature.bind(*args, **kwargs).arguments
        if not given:
            return None
        try:
            payload = encode(given)
        except (NotImplementedError, TypeError, ValueError) as error:
            raise Unfit(f"{self._name}: {error}") from error
        try:
            self._read(payload)
        except Unfit as error:
            raise Unfit(f"{self._name}: {error}") from error
        return payload

    def decode(self, payload: bytes | None) -> dict[str, Any]:
        """The arguments that a payload stands for; `Unfit` when it is none for this function."""
        if payload is None or payload == b"null":
            payload = b"{}"
        if not self._fields and payload == b"{}":
            return {}
        value = self._read(payload)
        found = {name: getattr(value, field) for name, field in self._fields}
        if self._none_optional:
            return found
        return {name: one for name, one in found.items() if one is not MISSING}

    @cached_property
    def _fields(self) -> tuple[tuple[str, str], ...]:
        """Each parameter with its field in the structure; worked out once, used for every run."""
        return tuple((name, f"p_{name}") for name in self.signature.parameters)

    @cached_property
    def _none_optional(self) -> bool:
        empty = inspect.Parameter.empty
        return all(one.default is empty for one in self.signature.parameters.values())

    def call(self, context: Context, arguments: Mapping[str, Any]) -> Any:
        """Call the function; what it returns may be awaitable."""
        before: tuple[Any, ...] = (context,) if self.takes_context else ()
        if not self._by_position:
            return self._function(*before, **arguments)
        bound = self.signature.bind_partial()
        bound.arguments.update(arguments)
        return self._function(*before, *bound.args, **bound.kwargs)

    @cached_property
    def _by_position(self) -> bool:
        """Whether some of its parameters cannot be named in a call."""
        kinds = [one.kind for one in self.signature.parameters.values()]
        return inspect.Parameter.POSITIONAL_ONLY in kinds

    @cached_property
    def result(self) -> Callable[[bytes], Any]:
        """Reads a result as the function's return annotation says, as far as that is possible."""
        kind = self.hints.get("return", Any)
        if kind is None or kind is type(None):
            kind = Any
        try:
            return decoder(kind)
        except TypeError:
            return msgspec.json.decode


def _missing() -> object:
    return MISSING
