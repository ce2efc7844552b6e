"""`betimes init`: the first two files of a project."""

from pathlib import Path

import click

from betimes.cli.invocation import say
from betimes.domain.errors import AlreadyExists

SETTINGS = """# Settings of `betimes dev` and `betimes server`; `server check` shows them all.
[worker]
slots = 10
"""
TASKS = '''"""Tasks of this project. Start a worker with: betimes worker run tasks:app"""

from betimes import App

app = App(name="tasks")


@app.task
def greet(name: str = "you") -> str:
    """Enqueue it with: betimes enqueue greet '{"name": "Ada"}' --wait"""
    return f"Hello, {name}!"
'''
FILES = {"betimes.toml": SETTINGS, "tasks.py": TASKS}


@click.command()
@click.argument("folder", default=".", type=click.Path(path_type=Path, file_okay=False))
@click.option("--force", is_flag=True, help="Write over files that are there.")
def init(folder: Path, *, force: bool) -> int:
    """Write betimes.toml and a sample task file into FOLDER."""
    taken = [name for name in FILES if (folder / name).exists()]
    if taken and not force:
        raise AlreadyExists(f"{', '.join(taken)} would be overwritten; say --force to do so")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
        say(f"wrote {folder / name}")
    say("next: betimes dev, and beside it: betimes worker run tasks:app")
    return 0
