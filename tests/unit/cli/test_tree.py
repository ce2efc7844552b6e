"""The tree of commands is what the routes say, and its help is kept word for word."""

import importlib.util
import re
import typing
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import msgspec
import pytest
from click.testing import CliRunner

from betimes.api.routes import ROUTES
from betimes.cli.build import command, look_of, members_of
from betimes.cli.forms import LISTS
from betimes.cli.main import COMMANDS, root
from betimes.cli.offer import Member
from betimes.cli.reference import commands, help_of, markdown
from betimes.cli.surface import OFFERS
from betimes.cli.tree import ALONE, ELSEWHERE, NOUNS
from betimes.cli.wishes import SHARED
from betimes.cli.words import WORDS
from betimes.wire.base import Page

ROOT = Path(__file__).resolve().parents[3]
VERBS = [*((noun, verb) for noun, kind in NOUNS.items() for verb in kind.verbs),
         *((None, verb) for verb in ALONE.values())]  # fmt: skip


def the_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("write_cli", ROOT / "scripts" / "write_cli.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_of_operations_is_written_from_the_routes() -> None:
    script = the_script()
    assert script.surface() == script.SURFACE.read_text(), "run scripts/write_cli.py"


def test_every_operation_has_a_command_or_a_reason() -> None:
    used = [verb.operation for _, verb in VERBS]
    assert len(used) == len(set(used)), "two commands for one operation"
    assert not set(used) & set(ELSEWHERE)
    assert {*used, *ELSEWHERE} == set(OFFERS)


def test_every_help_is_kept_on_the_reference_page() -> None:
    assert markdown() == (ROOT / "docs" / "reference" / "cli.md").read_text(), (
        "run scripts/write_cli.py"
    )


@pytest.mark.parametrize("path", [" ".join(path) for path, _ in commands()])
def test_every_help_can_be_asked_for(path: str) -> None:
    told = CliRunner().invoke(root, [*path.split(), "--help"], prog_name="betimes")
    assert told.exit_code == 0, told.output
    assert told.output.startswith(f"Usage: betimes {path} ")
    assert "None" not in told.output


def test_the_help_of_the_root_is_kept() -> None:
    from cli_kit import golden  # noqa: PLC0415 -- as the others are

    told = CliRunner().invoke(root, ["--help"], prog_name="betimes", terminal_width=88)
    golden("help.txt", told.output)


def test_every_option_says_what_it_is_for() -> None:
    silent = [
        f"{' '.join(path)} {option.opts}"
        for path, one in commands()
        for option in one.params
        if isinstance(option, click.Option) and not option.help and not option.hidden
    ]
    assert silent == []


def test_no_word_is_left_over() -> None:
    places = {one.place for offer in OFFERS.values() for one in (*offer.query, *(offer.body or ()))}
    assert set(WORDS) <= places


def test_no_command_takes_a_flag_twice() -> None:
    for path, one in commands():
        flags = [
            flag
            for option in one.params
            if isinstance(option, click.Option)
            for flag in (*option.opts, *option.secondary_opts)
        ]
        assert len(flags) == len(set(flags)), f"{path}: {flags}"


def test_the_root_says_of_a_noun_what_the_table_says() -> None:
    for name in (*NOUNS, *ALONE):
        assert name in COMMANDS
    context = click.Context(root)
    for name, place in COMMANDS.items():
        assert place.says.endswith("."), name
        assert root.get_command(context, name) is not None


def test_what_verbs_name_exists() -> None:
    for noun, verb in VERBS:
        offer = OFFERS[verb.operation]
        places = {one.place for one in (*offer.query, *(offer.body or ()))}
        assert {*verb.said, *verb.hides} <= places, verb
        assert verb.example == "" or verb.example.startswith("betimes "), verb
        if verb.counted:
            assert {"dry_run", "confirm_count"} <= places, verb
        made = command(verb, NOUNS[noun] if noun else None, noun or "")
        assert made.name == verb.name


def test_examples_are_read_by_their_own_commands() -> None:
    import shlex  # noqa: PLC0415 -- only here

    from betimes.cli.command import ServiceCommand  # noqa: PLC0415 -- as above

    tried = 0
    for path, one in commands():
        if isinstance(one, ServiceCommand) and one.example:
            line = re.split(r"&&| [<>] ", one.example)[0]
            words = shlex.split(line)[1:]
            # A command that stands in two places of the tree has the example of the shorter.
            shorter = len(path[-1:]) if words[: len(path)] != list(path) else len(path)
            assert words[:shorter] == list(path[-shorter:]), path
            words = words[shorter:]
            context = click.Context(one, info_name=path[-1], help_option_names=["-h", "--help"])
            one.parse_args(context, words)
            tried += 1
    assert tried > 15


def test_a_member_becomes_a_flag() -> None:
    assert Member("filter.name_prefix", "text").name == "name-prefix"
    assert Member("retry.max_attempts", "int").name == "retry-max-attempts"
    assert Member("retry.max_attempts", "int").key == "said_retry_max_attempts"


def test_shared_options_stand_before_and_behind_a_command() -> None:
    flags = {flag for shared in SHARED for flag in shared.flags}
    for path, one in commands():
        if path[0] in ("job", "run") and not isinstance(one, click.Group):
            own = {flag for option in one.params for flag in option.opts}
            assert flags <= own, path
    assert flags <= {flag for option in root.params for flag in option.opts}


def test_lists_take_care_of_pages_themselves() -> None:
    verb = NOUNS["job"].verbs[1]
    assert verb.name == "list"
    assert "limit" not in {one.place for one in members_of(verb, OFFERS["jobs.list"])}


def rows_of(operation: str) -> type[msgspec.Struct] | None:
    """The shape of a row of what an operation answers, or of the answer itself."""
    route = next(route for route in ROUTES if route.name == operation)
    kind: Any = next(kind for status, kind in route.answers.items() if status < 300)
    if typing.get_origin(kind) is Page:
        kind = typing.get_args(kind)[0]
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return None
    for field in msgspec.structs.fields(kind):
        inner = typing.get_args(field.type)
        if field.encode_name in LISTS and inner:
            is_shape = isinstance(inner[0], type) and issubclass(inner[0], msgspec.Struct)
            return inner[0] if is_shape else None
    return kind


def test_columns_are_members_of_what_is_answered() -> None:
    looked = 0
    for noun, verb in VERBS:
        shape = rows_of(verb.operation)
        own = verb.columns is not None or verb.name == "list"
        if shape is None or not own:
            continue
        known = {field.encode_name for field in msgspec.structs.fields(shape)}
        kind = NOUNS[noun] if noun else None
        look = look_of(verb, kind, noun or "")
        for one in (*look.columns, *look.wide):
            firsts = {
                way.partition(".")[0] for part in one.path.split("|") for way in part.split("~")
            }
            assert firsts <= known, (noun, verb.name, one)
            looked += 1
    assert looked > 120


def test_help_has_the_width_of_the_page() -> None:
    path, one = next((path, one) for path, one in commands() if path == ("job", "create"))
    assert max(map(len, help_of(path, one).splitlines())) <= 88
