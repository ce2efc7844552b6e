"""Whatever code the service can write has a sentence, whatever is known about it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import betimes
from betimes.ops.codes import CODES, fix_of, summary_of

ROOT = Path(betimes.__file__).parent
ROOMS = (
    "domain",
    "schedule",
    "fairness",
    "store",
    "ops",
    "coordinator",
    "worker",
    "janitor",
    "api",
)
SHAPE = re.compile(r"[A-Z]+(_[A-Z]+)*")
IN_SQL = re.compile(r"'([A-Z]+(?:_[A-Z]+)+)'")
CALLED = ("code", "reason")
NO_CODES = {
    "BREAKER_OPEN",  # told as CIRCUIT_OPEN
    "BEFORE_ALL",  # a name that a module offers
    *("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT", "TCP_USER_TIMEOUT"),  # options of sockets
}


def assigned(tree: ast.AST) -> Iterator[str]:
    """Whatever is shaped like a code of several words; of one word where it is called a code."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "_" in node.value:
            yield node.value
        if isinstance(node, ast.keyword) and node.arg in CALLED:
            yield from strings(node.value)
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield from strings(value) if name in CALLED else ()
            case _:
                pass


def strings(value: ast.AST) -> Iterator[str]:
    for node in ast.walk(value):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def written() -> set[str]:
    found: set[str] = set()
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            found |= set(assigned(ast.parse(path.read_text())))
        for path in (ROOT / room).rglob("*.sql"):
            if "migrations" not in path.parts and path.name != "schema.sql":
                found |= set(IN_SQL.findall(path.read_text()))
    return {one for one in found if SHAPE.fullmatch(one) and len(one) > 3} - NO_CODES


def test_the_search_finds_what_is_known_to_be_written() -> None:
    assert written() >= {
        *("RUN_CANCELLED", "QUEUE_PURGED", "OVERLAP_CANCELLED", "RETRIED_BY_USER"),
        *("CATCHUP_NONE", "CATCHUP_DROPPED", "OVERLAP_SKIPPED", "SCHEDULE_UNREADABLE"),
        *("PERMANENT_ERROR", "RETRIES_EXHAUSTED", "START_DEADLINE_PASSED", "RELEASED"),
        *("LEASE_EXPIRED", "NO_WORKER_FOR_HANDLER", "JOB_DELETED", "SKIPPED_BY_USER", "SNOOZED"),
    }


def test_every_code_that_is_written_has_a_sentence() -> None:
    assert written() - CODES.keys() == set()


@pytest.mark.parametrize("code", CODES)
def test_a_sentence_has_no_gap_however_little_is_known(code: str) -> None:
    lacking: list[dict[str, object]] = [
        {},
        {"job": "job_1", "run": "run_1", "reason": None, "holders": []},
    ]
    for evidence in lacking:
        sentence = summary_of(code, evidence)
        assert re.fullmatch(r"[A-Z][^?{}\[\]]+\.", sentence), sentence
        text, action = fix_of(code, evidence)
        assert not re.search(r"[?{}]|None", text + action)
