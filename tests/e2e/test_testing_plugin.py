"""The pytest plugin as its users have it: the fixtures are there by themselves."""

import pytest

from betimes import App
from betimes.testing.plugin import MakeHarness
from betimes.testing.server import BetimesServer

pytestmark = pytest.mark.db


def test_a_real_service(betimes_server: BetimesServer, betimes_harness: MakeHarness) -> None:
    app = betimes_server.app(name="shop")

    @app.task
    def remind(user: int) -> None:
        """Nobody serves it here."""

    run = remind.configure(delay="1h", dedupe_key="user-7").enqueue(7)
    assert run.fetch().state == "scheduled"
    assert remind.configure(dedupe_key="user-7").enqueue(7).deduplicated
    run.cancel()
    assert run.fetch().state == "cancelled"
    app.close()

    h = betimes_harness(app)
    remind.enqueue(8)
    h.run_until_idle()
    assert h.runs(remind).succeeded == 1


def test_a_harness_ends_with_the_test(betimes_harness: MakeHarness) -> None:
    app = App(name="other")
    betimes_harness(app)
    assert "client" in app.__dict__
