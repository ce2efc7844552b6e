"""Identifiers that tell their time and their shard.

An id is 128 bits in the layout of UUID version 8:

    48 bits  milliseconds since 1970 (a run: when it was first planned to be due; others: creation)
     4 bits  version, always 8
    12 bits  shard
     2 bits  variant, always 0b10
    62 bits  tail: random, or for an occurrence a function of (job, fire time, trigger)

So ids sort by time, an id alone leads to its shard and its partition, and the same occurrence can
never get two ids. The text form is a prefix and 26 characters of Crockford's base 32.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from struct import Struct
from typing import NewType
from uuid import UUID, SafeUUID

from betimes.domain.errors import Invalid

TenantId = NewType("TenantId", UUID)
JobId = NewType("JobId", UUID)
RunId = NewType("RunId", UUID)
ParcelId = NewType("ParcelId", UUID)
WorkerId = NewType("WorkerId", UUID)
NodeId = NewType("NodeId", UUID)
ShardId = NewType("ShardId", int)
Epoch = NewType("Epoch", int)
Fence = NewType("Fence", int)

SHARDS_MAX = 4096
TIME_MS_MAX = (1 << 48) - 1
TAIL_BITS = 62
TAIL_BYTES = 8
TAIL_MASK = (1 << TAIL_BITS) - 1

_SPREAD = 0x1E3779B97F4A7C15
"""Odd, so that multiplying by it maps different fire times to different tails."""
_VERSION = 0x8 << 76
_VARIANT = 0b10 << 62
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_MICROSECOND = timedelta(microseconds=1)

_SAFE_UNKNOWN = SafeUUID.unknown  # looking a member up costs as much as making the object
_NEW, _SET = object.__new__, object.__setattr__  # a UUID refuses plain assignment
_TAIL = Struct(">Q")

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = [high + low for high in _ALPHABET for low in _ALPHABET]
_SHIFTS = tuple(range(120, -1, -10))  # two symbols at a time
_TEXT_LENGTH = 26
_VALUES = {symbol: value for value, symbol in enumerate(_ALPHABET)}
_VALUES |= {symbol.lower(): value for symbol, value in _VALUES.items()}
_VALUES |= {"I": 1, "i": 1, "L": 1, "l": 1, "O": 0, "o": 0}


def to_ms(instant: datetime) -> int:
    """Whole milliseconds since 1970 at or before an instant."""
    return (instant - _EPOCH) // _MILLISECOND


def to_us(instant: datetime) -> int:
    """Whole microseconds since 1970."""
    return (instant - _EPOCH) // _MICROSECOND


def compose(time_ms: int, shard: int, tail: int) -> UUID:
    """Put the three parts together; only the lowest 62 bits of the tail are used."""
    return _uuid(_head(time_ms, shard) | (tail & TAIL_MASK))


def occurrence(job: UUID, fire_us: int, due_ms: int, trigger: str = "schedule") -> RunId:
    """The id of one occurrence of a job: a function of its arguments and nothing else.

    The live planner and a backfill pass the same trigger, so they meet in the same row.
    """
    return occurrences(job, ((fire_us, due_ms),), trigger)[0]


def occurrences(
    job: UUID, fires: Iterable[tuple[int, int]], trigger: str = "schedule"
) -> list[RunId]:
    """The ids of many occurrences of one job, given as (fire time in us, due time in ms).

    The digest of job and trigger is where the tails of the job begin; the fire time moves on from
    there. So two fires of one job never share a tail, and two jobs do as rarely as random tails.
    """
    digest = blake2b(job.bytes + trigger.encode(), digest_size=TAIL_BYTES).digest()
    begin = int.from_bytes(digest, "big")
    shard = shard_of(job)
    return [
        RunId(_uuid(_head(due_ms, shard) | ((begin + fire_us * _SPREAD) & TAIL_MASK)))
        for fire_us, due_ms in fires
    ]


def successor(run: RunId) -> RunId:
    """The id of a run that takes the place of another one, for the same occurrence.

    A millisecond later: whoever still holds the old id somewhere holds nothing.
    """
    return RunId(_uuid(run.int + (1 << 80)))


def random_ids(time_ms: int, shard: int, entropy: bytes) -> Iterator[UUID]:
    """One id for every eight bytes of entropy, all with the same time and shard."""
    head = _head(time_ms, shard)
    for (tail,) in _TAIL.iter_unpack(entropy[: len(entropy) // TAIL_BYTES * TAIL_BYTES]):
        yield _uuid(head | (tail & TAIL_MASK))


def _head(time_ms: int, shard: int) -> int:
    """Everything of an id but its tail."""
    if not 0 <= time_ms <= TIME_MS_MAX:
        raise Invalid(f"expected a time between 1970 and 10889, got {time_ms} ms")
    if not 0 <= shard < SHARDS_MAX:
        raise Invalid(f"expected a shard within 0-{SHARDS_MAX - 1}, got {shard}")
    return (time_ms << 80) | _VERSION | (shard << 64) | _VARIANT


def _uuid(number: int) -> UUID:
    """What `UUID(int=number)` makes, in a quarter of the time: its checks are known to pass."""
    made = _NEW(UUID)
    _SET(made, "int", number)
    _SET(made, "is_safe", _SAFE_UNKNOWN)
    return made


def time_ms_of(identifier: UUID) -> int:
    """The milliseconds an id carries."""
    return identifier.int >> 80


def time_of(identifier: UUID) -> datetime:
    """The instant an id carries."""
    return _EPOCH + time_ms_of(identifier) * _MILLISECOND


def shard_of(identifier: UUID) -> ShardId:
    """The shard an id carries."""
    return ShardId((identifier.int >> 64) & (SHARDS_MAX - 1))


def floor_of(time_ms: int) -> UUID:
    """The smallest 128-bit value at or after a millisecond: a bound for ranges and partitions.

    Deliberately not a valid id (version and variant are zero), so that it sorts before all of them.
    """
    return UUID(int=min(max(time_ms, 0), TIME_MS_MAX) << 80)


def shard_of_key(shards: int, *parts: str) -> ShardId:
    """The shard of a natural key such as (tenant, group, name): stable over processes and years."""
    seed = b"\x1f".join(part.encode() for part in parts)
    return ShardId(int.from_bytes(blake2b(seed, digest_size=8).digest(), "big") % shards)


def to_text(prefix: str, identifier: UUID) -> str:
    """`run_` and 26 characters."""
    number = identifier.int
    symbols = [_PAIRS[(number >> shift) & 1023] for shift in _SHIFTS]
    return f"{prefix}_{''.join(symbols)}"


def from_text(prefix: str, text: str) -> UUID:
    """Read what `to_text` wrote; upper or lower case, and I, L, O for the digits they resemble."""
    head, _, symbols = text.rpartition("_")
    if head != prefix or len(symbols) != _TEXT_LENGTH:
        raise Invalid(f"expected an id like {prefix}_ and {_TEXT_LENGTH} characters, got {text!r}")
    number = 0
    for symbol in symbols:
        value = _VALUES.get(symbol)
        if value is None:
            raise Invalid(f"expected base 32 characters in the id, got {symbol!r} in {text!r}")
        number = (number << 5) | value
    if number >> 128:
        raise Invalid(f"expected an id of 128 bits, got more in {text!r}")
    return UUID(int=number)
