"""Completion in real shells: the script is loaded, and words are completed by it."""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

import pytest

from betimes.cli.completion import HOW

PATIENCE_SECONDS = 40.0
QUIET_SECONDS = 0.3


def needs(shell: str) -> pytest.MarkDecorator:
    missing = shutil.which(shell) is None
    return pytest.mark.skipif(missing, reason=f"{shell} is not installed here")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A home of one's own, in which `betimes` is a command and no service answers."""
    places = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    return {
        "PATH": os.pathsep.join(places),
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path),
        "BETIMES_URL": "http://127.0.0.1:9",
        "TERM": "dumb",
        "LANG": "C.UTF-8",
    }


def said(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PATIENCE_SECONDS,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


BASH = """
eval "$(betimes completion bash)"
complete -p betimes
complete_words() {
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
    _betimes_completion betimes
    printf '%s ' "${COMPREPLY[@]}"; echo
}
complete_words betimes jo
complete_words betimes job pau
complete_words betimes job list --stat
complete_words betimes job list --state pau
complete_words betimes run list -o ya
complete_words betimes job pause some
"""


@needs("bash")
def test_bash(environment: dict[str, str]) -> None:
    lines = said(["bash", "--norc", "-c", BASH], environment).splitlines()
    assert "_betimes_completion" in lines[0]
    completed = [[word.rpartition(",")[2] for word in line.split()] for line in lines[1:]]
    assert completed == [["job"], ["pause"], ["--state"], ["paused"], ["yaml"], []]


FISH = """
betimes completion fish | source
complete -C 'betimes jo'
echo ===
complete -C 'betimes job pau'
echo ===
complete -C 'betimes job list --state pau'
"""


@needs("fish")
def test_fish(environment: dict[str, str]) -> None:
    told = said(["fish", "--no-config", "-c", FISH], environment)
    parts = [
        [line.split("\t")[0] for line in part.split("\n") if line] for part in told.split("===\n")
    ]
    assert parts == [["job"], ["pause"], ["paused"]]
    assert "job\tJobs: what is to run" in told, "fish shows what a command says of itself"


@needs("zsh")
def test_zsh(environment: dict[str, str]) -> None:
    with Terminal(["zsh", "-f", "-i"], environment) as terminal:
        terminal.type("PS1='ready> '; autoload -Uz compinit && compinit -u\n")
        terminal.type('eval "$(betimes completion zsh)"; print -r -- loaded=$_comps[betimes]\n')
        terminal.until(r"loaded=_betimes_completion")
        terminal.type("betimes jo\t")
        terminal.until(r"betimes job ")
        terminal.type("pau\t")
        terminal.until(r"betimes job .*pause ")


class Terminal:
    """A shell in a terminal of its own."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._command, self._environment = command, environment
        self._said = ""

    def __enter__(self) -> Self:
        self._process, self._file = pty.fork()
        if self._process == 0:
            os.execvpe(self._command[0], self._command, self._environment)  # noqa: S606 -- a shell is what is wanted
        return self

    def __exit__(self, *_: object) -> None:
        os.write(self._file, b"\x03\nexit\n")
        self._read(QUIET_SECONDS)
        os.close(self._file)
        os.waitpid(self._process, 0)

    def type(self, text: str) -> None:
        """Type as soon as the shell has nothing more to say."""
        while self._read(QUIET_SECONDS):
            pass
        os.write(self._file, text.encode())

    def until(self, pattern: str) -> None:
        """Wait until the terminal shows something."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not re.search(pattern, self._said, re.DOTALL):
            if time.monotonic() > end:
                pytest.fail(f"{pattern!r} was never shown:\n{self._said}")
            self._read(QUIET_SECONDS)

    def _read(self, patience: float) -> str:
        ready, _, _ = select.select([self._file], [], [], patience)
        try:
            text = os.read(self._file, 65536).decode(errors="replace") if ready else ""
        except OSError:  # the shell has gone
            return ""
        self._said += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x08", "", text)
        return text


def test_every_shell_is_told_how_to_load_it() -> None:
    assert set(HOW) == {"bash", "zsh", "fish"}
