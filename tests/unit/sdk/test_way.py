"""Where a client finds the service and its key, when nobody tells it."""

from pathlib import Path

import pytest

from betimes import App
from betimes.domain.errors import BadSetting, NotFound
from betimes.sdk import profiles
from betimes.sdk.client import AsyncClient, Client
from betimes.sdk.way import URL_DEFAULT, client_way

WORK, HOME = "https://work.example", "https://home.example"


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two profiles, `work` being the one that counts, and an environment that says nothing."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("URL", "API_KEY", "API_KEY_FILE", "PROFILE", "TENANT"):
        monkeypatch.delenv(f"BETIMES_{name}", raising=False)
    known = profiles.Profiles(
        "work",
        {
            "work": {"url": WORK, "api_key": "btm_sk_work", "tenant": "acme"},
            "home": {"url": f"{HOME}/", "api_key": "btm_sk_home"},
            "keyless": {"url": WORK},
        },
    )
    profiles.write(profiles.place(), known)
    return profiles.place()


def found(**said: str) -> tuple[str, str | None, str | None]:
    way = client_way(**said)
    return way.url, way.api_key, way.tenant


def test_nothing_said_is_the_current_profile() -> None:
    assert found() == (WORK, "btm_sk_work", "acme")


def test_the_environment_counts_before_the_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BETIMES_API_KEY", "btm_sk_env")
    assert found()[:2] == (WORK, "btm_sk_env")
    monkeypatch.setenv("BETIMES_URL", "http://env.example")
    assert found()[:2] == ("http://env.example", "btm_sk_env")


def test_what_is_said_counts_before_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BETIMES_API_KEY", "btm_sk_env")
    monkeypatch.setenv("BETIMES_TENANT", "env")
    assert found(url=HOME, api_key="k") == (HOME, "k", None), "a key brings its own tenant"
    assert found(url=HOME, api_key="k", tenant="t") == (HOME, "k", "t")


def test_a_profile_is_named_in_code_or_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(profile="home") == (f"{HOME}/", "btm_sk_home", None)
    monkeypatch.setenv("BETIMES_PROFILE", "home")
    assert found() == (f"{HOME}/", "btm_sk_home", None)
    with pytest.raises(NotFound, match="home, keyless, work"):
        client_way(profile="nobody")


def test_the_key_of_a_profile_goes_to_no_other_address(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(url=HOME) == (HOME, None, None)
    assert found(url=f"{WORK}/")[1] == "btm_sk_work", "the same address"
    monkeypatch.setenv("BETIMES_URL", "http://evil.example")
    assert found() == ("http://evil.example", None, None)


def test_a_profile_without_a_key_borrows_none() -> None:
    way = client_way(profile="keyless")
    assert way.api_key is None
    assert "authorization" not in _headers(Client(way))


def test_a_key_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text("btm_sk_file\n")
    monkeypatch.setenv("BETIMES_API_KEY_FILE", str(tmp_path / "key"))
    assert found()[1] == "btm_sk_file"
    (tmp_path / "key").write_text("\n")
    with pytest.raises(BadSetting, match="an empty file"):
        client_way()


def test_without_a_file_the_address_of_development_is_asked(kept: Path) -> None:
    kept.unlink()
    assert found() == (URL_DEFAULT, None, None)


def test_who_says_everything_needs_no_file(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.write_text("this is no TOML")
    assert found(url=HOME, api_key="k")[0] == HOME
    monkeypatch.setenv("BETIMES_URL", HOME)
    monkeypatch.setenv("BETIMES_API_KEY", "k")
    assert found()[0] == HOME
    monkeypatch.delenv("BETIMES_API_KEY")
    with pytest.raises(BadSetting, match="expected profiles in"):
        client_way()


def test_no_home_is_no_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("no home")

    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setattr(Path, "home", homeless)
    assert found() == (URL_DEFAULT, None, None)
    with pytest.raises(BadSetting, match="HOME"):
        client_way(profile="work")


def test_apps_and_both_clients_go_the_same_way() -> None:
    app = App(profile="home")
    assert app.client.url == app.async_client.url == f"{HOME}/"
    assert _headers(app.client)["authorization"] == "Bearer btm_sk_home"
    for client in (Client(), AsyncClient(), App().client):
        assert client.url == WORK
        told = _headers(client)
        assert (told["authorization"], told["betimes-tenant"]) == ("Bearer btm_sk_work", "acme")


def test_an_app_reads_nothing_before_it_is_used(kept: Path) -> None:
    kept.write_text("this is no TOML")
    app = App()
    with pytest.raises(BadSetting):
        app.way()


def test_keys_are_not_shown() -> None:
    assert "btm_sk_work" not in repr(client_way())


def _headers(client: Client | AsyncClient) -> dict[str, str]:
    """What a request of a client would say."""
    from betimes.sdk.exchange import Given, request_of  # noqa: PLC0415 -- only here
    from betimes.sdk.operations import META_WHOAMI  # noqa: PLC0415 -- as above

    return dict(request_of(META_WHOAMI, Given(), client._manner).headers)
