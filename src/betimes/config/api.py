"""Settings of the public API."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated

from betimes.config.rule import Rule
from betimes.config.units import HOUR, MILLISECOND, MINUTE, PORT_MAX, SECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiSettings:
    """The public API: where it listens, and what it lets in."""

    listen: Annotated[str, Rule("Address to listen on.")] = "127.0.0.1"
    port: Annotated[
        int, Rule("TCP port to listen on; 0 takes a free one.", least=0, most=PORT_MAX)
    ] = 8090
    public_url: Annotated[
        str | None,
        Rule(
            "Where people reach the service, such as https://jobs.example.com: what the addresses "
            "begin with that it tells them, such as the one where a device is let in. Headers of "
            "requests are never believed about that. By default the address a request came to.",
        ),
    ] = None
    commit: Annotated[
        str | None,
        Rule("Commit the service was built from, told by `GET /v1/version`; set it in the image."),
    ] = None
    pepper: Annotated[
        str | None,
        Rule(
            "Secret under which API keys are digested, at least 32 characters, the same on every "
            "node. Without one, a secret is made and kept in `pepper_file`.",
            secret=True,
        ),
    ] = None
    pepper_file: Annotated[
        Path | None,
        Rule("Where the secret is kept when `pepper` is not given. By default beside the data."),
    ] = None
    requests_per_minute: Annotated[
        int, Rule("Requests of one tenant per minute and node.", least=1, most=1_000_000_000)
    ] = 600_000
    creates_per_minute: Annotated[
        int, Rule("Creations of one tenant per minute and node.", least=1, most=1_000_000_000)
    ] = 600_000
    bulk_per_minute: Annotated[
        int, Rule("Batches and bulk actions of one tenant per minute.", least=1, most=1_000_000)
    ] = 6_000
    leases_per_minute: Annotated[
        int, Rule("Calls of the worker protocol per tenant and minute.", least=1, most=10**9)
    ] = 600_000
    failures_per_minute: Annotated[
        int,
        Rule("Wrong keys from one address per minute, before even that is refused.", least=1),
    ] = 20
    streams_max: Annotated[
        int,
        Rule(
            "Streams (events, logs, exports) that one tenant may have open on a node, whatever "
            "keys it uses.",
            least=1,
            most=10_000,
        ),
    ] = 20
    node_streams_max: Annotated[
        int, Rule("Streams that a node has room for.", least=1, most=100_000)
    ] = 500
    tenant_waiting_max: Annotated[
        int,
        Rule(
            "Requests of one tenant that may wait on a node at a time: for the end of a run, for "
            "work, for events. Workers that ask for work are never refused.",
            least=1,
            most=100_000,
        ),
    ] = 1_000
    busy_max: Annotated[
        int,
        Rule(
            "Requests under way at which new ones are turned away. Statistics are refused at 70 % "
            "of it, other reads at 80 %, creating at 90 %, changing at all of it; cancelling, "
            "pausing, reporting and heartbeats never are.",
            least=4,
            most=100_000,
        ),
    ] = 500
    tenant_busy_max: Annotated[
        int,
        Rule(
            "Requests that one tenant may have under way (or one address, where no key is asked "
            "for), at most half of `busy_max`, so that its neighbours always find room. Further "
            "ones are answered 429; cancelling, pausing, reporting and heartbeats never are, and "
            "beyond this bound they take no room of others.",
            least=1,
            most=50_000,
        ),
    ] = 100
    shed_due_lag: Annotated[
        timedelta,
        Rule(
            "How late due work may be before new work of low priority is refused; at four times "
            "this all new work is. Cancelling, pausing, reporting and heartbeats never are.",
            least=SECOND,
            most=HOUR,
        ),
    ] = 30 * SECOND
    shed_pool_wait: Annotated[
        timedelta,
        Rule(
            "How long requests may wait for a connection before statistics and new work of low "
            "priority are refused; at twice this other reads are, at four times all new work.",
            least=10 * MILLISECOND,
            most=MINUTE,
        ),
    ] = 250 * MILLISECOND
    shed_pause: Annotated[
        timedelta,
        Rule(
            "How long a refusal for want of room is held back: clients that ask again at once "
            "would take the time of those that are served. While more than a hundred are held "
            "back it is longer, up to five seconds, so that refusals do not grow with clients.",
            least=0 * SECOND,
            most=10 * SECOND,
        ),
    ] = 500 * MILLISECOND
    connections_max: Annotated[
        int, Rule("Connections from one address.", least=1, most=100_000)
    ] = 1_000
    header_timeout: Annotated[
        timedelta,
        Rule("How long the head of a request may take.", least=100 * MILLISECOND, most=MINUTE),
    ] = 10 * SECOND
    body_timeout: Annotated[
        timedelta,
        Rule("How long the body of a request may take.", least=100 * MILLISECOND, most=HOUR),
    ] = 30 * SECOND
    long_poll_max: Annotated[
        timedelta,
        Rule("Longest wait for work or for the end of a run.", least=0 * SECOND, most=MINUTE),
    ] = 30 * SECOND
    lease_ttl: Annotated[
        timedelta,
        Rule("How long a run stays with a remote worker.", least=SECOND, most=HOUR),
    ] = 30 * SECOND
