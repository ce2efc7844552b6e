"""A workflow with fan-out, a gate and cleaning up, as a whole program.

    betimes dev                                             the service, in one terminal
    betimes worker run workflow:app                         a worker, in this folder
    python workflow.py                                      bring it there and start it
    betimes workflow graph wfr_…                            look at it
    betimes workflow approve wfr_… publish                  let it go on

`python workflow.py --try` needs no service: it runs in a Harness.
"""

import sys
from dataclasses import dataclass

from betimes import App, Context, WorkflowBuilder

app = App(name="reports")

FILES = {
    "north.csv": "shoes,120\nhats,30",
    "south.csv": "shoes,80\nhats,55",
    "west.csv": "shoes,10\nhats,5",
}


@dataclass
class Sales:
    """What was sold, by product."""

    region: str
    products: dict[str, int]


@dataclass
class Report:
    """All of it."""

    day: str
    total: int
    best: str


@dataclass
class Day:
    """What a run is started with."""

    name: str
    smallest: int = 0


@app.task
def list_files(ctx: Context, day: str) -> list[str]:
    """The files of a day."""
    ctx.log.info("looking", day=day)
    return sorted(FILES)


@app.task(retry={"max_attempts": 3}, timeout="1m")
def parse(file: str) -> Sales:
    """One file."""
    lines = [line.split(",") for line in FILES[file].splitlines()]
    return Sales(file.removesuffix(".csv"), {product: int(count) for product, count in lines})


@app.task
def merge(day: Day, parts: list[Sales]) -> Report:
    """All files."""
    totals = {part.region: sum(part.products.values()) for part in parts}
    kept = {region: count for region, count in totals.items() if count >= day.smallest}
    return Report(day.name, sum(kept.values()), max(kept, key=kept.__getitem__))


@app.task
def publish(report: Report) -> str:
    """What people wait for."""
    return f"{report.day}: {report.total} sold, most of it in the {report.best}"


@app.task
def cleanup(day: str) -> None:
    """Whatever happened."""


@app.workflow(failure_policy="fail_fast", timeout="1 day")
def sales(w: WorkflowBuilder, day: Day) -> None:
    """Count what was sold on a day; a person has a look before it is published."""
    files = w.run(list_files, day.name)
    parts = w.map(parse, over=files, max_parallel=2)
    report = w.run(merge, day, parts)
    w.run(publish, report, gate="approval")
    w.run(cleanup, day.name, needs=[report], when="all_done")


def try_it() -> None:
    """The same without a service."""
    from betimes.testing import Harness

    with Harness(app) as h:
        run = sales.start(Day("monday", smallest=20))
        h.run_until_idle()
        print(h.workflow_runs(sales)[0].states)
        run.approve("publish")
        run.wait().check()
        print(h.workflow_runs(sales)[0].outputs["publish"])


def main() -> None:
    """Bring the workflow to the service and start it."""
    if "--try" in sys.argv:
        try_it()
        return
    app.sync_schedules()
    run = sales.start(Day("monday", smallest=20))
    print(f"{run.id}: betimes workflow approve {run.id} publish")
    print(run.wait(timeout=3600).check().state)


if __name__ == "__main__":
    main()
