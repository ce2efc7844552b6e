"""The schema as it is, in one text: what a fresh database says of itself after all migrations."""

import re
import subprocess

from betimes.embedded import Binaries

# What differs between two dumps of the same schema, or says nothing about it.
NOISE = re.compile(r"--.*|SET .*|SELECT pg_catalog\.set_config\(.*|\\(un)?restrict .*")
HEADER = """\
-- The schema as the migrations make it. Written by `make schema`; a test keeps it equal.
-- Long because it is the whole of it, for reading and searching.

"""


def dump(binaries: Binaries, dsn: str) -> str:
    """The schema behind an address, normalised."""
    finished = subprocess.run(  # noqa: S603 -- a fixed command of the test kit
        [
            binaries.tool("pg_dump"),
            "--schema-only",
            "--schema=betimes",
            "--no-owner",
            f"--dbname={dsn}",
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return normalised(finished.stdout)


def normalised(text: str) -> str:
    """Without versions, session settings and comments, one empty line between statements."""
    kept = "\n".join(line.rstrip() for line in text.splitlines() if not NOISE.fullmatch(line))
    return HEADER + re.sub(r"\n{3,}", "\n\n", kept).strip() + "\n"
