"""One conversation with the service, as the line, the environment and the profile say."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from betimes.cli import profiles
from betimes.cli.offer import Offer
from betimes.cli.wishes import Wishes
from betimes.domain.errors import BadSetting
from betimes.sdk import ambient

if TYPE_CHECKING:  # loaded when something is asked, not for --help
    from betimes.sdk.exchange import Response

URL_DEFAULT = "http://127.0.0.1:8090"
PAGE_MAX = 1000
KEY_BYTES_MAX = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """Where the service is, who we are, and where we know it from."""

    url: str
    url_from: str
    api_key: str | None
    key_from: str
    tenant: str | None
    profile: Mapping[str, str]


def way_of(wishes: Wishes, *, new_profile: bool = False) -> Way:
    """Flags over the environment over the profile over what `betimes dev` serves.

    A profile that is named must exist, unless it is about to be made.
    """
    named = wishes.profile or ambient.variable("BETIMES_PROFILE")
    known = profiles.read(profiles.place())
    profile = {} if new_profile and named not in known.by_name else known.get(named)
    url, url_from = _first(
        (wishes.url, "--url"),
        (ambient.variable("BETIMES_URL"), "BETIMES_URL"),
        (profile.get("url"), "the profile"),
        (URL_DEFAULT, "the default"),
    )
    key_file = wishes.api_key_file or ambient.variable("BETIMES_API_KEY_FILE")
    key, key_from = _first(
        (_key_in(wishes.api_key_file), "--api-key-file"),
        (ambient.variable("BETIMES_API_KEY"), "BETIMES_API_KEY"),
        (_key_in(key_file), "BETIMES_API_KEY_FILE"),
        (profile.get("api_key"), "the profile"),
        (None, "nowhere"),
    )
    tenant, _ = _first(
        (wishes.tenant, ""),
        (ambient.variable("BETIMES_TENANT"), ""),
        (profile.get("tenant"), ""),
        (None, ""),
    )
    return Way(
        url=url or URL_DEFAULT, url_from=url_from, api_key=key, key_from=key_from,
        tenant=tenant, profile=profile,
    )  # fmt: skip


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


class Session:
    """Asks the service; answers are plain JSON values."""

    def __init__(self, way: Way, *, timeout: float | None = None, attempts: int = 4) -> None:
        from betimes.sdk.client import TIMEOUT_SECONDS, Client  # noqa: PLC0415 -- see above

        self.way = way
        self.client = Client(
            way.url,
            way.api_key,
            attempts=attempts,
            timeout=TIMEOUT_SECONDS if timeout is None else timeout,
        )

    def call(
        self,
        offer: Offer,
        path: Mapping[str, str] | None = None,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """What an operation answers: JSON values, text, bytes, or None when there is nothing."""
        response = self.response(offer, path, query=query, body=body, headers=headers)
        return content_of(response)

    def response(
        self,
        offer: Offer,
        path: Mapping[str, str] | None = None,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> "Response":
        """The answer with its head.

        Raises:
            ApiError: the service refused.

        """
        place = offer.path
        for name, value in (path or {}).items():
            place = place.replace(f"{{{name}}}", quote(value, safe=""))
        sent = dict(headers or {})
        if offer.keyed and offer.method == "POST":
            sent.setdefault("idempotency-key", ambient.new_key())
        if body is None and offer.body is not None and offer.method in ("POST", "PUT", "PATCH"):
            body = {}
        return self.ask(offer.method, place, query=query, body=body, headers=sent)

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        refuse: bool = True,
    ) -> "Response":
        """Any request for our tenant; an answer that tells a problem is raised if `refuse`."""
        import msgspec  # noqa: PLC0415 -- see above

        from betimes.sdk.exchange import problem_of  # noqa: PLC0415 -- see above

        sent = {"accept": "application/json, */*", **(headers or {})}
        if self.way.tenant is not None:
            sent["betimes-tenant"] = self.way.tenant
        if method == "PATCH":
            sent.setdefault("content-type", "application/merge-patch+json")
        response = self.client.request(
            method, path, query=query, headers=sent, body=msgspec.UNSET if body is None else body
        )
        if refuse and response.status >= 400:  # noqa: PLR2004 -- HTTP
            raise problem_of(response)
        return response

    def job_id(self, job: str) -> str:
        """The id of a job; lists are narrowed by ids only, and people know names."""
        if job.startswith("job_"):
            return job
        told = self.ask("GET", f"/v1/jobs/{quote(job, safe='')}", query={"fields": "id"}).json()
        return str(told["id"])

    def rows(
        self,
        offer: Offer,
        path: Mapping[str, str] | None = None,
        *,
        query: Mapping[str, Any] | None = None,
        most: int | None = None,
    ) -> Iterator[Any]:
        """The items of a list, page by page; `most` of them, or all when None."""
        said = dict(query or {})
        left = most
        while True:
            said["limit"] = PAGE_MAX if left is None else min(left, PAGE_MAX)
            page = self.call(offer, path, query=said)
            items = page["items"] if left is None else page["items"][:left]
            yield from items
            if left is not None:
                left -= len(items)
            said["cursor"] = page.get("next_cursor")
            if said["cursor"] is None or left == 0:
                return


def content_of(response: "Response") -> Any:
    """The body of an answer by its media type."""
    kind = response.headers.get("content-type", "")
    if not response.body:
        return None
    if "json" in kind and "jsonl" not in kind and "ndjson" not in kind:
        return response.json()
    if kind.startswith("text/"):
        return response.body.decode(errors="replace")
    return response.body
