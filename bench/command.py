"""How soon the command line answers: whole processes, from start to exit.

Each command is started again and again, in turns, so that a noisy moment hits all of them; an
interpreter that does nothing runs among them, because its time is part of every other.

One JSON line for each figure on stdout; the table goes to stderr.
"""

import argparse
import os
import subprocess
import sys
from statistics import median
from time import perf_counter

from bench.kit.report import Report

COMMANDS = {
    "python": ["-c", "pass"],
    "import betimes": ["-c", "import betimes"],
    "betimes --help": ["-m", "betimes", "--help"],
    "betimes job --help": ["-m", "betimes", "job", "--help"],
    "betimes job create --help": ["-m", "betimes", "job", "create", "--help"],
    "betimes version": ["-m", "betimes", "version"],
    "betimes next": ["-m", "betimes", "next", "0 2 * * *", "--tz", "Europe/Oslo"],
    "betimes job list, nobody there": ["-m", "betimes", "job", "list", "--timeout", "1"],
    "a completion": ["-m", "betimes"],
}
COMPLETION = {
    "_BETIMES_COMPLETE": "bash_complete",
    "COMP_WORDS": "betimes job pau",
    "COMP_CWORD": "2",
}


def main(arguments: list[str]) -> int:
    """Start every command so many times."""
    parser = argparse.ArgumentParser(prog="bench command")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args(arguments)
    rounds = 2 if options.quick else options.rounds
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(rounds):
        for name, words in COMMANDS.items():
            times[name].append(started(name, words))
    report = Report("command")
    for name, taken in times.items():
        report.tell(
            name,
            {"rounds": rounds},
            median_ms=1000 * median(taken),
            best_ms=1000 * min(taken),
        )
    report.table()
    return 0


def started(name: str, words: list[str]) -> float:
    """Seconds from start to exit."""
    environment = {**os.environ, "BETIMES_URL": "http://127.0.0.1:9", "BETIMES_API_KEY": "x"}
    if name == "a completion":
        environment |= COMPLETION
    begin = perf_counter()
    subprocess.run(  # noqa: S603 -- our own program
        [sys.executable, *words], env=environment, capture_output=True, check=False
    )
    return perf_counter() - begin
