"""The agent: commands of imported crontabs run, and what they print is the log of their runs."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from api_kit import Served
from betimes import App
from betimes.cli.agent import STARTED
from betimes.cli.agent import app as agent
from betimes.cli.agent_limits import Limits, own_user
from cli_kit import acall, call
from runtime_kit import eventually, http, working

pytestmark = [pytest.mark.db, pytest.mark.usefixtures("home")]


async def done(
    served: Served, *payloads: dict[str, Any], limits: Limits | None = None, **more: Any
) -> list[dict[str, Any]]:
    """Runs of the agent, ended."""
    STARTED.limits = limits or Limits()
    app = App(f"http://127.0.0.1:{served.port}", await served.key(), name="tests")
    app.include(agent)
    admin = await served.admin()
    runs = []
    for payload in payloads:
        body = {"handler": "shell", "payload": payload, "retry": {"max_attempts": 1}, **more}
        runs.append((await admin("POST", "/v1/runs", body)).json["id"])
    async with working(app, http(served, await served.key(kind="wk"))):
        found = []
        for run in runs:
            while True:
                told = (await admin("GET", f"/v1/runs/{run}/wait?timeout=10")).json
                if told["state"] in ("succeeded", "dead", "cancelled"):
                    break
            lines = (await admin("GET", f"/v1/runs/{run}/logs")).json["items"]
            found.append({**told, "lines": [(one["level"], one["message"]) for one in lines]})
    await app.aclose()
    return found


async def test_commands_run_as_cron_would_run_them(served: Served, tmp_path: Path) -> None:
    script = "printf 'out %s\\n' \"$GREETING\"; cat; echo err >&2; echo $BETIMES_RUN_ID > id"
    (first, failed, missing) = await done(
        served,
        {"command": f"cd {tmp_path}; {script}", "stdin": "fed\n", "env": {"GREETING": "hi"}},
        {"command": "exit 3"},
        {"command": "true", "env": {"SHELL": "/nowhere/sh"}},
        limits=Limits(shells=frozenset({"/nowhere/sh"})),
    )
    assert first["state"] == "succeeded"
    assert sorted(first["lines"]) == [("info", "fed"), ("info", "out hi"), ("warning", "err")]
    assert read(tmp_path / "id") == f"{first['id']}\n"
    assert (failed["state"], failed["error"]["message"]) == ("dead", "the command ended with 3")
    assert "could not be started" in missing["error"]["message"]


async def test_a_payload_chooses_what_the_agent_was_started_with(served: Served) -> None:
    """Nobody else's rights, no other interpreter: those are given on the machine itself."""
    own, other, shell, command, whole, bash = await done(
        served,
        {"command": "id -un", "user": own_user()},
        {"command": "id -un", "user": "daemon"},
        {"command": "import os; print(1)", "env": {"SHELL": "/usr/bin/python3"}},
        {"command": "true", "user": "daemon", "env": {"USER": "daemon"}},
        {"command": "echo $WORD", "env": {"WORD": "fine", "USER": "root"}},
        {"command": "true", "env": {"SHELL": "/bin/sh"}},
        limits=Limits(users=frozenset({"nobody"})),
    )
    assert own["lines"] == [("info", own_user())]
    for refused, word in ((other, "--user"), (shell, "--shell"), (command, "--user")):
        assert refused["state"] == "dead"
        assert word in refused["error"]["message"]
    assert whole["lines"] == [("info", "fine")]
    assert bash["state"] == "succeeded"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
async def test_another_user_is_another_user(served: Served) -> None:
    """With neither the groups nor the home of the agent."""
    (ran,) = await done(
        served,
        {"command": "id -un; id -G; echo $USER $HOME", "user": "nobody"},
        limits=Limits(users=frozenset({"nobody"})),
    )
    name, groups, told = (line for _, line in ran["lines"])
    assert name == "nobody"
    assert "0" not in groups.split()
    assert told.startswith("nobody ")
    assert os.environ["HOME"] not in told.split()  # noqa: TID251 -- of the process of the tests


async def test_an_agent_for_some_commands_runs_no_others(served: Served) -> None:
    allowed, other, longer, smuggled, listed = await done(
        served,
        {"command": "echo $WHO"},
        {"command": "id"},
        {"command": "echo $WHO; id"},
        {"command": "echo $WHO", "env": {"PATH": "/elsewhere"}},
        {"command": "echo $WHO", "env": {"WHO": "me"}},
        limits=Limits(commands=frozenset({"echo $WHO"}), variables=frozenset({"WHO"})),
    )
    assert [one["state"] for one in (allowed, listed)] == ["succeeded"] * 2
    assert listed["lines"] == [("info", "me")]
    for refused in (other, longer):
        assert "--command" in refused["error"]["message"]
    assert "--variable" in smuggled["error"]["message"]


def read(file: Path) -> str:
    return file.read_text(encoding="utf-8")


async def test_a_command_that_takes_too_long_ends_with_all_it_has_started(
    served: Served, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    command = f"sleep 300 & echo $! > {pids}; wait"
    (late,) = await done(served, {"command": command}, timeout=1)
    assert late["state"] == "dead"
    child = int(read(pids))

    async def ended() -> bool:
        return gone(child)

    await eventually(ended)


def gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").split()[2] == "Z"


async def test_from_a_crontab_to_a_command_that_ran(
    served: Served, home: Path, tmp_path: Path
) -> None:
    (home / "old").write_text(f"* * * * * echo done > {tmp_path}/proof%x\n", encoding="utf-8")
    assert (await acall("import", "crontab", "old", "--utc")).code == 0
    job = json.loads((await acall("job", "list", "-o", "json", "--view", "full")).out)[0]
    (ran,) = await done(served, job["payload"])
    assert ran["state"] == "succeeded"
    assert read(tmp_path / "proof") == "done\n"


def test_nobody_runs_an_agent_by_accident() -> None:
    told = call("agent", "run")
    assert told.code == 2
    assert "say --exec" in told.err
