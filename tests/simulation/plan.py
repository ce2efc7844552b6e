"""From a seed to everything that is going to happen, as values to print and to make smaller.

A profile biases a seed towards one kind of trouble, so that rare situations are met often: swarm
testing. Every number is drawn here; the world draws only orders, latencies and which request fails.
"""

from dataclasses import asdict, dataclass
from random import Random
from typing import Any

from simulation.boundary import Fault

PROFILES = ("calm", "mixed", "mixed", "mixed", "far", "stuck", "paused", "silent")
CATCHUP = ("none", "latest", "all")
SOON = 0.6
"""So often a pause is short and early, while publishing comes to nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPlan:
    """One job; its fires are plain arithmetic."""

    name: str
    kind: str
    """interval, cron or once"""
    every: int
    """Seconds between fires, counted from 1970; for `once` the seconds from the start."""
    created: float
    catchup: str
    overlap: str
    handler: str
    takes: float
    fails: float
    attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """What a client asks for, and when."""

    at: float
    verb: str
    job: int = 0
    detail: str = ""
    number: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """What happens to a host or to the database, and for how long."""

    at: float
    kind: str
    """crash, freeze, cut, away, step, jinx, mute"""
    host: str = ""
    lasts: float = 0.0
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One seed, unfolded."""

    seed: int
    profile: str
    shards: int
    start: float
    """Seconds after midnight of the first simulated day."""
    chaos: float
    settle: float
    coordinators: int
    workers: int
    apps: int
    tasks: int
    """Workers of apps that have the database."""
    crude: int
    apis: int
    janitors: int
    rtt: dict[str, float]
    spread: bool
    rates: dict[str, float]
    skews: tuple[float, ...]
    ttl: float
    worker_ttl: float
    sweep: float
    horizon: float
    hints: float
    """Share of notifications that arrive."""
    probe: bool
    """Whether a coordinator is killed after healing, to time the takeover."""
    jobs: tuple[JobPlan, ...]
    acts: tuple[Act, ...]
    incidents: tuple[Incident, ...]

    def to_dict(self) -> dict[str, Any]:
        """For printing and for replaying a smaller one."""
        return asdict(self)


def make_plan(seed: int) -> Plan:
    """Everything about one seed."""
    dice = Random(seed)
    profile = dice.choice(PROFILES)
    chaos = {"calm": 15.0, "far": 15.0}.get(profile, 30.0) * dice.uniform(0.7, 1.4)
    stuck = profile in {"stuck", "paused"}
    if stuck:
        chaos = dice.uniform(55.0, 75.0)
    far = profile == "far"
    shards = dice.choice((24, 32, 40)) if far else dice.randint(1, 4)
    coordinators = 1 if far else dice.randint(1, 2)
    ttl = 10.0 if far else dice.choice((3.0, 5.0, 10.0))
    workers, apps, tasks = _executors(dice, profile)
    return Plan(
        seed=seed,
        profile=profile,
        shards=shards,
        start=86_400.0 - dice.uniform(5, 40)
        if dice.random() < 0.15
        else dice.uniform(30_000, 60_000),
        chaos=chaos,
        settle=60.0 if far else 30.0 + ttl,
        coordinators=coordinators,
        workers=workers,
        apps=apps,
        tasks=tasks,
        crude=int(profile == "silent" and dice.random() < 0.5),
        apis=1 if far else dice.randint(1, 2),
        janitors=1,
        rtt=_rtt(dice, far=far),
        spread=profile in {"mixed", "paused"} and dice.random() < 0.3,
        rates=_rates(dice, profile),
        skews=tuple(dice.choice((0.0, 0.0, -3.0, 2.0, 90.0, -400.0)) for _ in range(8)),
        ttl=ttl,
        worker_ttl=4.0 if profile == "silent" else dice.choice((4.0, 8.0)),
        sweep=dice.choice((3.0, 6.0, 15.0)),
        horizon=dice.choice((20.0, 60.0, 120.0)),
        hints=dice.choice((1.0, 0.5, 0.0)),
        probe=not far and coordinators > 1 and dice.random() < 0.5,
        jobs=(jobs := _jobs(dice, profile, chaos, workers=workers, apps=apps, tasks=tasks)),
        acts=_acts(dice, profile, chaos, jobs),
        incidents=_incidents(
            dice, profile, chaos, coordinators=coordinators, workers=workers, apps=apps, tasks=tasks
        ),
    )


def _executors(dice: Random, profile: str) -> tuple[int, int, int]:
    """How many workers of the service, of apps behind the API, and of apps on the database."""
    if profile == "silent":
        return 0, dice.randint(1, 2), 0
    if dice.random() < 0.4:
        return dice.randint(1, 2), dice.randint(0, 1), dice.randint(0, 1)
    return dice.choice(((1, 0, 0), (0, 0, 1), (0, 0, 2)))


def _rtt(dice: Random, *, far: bool) -> dict[str, float]:
    near = dice.choice((0.0005, 0.002, 0.02))
    return {
        "coordinator": dice.choice((0.1, 0.15, 0.25)) if far else near,
        "worker": near,
        "task": near,
        "api": near,
        "janitor": near,
        "app": (away := dice.choice((0.001, 0.02, 0.2))),
        "crude": away,
    }


