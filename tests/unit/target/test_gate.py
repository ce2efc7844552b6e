"""How much an origin is asked for."""

from itertools import pairwise

import pytest

from betimes.target.gate import BreakerState, Gate, Go, Health, Hold, Rules, Wait

RULES = Rules(ceiling=100)


def sent(gate: Gate, now: float, health: Health, *, retry: bool = False) -> Go | Wait:
    """Ask, and if it may be sent, say what came of it."""
    answer = gate.ask(now, retry=retry)
    if isinstance(answer, Go):
        gate.done(now, health, seconds=0.05)
    return answer


def broken(now: float = 0.0) -> Gate:
    gate = Gate(RULES)
    for _ in range(RULES.failures_in_row):
        sent(gate, now, Health.BAD)
    assert gate.state is BreakerState.OPEN
    return gate


def test_failures_in_a_row_open_the_breaker() -> None:
    """Not before; a success between them begins the count anew."""
    gate = Gate(RULES)
    for _ in range(3):
        for _ in range(RULES.failures_in_row - 1):
            sent(gate, 0.0, Health.BAD)
        sent(gate, 0.0, Health.GOOD)
        sent(gate, 0.0, Health.GOOD)
        gate._window.clear()
        gate._bad_in_window = 0
    assert gate.state is BreakerState.CLOSED
    assert broken().state is BreakerState.OPEN


def test_a_share_of_failures_opens_it_too() -> None:
    """Every second one, over enough of them, within the window."""
    gate = Gate(RULES)
    for number in range(30):
        sent(gate, float(number), Health.GOOD if number % 2 else Health.BAD)
    assert gate.state is BreakerState.OPEN
    slow = Gate(RULES)
    for number in range(30):
        sent(slow, number * 5.0, Health.GOOD if number % 2 else Health.BAD)
    assert slow.state is BreakerState.CLOSED, "few exchanges in the window say little"


def test_an_origin_that_pushes_back_is_not_broken() -> None:
    """It is asked for less."""
    gate = Gate(RULES)
    for number in range(20):
        sent(gate, number * 1.0, Health.PUSHED_BACK)
    assert gate.state is BreakerState.CLOSED
    assert gate.limit == 1.0
    for number in range(500):
        sent(gate, 20.0 + number, Health.GOOD)
    assert 20 < gate.limit < 100
    for number in range(20_000):
        sent(gate, 600.0 + number, Health.GOOD)
    assert gate.limit == 100


def test_an_open_breaker_lets_one_probe_through() -> None:
    """After its time, and nobody beside it."""
    gate = broken()
    assert isinstance(gate.ask(1.9), Wait)
    assert gate.ask(2.0) == Go(probe=True)
    assert gate.state is BreakerState.HALF_OPEN
    other = gate.ask(2.1)
    assert isinstance(other, Wait)
    assert other.why is Hold.BREAKER_OPEN
    assert other.seconds >= 1.9


def test_a_failed_probe_makes_the_next_one_later() -> None:
    """Twice as long each time, up to a bound."""
    gate = broken()
    pauses = []
    now = gate.open_until
    for _ in range(8):
        assert gate.ask(now) == Go(probe=True)
        gate.done(now, Health.BAD)
        pauses.append(gate.open_until - now)
        now = gate.open_until
    assert pauses == [4, 8, 16, 30, 30, 30, 30, 30]


def test_what_fails_late_says_nothing_new() -> None:
    """A hundred under way when it opened do not make the pause longer."""
    gate = Gate(RULES)
    for _ in range(100):
        gate.ask(0.0)
    for _ in range(100):
        gate.done(0.5, Health.BAD)
    assert (gate.openings, gate.open_until) == (1, 2.5)
    assert gate.in_flight == 0


def test_a_probe_that_got_lost_is_made_again() -> None:
    """A worker that was cancelled must not leave the breaker half open for ever."""
    gate = broken()
    assert gate.ask(2.0) == Go(probe=True)
    gate.dropped()
    assert gate.in_flight == 0
    assert gate.ask(2.0) == Go(probe=True)


