"""Hints leave in their own time, whatever comes in meanwhile."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from betimes.domain.ids import ShardId, TenantId
from betimes.store.database import Database
from betimes.store.hints import Hints
from betimes.testing import ManualClock

TENANT = TenantId(UUID(int=1))


async def test_a_hint_that_comes_while_another_leaves_is_sent_next(
    database: Database, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    hints = Hints(database=database, clock=clock)
    hints.hint(ShardId(1), "default", TENANT, clock.now())
    real, sent = hints._send, list[str]()

    async def interrupted(channel: str, payload: str) -> Any:
        sent.append(payload)
        if len(sent) == 1:
            hints.hint(ShardId(2), "default", TENANT, clock.now() + timedelta(seconds=1))
        return await real(channel, payload)

    monkeypatch.setattr(hints, "_send", interrupted)
    await hints.tick()
    clock.advance(1)
    await hints.tick()
    assert [payload.split(":")[0] for payload in sent] == ["1", "2"]
