"""How much one origin is asked for by one tenant: a value that is told what happened, and asked.

Four rules, each for another trouble, all of them decided here:

    breaker      an origin that fails is left alone but for a probe now and then
    ramp         an origin that comes back gets ten a second, twice as many every five seconds
    ceiling      requests under way; halved when the origin pushes back, then one more each round
    budget       retries are at most a tenth of the first tries, and one a second

Who may not pass is told when to come back. Appointments are given out one after the other, at the
pace the origin will be asked at by then: ten thousand waiting runs do not come back together.
Retries that the budget has no room for form a queue: each is given the time at which the budget
will have grown enough for it, and one that has not waited does not get ahead of those that have.
Times are monotonic seconds and come in as arguments.
"""

import math
from collections import deque
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum, unique


@unique
class BreakerState(IntEnum):
    """The numbers are stored."""

    CLOSED = 0
    OPEN = 1
    HALF_OPEN = 2


class Hold(StrEnum):
    """Why a run waits; also the reason that is shown with it."""

    BREAKER_OPEN = "BREAKER_OPEN"
    ORIGIN_BUSY = "ORIGIN_BUSY"
    ORIGIN_RATE = "ORIGIN_RATE"
    RETRY_BUDGET = "RETRY_BUDGET"


class Health(StrEnum):
    """What an exchange says about the origin, whatever it says about the run."""

    GOOD = "good"
    """It answered as an origin that is well does, if only that we were wrong."""
    PUSHED_BACK = "pushed_back"
    """It answered that it is asked for too much."""
    BAD = "bad"
    """It failed, or did not answer."""


@dataclass(frozen=True, slots=True)
class Go:
    """May be sent now; a probe decides for all who wait."""

    probe: bool = False


@dataclass(frozen=True, slots=True)
class Wait:
    """Come back in so many seconds."""

    seconds: float
    why: Hold
    waits_for_breaker: bool = False
    """Whether it is called sooner than that, when the breaker closes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The numbers."""

    ceiling: int = 128
    rate: float | None = None
    """Requests per second, when the operator has set a limit."""
    failures_in_row: int = 5
    window_seconds: float = 10.0
    window_least: int = 10
    """Fewer exchanges than this in the window say nothing about its share of failures."""
    window_share: float = 0.5
    open_seconds: float = 2.0
    open_seconds_max: float = 30.0
    ramp_start: float = 10.0
    ramp_doubles_seconds: float = 5.0
    ramp_end: float = 5_000.0
    retry_share: float = 0.1
    retry_floor: float = 1.0
    retry_burst: float = 10.0
    retry_wait_max: float = 300.0
    """The longest that a retry waits for the budget before it asks again."""
    pause_max: float = 60.0
    """The longest pause for everybody that a single Retry-After can ask for."""
    shrink: float = 0.5
    shrink_every_seconds: float = 1.0


PACE_MIN = 1.0
WAIT_MIN, WAIT_MAX = 0.01, 60.0
GOLDEN = 0.618_033_988_75
RETRY_SPREAD = 0.2
"""Retries whose time is further away than the longest wait come back in the last fifth of it."""
GROWTH_SECONDS = 30.0
"""Over so long is averaged how fast first tries make the retry budget grow."""
WINDOW_MAX = 1_000
LATENCY_WEIGHT = 0.1


