"""The dated version of the API: one so far, named in every answer."""

from betimes.api.call import Request
from betimes.api.problem import Trouble
from betimes.api.reading import single

API_VERSION = "2026-11-01"
HEADER = b"api-version"


def check_version(request: Request) -> None:
    """A caller who names a version gets that one or a refusal, never another one."""
    said = single(request.headers, request.doubled, HEADER)
    if said is not None and said.strip() != API_VERSION:
        raise Trouble(
            "invalid_parameter",
            f"expected the API-Version {API_VERSION} or none, got {said[:40]!r}",
        )
