"""Values of users' types to JSON and back.

msgspec knows the plain types, dataclasses, attrs, enums, dates, UUIDs and decimals. What it does
not know is recognised by what it can do: a class with `model_validate` is a Pydantic model, and we
need not import Pydantic to use one.
"""

from collections.abc import Callable
from typing import Any, get_origin

import msgspec


class Unfit(ValueError):
    """A value that does not fit its annotation; the sentence says where and what was expected."""


def is_model(kind: Any) -> bool:
    """Whether a class validates and describes itself as Pydantic models do."""
    return isinstance(kind, type) and hasattr(kind, "model_validate")


def to_plain(value: Any) -> Any:
    """A value of a type that msgspec does not know, in types that it knows."""
    dump = getattr(value, "model_dump", None)
    if dump is None or not is_model(type(value)):
        raise NotImplementedError(f"expected something JSON can hold, got {type(value).__name__}")
    return dump(mode="json")


def from_plain(kind: Any, value: Any) -> Any:
    """A value of a type that msgspec does not know, from what JSON held."""
    if is_model(kind):
        return kind.model_validate(value)
    origin = get_origin(kind) or kind
    if isinstance(origin, type) and isinstance(value, origin):
        return value
    raise NotImplementedError(f"expected a type that JSON can hold, got {kind!r}")


encode: Callable[[Any], bytes] = msgspec.json.Encoder(enc_hook=to_plain).encode


def decoder(kind: Any) -> Callable[[bytes], Any]:
    """Reads JSON as a type; what does not fit is `Unfit`."""
    decode = msgspec.json.Decoder(kind, dec_hook=from_plain).decode

    def read(data: bytes) -> Any:
        try:
            return decode(data)
        except (msgspec.ValidationError, msgspec.DecodeError, ValueError) as error:
            raise Unfit(str(error)) from error

    return read


def schema_of(kind: Any) -> dict[str, Any] | None:
    """The JSON Schema of a type; None for one that cannot be described."""
    shared: dict[str, Any] = {}

    def describe(model: Any) -> dict[str, Any]:
        if not is_model(model):
            raise NotImplementedError
        # Names of two models may be the same, so each brings its parts under its own name.
        home = f"{model.__module__}.{model.__qualname__}"
        told: dict[str, Any] = model.model_json_schema(ref_template=f"#/$defs/{home}:{{model}}")
        for name, part in told.pop("$defs", {}).items():
            shared[f"{home}:{name}"] = part
        return told

    try:
        schema = msgspec.json.schema(kind, schema_hook=describe)
    except (TypeError, NotImplementedError):
        return None
    if shared:
        schema["$defs"] = {**schema.get("$defs", {}), **shared}
    return schema
