"""Tasks that end in every way there is, for comparing a Harness with the real service."""

from typing import Any

from betimes import App, Context, PermanentError, Retry, Snooze
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
