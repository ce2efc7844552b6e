"""One seed from plan to verdict, and many of them in one process."""

import gc
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from threading import Thread
from typing import TypeVar

from simulation.check import judge
from simulation.facts import Violation
from simulation.loop import Stuck
from simulation.plan import Plan, make_plan
from simulation.server import Server
from simulation.workers import without_threads
from simulation.world import World

T = TypeVar("T")
COLLECT_EVERY = 10


@dataclass
class Outcome:
    """What came of one plan."""

    seed: int
    profile: str
    violations: list[Violation] = field(default_factory=list)
    evidence: dict[str, int] = field(default_factory=dict)
    met: dict[str, int] = field(default_factory=dict)
    transactions: int = 0
    executed: int = 0
    fires: int = 0
    simulated: float = 0.0
    digest: str = ""
    lines: list[str] = field(default_factory=list)


def simulate(plan: Plan, server: Server, *, verbose: bool = False) -> Outcome:
    """Live through a plan and judge it."""
    world = World(plan, server, verbose=verbose)
    outcome = Outcome(plan.seed, plan.profile)
    try:
        history = world.run()
    except Stuck as stuck:
        outcome.violations = [Violation("stuck", str(stuck))]
        return outcome
    verdict = judge(history)
    faults = [
        Violation("unheard", repr(fault.get("exception") or fault.get("message")))
        for fault in world.loop.faults
    ]
    outcome.violations = verdict.violations + faults
    outcome.evidence = dict(verdict.evidence)
    outcome.met = history.met
    outcome.transactions = history.transactions
    outcome.executed = len(history.executed)
    outcome.fires = verdict.evidence["I4"]
    outcome.simulated = world.loop.time()
    outcome.digest = history.digest
    outcome.lines = world.lines
    return outcome


def simulate_seeds(
    seeds: Iterable[int],
    dsn: str,
    *,
    told: Callable[[Outcome], bool | None],
    verbose: bool = False,
    cpu: int | None = None,
) -> None:
    """One after the other, on one core if it is named, until `told` says True: enough."""

    def work() -> None:
        server = Server(dsn, cpu=cpu)
        gc.disable()
        try:
            for number, seed in enumerate(seeds):
                if told(simulate(make_plan(seed), server, verbose=verbose)):
                    return
                if number % COLLECT_EVERY == COLLECT_EVERY - 1:
                    gc.collect()
        finally:
            gc.enable()
            server.close()

    in_thread(work)


def in_thread(work: Callable[[], T]) -> T:
    """Off the main thread, where no loop minds signals."""
    without_threads()
    found: list[T] = []
    faults: list[BaseException] = []

    def live() -> None:
        try:
            found.append(work())
        except BaseException as fault:  # noqa: BLE001 -- carried over
            faults.append(fault)

    thread = Thread(target=live)
    thread.start()
    thread.join()
    if faults:
        raise faults[0]
    return found[0]
