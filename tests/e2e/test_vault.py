"""The master key of a real node: made once, replaced by hand, and missed when it is another."""

import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from api_kit import Client
from process_kit import Process, betimes, key_said_in, running
from target_kit import a_target

pytestmark = [pytest.mark.db, pytest.mark.timeout(180)]


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder that every account may enter, since PostgreSQL does not run as root."""
    folder = Path(tempfile.mkdtemp(prefix="betimes-e2e-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def a_node(home: Path, key: str = "") -> Iterator[Client]:
    """A node until the end of the block; its key is told the first time only."""
    with running(home, "dev", "--no-demo") as dev:
        key = key or key_said_in(dev.until("key for development"))
        port = int(dev.until("api.listening").partition("http://127.0.0.1:")[2].partition('"')[0])
        dev.read_on()
        yield Client(port, key)
        dev.popen.send_signal(signal.SIGTERM)
        assert dev.end() == 0, dev.said


async def delivered(ask: Client) -> str:
    """What a target sees of the secret."""
    async with a_target() as target:
        body = {
            "target": {
                "type": "http",
                "url": target.url(),
                "auth": {"type": "bearer", "secret": "s"},
            }
        }
        made = await ask("POST", "/v1/runs", body, headers={"prefer": "wait=20"})
    assert made.json["state"] == "succeeded", made.body
    return target.received[0].headers["authorization"]


async def test_a_master_key_is_replaced_without_losing_anything(home: Path) -> None:
    """A new one first, data keys wrapped under it, the old one taken out; a stranger is refused."""
    with a_node(home) as ask:
        assert (
            await ask("PUT", "/v1/secrets/s", {"value": "hush-hush", "origins": ["*"]})
        ).status == 201
        assert await delivered(ask) == "Bearer hush-hush"
    (keys,) = (home / "share").glob("*.keys")
    old = keys.read_text(encoding="ascii")
    fresh = betimes(home, "vault", "new-key").stdout
    assert len(bytes.fromhex(fresh)) == 32
    assert fresh != old
    keys.write_text(fresh + old, encoding="ascii")
    wrapped = betimes(home, "vault", "rewrap")
    assert "1 data keys were wrapped anew" in wrapped.stdout, wrapped.stderr
    keys.write_text(fresh, encoding="ascii")
    with a_node(home, ask.key or "") as ask:
        assert await delivered(ask) == "Bearer hush-hush"
    keys.write_text(old, encoding="ascii")
    with running(home, "dev", "--no-demo") as dev:
        assert refused(dev)


def refused(dev: Process) -> bool:
    """It ends by itself, and says which key it wants."""
    dev.until("expected the master key")
    return dev.end() == 2
