"""Judge hostile schedules by the CPU they take.

    python tests/fuzz/schedules.py --number 100000 --seed 1

Every schedule is asked everything a service asks (see `hostile_schedules`), on one budget of steps,
and the CPU time of the thread is taken. What takes more than the limit is asked three times more,
and the least time counts: the machine may have been busy, the work is the same. Exits with 1 when
one is above the limit, or when something other than a refusal came out.
"""

import argparse
import gc
import json
import sys
from collections import Counter
from pathlib import Path
from time import thread_time

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from betimes.schedule import Budget, zone  # noqa: E402
from hostile_schedules import ZONES, Members, ask_all, schedules  # noqa: E402

LIMIT_MS = 20.0
REPEATS = 3
WORST = 10


def measure(members: Members) -> tuple[float, int, str]:
    """Milliseconds of CPU, steps, and the code of a refusal."""
    budget = Budget()
    begin = thread_time()
    asked = ask_all(members, budget)
    return (thread_time() - begin) * 1_000, asked.steps, asked.refusal


def main() -> int:
    """Run, tell, judge."""
    reader = argparse.ArgumentParser(description="Judge hostile schedules by the CPU they take.")
    reader.add_argument("--number", type=int, default=100_000)
    reader.add_argument("--seed", type=int, default=1)
    reader.add_argument("--limit-ms", type=float, default=LIMIT_MS)
    given = reader.parse_args()
    for name in ZONES:
        zone(name)  # read once per process, whatever asks for it first
    gc.freeze()
    kinds: dict[str, Counter[str]] = {}
    slowest: dict[str, float] = {}
    worst: list[tuple[float, int, str, str, str]] = []
    broken: list[str] = []
    for kind, members in schedules(given.seed, given.number):
        try:
            took, steps, refusal = measure(members)
            if took > given.limit_ms:
                took = min(took, *(measure(members)[0] for _ in range(REPEATS)))
        except Exception as error:  # noqa: BLE001 -- anything but a refusal is what is looked for
            broken.append(f"{error!r} for {json.dumps(members)[:400]}")
            continue
        kinds.setdefault(kind, Counter())[refusal or "answered"] += 1
        slowest[kind] = max(slowest.get(kind, 0.0), took)
        worst.append((took, steps, kind, refusal, json.dumps(members)[:300]))
        worst = sorted(worst, reverse=True)[:WORST] if len(worst) > 10 * WORST else worst
    worst = sorted(worst, reverse=True)[:WORST]
    for kind, counts in kinds.items():
        told = ", ".join(f"{code} {number}" for code, number in counts.most_common())
        print(f"{kind:18} {counts.total():7} worst {slowest[kind]:6.2f} ms  {told}")
    for took, steps, kind, refusal, text in worst:
        print(f"{took:7.2f} ms {steps:6} steps  {kind}  {refusal or 'answered'}  {text}")
    for line in broken[:WORST]:
        print(f"broken: {line}")
    total = sum(counts.total() for counts in kinds.values())
    most = worst[0][0] if worst else 0.0
    print(f"{total} schedules, worst {most:.2f} ms of CPU, {len(broken)} broken")
    return 1 if broken or most > given.limit_ms else 0


if __name__ == "__main__":
    sys.exit(main())
