"""Bodies and queries, read with suspicion: whatever breaks Python or PostgreSQL stops here."""

import json
import math
import re
import zlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec

from betimes.api.call import Request
from betimes.api.problem import Trouble
from betimes.api.sentences import Complaint, complaint_of, escaped
from betimes.wire.problem import FieldError

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)
Receive = Callable[[], Awaitable[Any]]

DRAINED_MAX = 16 << 20
DEPTH_MAX = 64
INTEGER_DIGITS_MAX = 19
INTEGER_MAX = (1 << 63) - 1
QUERY_BYTES_MAX = 8192
FIELDS = "fields"
VALIDATE_ONLY = "validate_only"
PARAMETERS_MAX = 100
PACKED = "gzip"
GZIP_BITS = 31
ALONE, ITEMS = "independent", "items"
BATCHES = ("/items", "/jobs")
"""The members that hold the items of a batch."""
_PARTS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]', re.DOTALL)
"""Strings, whether they end or not, and brackets: whatever is sent is walked through once."""


async def read_body(receive: Receive, request: Request, *, most: int) -> bytes:
    """The whole body, never more than allowed in memory."""
    said = request.header(b"content-length")
    if said is not None and said.isascii() and said.isdigit() and int(said) > DRAINED_MAX:
        raise too_large(int(said), most)
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Trouble("malformed_request", "the request ended before its body was complete")
        chunk = message.get("body", b"")
        size += len(chunk)
        # A little too much is read to its end and forgotten, so that the answer is heard.
        if size > DRAINED_MAX:
            raise too_large(size, most)
        if size <= most:
            chunks.append(chunk)
        if not message.get("more_body"):
            break
    if size > most:
        raise too_large(size, most)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


async def refuse_body(receive: Receive, request: Request) -> None:
    """A DELETE is said by its path and query; what it carries would be ignored unnoticed.

    Raises:
        Trouble: there is a body.

    """
    said = request.header(b"content-length")
    if said in (None, "0") and request.header(b"transfer-encoding") is None:
        return
    if await read_body(receive, request, most=DRAINED_MAX):
        raise Trouble(
            "invalid_parameter",
            f"expected no body with {request.method}, got one: parameters go into the query",
        )


def too_large(size: int, most: int) -> Trouble:
    """More than the route allows."""
    return Trouble(
        "payload_too_large", f"expected a body of at most {most} bytes, got {size} or more"
    )


