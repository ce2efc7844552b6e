"""Settings of outgoing mail."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated

from betimes.config.rule import Rule
from betimes.config.units import MINUTE, PORT_MAX, SECOND

SECURITIES = ("starttls", "tls", "none")


@dataclass(frozen=True, slots=True, kw_only=True)
class MailSettings:
    """The mail server that notifications go through. Without a host there is no mail."""

    host: Annotated[str | None, Rule("Name or address of the SMTP server.")] = None
    port: Annotated[
        int | None,
        Rule(
            "Its port. Without one, 587 for `starttls`, 465 for `tls` and 25 for `none`.",
            least=1,
            most=PORT_MAX,
        ),
    ] = None
    security: Annotated[
        str,
        Rule(
            "`starttls`: encrypt after the greeting; `tls`: from the first byte; `none`: not at "
            "all, for a relay on the same machine.",
            choices=SECURITIES,
        ),
    ] = "starttls"
    username: Annotated[str | None, Rule("Whom to log in as. Without one, nobody.")] = None
    password: Annotated[str | None, Rule("The password to log in with.", secret=True)] = None
    sender: Annotated[str, Rule("The address that mails come from.")] = "betimes@localhost"
    authorities: Annotated[
        Path | None, Rule("A file with certificates in PEM to believe besides the usual ones.")
    ] = None
    domains: Annotated[
        tuple[str, ...] | None,
        Rule("Domains that may be written to, separated by commas. Without any, all of them."),
    ] = None
    timeout: Annotated[
        timedelta, Rule("Patience for each step with the server.", least=SECOND, most=MINUTE)
    ] = 10 * SECOND
