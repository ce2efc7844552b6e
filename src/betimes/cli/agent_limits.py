"""What an agent lets payloads choose: the user, the shell, the command, its variables.

Whoever may create runs of the tenant writes payloads. What they may choose is said on this machine,
when the agent is started, and never by a payload.
"""

import os
import pwd
from collections.abc import Mapping
from dataclasses import dataclass

from betimes.sdk.control import PermanentError

SHELLS = ("/bin/sh", "/bin/bash", "/usr/bin/bash")
SHELL = "SHELL"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What payloads may choose; by default any command, as the agent's own user."""

    users: frozenset[str] = frozenset()
    shells: frozenset[str] = frozenset(SHELLS)
    commands: frozenset[str] | None = None
    """Commands as they have to be written, letter for letter; None for every one."""
    variables: frozenset[str] | None = None
    """Names a payload may give values to; None for every one, or none where commands are listed."""

    def user_of(self, wanted: str | None) -> str | None:
        """Whom to run as; None for the user of this process.

        Raises:
            PermanentError: the payload names somebody else than it may.

        """
        own = own_user()
        if wanted is None or wanted == own:
            return None
        if wanted not in self.users:
            others = ", ".join(sorted({own, *self.users}))
            raise PermanentError(
                f"expected a user out of {others}, got {wanted[:100]!r}: the agent lets payloads "
                "choose those it was started with, by --user"
            )
        return wanted

    def shell_of(self, environment: Mapping[str, str], default: str) -> str:
        """What interprets the command."""
        wanted = environment.get(SHELL, default)
        if wanted not in self.shells and wanted != default:
            raise PermanentError(
                f"expected a shell out of {', '.join(sorted(self.shells))}, got {wanted[:100]!r}: "
                "the agent runs those it was started with, by --shell"
            )
        return wanted

    def check(self, command: str, environment: Mapping[str, str]) -> None:
        """Refuse a command or variables that this agent was not started for.

        Raises:
            PermanentError: which of them, and what would have been allowed.

        """
        if self.commands is not None and command not in self.commands:
            raise PermanentError(
                f"expected one of the {len(self.commands)} commands that the agent was started "
                f"with, by --command, got {command[:100]!r}"
            )
        if self.commands is None and self.variables is None:
            return
        # Where the command is given, a variable must not choose another program for it.
        for name in environment:
            if name not in (self.variables or ()):
                raise PermanentError(
                    f"expected variables out of {', '.join(sorted(self.variables or ())) or 'none'}"
                    f", got {name[:100]!r}: the agent takes those it was started with, by "
                    "--variable"
                )


@dataclass(slots=True)
class Started:
    """How the agent of this process was started."""

    limits: Limits = Limits()


def own_user() -> str:
    """Who this process is."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