def _rates(dice: Random, profile: str) -> dict[str, float]:
    if profile in {"calm", "far"}:
        return {}
    chosen = [fault for fault in Fault if dice.random() < 0.5]
    return {fault.value: dice.choice((0.002, 0.01, 0.04)) for fault in chosen}


def _jobs(
    dice: Random, profile: str, chaos: float, *, workers: int, apps: int, tasks: int
) -> tuple[JobPlan, ...]:
    handlers = ["served"] * bool(workers) + ["apped"] * bool(apps) + ["tasked"] * bool(tasks)
    made = []
    for number in range(dice.randint(2, 5)):
        kind = dice.choice(("interval", "interval", "interval", "cron", "once"))
        every = dice.choice((2, 3, 5, 7)) if kind == "interval" else dice.choice((2, 5, 10))
        slow = profile == "stuck" and dice.random() < 0.6
        made.append(
            JobPlan(
                name=f"job-{number}",
                kind=kind,
                every=dice.randint(5, int(chaos)) if kind == "once" else every,
                created=dice.uniform(0.0, 4.0) if number else 0.0,
                catchup=dice.choice(CATCHUP),
                overlap="allow"
                if profile == "far"
                else dice.choice(("allow", "allow", "skip", "buffer_one", "buffer_all")),
                handler=dice.choice(handlers),
                takes=dice.uniform(5.0, 20.0) if slow else dice.choice((0.0, 0.05, 0.5, 2.0)),
                fails=dice.choice((0.0, 0.0, 0.1, 0.5)),
                attempts=dice.randint(1, 3),
            )
        )
    return tuple(made)


def _acts(dice: Random, profile: str, chaos: float, jobs: tuple[JobPlan, ...]) -> tuple[Act, ...]:
    acts: list[Act] = []
    for _ in range(dice.randint(0, 8)):
        verb = dice.choice(("enqueue", "enqueue", "enqueue_later", "run_now", "edit", "cancel"))
        at, job = dice.uniform(3.0, chaos), dice.randrange(len(jobs))
        acts.append(Act(at=at, verb=verb, job=job, number=dice.uniform(0.0, 25.0)))
    pauses = dice.randint(2, 5) if profile == "paused" else int(dice.random() < 0.3)
    free = dict.fromkeys(range(len(jobs)), 4.0)
    for _ in range(pauses):
        job = dice.randrange(len(jobs))
        soon = dice.random() < SOON
        begin = free[job] + dice.uniform(1.0, 8.0 if soon else 15.0)
        end = begin + dice.uniform(0.5, 6.0 if soon else 14.0)
        missed = dice.choice(("skip", "skip", "run_latest", "run_all"))
        acts.append(Act(at=begin, verb="pause", job=job))
        acts.append(Act(at=end, verb="resume", job=job, detail=missed))
        free[job] = end + 1.0
    return tuple(sorted(acts, key=lambda act: act.at))


def _incidents(
    dice: Random,
    profile: str,
    chaos: float,
    *,
    coordinators: int,
    workers: int,
    apps: int,
    tasks: int,
) -> tuple[Incident, ...]:
    if profile in {"calm", "far"}:
        return ()
    hosts = [f"coordinator-{number}" for number in range(coordinators)]
    hosts += [f"worker-{number}" for number in range(workers)]
    hosts += [f"task-{number}" for number in range(tasks)]
    hosts += [f"app-{number}" for number in range(apps)] + ["api-0", "janitor-0"]
    found: list[Incident] = []
    for _ in range(dice.randint(0, 4)):
        kind = dice.choice(("crash", "crash", "freeze", "freeze", "cut", "away", "step"))
        lasts = dice.choice((0.5, 3.0, 8.0, 15.0)) * dice.uniform(0.5, 1.5)
        host = "" if kind in {"away", "step"} else dice.choice(hosts)
        detail = str(dice.choice((-20.0, -2.0, 1.0, 15.0, 120.0))) if kind == "step" else ""
        at = dice.uniform(2.0, chaos)
        found.append(Incident(at=at, kind=kind, host=host, lasts=lasts, detail=detail))
    if profile in {"stuck", "paused"}:
        # Publishing comes to nothing for a while, planning and sweeping go on.
        begin = dice.uniform(3.0, 10.0)
        # Long enough to pause and resume in it, and for what was planned afterwards to be missed.
        lasts = dice.uniform(25.0, 55.0) if profile == "paused" else dice.uniform(36.0, 50.0)
        found.append(Incident(at=begin, kind="jinx", lasts=lasts, detail="publish"))
        crash = begin + lasts * dice.uniform(0.8, 1.0)
        host = dice.choice(hosts[:coordinators])
        found.append(Incident(at=crash, kind="crash", host=host, lasts=dice.uniform(0.2, 2.0)))
    if profile == "silent":
        for number in range(apps):
            for _ in range(dice.randint(1, 3)):
                at = dice.uniform(3.0, chaos - 8.0)
                lasts = dice.uniform(4.5, 9.0)
                host = f"app-{number}"
                found.append(Incident(at=at, kind="mute", host=host, lasts=lasts))
    return tuple(sorted(found, key=lambda incident: incident.at))
