"""Peers from their registries, into a folder of the cache that nothing else uses."""

import asyncio
import json
import shutil
import sys
from pathlib import Path

from bench.kit.processes import ROOT

CACHE = ROOT / ".bench-cache"
PGQUEUER, GRAPHILE = "pgqueuer", "graphile-worker"


async def install_pgqueuer() -> tuple[Path, str]:
    """The interpreter of an environment that has it, and its version."""
    home = CACHE / PGQUEUER
    python = home / "bin" / "python"
    if not python.exists():
        await call(sys.executable, "-m", "venv", str(home))
        await call(str(python), "-m", "pip", "--quiet", "install", PGQUEUER, "asyncpg", "uvloop")
    version = f"from importlib.metadata import version; print(version('{PGQUEUER}'))"
    return python, (await call(str(python), "-c", version)).strip()


async def install_graphile() -> tuple[Path, str]:
    """The folder that has it in its node_modules, and its version."""
    home = CACHE / GRAPHILE
    package = home / "node_modules" / GRAPHILE / "package.json"
    if not package.exists():
        home.mkdir(parents=True, exist_ok=True)
        await call("npm", "install", "--silent", "--no-audit", "--prefix", str(home), GRAPHILE)
    version: str = json.loads(package.read_text(encoding="utf-8"))["version"]
    return home, version


def has_node() -> bool:
    """Whether peers that need Node can be measured here."""
    return shutil.which("node") is not None and shutil.which("npm") is not None


async def call(*command: str, environment: dict[str, str] | None = None) -> str:
    """Run something to its end; what it said."""
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, env=environment
    )
    told, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"{command[0]} ended with {process.returncode}")
    return told.decode()
