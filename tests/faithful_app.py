"""Tasks that end in every way there is, for comparing a Harness with the real service."""

from typing import Any

from betimes import App, Context, PermanentError, Retry, Snooze, WorkflowBuilder
from betimes.sdk.options import RetryOptions
from betimes.sdk.task import Configured

app = App()
QUICK: RetryOptions = {
    "max_attempts": 3,
    "backoff": "fixed",
    "initial": "100ms",
    "jitter": "none",
}


@app.task(retry=QUICK)
def act(ctx: Context, what: str, number: int = 0) -> dict[str, Any] | None:
    if what == "fine":
        return {"number": number, "attempt": ctx.attempt}
    if what == "flaky" and ctx.attempt < 3:
        raise ValueError(f"attempt {ctx.attempt}")
    if what == "hopeless":
        raise KeyError("never")
    if what == "permanent":
        raise PermanentError("card refused")
    if what == "wishes" and ctx.attempt == 1:
        raise Retry("not yet", after="200ms")
    if what == "sleepy" and ctx.checkpoint_value is None:
        ctx.checkpoint({"slept": True})
        raise Snooze(after="200ms")
    if what == "stopped":
        ctx.stop("enough")
    if what == "unsendable":
        return {"value": object()}
    return {"attempt": ctx.attempt}


def calls() -> dict[str, Configured[Any, Any]]:
    """Every way, by name, with the options of the call."""
    plain = act.configure()
    once: RetryOptions = {**QUICK, "max_attempts": 1}
    picky: RetryOptions = {**QUICK, "give_up_on": ["KeyError"]}
    named = ("fine", "flaky", "hopeless", "permanent", "wishes", "sleepy", "stopped", "unsendable")
    return {
        **dict.fromkeys(named, plain),
        "hopeless once": act.configure(retry=once),
        "hopeless picky": act.configure(retry=picky),
        "fine later": act.configure(delay="300ms"),
    }


@app.task(retry={"max_attempts": 1})
def give(what: Any, more: Any = None) -> Any:
    if what == "fail":
        raise ValueError("as asked for")
    return what if more is None else [what, more]


@app.workflow
def fine(w: WorkflowBuilder) -> None:
    listed = w.run(give, ["a", "b", "c"])
    each = w.map(give, over=listed, max_parallel=2, more={"as": {"$set": 1}, "in": [listed[1]]})
    w.run(give, {"last": each[2], "all": each, "part": each.path("/0/1")}, id="last")


@app.workflow
def fails_fast(w: WorkflowBuilder) -> None:
    each = w.map(give, over=["a", "fail", "c"], max_parallel=1, id="each")
    w.run(give, each, id="after")
    w.run(give, each, when="all_done", id="clean")


@app.workflow(failure_policy="continue")
def goes_on(w: WorkflowBuilder) -> None:
    each = w.map(give, over=["a", "fail", "c"], max_parallel=1, id="each")
    w.run(give, each, id="after")
    w.run(give, "beside", id="beside")
    w.run(give, each, when="any_failed", id="mend")
    w.run(give, 1, needs=[each], when="any_success", id="never")


@app.workflow(failure_policy="continue")
def cannot_be_given(w: WorkflowBuilder) -> None:
    thing = w.run(give, {"a": 1})
    w.run(give, thing["b"], id="no_part")
    w.map(give, over=thing, id="no_list")
    w.map(give, over=[], id="nothing")
    w.map(give, over=[{"a": 1}, {}], what=w.item["a"], id="no_element")


@app.workflow
def waits(w: WorkflowBuilder) -> None:
    first = w.run(give, 1, gate={"type": "timer", "delay": "300ms"}, id="first")
    w.run(give, first, gate={"type": "approval", "timeout": "400ms"}, id="nobody_comes")
    w.run(give, first, when="all_done", id="clean")


@app.workflow(timeout="600ms")
def too_long(w: WorkflowBuilder) -> None:
    gate = w.run(give, 1, gate="signal", id="gate")
    w.run(give, gate, when="all_done", id="clean")


WORKFLOWS = (fine, fails_fast, goes_on, cannot_be_given, waits, too_long)
