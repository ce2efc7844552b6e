"""`make simulate`: seeds over processes, the counts at the end, and how to replay what failed.

python -m simulation.run --seeds 1000
python -m simulation.run --seed 47            replay one, with its plan and its events
python -m simulation.run --seed 47 --shrink   find the smallest plan that still fails
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count, islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from betimes.testing.postgres import PostgresKit, postgres_kit
from simulation.one import Outcome, simulate_seeds
from simulation.plan import make_plan
from simulation.server import make_template, run_outside

TWICE_EVERY = 100
"""Of so many seeds one is run twice, and must be the same."""
SHOWN_MAX = 4
RED_MAX = 20
INVARIANTS = (
    "I1",
    "I2",
    "I3",
    "I4",
    "I6",
    "I8",
    "I9",
    "I11",
    "I12",
    "I13",
    "I14",
    "I15",
    "I16",
    "I17",
    "I18",
    "I19",
    "I25",
    "fence",
    "suspects",
)
FAULTS = (
    "lost_before", "lost_between", "commit_lost", "reply_lost", "conflict", "no_room",
    "slow_before", "slow_after", "crash", "freeze", "cut", "away", "step", "jinx", "mute",
    "shard.lost",
)  # fmt: skip


@contextmanager
def database_server() -> Iterator[tuple[PostgresKit, str]]:
    """A PostgreSQL with a database that lives in virtual time."""
    chosen = os.environ.get("BETIMES_TEST_PG_BIN")
    with tempfile.TemporaryDirectory(prefix="betimes-sim-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)
        binaries = Path(chosen) if chosen else None
        with postgres_kit(Path(folder) / "server", binaries=binaries) as kit:
            yield kit, run_outside(lambda: make_template(kit))


def pinned() -> None:
    """Sets must have the same order in every process: start again with the hash pinned."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(  # noqa: S606 -- ourselves
            sys.executable, [sys.executable, "-m", "simulation.run", *sys.argv[1:]]
        )


def main() -> int:
    """Run what was asked for."""
    pinned()
    parser = argparse.ArgumentParser(
        prog="simulate", description=__doc__.split("\n", maxsplit=1)[0]
    )
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--shrink", action="store_true")
    parser.add_argument("--profile", help="only seeds of this kind of trouble")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep-going", action="store_true", help="do not stop after 20 red seeds")
    asked = parser.parse_args()
    with database_server() as (kit, template):
        if asked.seed is not None:
            return replay(asked.seed, kit.dsn(template), shrink=asked.shrink)
        return many(asked, kit, template)


def replay(seed: int, dsn: str, *, shrink: bool) -> int:
    """One seed, told in full; a smaller one that fails as well, if asked for."""
    from simulation.shrink import shrunk

    plan = make_plan(seed)
    print(json.dumps(plan.to_dict(), indent=1))
    found: list[Outcome] = []
    simulate_seeds([seed], dsn, told=found.append, verbose=True)
    outcome = found[0]
    print(
        "\n".join(line for line in outcome.lines if " sql " not in line and " commit " not in line)
    )
    for one in outcome.violations:
        print(f"RED {one.invariant}: {one.sentence}")
    print(
        f"seed {seed} ({outcome.profile}): {len(outcome.violations)} violations,"
        f" {outcome.digest[:16]}"
    )
    if shrink and outcome.violations:
        smaller, steps = shrunk(plan, {one.invariant for one in outcome.violations}, dsn)
        print(json.dumps(smaller.to_dict(), indent=1))
        print(f"shrunk in {steps} tries; what is left above")
    return 1 if outcome.violations else 0


def many(asked: argparse.Namespace, kit: PostgresKit, template: str) -> int:
    """Seeds over processes."""
    context = get_context("spawn")
    reports: Any = context.Queue()
    processes = min(asked.processes, asked.seeds)
    chosen = list(islice(seeds_of(asked.profile, asked.first), asked.seeds))
    cpus = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    began = time.monotonic()
    children = []
    for number in range(processes):
        name = run_outside(lambda: kit.create(template=template))
        seeds = chosen[number::processes]
        cpu = cpus[number] if len(cpus) == processes else None
        child = context.Process(
            target=_child, args=(seeds, kit.dsn(name), reports, cpu), daemon=True
        )
        child.start()
        children.append(child)
    tally = Tally()
    over = 0
    while over < processes:
        outcome = reports.get()
        if outcome is None:
            over += 1
        elif isinstance(outcome, str):
            print(outcome, flush=True)
            return 2
        else:
            tally.add(outcome)
            if len(tally.red) >= RED_MAX and not asked.keep_going:
                print(f"stopped after {RED_MAX} red seeds")
                break
    for child in children:
        child.terminate()
        child.join()
    seconds = time.monotonic() - began
    return tally.tell(seconds)