@dataclass(slots=True)
class Gate:
    """One (tenant, origin) in one process."""

    rules: Rules
    state: BreakerState = BreakerState.CLOSED
    in_flight: int = 0
    limit: float = 0.0
    open_until: float = 0.0
    opened_at: float = 0.0
    openings: int = 0
    """In a row, without a success between them."""
    failures: int = 0
    """In a row."""
    probing: bool = False
    ramp_since: float | None = None
    not_before: float = 0.0
    latency: float = 0.05
    _window: deque[tuple[float, bool]] = field(default_factory=deque)
    _bad_in_window: int = 0
    _tokens: float = 0.0
    _tokens_at: float = 0.0
    _retries: float = 0.0
    _retries_at: float = 0.0
    _earned: float = 0.0
    """What first tries have lately added to the retry budget, per second."""
    _shrunk_at: float = -math.inf
    _place: float = 0.0
    """Of the last appointment along a ramp."""
    _last: dict[Hold, float] = field(default_factory=dict)
    _given: int = 0

    def __post_init__(self) -> None:
        self.limit = float(self.rules.ceiling)
        self._retries = self.rules.retry_burst

    def ask(self, now: float, *, retry: bool = False, waited: bool = False) -> Go | Wait:
        """Whether one more may be sent. Who gets `Go` must say `done` or `dropped` later.

        `waited` is a retry that has waited for the budget before.
        """
        if self.state is not BreakerState.CLOSED:
            return self._ask_broken(now)
        if retry and (wait := self.retry_wait(now, waited=waited)) is not None:
            return wait
        if now < self.not_before:
            return self._appointment(now, self.not_before, Hold.ORIGIN_RATE)
        if (pause := self._rate_pause(now)) > 0:
            return self._appointment(now, now + pause, Hold.ORIGIN_RATE)
        if self.in_flight >= int(self.limit):
            return self._appointment(now, now + self.latency, Hold.ORIGIN_BUSY)
        self._spend(now, retry=retry)
        self.in_flight += 1
        return Go()

    def done(
        self, now: float, health: Health, *, seconds: float = 0.0, pause: float | None = None
    ) -> bool:
        """What came of one that was let through; whether the breaker has changed."""
        self.in_flight -= 1
        before = self.state
        self._note(now, bad=health is Health.BAD)
        if health is Health.BAD:
            self.failures += 1
            self._shrink(now)
            # What was sent before it opened fails late, and says nothing new.
            failing = self.state is BreakerState.CLOSED and self._is_failing()
            if failing or self.state is BreakerState.HALF_OPEN:
                self.open(now)
        else:
            self.failures = 0
            self.latency += LATENCY_WEIGHT * (seconds - self.latency)
            if self.state is not BreakerState.CLOSED:
                self.close(now)
        if health is Health.PUSHED_BACK:
            self._shrink(now)
        elif health is Health.GOOD:
            self.limit = min(float(self.rules.ceiling), self.limit + 1.0 / max(self.limit, 1.0))
        if pause is not None and health is not Health.GOOD:
            self.not_before = max(self.not_before, now + min(pause, self.rules.pause_max))
        return self.state is not before

    def dropped(self) -> None:
        """One that was let through was not sent after all, or nobody knows what came of it."""
        self.in_flight -= 1
        if not self.in_flight:
            self.probing = False  # whoever it was, no probe is on its way any more

    def open(self, now: float, *, until: float | None = None) -> None:
        """Leave the origin alone, for longer each time; `until` when somebody else has decided."""
        self.opened_at = self.opened_at if self.openings else now
        self.openings += 1
        pause = min(
            self.rules.open_seconds_max,
            self.rules.open_seconds * 2.0 ** min(self.openings - 1, 10),
        )
        self.state = BreakerState.OPEN
        self.probing = False
        self.ramp_since = None
        self.open_until = now + pause if until is None else until
        self._place = 0.0

    def close(self, now: float) -> None:
        """The origin is back: begin slowly."""
        self.state = BreakerState.CLOSED
        self.probing = False
        self.openings = 0
        self.failures = 0
        self._window.clear()
        self._bad_in_window = 0
        self.ramp_since = now
        self._place = 0.0
        self._tokens, self._tokens_at = 1.0, now

    def pace(self, now: float) -> float:
        """Requests per second that the origin is asked for at most."""
        paces = [max(1.0, self.limit) / max(self.latency, 0.001)]
        if self.rules.rate is not None:
            paces.append(self.rules.rate)
        if self.ramp_since is not None:
            paces.append(self._ramp(now - self.ramp_since))
        return max(PACE_MIN, min(paces))

    @property
    def is_paced(self) -> bool:
        """Whether turns come by time, and not only by who has ended."""
        return self.ramp_since is not None or self.rules.rate is not None or self.not_before > 0

    def turn_in(self, now: float) -> float | None:
        """Seconds until a rate, a ramp or a wish of the origin lets the next one through.

        None while the breaker decides.
        """
        if self.state is not BreakerState.CLOSED:
            return None
        return max(self.not_before - now, self._rate_pause(now), 0.0)

    def retry_wait(self, now: float, *, waited: bool) -> Wait | None:
        """How long a retry waits for the budget; None when there is room, or the breaker decides.

        While others have appointments, one that has none passes only when no more can be saved up.
        """
        if self.state is not BreakerState.CLOSED:
            return None
        self._grow(now)
        last = self._last.get(Hold.RETRY_BUDGET, -math.inf)
        if self._retries >= (self.rules.retry_burst if last > now and not waited else 1.0):
            return None
        growth = self.rules.retry_floor + self._earned
        base = max(now + 1.0 / self.rules.retry_floor, self.not_before)
        at = max(base, last + 1.0 / growth)
        longest = self.rules.retry_wait_max
        if at > now + longest:
            at = now + longest * (1.0 - RETRY_SPREAD * self._spread())
        else:
            self._last[Hold.RETRY_BUDGET] = at
        return Wait(max(at - now, WAIT_MIN), Hold.RETRY_BUDGET)

    def put_off(self, now: float, seconds: float) -> Wait:
        """An appointment after so many seconds, for who does not stand in the line before them."""
        return self._appointment(now, now + seconds, Hold.ORIGIN_RATE)

    def is_plain(self, now: float) -> bool:
        """Whether nothing about the origin is worth telling."""
        return (
            self.state is BreakerState.CLOSED
            and self.ramp_since is None
            and now >= self.not_before
            and self.limit >= self.rules.ceiling
        )

    def _ask_broken(self, now: float) -> Go | Wait:
        if now >= self.open_until and not self.probing:
            self.state = BreakerState.HALF_OPEN
            self.probing = True
            self.in_flight += 1
            return Go(probe=True)
        base = now + self.rules.open_seconds if self.probing else self.open_until
        return self._appointment(now, base, Hold.BREAKER_OPEN)

    def _appointment(self, now: float, base: float, why: Hold) -> Wait:
        """The next free place after `base`, at the pace the origin will be asked at by then."""
        if why is Hold.BREAKER_OPEN:
            at = self._along_ramp(self.open_until, base)
        elif why is Hold.ORIGIN_RATE and self.ramp_since is not None:
            at = self._along_ramp(self.ramp_since, base)
        else:
            at = max(base, self._last.get(why, -math.inf) + 1.0 / self.pace(now))
        most = max(base, now + WAIT_MAX)
        if at > most:
            # Nobody knows the world a minute from now: come back and ask again, not all at once.
            at = most - WAIT_MAX / 2 * self._spread()
        else:
            self._last[why] = at
        return Wait(max(at - now, WAIT_MIN), why)

    def _spread(self) -> float:
        """A number below 1, far from the last ones that were given."""
        self._given += 1
        return self._given * GOLDEN % 1.0

    def _along_ramp(self, start: float, base: float) -> float:
        """When the next one has its turn if the ramp begins at `start`."""
        doubles = self.rules.ramp_doubles_seconds
        scale = self.rules.ramp_start * doubles
        passed = scale * (2.0 ** min((max(0.0, base - start)) / doubles, 64.0) - 1.0)
        self._place = max(self._place + 1.0, passed)
        return start + doubles * math.log2(1.0 + self._place / scale)

    def _ramp(self, seconds: float) -> float:
        doubled = min(seconds / self.rules.ramp_doubles_seconds, 64.0)
        return self.rules.ramp_start * math.pow(2.0, doubled)

    def _rate_pause(self, now: float) -> float:
        """Seconds until a token is there; none where no rate is in force."""
        rate = self._rate(now)
        if rate is None:
            return 0.0
        self._tokens = min(max(1.0, rate / 10), self._tokens + (now - self._tokens_at) * rate)
        self._tokens_at = now
        return max(0.0, (1.0 - self._tokens) / rate)

    def _rate(self, now: float) -> float | None:
        rate = self.rules.rate
        if self.ramp_since is not None:
            ramp = self._ramp(now - self.ramp_since)
            if ramp >= self.rules.ramp_end:
                self.ramp_since = None
            elif rate is None or ramp < rate:
                return ramp
        return rate

    def _grow(self, now: float) -> None:
        """The retry budget grows with time, and what is known of its growth fades."""
        passed = max(0.0, now - self._retries_at)
        self._retries_at = now
        self._retries = min(self.rules.retry_burst, self._retries + passed * self.rules.retry_floor)
        self._earned *= math.exp(-passed / GROWTH_SECONDS)

    def _spend(self, now: float, *, retry: bool) -> None:
        if self._rate(now) is not None:
            self._tokens -= 1.0
        self._grow(now)
        if retry:
            self._retries -= 1.0
        else:
            earned = min(self.rules.retry_share, self.rules.retry_burst - self._retries)
            self._retries += earned
            self._earned += earned / GROWTH_SECONDS

    def _note(self, now: float, *, bad: bool) -> None:
        window = self._window
        window.append((now, bad))
        self._bad_in_window += bad
        oldest = now - self.rules.window_seconds
        while window and (window[0][0] < oldest or len(window) > WINDOW_MAX):
            self._bad_in_window -= window.popleft()[1]

    def _is_failing(self) -> bool:
        if self.failures >= self.rules.failures_in_row:
            return True
        total = len(self._window)
        share = self._bad_in_window / total if total else 0.0
        return total >= self.rules.window_least and share >= self.rules.window_share

    def _shrink(self, now: float) -> None:
        # Once for all answers to what was sent together.
        if now - self._shrunk_at >= self.rules.shrink_every_seconds:
            self.limit = max(1.0, self.limit * self.rules.shrink)
            self._shrunk_at = now
