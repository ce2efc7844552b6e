"""Settings of the dispatcher."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

from betimes.config.rule import Rule
from betimes.config.units import HOUR, MILLISECOND, MINUTE, SECOND

DAY = 24 * HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifySettings:
    """Telling those who want to know: endpoints, their deliveries, and alert rules."""

    route_every: Annotated[
        timedelta, Rule("How often to look for events.", least=10 * MILLISECOND, most=MINUTE)
    ] = 500 * MILLISECOND
    deliver_every: Annotated[
        timedelta,
        Rule("How often to look for deliveries that are due.", least=10 * MILLISECOND, most=MINUTE),
    ] = 250 * MILLISECOND
    mailboxes: Annotated[
        int, Rule("Endpoints that one process sends to at once.", least=1, most=10_000)
    ] = 64
    timeout: Annotated[
        timedelta, Rule("Patience with an endpoint.", least=SECOND, most=30 * SECOND)
    ] = 20 * SECOND
    disable_after: Annotated[
        timedelta,
        Rule(
            "An endpoint that has taken nothing for so long, however often it was tried, is "
            "disabled.",
            least=MINUTE,
            most=30 * DAY,
        ),
    ] = 3 * DAY
    watch_every: Annotated[
        timedelta, Rule("How often alert rules are looked at.", least=SECOND, most=HOUR)
    ] = 15 * SECOND
    endpoints_max: Annotated[int, Rule("Endpoints a tenant may have.", least=1, most=100_000)] = 100
    rules_max: Annotated[int, Rule("Alert rules a tenant may have.", least=1, most=10_000)] = 100
