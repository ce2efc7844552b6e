"""Settings come from file, environment and flags, in that order, and mistakes come all at once."""

# ruff: noqa: E501 -- expected sentences stand whole, so that they can be searched for

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from betimes.config import BadSettings, Examined, Flag, Settings, examine, load
from betimes.config.rule import keys_of
from betimes.domain.errors import BadSetting


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No betimes.toml of the working directory reaches a test."""
    monkeypatch.chdir(tmp_path)


def look(
    toml: str = "",
    environ: Mapping[str, str] | None = None,
    *flags: Flag,
    at: Path = Path("b.toml"),
) -> Examined:
    at.write_text(toml, encoding="utf-8")
    return examine(file=at, environ=environ or {}, flags=flags)


def test_without_any_source_the_defaults_hold_and_are_sound() -> None:
    settings = load(environ={"XDG_DATA_HOME": "/data"})
    assert settings.database == Settings().database
    assert settings.coordinator.horizon == timedelta(minutes=5)
    assert settings.embedded.home == Path("/data")
    assert load(environ={"XDG_DATA_HOME": "data"}).embedded.home.is_absolute()


def test_flags_overrule_the_environment_which_overrules_the_file() -> None:
    seen = look(
        "[worker]\nslots = 1\nflush_count = 1\n[shards]\ncount = 1",
        {"BETIMES_WORKER_SLOTS": "2", "BETIMES_WORKER_FLUSH_COUNT": "2"},
        Flag("worker.slots", "--slots", "3"),
    )
    assert seen.problems == ()
    worker = seen.settings.worker
    assert (worker.slots, worker.flush_count, seen.settings.shards.count) == (3, 2, 1)
    assert seen.origins["worker.slots"] == "flag --slots"
    assert seen.origins["worker.flush_count"] == "variable BETIMES_WORKER_FLUSH_COUNT"
    assert seen.origins["shards.count"] == "b.toml:5"
    assert seen.origins["log.level"] == "default"


def test_a_flag_that_was_not_given_overrules_nothing() -> None:
    seen = look("[log]\nlevel = 'debug'", {}, Flag("log.level", "--log-level", None))
    assert seen.settings.log.level == "debug"


def test_an_empty_variable_counts_as_not_set() -> None:
    assert look("", {"BETIMES_DATABASE_DSN": " "}).settings.database.dsn is None


def test_the_file_in_the_working_directory_is_found() -> None:
    Path("betimes.toml").write_text("[log]\nlevel = 'error'", encoding="utf-8")
    assert load(environ={}).log.level == "error"


def test_a_variable_may_name_the_file() -> None:
    Path("other.toml").write_text("[log]\nlevel = 'error'", encoding="utf-8")
    assert load(environ={"BETIMES_CONFIG": "other.toml"}).log.level == "error"


def test_every_type_is_read_from_text_and_from_toml() -> None:
    texts = {
        "BETIMES_SERVER_UNSAFE": "yes",
        "BETIMES_SERVER_ROLES": "api, worker",
        "BETIMES_COORDINATOR_HORIZON": "PT10M",
        "BETIMES_EMBEDDED_BINARIES": "/opt/pg",
        "BETIMES_EMBEDDED_PORT": "5433",
    }
    toml = (
        "server.unsafe = true\nserver.roles = ['api', 'worker']\ncoordinator.horizon = 600\n"
        "embedded.binaries = '/opt/pg'\nembedded.port = 5433"
    )
    assert look("", texts).settings == look(toml).settings
    assert look("", texts).problems == look(toml).problems == ()


@pytest.mark.parametrize(
    ("toml", "sentence"),
    [
        (
            "[worker]\nslots = 'many'",
            "worker.slots: expected a whole number from 1 to 100000, got 'many' (b.toml:2).",
        ),
        (
            "[worker]\nslots = true",
            "worker.slots: expected a whole number from 1 to 100000, got True (b.toml:2).",
        ),
        (
            "[worker]\nslots = 0",
            "worker.slots: expected a whole number from 1 to 100000, got 0 (b.toml:2).",
        ),
        (
            "[worker]\nflush_age = '2s'",
            "worker.flush_age: expected a duration such as 15s, 5m or PT15M from 0s to 1s, got '2s' (b.toml:2).",
        ),
        (
            "[server]\nunsafe = 'perhaps'",
            "server.unsafe: expected true or false, got 'perhaps' (b.toml:2).",
        ),
        (
            "[server]\nroles = []",
            "server.roles: expected a list of api, coordinator, worker, janitor, dispatcher, got [] (b.toml:2).",
        ),
        (
            "[server]\nroles = ['api', 'api']",
            "server.roles: expected a list of api, coordinator, worker, janitor, dispatcher, got ['api', 'api'] (b.toml:2).",
        ),
        (
            "[log]\nlevel = 'loud'",
            "log.level: expected one of debug, info, warning, error, got 'loud' (b.toml:2).",
        ),
        ("[log]\nlevul = 'info'", "log.levul: b.toml:2 names no setting; did you mean log.level?"),
        (
            "[janitor]\nheartbeat_every = 5",
            "janitor.heartbeat_every: b.toml:2 names no setting; did you mean worker.heartbeat_every?",
        ),
        (
            "[dattabase]\ndsn = ''",
            "dattabase: b.toml:1 is no table of ours; did you mean database?",
        ),
        ("log = 3", "log: expected a table [log], got 3 (b.toml:1)."),
        ("[log", "b.toml: expected TOML, got a mistake"),
        (
            "[database]\ndsn = 'mysql://u:hunter2@h/d'",
            "database.dsn: expected an address like postgresql://user@host:5432/name, got not a postgresql:// address (b.toml:2).",
        ),
    ],
)
def test_a_mistake_is_a_sentence_with_its_place(toml: str, sentence: str) -> None:
    (problem,) = look(toml).problems
    assert problem.startswith(sentence)


def test_all_mistakes_are_told_together() -> None:
    Path("b.toml").write_text("[worker]\nslots = 0\nslotz = 1", encoding="utf-8")
    with pytest.raises(BadSettings) as refusal:
        load(
            file=Path("b.toml"),
            environ={"BETIMES_LOG_LEVEL": "loud", "BETIMES_LOG_LEVLE": "x"},
            flags=[Flag("shards.cuont", "--set", "1"), Flag("shards.count", "--set", "none")],
        )
    assert isinstance(refusal.value, BadSetting)
    assert len(refusal.value.problems) == 6
    text = refusal.value.sentence
    assert (
        "BETIMES_LOG_LEVLE: no setting has this variable; did you mean BETIMES_LOG_LEVEL?" in text
    )
    assert "shards.cuont: flag --set names no setting; did you mean shards.count?" in text
    assert "log.level: expected one of" in text
    assert "(variable BETIMES_LOG_LEVEL)" in text
    assert "got 'none' (flag --set)" in text


def test_a_secret_is_never_repeated() -> None:
    for value in ("postgresql://u:hunter2@h:port/d", "mysql://u:hunter2@h/d", "hunter2\n"):
        (problem,) = look("", {"BETIMES_DATABASE_DSN": value}).problems
        assert "hunter2" not in problem


def test_variables_that_are_not_settings_are_left_alone() -> None:
    others = {
        "BETIMES_OUTPUT": "json",
        "BETIMES_TEST_PG_BIN": "x",
        "BETIMES_SERVICE_HOST": "10.0.0.1",
        "BETIMES_PORT": "tcp://10.0.0.1:80",
        "BETIMES_PORT_80_TCP_ADDR": "10.0.0.1",
        "BETIMES_API_SERVICE_PORT_HTTP": "80",
        "HOME": "/root",
    }
    assert look("", others).problems == ()


def test_a_named_file_that_is_missing_is_a_problem() -> None:
    (problem,) = examine(file=Path("none.toml"), environ={}).problems
    assert "none.toml: the configuration file cannot be read: No such file" in problem


def test_the_pooler_switch_in_the_address_is_a_setting() -> None:
    seen = look("", {"BETIMES_DATABASE_DSN": "postgresql://h/d?pgbouncer=true"})
    assert seen.settings.database.pgbouncer
    assert seen.settings.database.dsn == "postgresql://h/d"
    assert seen.origins["database.pgbouncer"] == "variable BETIMES_DATABASE_DSN"


def test_a_home_is_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/somewhere")
    assert load(environ={}).embedded.home == Path("/somewhere/.local/share")
    assert load(environ={"BETIMES_EMBEDDED_DATA": "~/x"}).embedded.data == Path("/somewhere/x")


def test_no_color_is_heard() -> None:
    assert look("", {"NO_COLOR": ""}).settings.log.colour
    assert not look("[log]\ncolour = true", {"NO_COLOR": "1"}).settings.log.colour
    assert look("", {"NO_COLOR": "1", "BETIMES_LOG_COLOUR": "on"}).settings.log.colour


def test_every_variable_name_is_flat_and_unique() -> None:
    names = [key.environment_name for key in keys_of(Settings).values()]
    assert len(set(names)) == len(names)
    assert all("__" not in name for name in names)
