"""The way to the service: where it is, who we are, and where we know it from.

What is said in code or on a line counts first, then the environment, then the profile, then the
address that `betimes dev` serves. The key of a profile is sent to the address of that profile and
to no other: whoever changes the address only must bring a key as well.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from betimes.domain.errors import BadSetting
from betimes.sdk import ambient, profiles

URL_DEFAULT = "http://127.0.0.1:8090"
KEY_BYTES_MAX = 4096
NOBODY: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """Where the service is, who we are, and where we know it from."""

    url: str
    url_from: str
    api_key: str | None = field(repr=False)
    key_from: str
    tenant: str | None
    profile: Mapping[str, str] = field(repr=False)


def client_way(
    url: str | None = None,
    api_key: str | None = None,
    *,
    tenant: str | None = None,
    profile: str | None = None,
) -> Way:
    """The way of a client; the file is read only when something is missing, or a profile is named.

    Raises:
        NotFound: there is no profile of that name.
        BadSetting: the file of profiles or of the key cannot be read.

    """
    named = profile or (None if url and api_key else ambient.variable("BETIMES_PROFILE"))
    known = NOBODY
    if named is not None or not (_told(url, "BETIMES_URL") and _told(api_key, "BETIMES_API_KEY")):
        known = _profile(named)
    return way_of(url, api_key, tenant=tenant, profile=known)


def way_of(
    url: str | None = None,
    api_key: str | None = None,
    *,
    api_key_file: str | None = None,
    tenant: str | None = None,
    profile: Mapping[str, str] = NOBODY,
) -> Way:
    """What was said, over the environment, over a profile, over what `betimes dev` serves."""
    url, url_from = _first(
        (url, "--url"),
        (ambient.variable("BETIMES_URL"), "BETIMES_URL"),
        (profile.get("url"), "the profile"),
        (URL_DEFAULT, "the default"),
    )
    at_home = (url or URL_DEFAULT).rstrip("/") == profile.get("url", URL_DEFAULT).rstrip("/")
    key, key_from = _first(
        (api_key, "the code"),
        (_key_in(api_key_file), "--api-key-file"),
        (ambient.variable("BETIMES_API_KEY"), "BETIMES_API_KEY"),
        (_key_in(ambient.variable("BETIMES_API_KEY_FILE")), "BETIMES_API_KEY_FILE"),
        (profile.get("api_key") if at_home else None, "the profile"),
        (None, "nowhere" if at_home else "nowhere (the key of the profile is for its own address)"),
    )
    tenant, _ = _first(
        (tenant, ""),
        (None if api_key else ambient.variable("BETIMES_TENANT"), ""),
        (None if api_key or not at_home else profile.get("tenant"), ""),
        (None, ""),
    )
    return Way(
        url=url or URL_DEFAULT, url_from=url_from, api_key=key, key_from=key_from,
        tenant=tenant, profile=profile,
    )  # fmt: skip


def _told(said: str | None, variable: str) -> str | None:
    return said or ambient.variable(variable)


def _profile(named: str | None) -> Mapping[str, str]:
    """A profile; without a name, also nothing where this user has no files to read."""
    try:
        place = profiles.place()
        if named is None and not _is_ours(place):
            return NOBODY
    except BadSetting:
        if named is not None:
            raise
        return NOBODY
    return profiles.read(place).get(named)


def _is_ours(place: Path) -> bool:
    try:
        return place.is_file()
    except PermissionError:
        return False


def _first(*found: tuple[str | None, str]) -> tuple[str | None, str]:
    return next((one for one in found if one[0]), found[-1])


def _key_in(path: str | None) -> str | None:
    if path is None:
        return None
    try:
        with Path(path).open(encoding="ascii") as file:
            text = file.read(KEY_BYTES_MAX).strip()
    except (OSError, UnicodeDecodeError) as fault:
        raise BadSetting(f"expected an API key in {path}, got {fault}") from fault
    if not text:
        raise BadSetting(f"expected an API key in {path}, got an empty file")
    return text
