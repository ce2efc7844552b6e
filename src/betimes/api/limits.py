"""Admission: who may ask how often, and what is turned away first when there is no room.

Buckets live in the memory of a node: a tenant that spreads its requests over n nodes gets up to n
times its rate, which operators set accordingly. What counts against stored quotas is counted in the
database (see `ops.quotas`).
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from betimes.api.problem import Trouble
from betimes.api.route import Load, Policy, Route
from betimes.config.api import ApiSettings
from betimes.domain.clock import Clock
from betimes.domain.ids import TenantId
from betimes.ops.keys import Caller

WINDOW_SECONDS = 60
BUCKETS_MAX = 100_000
JITTER_SHARE = 0.25
SHARES = {Load.AGGREGATE: 0.7, Load.READ: 0.8, Load.CREATE: 0.9, Load.WRITE: 1.0}
"""How much of the room each kind may see taken: what counts and sums goes first, then reads."""


class Usage(NamedTuple):
    """A limit of this node, what is used of it, and in how many seconds nothing is."""

    limit: int
    used: int
    resets_in: float | None


@dataclass(slots=True)
class Bucket:
    """Tokens that come back with time."""

    capacity: float
    tokens: float
    at: float

    def take(self, now: float, cost: float) -> bool:
        """Take what a request costs, if it is there."""
        self.tokens = min(
            self.capacity, self.tokens + (now - self.at) * self.capacity / WINDOW_SECONDS
        )
        self.at = now
        if self.tokens < cost:
            return False
        self.tokens -= cost
        return True

    def wait_seconds(self, cost: float) -> float:
        """How long until it could be taken; as long as it is looked at where nothing comes back."""
        if not self.capacity:
            return float(WINDOW_SECONDS)
        return max(0.0, (cost - self.tokens) * WINDOW_SECONDS / self.capacity)

    def full_seconds(self) -> float:
        """How long until nothing is used of it."""
        return self.wait_seconds(self.capacity)


class Crowded(Trouble):
    """Somebody has as much under way as one may have."""


@dataclass(slots=True)
class Place:
    """A request under way, and who is known to have it."""

    route: Route
    whose: str | None = None


class Admission:
    """Buckets per tenant and policy, failures per address, and the room there is."""

    def __init__(self, *, settings: ApiSettings, clock: Clock, roll: Callable[[], float]) -> None:
        self._clock = clock
        self._buckets: dict[tuple[str, str], Bucket] = {}
        self._failures: dict[str, Bucket] = {}
        self._streams: dict[str, int] = {}
        self._under_way: dict[str, int] = {}
        self._waits: dict[str, int] = {}
        self._roll = roll
        self._settings = settings
        self._limits = {
            Policy.DEFAULT: settings.requests_per_minute,
            Policy.CREATE: settings.creates_per_minute,
            Policy.BULK: settings.bulk_per_minute,
            Policy.LEASE: settings.leases_per_minute,
            Policy.STREAM: settings.requests_per_minute,
        }
        self.busy = 0
        self.waiting = 0

    def enter(self, route: Route) -> Place:
        """Begin a request, or turn it away because there is no room for its kind."""
        share = SHARES.get(route.load)
        if share is not None and self.busy >= self._settings.busy_max * share:
            raise Trouble(
                "overloaded",
                "there is no room for this at the moment; ask again",
                headers={"Retry-After": "1"},
            )
        self.busy += not route.waits
        self.waiting += route.waits
        return Place(route)

    def settle(self, place: Place, whose: str) -> None:
        """Count a request for its tenant (or its address), or turn it away as one too many.

        What is never turned away is counted as well, and beyond the bound it takes no room that
        others have: however much one of them has under way, its neighbours get in.
        """
        if place.route.waits:
            self._settle_waiting(place, whose)
            return
        most, count = self._settings.tenant_busy_max, self._under_way.get(whose, 0)
        if count >= most and place.route.load in SHARES:
            who = "address" if place.route.is_public else "tenant"
            raise Crowded(
                "overloaded" if place.route.is_public else "rate_limited",
                f"expected at most {most} requests of one {who} under way at a time",
                headers={"Retry-After": "1"},
            )
        place.whose = whose
        self._under_way[whose] = count + 1
        self.busy -= count >= most

    def _settle_waiting(self, place: Place, whose: str) -> None:
        most, count = self._settings.tenant_waiting_max, self._waits.get(whose, 0)
        if count >= most and place.route.load in SHARES:
            raise Crowded(
                "rate_limited",
                f"expected at most {most} requests of one tenant that wait at a time",
                headers={"Retry-After": "5"},
            )
        place.whose = whose
        self._waits[whose] = count + 1

    def leave(self, place: Place) -> None:
        """End a request."""
        if place.route.waits:
            self.waiting -= 1
            if place.whose is not None and (left := self._waits.pop(place.whose) - 1):
                self._waits[place.whose] = left
        elif place.whose is None:
            self.busy -= 1
        else:
            count = self._under_way.pop(place.whose)
            self.busy -= count <= self._settings.tenant_busy_max
            if count > 1:
                self._under_way[place.whose] = count - 1

    def charge(self, caller: Caller, route: Route, *, cost: float = 1.0) -> dict[str, str]:
        """Take the cost of a request; returns the headers that tell what is left."""
        if route.load is Load.FREE:
            return {}
        limit = self._limit(caller, route.policy)
        bucket = self._bucket(str(caller.tenant), route.policy, limit)
        allowed = bucket.take(self._clock.monotonic(), min(cost, max(limit, 1)))
        # Vital calls are counted and never turned away: they free what others wait for.
        told = self._headers(route.policy, limit, bucket)
        if not allowed and route.load is not Load.VITAL:
            # Not everybody at the same instant; whole seconds, so little waits need it most.
            wait = bucket.wait_seconds(cost) * (1 + JITTER_SHARE * self._roll()) + self._roll()
            raise Trouble(
                "rate_limited",
                f"expected at most {limit} requests per minute of the policy {route.policy}",
                headers=told | {"Retry-After": str(max(1, math.ceil(wait)))},
            )
        return told

    def give_back(self, caller: Caller, route: Route, *, cost: float = 1.0) -> dict[str, str]:
        """What a request was charged, because it cost nothing; the headers after that."""
        if route.load is Load.FREE:
            return {}
        limit = self._limit(caller, route.policy)
        bucket = self._bucket(str(caller.tenant), route.policy, limit)
        bucket.tokens = min(bucket.capacity, bucket.tokens + cost)
        return self._headers(route.policy, limit, bucket)

    def usage(self, tenant: TenantId, quotas: Mapping[str, int]) -> dict[str, Usage]:
        """What a tenant has used of each policy on this node, of its room and of its streams."""
        now = self._clock.monotonic()
        found: dict[str, Usage] = {}
        for policy in Policy:
            limit = quotas.get(f"{policy}_per_minute", self._limits[policy])
            bucket = self._bucket(str(tenant), policy, limit)
            bucket.take(now, 0.0)
            used = round(limit - bucket.tokens)
            found[f"{policy}_per_minute"] = Usage(limit, used, bucket.full_seconds())
        streams = self._streams.get(str(tenant), 0)
        busy = self._under_way.get(str(tenant), 0)
        found["requests_under_way"] = Usage(self._settings.tenant_busy_max, busy, None)
        found["streams"] = Usage(self._settings.streams_max, streams, None)
        return found

    def rates(self, caller: Caller) -> dict[str, int]:
        """How many requests of each policy a caller may make in a minute, by the quota's name."""
        return {f"{policy}_per_minute": self._limit(caller, policy) for policy in Policy}

    def note_failure(self, address: str) -> None:
        """Remember a wrong key; an address that has guessed too often hears no more about them.

        A right key still opens: many may share an address.
        """
        self._guess(address, 1.0)

    def check_guesses(self, address: str) -> None:
        """Turn away an address that has guessed too often, where looking itself is dear."""
        self._guess(address, 0.0)

    def _guess(self, address: str, cost: float) -> None:
        if len(self._failures) >= BUCKETS_MAX:
            self._failures.clear()
        capacity = float(self._settings.failures_per_minute)
        bucket = self._failures.setdefault(
            address, Bucket(capacity, capacity, self._clock.monotonic())
        )
        taken = bucket.take(self._clock.monotonic(), cost)
        if not taken or (not cost and bucket.tokens < 1.0):
            wait = math.ceil(bucket.wait_seconds(1.0))
            raise Trouble(
                "rate_limited",
                "too many requests with wrong credentials from this address",
                headers={"Retry-After": str(max(1, wait))},
            )

    def open_stream(self, caller: Caller) -> None:
        """Begin a stream, of which a tenant may have only some, and a node as well."""
        tenant, settings = str(caller.tenant), self._settings
        count = self._streams.get(tenant, 0)
        if count >= settings.streams_max:
            raise Trouble(
                "rate_limited",
                f"expected at most {settings.streams_max} streams of one tenant at a time on a "
                "node, whatever keys they use; close one, or follow more with one stream",
                headers={"Retry-After": "5"},
            )
        if sum(self._streams.values()) >= settings.node_streams_max:
            raise Trouble(
                "rate_limited",
                f"expected at most {settings.node_streams_max} streams at a time on this node; ask "
                "again later, or read page by page",
                headers={"Retry-After": "5"},
            )
        self._streams[tenant] = count + 1

    def close_stream(self, caller: Caller) -> None:
        """End a stream."""
        tenant = str(caller.tenant)
        left = self._streams.pop(tenant, 1) - 1
        if left:
            self._streams[tenant] = left

    def _limit(self, caller: Caller, policy: Policy) -> int:
        return caller.quotas.get(f"{policy}_per_minute", self._limits[policy])

    def _bucket(self, tenant: str, policy: Policy, limit: int) -> Bucket:
        bucket = self._buckets.get((tenant, policy))
        if bucket is None or bucket.capacity != limit:
            if len(self._buckets) >= BUCKETS_MAX:
                self._buckets.clear()
            bucket = Bucket(float(limit), float(limit), self._clock.monotonic())
            self._buckets[tenant, policy] = bucket
        return bucket

    def _headers(self, policy: Policy, limit: int, bucket: Bucket) -> dict[str, str]:
        left = max(0, int(bucket.tokens))
        until_full = math.ceil(bucket.full_seconds())
        return {
            "RateLimit-Policy": f'"{policy}";q={limit};w={WINDOW_SECONDS}',
            "RateLimit": f'"{policy}";r={left};t={max(0, until_full)}',
        }
