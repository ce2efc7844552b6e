"""The command line: sentences instead of tracebacks, and nothing loaded before its time."""

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest

from betimes.cli.invocation import OPTIONS
from betimes.cli.main import COMMANDS, root, run
from betimes.config import Settings
from betimes.config.rule import keys_of
from betimes.domain import errors


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No betimes.toml of the working directory reaches a test."""
    monkeypatch.chdir(tmp_path)


def test_every_command_in_the_table_can_be_loaded() -> None:
    context = click.Context(root)
    for name in COMMANDS:
        command = root.get_command(context, name)
        assert command is not None
        assert command.help, name


def test_every_flag_names_a_setting() -> None:
    assert set(OPTIONS) <= set(keys_of(Settings))


LOOK_AT_LOADED = """
import sys
from betimes.cli.main import run
assert run(["--help"]) == 0
heavy = {
    *("asyncio", "asyncpg", "structlog", "yaml", "jmespath", "betimes.app", "betimes.config"),
    *("betimes.store", "betimes.schedule", "betimes.sdk.client", "betimes.cli.tree"),
}
print(sorted(heavy & set(sys.modules)))
"""


def test_help_lists_the_commands_and_loads_none_of_the_service() -> None:
    loaded = subprocess.run(
        [sys.executable, "-c", LOOK_AT_LOADED], capture_output=True, text=True, check=True
    )
    assert "dev " in loaded.stdout
    assert loaded.stdout.rstrip().endswith("[]")


def test_a_misspelt_command_is_guessed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sever"]) == 2
    assert "Did you mean server?" in capsys.readouterr().err
    assert run(["server", "migrat"]) == 2


def test_wrong_settings_are_sentences(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["server", "--roles", "apii", "start", "--set", "worker.slotz=1"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "betimes: server.roles: expected a list of api" in err
    assert "did you mean worker.slots?" in err
    assert "Traceback" not in err


def test_debug_adds_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--debug", "server", "--roles", "apii"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_a_pair_needs_its_equals_sign(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["dev", "--set", "worker.slots"]) == 2
    assert "expected KEY=VALUE" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.NotFound("x"), 3),
        (errors.Forbidden("x"), 4),
        (errors.VersionMismatch("x"), 5),
        (errors.OverQuota("x"), 6),
        (errors.Overloaded("x"), 6),
        (errors.Unavailable("x"), 1),
        (errors.BadSetting("x"), 2),
        (RuntimeError("x"), 1),
        (KeyboardInterrupt(), 130),
        (ModuleNotFoundError("x", name="asyncpg"), 1),
    ],
)
def test_errors_have_their_codes(
    error: BaseException,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(root, "main", fail)
    assert run([]) == code
    assert "Traceback" not in capsys.readouterr().err


def test_check_shows_values_with_their_origin(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("betimes.toml").write_text("[worker]\nslots = 7", encoding="utf-8")
    monkeypatch.setenv("BETIMES_LOG_LEVEL", "error")
    assert run(["server", "check", "--set", "shards.count=8", "-o", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["ok"]
    assert report["settings"]["worker.slots"] == {"value": "7", "origin": "betimes.toml:2"}
    assert report["settings"]["shards.count"] == {"value": "8", "origin": "flag --set"}
    assert report["settings"]["log.level"]["origin"] == "variable BETIMES_LOG_LEVEL"


def test_check_tells_every_problem_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["server", "check", "--set", "worker.slots=0", "--set", "x.y=1"]) == 1
    out, err = capsys.readouterr()
    assert "worker.slots" in out
    assert err.count("problem: ") == 2
    assert err.endswith("not ok\n")


def test_check_asks_the_database_when_it_has_an_address(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["server", "check", "--dsn", "postgresql://u:hunter2@127.0.0.1:1/x"]) == 1
    out, err = capsys.readouterr()
    assert "database: " in err
    assert "hunter2" not in out + err


def test_version_in_both_forms(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["version", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out).keys() == {"betimes", "python", "tzdata"}
    assert run(["version"]) == 0
    assert capsys.readouterr().out.startswith("betimes  ")
