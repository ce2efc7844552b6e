"""Commands as people type them, against a real service."""

import json
import re
from pathlib import Path

import pytest
import yaml

from api_kit import Served
from cli_kit import acall, call

pytestmark = [pytest.mark.db, pytest.mark.usefixtures("home")]
CREATE = ("job", "create", "--schedule", "0 9 * * mon-fri", "--handler", "report", "-q")


async def test_a_job_from_its_creation_to_its_end() -> None:
    made = await acall(*CREATE, "report", "-l", "team=billing", "--retry-max-attempts", "3",
                       "--payload", '{"a": 1}', "--timeout", "10m", "-o", "json")  # fmt: skip
    assert made.code == 0, made.err
    job = json.loads(made.out)
    assert (job["name"], job["retry"]["max_attempts"], job["timeout"]) == ("report", 3, "PT10M")
    listed = await acall("job", "list", "-l", "team=billing", "-o", "name")
    assert listed.out == "job/report\n"
    assert (await acall("job", "list", "--tag", "team:other", "-o", "name")).out == ""
    paused = await acall("job", "pause", "report", "--reason", "upgrade", "--until", "2h")
    assert paused.out == "job/report paused\n"
    shown = await acall("job", "get", "report")
    assert re.search(r"^status.pause.reason +upgrade$", shown.out, re.MULTILINE)
    assert (await acall("why", "report")).out.startswith("It will not run.")
    before = await acall("why", "report", "--at", "2026-03-30T09:00Z")
    assert before.out.startswith("It did not run. The job was created after this time.")
    assert (await acall("job", "resume", "report", "-o", "json")).code == 0
    edited = await acall("job", "edit", "report", "--priority", "9", "--dst-gap", "skip")
    assert edited.out == "job/report changed\n", edited.err
    after = json.loads((await acall("job", "get", "report", "-o", "json")).out)
    assert (after["priority"], after["schedule"]["dst"]) == (9, {"gap": "skip"})
    history = await acall("job", "history", "report", "--fields", "revision,current", "-o", "csv")
    assert history.out == "revision,current\n2,true\n1,false\n"
    assert (await acall("job", "rollback", "report", "1")).code == 0
    run = await acall("job", "run", "report", "-o", "json")
    assert json.loads(run.out)["id"].startswith("run_"), run.err
    gone = await acall("job", "delete", "report", "--yes")
    assert gone.out == "job/report deleted\n"
    missing = await acall("job", "get", "report")
    assert missing.code == 3
    assert missing.err == "betimes: not_found: there is no job 'report'\n"


async def test_lists_are_narrowed_by_names_of_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        await acall(*CREATE, name, "--group", "night")
        await acall("job", "run", f"night~{name}")
    listed = await acall("run", "list", "--job", "night~a", "-o", "json")
    assert [run["handler"] for run in json.loads(listed.out)] == ["report"], listed.err
    tried = await acall("run", "bulk", "cancel", "--job", "night~b", "--dry-run", "-o", "json")
    assert json.loads(tried.out)["matched"] == 1, tried.err
    assert (await acall("upcoming", "--job", "night~a")).code == 0
    assert (await acall("dead", "list", "--job", "night~a")).code == 0
    assert (await acall("run", "list", "--job", "nobody")).code == 3

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("betimes.cli.waking.Waker.pause", interrupt)
    watched = await acall("job", "watch", "night~a", "-o", "name")
    assert watched.code == 130
    assert watched.out.startswith("run/run_"), watched.err


async def test_the_parts_of_a_schedule_are_options() -> None:
    """A zone that was said is the zone of the job, and not only of what is shown."""
    made = await acall(*CREATE, "a", "--tz", "Europe/Oslo", "--overlap", "skip",
                       "--dst-gap", "skip", "--catchup", "latest", "--catchup-window", "6h",
                       "-o", "json")  # fmt: skip
    assert made.code == 0, made.err
    schedule = json.loads(made.out)["schedule"]
    assert (schedule["timezone"], schedule["overlap"]) == ("Europe/Oslo", "skip")
    assert schedule["catchup"]["policy"] == "latest"
    assert schedule["dst"] == {"gap": "skip"}
    other = await acall("job", "edit", "a", "--schedule", "every 2h", "--timezone", "Asia/Tokyo",
                        "--jitter", "5m", "-o", "json")  # fmt: skip
    assert other.code == 0, other.err
    schedule = json.loads((await acall("job", "get", "a", "-o", "json")).out)["schedule"]
    assert (schedule["type"], schedule["every"], schedule["jitter"]) == ("interval", "PT2H", "PT5M")
    assert schedule["timezone"] == "Asia/Tokyo"
    assert "expr" not in schedule
    wrong = await acall(*CREATE, "b", "--timezone", "Mars/Phobos")
    assert wrong.code == 1
    assert "Mars/Phobos" in wrong.err


