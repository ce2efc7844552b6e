"""A clock that begins now: events arrive by the database's own."""

from datetime import UTC, datetime

import pytest

from betimes.ops.desk import Desk
from betimes.store.database import Database
from betimes.testing import ManualClock
from ops_kit import make_desk


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(datetime.now(UTC))  # noqa: TID251 -- where the test begins


@pytest.fixture
def desk(database: Database, clock: ManualClock) -> Desk:
    return make_desk(database, clock)