def seeds_of(profile: str | None, first: int = 0) -> Iterator[int]:
    """Seeds in order, those of one profile if one is named."""
    return (seed for seed in count(first) if profile in {None, make_plan(seed).profile})


def _child(seeds: list[int], dsn: str, reports: Any, cpu: int | None) -> None:
    def told(outcome: Outcome) -> None:
        outcome.lines = []
        reports.put(outcome)

    def twice() -> Iterator[int]:
        for seed in seeds:
            yield seed
            if seed % TWICE_EVERY == TWICE_EVERY // 2:
                yield seed

    try:
        simulate_seeds(twice(), dsn, told=told, cpu=cpu)
    except BaseException as fault:  # noqa: BLE001 -- the parent ends everything
        import traceback

        reports.put("".join(traceback.format_exception(fault)))
    reports.put(None)


class Tally:
    """What all seeds together came to."""

    def __init__(self) -> None:
        self.seeds: dict[int, str] = {}
        self.red: dict[int, Outcome] = {}
        self.evidence: Counter[str] = Counter()
        self.met: Counter[str] = Counter()
        self.broken: Counter[str] = Counter()
        self.sums: Counter[str] = Counter()
        self.repeated = self.unequal = 0

    def add(self, outcome: Outcome) -> None:
        """One more seed."""
        if outcome.seed in self.seeds:
            self.repeated += 1
            if self.seeds[outcome.seed] != outcome.digest:
                self.unequal += 1
                print(f"seed {outcome.seed} was another one the second time", flush=True)
            return
        self.seeds[outcome.seed] = outcome.digest
        self.evidence.update(outcome.evidence)
        self.met.update({str(name): many for name, many in outcome.met.items()})
        self.sums.update(
            transactions=outcome.transactions,
            executed=outcome.executed,
            fires=outcome.fires,
            simulated=int(outcome.simulated),
        )
        if outcome.violations:
            self.red[outcome.seed] = outcome
            self.broken.update({one.invariant for one in outcome.violations})
            print(f"RED seed {outcome.seed} ({outcome.profile})", flush=True)
            for one in outcome.violations[:SHOWN_MAX]:
                print(f"    {one.invariant}: {one.sentence}", flush=True)
        if len(self.seeds) % 100 == 0:
            print(f"{len(self.seeds)} seeds, {len(self.red)} red", flush=True)

    def tell(self, seconds: float) -> int:
        """The counts, and whether all is well."""
        unknown = [one for one in INVARIANTS if not self.evidence[one]]
        unmet = [one for one in FAULTS if not self.met[one]]
        print("evidence: " + ", ".join(f"{one} {self.evidence[one]}" for one in INVARIANTS))
        print("met: " + ", ".join(f"{one} {self.met[one]}" for one in FAULTS))
        if self.broken:
            print(
                "broken: "
                + ", ".join(f"{one} in {many} seeds" for one, many in self.broken.items())
            )
        for one in unknown:
            print(f"UNKNOWN {one}: no seed has met its situation")
        for one in unmet:
            print(f"never met: {one}")
        print(
            f"{len(self.seeds)} seeds, {self.sums['simulated']} simulated s in {seconds:.0f} s,"
            f" {self.sums['transactions']} transactions, {self.sums['fires']} fires judged,"
            f" {self.sums['executed']} attempts; {self.repeated} run twice, {self.unequal} unequal;"
            f" {len(self.red)} red, {len(unknown)} unknown"
        )
        if self.red:
            print("replay one with: make simulate SEED=" + str(min(self.red)))
        return 1 if self.red or self.unequal or unknown else 0


if __name__ == "__main__":
    raise SystemExit(main())