async def test_what_is_listed_by_name_is_taken_back() -> None:
    await acall(*CREATE, "a")
    await acall(*CREATE, "b")
    names = (await acall("job", "list", "-o", "name")).out.split()
    assert names == ["job/a", "job/b"]
    paused = await acall("job", "pause", *names)
    assert paused.out == "job/a paused\njob/b paused\n", paused.err
    run = (await acall("enqueue", "send")).out.split()[0]
    assert run.startswith("run/run_")
    assert (await acall("run", "get", run)).code == 0
    assert (await acall("why", run)).code == 0
    assert (await acall("run", "cancel", run)).code == 0


async def test_whoever_waits_for_a_run_sees_its_result(served: Served) -> None:
    worker = served.client(await served.key(kind="wk"))
    name = (await worker("POST", "/v1/workers", {"name": "w"})).json["worker_id"]
    run = (await acall("enqueue", "send")).out.split()[0].removeprefix("run/")
    (lease,) = (await worker("POST", f"/v1/workers/{name}/lease", {"max": 1, "wait": 5})).json[
        "runs"
    ]
    await worker("POST", f"/v1/leases/{lease['lease_id']}/complete", {"result": {"sent": 7}})
    ended = await acall("run", "watch", run, "-q", "-o", "json")
    assert json.loads(ended.out)["result"] == {"sent": 7}


async def test_several_things_are_told_the_same() -> None:
    for name in ("a", "b"):
        await acall(*CREATE, name)
    told = await acall("job", "pause", "a", "b")
    assert told.out == "job/a paused\njob/b paused\n"


async def test_what_destroys_asks_first_and_nobody_can_answer_here() -> None:
    await acall(*CREATE, "a")
    told = await acall("job", "delete", "a")
    assert told.code == 2
    assert "Delete the job a? Say --yes when nobody can be asked." in told.err
    assert (await acall("job", "get", "a")).code == 0


async def test_an_action_over_a_filter_counts_first_and_confirms_that_number(
    served: Served,
) -> None:
    for name in ("a1", "a2", "b1"):
        await acall(*CREATE, name)
    tried = await acall("job", "bulk", "pause", "--name-prefix", "a", "--dry-run", "-o", "json")
    assert json.loads(tried.out)["matched"] == 2, tried.err
    refused = await acall("job", "bulk", "pause", "--name-prefix", "a")
    assert refused.code == 2
    assert "This will pause 2 things. Go on?" in refused.err
    wrong = await acall("job", "bulk", "pause", "--name-prefix", "a", "--confirm-count", "3")
    assert wrong.code == 1
    assert "hint: look with --dry-run" in wrong.err
    done = await acall("job", "bulk", "pause", "--name-prefix", "a", "--yes", "-o", "json")
    begun = json.loads(done.out)
    assert (begun["kind"], begun["progress"]["total"]) == ("jobs.bulk", 2), done.err
    await served.operate()
    ended = await acall("operation", "get", begun["id"], "-o", "json")
    assert json.loads(ended.out)["progress"] == {"done": 2, "total": 2}
    states = await acall("job", "list", "--query", "sort([].status.state)", "-o", "json")
    assert json.loads(states.out) == ["active", "paused", "paused"]
    nothing = await acall("job", "bulk", "pause", "--name-prefix", "zz", "-o", "json")
    assert json.loads(nothing.out)["matched"] == 0


