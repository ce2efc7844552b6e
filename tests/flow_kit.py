"""What tests of workflows share: tasks, and functions made into workflows of them."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypedDict

from pydantic import BaseModel

from betimes import App
from betimes.sdk.workflow import AnyWorkflow

app = App("http://127.0.0.1:1", "key", name="tests")


class Total(BaseModel):
    amount: int
    lines: list[str]


@dataclass
class Wish:
    day: str
    part: int


class Told(TypedDict):
    text: str
    number: int


@app.task
def list_files() -> list[str]:
    """Files."""
    return []


@app.task(queue="parsing", retry={"max_attempts": 3}, timeout=timedelta(minutes=2), priority=7)
def parse(file: str, strict: bool = False) -> int:
    """A number."""
    return len(file)


@app.task
def merge(parts: list[int]) -> Total:
    """A total."""
    return Total(amount=sum(parts), lines=[])


@app.task
def publish(total: Total) -> None:
    """Nothing."""


@app.task
def cleanup() -> None:
    """Nothing."""


@app.task
def wish(wanted: Wish) -> None:
    """Nothing."""


@app.task
def anything(value: Any) -> Any:
    """Whatever it is."""
    return value


@app.task
def told(about: Told) -> None:
    """Nothing."""


@app.task
def timed(number: int, timeout: int = 0) -> None:
    """A parameter with the name of an option."""


def made(function: Callable[..., object], **options: Any) -> AnyWorkflow:
    other = App("http://127.0.0.1:1", "key", name="tests")
    workflow: AnyWorkflow = other.workflow(name="flow", **options)(function)
    return workflow


def nodes(function: Callable[..., object]) -> dict[str, Any]:
    found: dict[str, Any] = made(function).definition()["nodes"]
    return found


def nothing(w: Any) -> None:
    """Describes nothing."""


def no_builder() -> None:
    """Takes no builder."""


def too_much(w: Any, one: int, two: int) -> None:
    """Takes two inputs."""
