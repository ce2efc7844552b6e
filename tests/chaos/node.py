"""A real node whose handlers are witnesses: `python -m chaos.node FILE server start …`."""

import sys
from functools import partial
from pathlib import Path

from betimes.app import run
from betimes.cli import main
from chaos.witness import witness_handlers

if __name__ == "__main__":
    run.builtin_handlers = partial(witness_handlers, Path(sys.argv.pop(1)))  # type: ignore[attr-defined]
    main()
