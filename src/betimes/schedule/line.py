"""A stored schedule in one line, without evaluating it: lists of jobs show very many."""

from collections.abc import Mapping
from typing import Any


def line_of(stored: Mapping[str, Any]) -> str:
    """The same as `Schedule.canonical` of a stored form, which is complete and written our way."""
    kind = stored["type"]
    if kind == "union":
        zone = {"timezone": stored.get("timezone", "UTC")}
        return "union: " + " | ".join(f"({line_of({**zone, **one})})" for one in stored["of"])
    if kind == "manual":
        return "manual"
    return f"{_said(kind, stored)} @ {stored.get('timezone', 'UTC')}"


def _said(kind: str, stored: Mapping[str, Any]) -> str:
    match kind:
        case "cron":
            dialect = stored.get("dialect", "unix")
            shown = "" if dialect == "unix" else f"[{dialect}]"
            return f"cron{shown}: {stored['expr']}"
        case "interval" if stored.get("mode") == "fixed_delay":
            return f"{stored['every']} after each end"
        case "interval":
            return f"every {stored['every']} from {stored['anchor']}"
        case "once":
            return f"at {stored['at']}"
        case _:
            return str(stored["expr"])
