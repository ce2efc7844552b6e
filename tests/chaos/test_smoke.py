"""A minute of faults in the ordinary suite: one of each of the hardest, judged by the checker."""

import pytest

from chaos.load import Client
from chaos.nemesis import ANY_STATEMENT, COMMIT, WORKER_PAUSE, Nemesis
from chaos.scene import assert_kept, play
from chaos.stage import Stage, a_stage
from embedded_kit import Place

pytestmark = [pytest.mark.db, pytest.mark.timeout(240)]


async def test_a_killed_owner_a_frozen_worker_and_lost_replies(place: Place) -> None:
    async def plot(stage: Stage, nemesis: Nemesis, _: Client) -> None:
        await stage.until_balanced()
        await nemesis.swallow("c1", COMMIT)
        await nemesis.swallow("w1", ANY_STATEMENT, 1.0)
        await nemesis.kill("c2")
        await nemesis.freeze("w1", WORKER_PAUSE)
        await nemesis.cut("c1")

    async with a_stage(place) as stage:
        history = await play(stage, plot, periods=(1, 2, 3))
        assert_kept(stage, history, unknown=frozenset({"I17"}))