async def test_pages_are_read_as_far_as_they_are_wanted() -> None:
    items = [{"name": f"n{n:04}", "schedule": "every 1h", "handler": "h"} for n in range(1005)]
    body = json.dumps({"items": items[:1000]})
    assert (await acall("api", "POST", "/v1/jobs/batch", "-d", body)).code == 0
    body = json.dumps({"items": items[1000:]})
    assert (await acall("api", "POST", "jobs/batch", "-d", body)).code == 0
    for flags, count in ((("--limit", "7"), 7), (("--limit", "1002"), 1002), (("--all",), 1005)):
        told = await acall("job", "list", *flags, "-o", "name")
        assert len(told.out.splitlines()) == count, flags
    paged = await acall("api", "GET", "jobs?limit=1000", "--paginate", "--query", "length(@)")
    assert paged.out == "1005\n"


async def test_errors_are_sentences_with_a_hint_and_a_code(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = await acall(*CREATE[:3], "0 9 * * 8", *CREATE[4:], "x")
    assert bad.code == 1
    assert "invalid_schedule" in bad.err
    assert "hint: try it first: betimes next 'EXPRESSION'" in bad.err
    assert "Traceback" not in bad.err
    await acall(*CREATE, "twice")
    again = await acall(*CREATE, "twice")
    assert again.code == 5
    stale = await acall("job", "delete", "twice", "--if-match", "7", "--yes")
    assert stale.code == 5
    assert "precondition_failed" in stale.err
    monkeypatch.setenv("BETIMES_API_KEY", "btm_ak_nobody")
    stranger = await acall("job", "list")
    assert stranger.code == 4
    assert "hint: sign in again" in stranger.err
    monkeypatch.delenv("BETIMES_API_KEY")
    nobody = await acall("whoami")
    assert nobody.code == 4
    assert "missing_credentials" in nobody.err
    monkeypatch.setenv("BETIMES_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("BETIMES_RETRY_FOR", "0")
    lost = await acall("job", "list", "--timeout", "1")
    assert lost.code == 1
    assert "hint: is it running" in lost.err


async def test_work_without_a_job(home: Path) -> None:
    made = await acall("enqueue", "send", '{"to": 7}', "--in", "10m", "--dedupe", "k", "-Q", "mail")
    assert made.out.startswith("run/run_"), made.err
    assert made.out.endswith(" scheduled\n")
    same = await acall("enqueue", "send", "{}", "--in", "10m", "--dedupe", "k", "-Q", "mail")
    assert same.out.endswith("(there already)\n"), same.out
    (home / "lines").write_text('{"n": 1}\n\n{"n": 2}\n')
    many = await acall("enqueue", "send", "@lines", "--batch", "-Q", "mail")
    assert many.out == "2 runs queued\n", many.err
    runs = await acall("run", "list", "--queue", "mail", "-o", "json")
    assert len(json.loads(runs.out)) == 2, "what is due by now"
    later = await acall("run", "list", "--queue", "mail", "--state", "scheduled", "-o", "json")
    assert len(json.loads(later.out)) == 1
    waited = await acall("enqueue", "send", "--wait=1s", "-o", "json", "-q")
    assert waited.code == 8, "nobody does the work, so it is still pending"
    run = json.loads(waited.out)["id"]
    assert (await acall("run", "cancel", run)).out == f"run/{run} cancelled\n"
    ended = await acall("run", "watch", run, "--exit-status", "-q")
    assert ended.code == 7
    assert (await acall("run", "watch", run, "-q")).code == 0
    assert (await acall("run", "timeline", run)).code == 0
    assert (await acall("run", "logs", run)).out == ""
    assert (await acall("why", run)).code == 0
    first = made.out.split()[0].removeprefix("run/")
    assert json.loads((await acall("run", "payload", first)).out) == {"to": 7}


async def test_purging_waits_for_the_end_with_a_bar(served: Served) -> None:
    for _ in range(3):
        await acall("enqueue", "send", "-Q", "mail")
    begun = await acall("queue", "purge", "mail", "--yes", "-o", "json")
    operation = json.loads(begun.out)
    assert operation["kind"], begun.err
    pending = await acall("operation", "wait", operation["id"], "--for", "1s", "-q")
    assert pending.code == 8
    await served.operate()
    ended = await acall("operation", "wait", operation["id"], "-o", "json")
    assert ended.code == 0
    assert json.loads(ended.out)["progress"] == {"done": 3, "total": 3}


async def test_whatever_can_be_changed_is_changed_by_a_command(served: Served) -> None:
    """Jobs are patched in a media type of their own, which nothing else takes."""
    await acall("secret", "set", "token", "--value", "abcde", "--origins", "https://a.example.com")
    bound = await acall("secret", "bind", "token", "--origins", "https://b.example.com")
    assert bound.code == 0, bound.err
    secret = json.loads((await acall("secret", "get", "token", "-o", "json")).out)
    assert secret["origins"] == ["https://b.example.com"]
    key = json.loads((await acall("key", "create", "ci", "--role", "viewer", "-o", "json")).out)
    renamed = await acall("key", "update", key["id"], "--name", "builds", "-o", "json")
    assert json.loads(renamed.out)["name"] == "builds", renamed.err
    await acall(*CREATE, "report")
    run = json.loads((await acall("job", "run", "report", "-o", "json")).out)
    moved = await acall("run", "update", run["id"], "--priority", "9", "-o", "json")
    assert json.loads(moved.out)["priority"] == 9, moved.err


async def test_keys_and_profiles(
    home: Path, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = json.loads((await acall("key", "create", "ci", "--role", "viewer", "-o", "json")).out)
    (home / "key").write_text(made["secret"] + "\n")
    me = await acall("whoami", "--api-key-file", "key", "-o", "json")
    assert json.loads(me.out)["key"]["name"] == "ci"
    forbidden = await acall(*CREATE, "x", "--api-key-file", str(home / "key"))
    assert forbidden.code == 4
    assert "hint: `betimes whoami` lists what your key may do" in forbidden.err
    url = f"http://127.0.0.1:{served.port}"
    kept = call("profile", "set", "ci", f"url={url}", f"api_key={made['secret']}", "output=json")
    assert kept.code == 0, kept.err
    file = home / "config" / "betimes" / "profiles.toml"
    assert file.stat().st_mode & 0o777 == 0o600
    listed = call("profile", "list")
    assert made["secret"] not in listed.out
    monkeypatch.delenv("BETIMES_API_KEY")
    monkeypatch.delenv("BETIMES_URL")
    by_profile = await acall("--profile", "ci", "whoami")
    assert json.loads(by_profile.out)["key"]["name"] == "ci", by_profile.err
    assert call("profile", "use", "nobody").code == 3
    assert call("profile", "set", "other", "url=http://127.0.0.1:9").code == 0
    assert call("profile", "use", "ci").code == 0
    assert call("logout").code == 0
    assert (await acall("whoami")).code == 4
    assert call("profile", "rm", "ci").code == 0
    assert call("profile", "rm", "ci").code == 3


async def test_signing_in_by_a_code_that_somebody_lets_in(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[str] = []

    def let_in(_: float) -> None:
        """Instead of waiting: the person at the other machine answers."""
        if not answers:
            code = said[0].rpartition(" ")[2]
            answers.append(code)
            told = call("login", "--answer", code)
            assert told.code == 0, told.err

    said: list[str] = []
    monkeypatch.setattr("betimes.cli.account.say", said.append)
    monkeypatch.setattr("betimes.sdk.ambient.pause", let_in)
    signed = await acall("login", "--profile", "work")
    assert signed.code == 0, signed.err
    monkeypatch.delenv("BETIMES_API_KEY")
    me = await acall("whoami", "--profile", "work", "-o", "json")
    assert json.loads(me.out)["key"]["kind"] == "sk"


async def test_an_administrator_acts_for_another_tenant(served: Served) -> None:
    await served.tenant("acme")
    assert (await acall(*CREATE, "theirs", "--tenant", "acme")).code == 0
    assert (await acall("job", "list", "--tenant", "acme", "-o", "name")).out == "job/theirs\n"
    assert (await acall("job", "list", "-o", "name")).out == ""


async def test_the_raw_call() -> None:
    told = await acall("api", "GET", "/v1/whoami", "-i")
    assert told.out.startswith("HTTP 200\n")
    missing = await acall("api", "get", "jobs/nobody")
    assert missing.code == 3
    assert json.loads(missing.out)["code"] == "not_found"
    assert (await acall("api", "get", "v1/whoami")).code == 0
    await acall(*CREATE, "a")
    paused = await acall("api", "POST", "jobs/a/pause", "-d", "reason=because", "-o", "yaml")
    assert yaml.safe_load(paused.out)["status"]["pause"]["reason"] == "because"


async def test_a_glance_at_everything() -> None:
    await acall(*CREATE[:3], "every 1m", *CREATE[4:], "a")
    await acall("queue", "set", "mail", "--max-concurrency", "3", "--rate-limit", "10")
    told = await acall("top", "--once")
    assert "mail" in told.out, told.err
    assert "no workers" in told.out
    assert "nothing runs" in told.out
    facts = json.loads((await acall("top", "-o", "json")).out)
    assert facts.keys() == {"now", "queues", "workers", "running", "upcoming"}
    queues = await acall("queue", "top", "--once", "-o", "json")
    assert [one["name"] for one in json.loads(queues.out)] == ["mail"]


async def test_a_glance_shows_since_when_something_runs(served: Served) -> None:
    worker = served.client(await served.key(kind="wk"))
    made = json.loads((await acall("enqueue", "report", "-o", "json")).out)["id"]
    for _ in range(3):  # due later than the one that runs: a list begins with them
        await acall("enqueue", "other")
    name = (await worker("POST", "/v1/workers", {"name": "w", "handlers": ["report"]})).json
    await worker("POST", f"/v1/workers/{name['worker_id']}/lease", {"wait": 5})
    (running,) = json.loads((await acall("top", "-o", "json")).out)["running"]
    assert (running["id"], running["started_at"] is not None) == (made, True)
    (line,) = [one for one in (await acall("top", "--once")).out.splitlines() if made in one]
    assert re.search(r"(now|ago)$", line.rstrip()), line


async def test_runs_are_listed_by_when_they_were_due() -> None:
    made = json.loads((await acall("enqueue", "report", "--timeout", "2", "-o", "json")).out)
    for said, expected in (
        (("--since", "1h"), [made["id"]]),
        (("--since", "1h", "--until", "in 1h"), [made["id"]]),
        (("--since", "2h", "--until", "1h"), []),
        (("--until", "1h ago"), []),
        (("--since", "+1h", "--until", "+2h"), []),
    ):
        listed = await acall("run", "list", *said, "-o", "json")
        assert [run["id"] for run in json.loads(listed.out)] == expected, (said, listed.err)
    both = await acall("run", "list", "--since", "1h", "--due-after", "-1h")
    assert (both.code, "say the same" in both.err) == (2, True)


async def test_a_number_of_seconds_is_a_duration() -> None:
    for said, shown in (("2", "PT2S"), ("0.5", "PT0.5S"), ("2m", "PT2M")):
        made = await acall(*CREATE, f"job-{said}", "--timeout", said, "-o", "json")
        assert json.loads(made.out)["timeout"] == shown, made.err
    assert (await acall("enqueue", "report", "--in", "2")).code == 0


async def test_acts_are_listed_since_a_while_ago() -> None:
    await acall(*CREATE, "a")
    listed = await acall("audit", "list", "--since", "1h", "--action", "jobs.create", "-o", "json")
    assert len(json.loads(listed.out)) == 1, listed.err


async def test_names_are_completed_from_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    import click  # noqa: PLC0415 -- only here

    from betimes.cli.completing import NameOf  # noqa: PLC0415 -- as above
    from betimes.cli.invocation import Invocation  # noqa: PLC0415 -- as above

    for name in ("report-a", "report-b", "other"):
        await acall(*CREATE, name)

    def names(noun: str, begun: str) -> list[str]:
        context = click.Context(click.Command("x"), obj=Invocation())
        parameter = click.Argument(["x"])
        return [item.value for item in NameOf(noun).shell_complete(context, parameter, begun)]

    import asyncio  # noqa: PLC0415 -- as above

    assert await asyncio.to_thread(names, "job", "rep") == ["report-a", "report-b"]
    assert await asyncio.to_thread(names, "nothing", "") == []
    monkeypatch.setenv("BETIMES_API_KEY", "btm_ak_wrong")
    assert await asyncio.to_thread(names, "job", "rep") == []
