"""The generated parts of the client library are what the routes say."""

import importlib.util
import inspect
from pathlib import Path
from types import ModuleType

from betimes.sdk.client import AsyncClient, Client
from betimes.sdk.operations import OPERATIONS

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "write_sdk.py"


def the_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("write_sdk", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_they_are_written_from_the_routes() -> None:
    script = the_script()
    for name, text in script.files().items():
        told = script.formatted(text, name)
        assert told == (script.SDK / name).read_text(), f"{name}: run scripts/write_sdk.py"


def test_both_clients_have_every_operation_with_the_same_parameters() -> None:
    blocking, awaited = Client("http://h", "k"), AsyncClient("http://h", "k")
    for operation in OPERATIONS:
        if operation.accepts == "text/event-stream":
            continue
        group, _, verb = operation.name.partition(".")
        verb = f"{verb}_" if verb == "import" else verb
        group = f"{group}_" if group == "import" else group
        homes = (
            (blocking, awaited)
            if group == "meta"
            else (getattr(blocking, group), getattr(awaited, group))
        )
        one, other = (inspect.signature(getattr(home, verb)) for home in homes)
        assert one.parameters.keys() == other.parameters.keys(), operation.name
