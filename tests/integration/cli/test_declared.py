"""Directories of YAML, and files of jobs, against a real service."""

import json
from pathlib import Path

import pytest
import yaml

from cli_kit import acall, call

pytestmark = pytest.mark.db


def write(home: Path, **files: str) -> Path:
    folder = home / "nightly"
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return folder


def remove(file: Path) -> None:
    file.unlink()


def read(file: Path) -> str:
    return file.read_text(encoding="utf-8")


A = "name: a\nschedule: 0 2 * * *\nhandler: report\n"
B = "jobs:\n  - {name: b, schedule: every 1h, handler: h, group: night}\n"


FLOW = """
workflows:
  daily:
    timeout: 1h
    nodes:
      list: {handler: list_files, queue: default}
      parse: {handler: parse, payload: {file: {$item: ""}}, map: {over: {$output: list}}}
jobs:
  - {name: daily, schedule: 0 6 * * *, target: {type: workflow, workflow: daily}}
"""


async def test_workflows_are_brought_before_the_jobs_that_start_them(home: Path) -> None:
    write(home, flow=FLOW)
    tried = await acall("apply", "nightly", "--dry-run")
    assert tried.out.splitlines()[:2] == ["+ daily", "~ workflow daily"], tried.err
    assert (await acall("workflow", "list", "-o", "name")).out == ""
    done = await acall("apply", "nightly", "-o", "json")
    assert json.loads(done.out)["workflows"] == ["daily"], done.err
    assert (await acall("diff", "nightly", "--exit-code")).code == 0, "nothing is left to do"
    write(home, flow=FLOW.replace("timeout: 1h", "timeout: 2h"))
    differs = await acall("diff", "nightly", "--exit-code")
    assert (differs.code, "~ workflow daily" in differs.out) == (1, True)
    await acall("apply", "nightly")
    assert "version 2" in (await acall("workflow", "graph", "daily")).out
    again = await acall("apply", "nightly", "-o", "json")
    assert json.loads(again.out)["workflows"] == []
    write(home, more="workflows: {other: {needs: []}}\n")
    assert "expected nodes in the workflow 'other'" in (await acall("apply", "nightly")).err
    write(home, more="workflows: {daily: {nodes: {}}}\n")
    assert "'daily' is declared twice" in (await acall("apply", "nightly")).err
    write(home, more="workflows: 7\n")
    assert "expected workflows by name" in (await acall("apply", "nightly")).err
    write(home, more="workflows: [{name: loop, nodes: {a: {handler: h, needs: [a]}}}]\n")
    refused = await acall("apply", "nightly")
    assert (refused.code, "a needs a" in refused.err) == (1, True), refused.err


async def test_a_directory_is_brought_about_changed_and_pruned(home: Path) -> None:
    folder = write(home, one=A, two=B)
    tried = await acall("apply", "nightly", "--dry-run")
    assert tried.out.splitlines() == [
        "+ a", "+ night~b",
        "2 would be created, 0 would be changed, 0 would be deleted, 0 as they were",
    ], tried.err  # fmt: skip
    assert (await acall("job", "list", "-o", "name")).out == ""
    done = await acall("apply", str(folder))
    assert done.out.endswith("2 created, 0 changed, 0 deleted, 0 as they were\n"), done.err
    tags = await acall("job", "get", "a", "--query", "tags", "-o", "json")
    assert json.loads(tags.out) == {"set": "nightly"}
    write(home, one=A + "priority: 9\n")
    remove(folder / "two.yaml")
    same = await acall("diff", "-f", "nightly", "--exit-code")
    assert same.code == 1
    assert "~ a" in same.out
    assert "    +priority: 9" in same.out.splitlines(), same.out
    kept = await acall("apply", "nightly")
    assert kept.out.splitlines()[-1] == "0 created, 1 changed, 0 deleted, 0 as they were"
    asked = await acall("apply", "nightly", "--prune")
    assert asked.code == 2
    assert "This deletes night~b. Go on?" in asked.err
    pruned = await acall("apply", "nightly", "--prune", "--yes", "-o", "json")
    assert json.loads(pruned.out)["deleted"] == ["night~b"]
    assert (await acall("diff", "nightly", "--prune", "--exit-code")).code == 0


async def test_what_a_set_does_not_own_is_left_alone(home: Path) -> None:
    await acall("job", "create", "a", "--schedule", "every 1h", "--handler", "h")
    write(home, one=A)
    refused = await acall("apply", "nightly")
    assert refused.code == 5
    assert "nightly/one.yaml: a:" in refused.err
    assert "belongs to no such set" in refused.err
    adopted = await acall("apply", "nightly", "--adopt")
    assert adopted.out.splitlines()[-1] == "0 created, 1 changed, 0 deleted, 0 as they were"


async def test_all_or_nothing_and_the_file_is_named(home: Path) -> None:
    write(home, one=A, two="name: z\nschedule: 0 99 * * *\nhandler: h\n")
    refused = await acall("apply", "nightly")
    assert refused.code == 1
    assert "nightly/two.yaml: z:" in refused.err
    assert (await acall("job", "list", "-o", "name")).out == ""


async def test_what_is_no_set_is_refused_before_anything_is_asked(home: Path) -> None:
    assert call("apply").code == 2
    assert call("apply", "nowhere").code == 1
    write(home, one="{unclosed")
    assert "expected YAML in nightly/one.yaml" in call("apply", "nightly").err
    write(home, one="jobs: [7]")
    assert "expected a job as an object" in call("apply", "nightly").err
    write(home, one="format: other/2\njobs: []")
    assert "expected the format betimes/1" in call("apply", "nightly").err


async def test_an_export_can_be_imported_and_applied_elsewhere(home: Path) -> None:
    assert (
        await acall("calendar", "set", "holidays", "--dates", "2026-12-25", "--force")
    ).code == 0
    schedule = json.dumps(
        {"type": "cron", "expr": "0 9 * * *", "calendars": {"exclude": ["holidays"]}}
    )
    made = await acall("job", "create", "a", "--schedule", schedule, "--handler", "h",
                       "-l", "team=x", "--payload", '{"n": 1}')  # fmt: skip
    assert made.code == 0, made.err
    told = await acall("export", "--tag", "team:x", "--to", "out.yaml")
    assert told.err == "1 jobs, 1 calendars\n"
    document = yaml.safe_load(read(home / "out.yaml"))
    assert document["jobs"][0]["payload"] == {"n": 1}
    there = await acall("import", "betimes", "out.yaml")
    assert there.out.startswith("skipped a: ")
    assert there.out.endswith("0 created, 1 skipped\n")
    await acall("job", "delete", "a", "--yes")
    tried = await acall("import", "betimes", "out.yaml", "--dry-run")
    assert tried.out == "1 would be created, 0 would be skipped\n", tried.err
    assert (await acall("job", "get", "a")).code == 3
    assert (await acall("import", "betimes", "out.yaml")).out == "1 created, 0 skipped\n"
    again = json.loads((await acall("export", "--format", "json", "-q")).out)
    assert again["jobs"] == document["jobs"]
    await acall("job", "delete", "a", "--yes")
    applied = await acall("apply", "out.yaml", "--set", "moved")
    assert applied.out.splitlines()[-1] == "1 created, 0 changed, 0 deleted, 0 as they were"
    assert call("import", "betimes", "nowhere.yaml").code == 2
