"""A report that the service does not take now says nothing about the attempt it tells of."""

from typing import Any
from unittest.mock import patch

import pytest

from api_kit import Served
from betimes import App
from betimes.api.codes import CODES
from betimes.sdk import operations as table
from betimes.sdk.client import AsyncClient
from betimes.sdk.errors import error_of
from betimes.wire.problem import Problem
from runtime_kit import http, working

pytestmark = pytest.mark.timeout(120)


def refusal(code: str) -> Exception:
    known = CODES[code]
    return error_of(
        Problem(
            type="about:blank",
            title=code,
            status=known.status,
            code=code,
            detail="",
            instance="",
            request_id="",
            retryable=known.retryable,
        ),
        retry_after=None,
    )


@pytest.mark.parametrize("code", ["request_timeout", "tenant_suspended"])
async def test_a_success_is_told_again_and_not_turned_into_a_failure(
    served: Served, app: App, code: str
) -> None:
    @app.task
    async def dig() -> int:
        return 7

    real, refused = AsyncClient.perform, list[str]()

    async def perform(self: AsyncClient, operation: Any, given: Any) -> Any:
        if operation is table.LEASES_REPORT and len(refused) < 2:
            refused.append(code)
            raise refusal(code)
        return await real(self, operation, given)

    key = await served.key(kind="wk")
    with patch.object(AsyncClient, "perform", perform):
        run = await dig.aenqueue()
        async with working(app, http(served, key)):
            ended = await run.awaited(timeout=10)
    assert (ended.state, ended.result, len(refused)) == ("succeeded", 7, 2)
