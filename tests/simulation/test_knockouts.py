"""The simulation finds each of the faults that were mended, when its mending is taken out."""

from contextlib import ExitStack
from itertools import islice

import pytest

from betimes.testing.postgres import PostgresKit
from simulation.knockouts import KNOCK_OUTS, KnockOut
from simulation.one import Outcome, simulate_seeds
from simulation.run import seeds_of
from simulation.server import make_template, run_outside

pytestmark = [pytest.mark.simulation, pytest.mark.timeout(1_800)]


@pytest.mark.parametrize("knock_out", KNOCK_OUTS, ids=lambda one: one.name.split(":")[0])
def test_a_fix_that_is_taken_out_is_missed(postgres: PostgresKit, knock_out: KnockOut) -> None:
    template = run_outside(lambda: make_template(postgres))
    tried: list[Outcome] = []

    def told(outcome: Outcome) -> bool:
        tried.append(outcome)
        return bool(knock_out.expected & {one.invariant for one in outcome.violations})

    with ExitStack() as stack:
        for one in knock_out.patches:
            stack.enter_context(one)
        seeds = islice(seeds_of(knock_out.profile), knock_out.within)
        simulate_seeds(seeds, postgres.dsn(template), told=told)
    last = tried[-1]
    found = [one for one in last.violations if one.invariant in knock_out.expected]
    assert found, f"{knock_out.name}: not found in {len(tried)} seeds"
    print(f"{knock_out.name}: seed {last.seed}, the {len(tried)}th tried: {found[0].sentence}")
