"""One conversation with the service, as the line, the environment and the profile say."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from betimes.cli.offer import Offer
from betimes.cli.wishes import Wishes
from betimes.sdk import ambient, profiles
from betimes.sdk.way import Way, way_of

if TYPE_CHECKING:  # loaded when something is asked, not for --help
    from betimes.sdk.client import Told
    from betimes.sdk.exchange import Response

PAGE_MAX = 1000


def way_by(wishes: Wishes, *, new_profile: bool = False) -> Way:
    """The way of a command.

    A profile that is named must exist, unless it is about to be made.
    """
    named = wishes.profile or ambient.variable("BETIMES_PROFILE")
    known = profiles.read(profiles.place())
    profile = {} if new_profile and named not in known.by_name else known.get(named)
    return way_of(
        wishes.url, api_key_file=wishes.api_key_file, tenant=wishes.tenant, profile=profile
    )


class Session:
    """Asks the service; answers are plain JSON values."""

    def __init__(
        self,
        way: Way,
        *,
        timeout: float | None = None,
        retry_for: float | None = None,
        told: "Told | None" = None,
    ) -> None:
        from betimes.sdk.client import TIMEOUT_SECONDS, Client  # noqa: PLC0415 -- see above

        self.way = way
        self.client = Client(
            way,
            retry_for=retry_for,
            told=told,
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
