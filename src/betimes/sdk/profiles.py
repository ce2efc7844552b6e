"""Profiles: where the service is and which key opens it, by name, in one file of the user's.

The command line keeps them and the clients read them. The file holds keys, so nobody else may read
it; it is replaced whole, never half written.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from betimes.domain.errors import BadSetting, NotFound
from betimes.sdk import ambient

MEMBERS = ("url", "api_key", "tenant", "output", "timezone", "listen_secret")
SECRET = frozenset({"api_key", "listen_secret"})
DEFAULT = "default"
SHOWN_OF_A_SECRET = 12


@dataclass(slots=True)
class Profiles:
    """Every profile, and the one that counts when none is named."""

    current: str = DEFAULT
    by_name: dict[str, dict[str, str]] = field(default_factory=dict)

    def get(self, name: str | None) -> Mapping[str, str]:
        """A profile; the default one may be missing, a named one may not."""
        wanted = name or self.current
        if wanted in self.by_name:
            return self.by_name[wanted]
        if name is None:
            return {}
        known = ", ".join(sorted(self.by_name)) or "none yet"
        raise NotFound(f"expected a profile out of: {known}; got {wanted!r}")


def place() -> Path:
    """Where the file is.

    Raises:
        BadSetting: nobody knows where this user's files are.

    """
    home = ambient.variable("XDG_CONFIG_HOME")
    if home is None or not home.startswith("/"):
        try:
            home = str(Path.home() / ".config")
        except RuntimeError as fault:
            raise BadSetting(f"expected HOME or XDG_CONFIG_HOME to be set: {fault}") from fault
    return Path(home) / "betimes" / "profiles.toml"


def read(path: Path) -> Profiles:
    """What the file says; nothing when there is none."""
    import tomllib  # noqa: PLC0415 -- who is told everything needs no file

    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Profiles()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as fault:
        raise BadSetting(f"expected profiles in {path}, got {fault}") from fault
    profiles = document.get("profiles", {})
    if not isinstance(profiles, dict):
        raise BadSetting(f"expected tables [profiles.NAME] in {path}")
    return Profiles(
        str(document.get("current", DEFAULT)),
        {name: _members(name, members, path) for name, members in profiles.items()},
    )


def _members(name: str, members: Any, path: Path) -> dict[str, str]:
    if not isinstance(members, dict):
        raise BadSetting(f"expected a table [profiles.{name}] in {path}")
    return {key: str(value) for key, value in members.items() if key in MEMBERS}


def write(path: Path, profiles: Profiles) -> None:
    """Replace the file; only its owner may read it."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    beside = path.with_suffix(".new")
    beside.unlink(missing_ok=True)
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text_of(profiles))
    beside.replace(path)


def text_of(profiles: Profiles) -> str:
    """The file as it is written; a JSON string is a TOML string."""
    lines = [f"current = {json.dumps(profiles.current)}"]
    for name, members in sorted(profiles.by_name.items()):
        lines += ["", f"[profiles.{json.dumps(name)}]"]
        lines += [f"{key} = {json.dumps(members[key])}" for key in MEMBERS if key in members]
    return "\n".join([*lines, ""])


def veiled(key: str, value: str) -> str:
    """A member as it may be shown to whoever looks over a shoulder."""
    return f"{value[:SHOWN_OF_A_SECRET]}…" if key in SECRET else value