def test_a_probe_goes_on_while_others_are_given_up() -> None:
    """What was sent before the breaker opened is not the probe."""
    gate = Gate(RULES)
    gate.ask(0.0)
    for _ in range(RULES.failures_in_row):
        sent(gate, 0.0, Health.BAD)
    assert gate.ask(2.0) == Go(probe=True)
    gate.dropped()
    assert isinstance(gate.ask(2.0), Wait), "the probe is still on its way"


def test_after_an_outage_the_origin_is_asked_slowly() -> None:
    """Ten a second at first, twice as many every five seconds."""
    gate = broken()
    gate.ask(2.0)
    gate.done(2.0, Health.GOOD)
    assert gate.state is BreakerState.CLOSED
    per_second = []
    for second in range(15):
        passed = sum(
            isinstance(sent(gate, 2.0 + second + step / 1000, Health.GOOD), Go)
            for step in range(0, 1000, 5)
        )
        per_second.append(passed)
    assert 9 <= per_second[0] <= 13
    assert 18 <= per_second[5] <= 24
    assert 36 <= per_second[10] <= 48
    assert all(isinstance(gate.ask(100.0), Go) for _ in range(50)), "later there is no rate at all"


def test_those_who_wait_do_not_come_back_together() -> None:
    """Ten thousand of them come back along the ramp that will be there."""
    gate = broken()
    waits = [gate.ask(0.5) for _ in range(10_000)]
    at = sorted(0.5 + one.seconds for one in waits if isinstance(one, Wait))
    assert at[0] >= gate.open_until
    early = sum(one < gate.open_until + 1 for one in at)
    assert 5 <= early <= 15
    assert 30 < at[-1] - gate.open_until < 60
    busiest = max(sum(second <= one < second + 1 for one in at) for second in range(60))
    assert busiest < 2_000


def test_waiting_is_never_longer_than_a_minute() -> None:
    """Then one asks again; and not all in the same second."""
    gate = Gate(Rules(ceiling=1, rate=1.0))
    sent(gate, 0.0, Health.GOOD)
    waits = [gate.ask(0.0) for _ in range(1_000)]
    seconds = [one.seconds for one in waits if isinstance(one, Wait)]
    assert len(seconds) == 1_000
    assert max(seconds) <= 60
    assert max(seconds.count(one) for one in seconds) == 1


def test_a_full_origin_says_busy() -> None:
    """As many under way as the ceiling; one more when one has ended."""
    gate = Gate(Rules(ceiling=2))
    assert [type(gate.ask(0.0)) for _ in range(3)] == [Go, Go, Wait]
    busy = gate.ask(0.0)
    assert isinstance(busy, Wait)
    assert busy.why is Hold.ORIGIN_BUSY
    gate.done(0.1, Health.GOOD, seconds=0.1)
    assert gate.ask(0.1) == Go()


def test_a_rate_is_kept() -> None:
    """Over any stretch of time, with a small burst."""
    gate = Gate(Rules(ceiling=100, rate=50.0))
    passed = sum(isinstance(sent(gate, step / 1000, Health.GOOD), Go) for step in range(10_000))
    assert 495 <= passed <= 506


def test_retries_are_a_tenth_of_the_first_tries() -> None:
    """And one a second, whatever happens; first tries are not held up by it."""
    gate = Gate(Rules(ceiling=100, failures_in_row=10**9, window_least=10**9))
    first = again = 0
    for step in range(6_000):  # a minute; one thousand first tries, and all want another
        now = step / 100
        if step % 6 == 0:
            first += isinstance(sent(gate, now, Health.GOOD), Go)
        again += isinstance(sent(gate, now, Health.GOOD, retry=True), Go)
    assert first == 1_000
    assert again <= 0.1 * first + 60 + RULES.retry_burst
    assert again >= 150


