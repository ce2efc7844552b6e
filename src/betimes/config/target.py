"""Settings of outgoing HTTP."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

from betimes.config.rule import Rule
from betimes.config.units import MILLISECOND, MINUTE, SECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetSettings:
    """Requests that jobs make: what may be called, and with how much patience.

    Addresses that are not public are refused whatever a job says. A tenant's settings can open more
    for it: `{"targets": {"allow": ["10.1.0.0/16"], "names": ["hooks.internal"]}}`.
    """

    loopback: Annotated[
        bool,
        Rule(
            "Let jobs call this machine, on any port and without TLS. For development: "
            "`betimes dev` turns it on."
        ),
    ] = False
    plain_http: Annotated[bool, Rule("Let jobs call `http` addresses.")] = False
    ports: Annotated[
        tuple[str, ...], Rule("Ports that may be called, separated by commas; ranges with a dash.")
    ] = ("80", "443", "8000-9999")
    allow: Annotated[
        tuple[str, ...] | None,
        Rule(
            "Networks that may be called although they are not public, such as `10.1.0.0/16`. "
            "Metadata services of clouds stay closed."
        ),
    ] = None
    names: Annotated[
        tuple[str, ...] | None, Rule("Names that may be called although they look private.")
    ] = None
    proxy: Annotated[
        str | None,
        Rule(
            "A forward proxy for all requests, such as `http://10.0.0.5:4750`. It then decides "
            "what names lead to, so it must refuse private addresses itself.",
            secret=True,
        ),
    ] = None
    redact_headers: Annotated[
        tuple[str, ...] | None,
        Rule(
            "Headers that are hidden in evidence and answers, besides cookies and credentials; "
            "separated by commas."
        ),
    ] = None
    redact_paths: Annotated[
        tuple[str, ...] | None,
        Rule(
            "Members of JSON that are hidden in evidence and answers, such as `/card/number` or "
            "`/items/*/token`; separated by commas."
        ),
    ] = None
    connect_timeout: Annotated[
        timedelta,
        Rule("Patience for a name and for a connection.", least=100 * MILLISECOND, most=MINUTE),
    ] = 5 * SECOND
    idle_timeout: Annotated[
        timedelta,
        Rule("Longest silence within an answer that has begun.", least=SECOND, most=5 * MINUTE),
    ] = 10 * SECOND
    origin_concurrency: Annotated[
        int,
        Rule(
            "Requests under way from one worker to one origin for one tenant; at most a quarter "
            "of `worker.slots`, so that one slow target leaves room for others.",
            least=1,
            most=100_000,
        ),
    ] = 128
    origin_per_second: Annotated[
        int | None,
        Rule(
            "Requests per second from one worker to one origin for one tenant. Without one, as "
            "many as the origin takes.",
            least=1,
            most=1_000_000,
        ),
    ] = None
