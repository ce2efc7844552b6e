"""The command line: parse, call ops or sdk, print."""

from betimes.cli.main import main

__all__ = ["main"]