def without_budget(now: float = 0.0) -> Gate:
    """A gate whose retry budget was spent at a time."""
    gate = Gate(RULES)
    for _ in range(int(gate.rules.retry_burst)):
        assert sent(gate, now, Health.GOOD, retry=True) == Go()
    return gate


def wait_of(gate: Gate, now: float, *, waited: bool = False) -> float:
    """How long a retry has to wait for the budget."""
    answer = gate.ask(now, retry=True, waited=waited)
    assert isinstance(answer, Wait)
    assert answer.why is Hold.RETRY_BUDGET
    return answer.seconds


def test_retries_wait_until_the_budget_has_grown_for_them() -> None:
    """One after the other; whoever comes at its time passes."""
    gate = without_budget()
    assert [wait_of(gate, 0.0) for _ in range(100)] == [pytest.approx(n + 1) for n in range(100)]
    for second in range(1, 101):
        assert isinstance(gate.ask(float(second), retry=True, waited=True), Go)
        assert wait_of(gate, float(second), waited=True) > 1


def test_a_retry_that_has_not_waited_gets_behind_those_that_have() -> None:
    gate = without_budget()
    for _ in range(30):
        wait_of(gate, 0.0)
    assert wait_of(gate, 5.0) == pytest.approx(26), "although five tries have been saved up"
    assert gate.ask(5.0, retry=True, waited=True) == Go()
    assert gate.ask(5.0) == Go(), "first tries do not wait"
    assert gate.ask(25.0, retry=True) == Go(), "nobody came, and no more can be saved up"
    assert gate.ask(40.0, retry=True) == Go(), "nobody has an appointment any more"


def test_no_retry_waits_longer_than_the_longest_wait() -> None:
    """Those whose time is further away come back to ask again, and not together."""
    gate = without_budget()
    waits = [wait_of(gate, 0.0) for _ in range(2_000)]
    assert max(waits) <= 300
    late = sorted(waits[300:])
    assert late[0] >= 240
    assert max(b - a for a, b in pairwise(late)) < 0.2


def test_retries_wait_less_where_first_tries_make_the_budget_grow() -> None:
    gate = without_budget()
    for step in range(60_000):  # ten minutes, a hundred a second
        sent(gate, step / 100, Health.GOOD)
        if step % 9 == 0:  # a little more than the budget
            sent(gate, step / 100, Health.GOOD, retry=True)
    while gate.ask(600.0, retry=True, waited=True) == Go():
        pass
    waits = [wait_of(gate, 600.0) for _ in range(100)]
    ahead = waits[-1] - waits[0]
    assert 99 / 12 < ahead < 99 / 5, "far more than one a second, as it was lately"
    assert min(waits) >= 1, "the budget may stop to grow that fast"


def test_retries_without_budget_wait_at_least_as_long_as_the_target_asked() -> None:
    gate = without_budget()
    gate.ask(0.0)
    gate.done(0.0, Health.PUSHED_BACK, pause=20.0)
    assert wait_of(gate, 0.0) == pytest.approx(20)


def test_a_target_can_ask_for_a_pause() -> None:
    """For everybody, up to a bound; a target that is well cannot."""
    gate = Gate(RULES)
    gate.ask(0.0)
    gate.done(0.0, Health.PUSHED_BACK, pause=20.0)
    held = gate.ask(1.0)
    assert isinstance(held, Wait)
    assert (held.why, held.seconds >= 19) == (Hold.ORIGIN_RATE, True)
    assert gate.ask(20.0) == Go()
    gate.done(20.0, Health.PUSHED_BACK, pause=86_400.0)
    assert gate.ask(80.0) == Go()
    gate.done(80.0, Health.GOOD, pause=50.0)
    assert gate.ask(80.0) == Go()


@pytest.mark.parametrize("health", list(Health))
def test_nothing_is_under_way_when_all_have_ended(health: Health) -> None:
    """Whatever came of them."""
    gate = Gate(RULES)
    for number in range(100):
        sent(gate, float(number), health)
    assert gate.in_flight == 0