def read_json(body: bytes) -> Any:
    """A JSON value: strict syntax, no duplicate names, finite numbers, no broken strings."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _malformed(f"byte {error.start} is not UTF-8") from None
    _check_depth(text)
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise _malformed(f"{error.msg} at character {error.pos}") from None
    except ValueError as error:
        raise _malformed(str(error)) from None
    if "\\u" in text:
        _check_strings(value)
    return value


def convert(value: Any, kind: type[T] | Any, *, strict: bool = True) -> T:
    """The value as a shape of ours, or a problem that points at what is wrong."""
    try:
        answer: T = msgspec.convert(value, type=kind, strict=strict)
    except msgspec.ValidationError as error:
        raise _invalid(complaint_of(str(error), kind, value)) from None
    return answer


def convert_each(value: Any, kind: Any, item: Any) -> tuple[Any, dict[int, Trouble]]:
    """A batch whose items stand for themselves: what can be read, and the rest by its place.

    Raises:
        Trouble: it is no such batch, or nothing of it can be read.

    """
    try:
        return convert(value, kind), {}
    except Trouble as trouble:
        alone = isinstance(value, dict) and value.get("mode") == ALONE
        sent = value.get(ITEMS) if alone else None
        if not isinstance(sent, list) or trouble.code == "batch_too_large":
            raise
        unread = _unread(sent, item)
        kept = [one for place, one in enumerate(sent) if place not in unread]
        if not (unread and kept):
            raise
    return convert({**value, ITEMS: kept}, kind), unread


def _unread(items: list[Any], kind: Any) -> dict[int, Trouble]:
    found: dict[int, Trouble] = {}
    for place, one in enumerate(items):
        try:
            convert(one, kind)
        except Trouble as trouble:
            for error in trouble.errors:
                error.pointer = f"/{ITEMS}/{place}{error.pointer}"
            found[place] = trouble
    return found


def read_query(raw: bytes, kind: type[S], *, common: "Common | None" = None) -> S:
    """Query parameters as a shape: lists by commas or repetition, unknown names refused.

    With `common`, parameters that many operations share are taken out first.
    """
    if not raw:
        return _converted([], kind)
    if len(raw) > QUERY_BYTES_MAX:
        raise Trouble("invalid_parameter", f"expected a query of at most {QUERY_BYTES_MAX} bytes")
    try:
        pairs = parse_qsl(
            raw.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=PARAMETERS_MAX,
        )
    except ValueError:
        raise Trouble(
            "invalid_parameter",
            f"expected a query of at most {PARAMETERS_MAX} parameters in percent-encoded UTF-8",
        ) from None
    if common is not None:
        pairs = [pair for pair in pairs if not common.take(*pair)]
    return _converted(pairs, kind)


@dataclass(slots=True)
class Common:
    """Parameters that operations share whose own shape does not have them."""

    selects: bool
    tries: bool
    fields: list[str] = field(default_factory=list)
    only_try: bool = False

    def take(self, name: str, text: str) -> bool:
        """Take a parameter, if it is one of these."""
        if name == FIELDS and self.selects:
            self.fields += _parts(name, text)
            return True
        if name == VALIDATE_ONLY and self.tries:
            if text not in ("true", "false", "1", "0"):
                raise Trouble("invalid_parameter", f"expected {name}=true, got {text[:20]!r}")
            self.only_try = text in ("true", "1")
            return True
        return False


def _parts(name: str, text: str) -> list[str]:
    parts = text.split(",")
    if not all(parts):  # an empty filter would mean everything
        raise Trouble("invalid_parameter", f"expected a value in the parameter {name}")
    return parts


def _converted(pairs: list[tuple[str, str]], kind: type[S]) -> S:
    fields = _parameters(kind)
    found: dict[str, Any] = {}
    for name, text in pairs:
        is_list = fields.get(name)
        if is_list is None:
            raise Trouble(
                "unknown_parameter",
                f"this operation has no parameter {name[:100]!r}; it has "
                f"{', '.join(sorted(fields)) or 'none'}",
                errors=[FieldError(pointer="", code="unknown_parameter", detail=name[:100])],
            )
        if "\x00" in text:
            raise Trouble("invalid_parameter", f"expected no NUL in the parameter {name}")
        if is_list:
            found.setdefault(name, []).extend(_parts(name, text))
        elif name in found:
            raise Trouble("invalid_parameter", f"expected the parameter {name} once, got it twice")
        else:
            found[name] = text
    try:
        return msgspec.convert(found, type=kind, strict=False)
    except msgspec.ValidationError as error:
        wrong = complaint_of(str(error), kind, found)
        name = wrong.pointer.lstrip("/").partition("/")[0]
        raise Trouble("invalid_parameter", f"parameter {name}: {wrong.sentence}") from None


@cache
def _parameters(kind: type[msgspec.Struct]) -> dict[str, bool]:
    """The parameters of a query, and whether each is a list."""
    return {one.encode_name: _is_list(one.type) for one in msgspec.structs.fields(kind)}


def _is_list(kind: Any) -> bool:
    origin = getattr(kind, "__origin__", None)
    if origin is list:
        return True
    return any(getattr(part, "__origin__", None) is list for part in getattr(kind, "__args__", ()))


def _check_depth(text: str) -> None:
    if text.count("[") + text.count("{") <= DEPTH_MAX:
        return
    depth = 0
    for part in _PARTS.finditer(text):
        if part[0][0] == '"':
            continue
        depth += 1 if part[0] in "[{" else -1
        if depth > DEPTH_MAX:
            raise _malformed(f"nested more than {DEPTH_MAX} levels deep")


def _check_strings(value: Any) -> None:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += one.keys()
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
        elif isinstance(one, str):
            if "\x00" in one:
                raise _malformed("a string contains NUL")
            if not one.isascii() and any("\ud800" <= symbol <= "\udfff" for symbol in one):
                raise _malformed("a string contains half of a surrogate pair")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        doubled = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"the name {doubled[:100]!r} stands twice in one object")
    return found


def _integer(text: str) -> int:
    if len(text) > INTEGER_DIGITS_MAX + 1 or abs(number := int(text)) > INTEGER_MAX:
        raise ValueError("an integer does not fit into 64 bits")
    return number


def _float(text: str) -> float:
    if len(text) > QUERY_BYTES_MAX or not math.isfinite(number := float(text)):
        raise ValueError("a number is too large")
    return number


def _constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_int=_integer, parse_float=_float, parse_constant=_constant
)


def _malformed(detail: str) -> Trouble:
    return Trouble("malformed_json", f"expected JSON, got something else: {detail}")


def _invalid(wrong: Complaint) -> Trouble:
    code, pointer = "invalid_parameter", wrong.pointer
    if wrong.unknown is not None:
        code, pointer = "unknown_field", f"{pointer}/{escaped(wrong.unknown)}"
    elif wrong.too_many and pointer in BATCHES:
        code = "batch_too_large"
    return Trouble(
        code,
        f"{pointer or 'the body'}: {wrong.sentence}",
        errors=[FieldError(pointer=pointer, code=code, detail=wrong.sentence)],
    )


def unpacked(request: Request, body: bytes, *, most: int) -> bytes:
    """A body that may have come packed, never more of it than allowed in memory."""
    if request.header(b"content-encoding") != PACKED:
        return body
    unpacking = zlib.decompressobj(wbits=GZIP_BITS)
    try:
        text = unpacking.decompress(body, most + 1)
    except zlib.error:
        raise Trouble("malformed_request", "expected a body in gzip, got something else") from None
    if len(text) > most:
        raise too_large(len(text), most)
    if not unpacking.eof or unpacking.unused_data:
        raise Trouble("malformed_request", "expected one whole body in gzip")
    return text


def check_media(request: Request, media: str, body: bytes, *, unpacks: bool = False) -> None:
    """Only what the route reads, compressed only where it says so."""
    allowed_packing = (None, "identity", PACKED) if unpacks else (None, "identity")
    if request.header(b"content-encoding") not in allowed_packing:
        raise Trouble("unsupported_media_type", "expected a body without compression")
    if not body:
        return
    said = (request.header(b"content-type") or "").partition(";")[0].strip().lower()
    allowed = {media, "application/json"} if media.endswith("json") else {media, said}
    if media == "*/*":
        return
    if said not in allowed:
        raise Trouble(
            "unsupported_media_type", f"expected Content-Type: {media}, got {said[:100]!r}"
        )


def single(headers: Mapping[bytes, bytes], doubled: frozenset[bytes], name: bytes) -> str | None:
    """A header that may come once; None when it does not come."""
    if name in doubled:
        raise Trouble("invalid_parameter", f"expected the header {name.decode()} once")
    value = headers.get(name)
    return None if value is None else value.decode("latin-1")
