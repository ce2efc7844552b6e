"""Workflows as users write them; both type checkers must read them as the asserts say.

Lines that must be errors carry an ignore for each checker, as in `tasks_as_written`.
"""

from dataclasses import dataclass
from typing import Any, assert_type

from betimes import App, Context, Node, Workflow, WorkflowBuilder, WorkflowHandle
from betimes.sdk.schedules import Fire
from betimes.sdk.workflow_handle import EndedWorkflow
from betimes.wire.workflows import NodeState

app = App("http://127.0.0.1:8090", "btm_sk_…", name="shop")


@dataclass
class Total:
    amount: int
    lines: list[str]


@dataclass
class Day:
    name: str
    files: list[str]


@app.task
async def list_files() -> list[str]:
    return []


@app.task(queue="parsing")
def parse(ctx: Context, file: str) -> int:
    return 0


@app.task
def merge(parts: list[int], *, rounded: bool = False) -> Total:
    return Total(0, [])


@app.task
def publish(total: Total) -> None: ...


@app.task
def compare(before: Total, after: Total, limit: int) -> bool:
    return True


@app.task
def cleanup() -> None: ...


@app.workflow(failure_policy="fail_fast", schedule="every weekday at 06:00")
def daily(w: WorkflowBuilder) -> None:
    files = w.run(list_files)
    parts = w.map(parse, over=files, max_parallel=20)
    total = w.run(merge, parts)
    w.run(publish, total, gate="approval")
    w.run(cleanup, needs=[total], when="all_done")
    assert_type(files, Node[list[str]])
    assert_type(parts, Node[list[int]])
    assert_type(total, Node[Total])
    assert_type(total.output.amount, int)
    assert_type(total["amount"], Any)


@app.workflow
def of_a_day(w: WorkflowBuilder, day: Day) -> None:
    parts = w.map(parse.configure(queue="quick"), over=day.files, retry={"max_attempts": 2})
    before = w.run(merge, [1, 2], id="before")
    after = w.run(merge, parts, timeout="5m", priority=9)
    w.run(compare, before, after, 3)
    w.run(compare, before.output, after=after.output, limit=after.output.amount)
    w.run(merge, [w.run(parse, "a"), w.run(parse, "b")])
    w.run(merge, [1], rounded=True)
    w.run(parse, total_line(after), gate={"type": "timer", "delay": "1h"})


def total_line(total: Node[Total]) -> str:
    return total.output.lines[0]


def workflows_keep_their_types() -> None:
    assert_type(daily, Workflow[[]])
    assert_type(daily.definition(), dict[str, Any])
    assert_type(of_a_day.start(Day("monday", [])), WorkflowHandle)
    assert_type(daily.start().wait(timeout=5), EndedWorkflow)
    assert_type(daily.start().wait().check().nodes["merge"].state, NodeState)
    assert_type(daily.next(3), list[Fire])


async def the_awaited_half() -> None:
    run = await of_a_day.astart(day=Day("monday", []))
    await run.aapprove("publish")
    assert_type(await run.awaited(), EndedWorkflow)


def wrong_starts_are_errors() -> None:
    daily.start(1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    of_a_day.start()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    of_a_day.start("monday")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def wrong_nodes_are_errors(w: WorkflowBuilder) -> None:
    files, total = w.run(list_files), w.run(merge, [1])
    w.run(parse)  # type: ignore[arg-type]  # pyright: ignore[reportCallIssue]
    w.run(parse, 7)  # type: ignore[misc]  # pyright: ignore[reportCallIssue, reportArgumentType]
    w.run(parse, files)  # type: ignore[arg-type]  # pyright: ignore[reportCallIssue, reportArgumentType]
    w.run(cleanup, total)  # type: ignore[arg-type]  # pyright: ignore[reportCallIssue]
    w.run(compare, total, files, 1)  # type: ignore[arg-type]  # pyright: ignore[reportCallIssue, reportArgumentType]
    w.run(cleanup, when="never")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    w.run(cleanup, gate="door")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    w.run(cleanup, needs=["total"])  # type: ignore[list-item]  # pyright: ignore[reportCallIssue]
    w.run(cleanup, wen="all_done")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    w.run(len, [1])  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
    w.map(parse, over=total)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    w.map(parse, over=[1, 2])  # type: ignore[misc]  # pyright: ignore[reportArgumentType]
    w.map(parse, over="abc")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    w.map(parse, over=w.run(merge, [1]).output.amount)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    w.map(cleanup, over=files)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    app.workflow(failure="fast")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
