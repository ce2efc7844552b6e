"""Importing the library is cheap: nothing heavy comes along before it is used."""

import subprocess
import sys

import betimes

HEAVY = (
    *("asyncio", "ssl", "http.client", "socket", "email", "multiprocessing", "logging"),
    *("pydantic", "asyncpg", "structlog", "click", "uvicorn", "opentelemetry", "jsonschema_rs"),
    *("betimes.sdk.client", "betimes.sdk.resources", "betimes.schedule", "betimes.store"),
)


def loaded(program: str) -> set[str]:
    """What a fresh interpreter has loaded after a program."""
    told = f"{program}\nimport sys; print(' '.join(sys.modules))"
    answer = subprocess.run(
        [sys.executable, "-I", "-c", told], capture_output=True, text=True, check=True
    )
    return set(answer.stdout.split())


def test_importing_betimes_loads_none_of_it() -> None:
    found = loaded("import betimes")
    assert not found & {*HEAVY, "msgspec", "betimes.sdk"}


def test_declaring_tasks_loads_no_network_and_no_server() -> None:
    found = loaded(
        "from betimes import App, Context, Retry\n"
        "app = App()\n"
        "@app.task(queue='mail', schedule='0 2 * * *')\n"
        "def f(ctx: Context, n: int) -> int: return n\n"
        "f.configure(delay='1h').prepare(1)"
    )
    assert not found & set(HEAVY)


def test_describing_a_workflow_loads_no_network_and_no_server() -> None:
    found = loaded(
        "from betimes import App\n"
        "app = App()\n"
        "@app.task\n"
        "def f(n: int) -> list[int]: return [n]\n"
        "@app.workflow(schedule='0 2 * * *')\n"
        "def flow(w, n: int): w.map(f, over=w.run(f, n))\n"
        "assert len(flow.definition()['nodes']) == 2"
    )
    assert not found & set(HEAVY)


def test_every_public_name_is_there() -> None:
    for name in betimes.__all__:
        assert getattr(betimes, name).__name__.removeprefix("betimes.sdk.") == name
    assert betimes.aio.Client is betimes.AsyncClient
    assert issubclass(betimes.errors.LeaseLost, betimes.errors.ApiError)
    assert set(betimes.__all__) <= set(dir(betimes))
