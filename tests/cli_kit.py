"""What tests of the command line share: a program in this process, and samples to print."""

import asyncio
import os
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from typing import Any

import yaml

from betimes.cli.main import run

GOLDEN = Path(__file__).parent / "data" / "cli"
NOW = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Said:
    """What a command answered."""

    code: int
    out: str
    err: str


def call(*arguments: str) -> Said:
    """Run one command here and now."""
    out, err = TextIOWrapper(BytesIO(), encoding="utf-8"), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run(arguments)
    out.flush()
    buffer = out.buffer
    assert isinstance(buffer, BytesIO)
    return Said(code, buffer.getvalue().decode(), err.getvalue())


Caller = Callable[..., Any]


async def acall(*arguments: str) -> Said:
    """The same beside a server that runs in this loop."""
    return await asyncio.to_thread(call, *arguments)


def golden(name: str, text: str) -> None:
    """Compare with what is kept; BETIMES_TEST_REWRITE=1 keeps what is."""
    path = GOLDEN / name
    if os.environ.get("BETIMES_TEST_REWRITE"):  # noqa: TID251 -- the tests' own switch
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text, f"{name} differs from what is kept"


def samples() -> dict[str, Any]:
    """Answers as the service gives them, one list for each noun."""
    found: dict[str, Any] = yaml.safe_load((GOLDEN / "samples.yaml").read_text(encoding="utf-8"))
    return found
