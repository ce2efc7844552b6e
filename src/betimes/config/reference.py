"""The reference page of all settings, made from the settings themselves."""

from typing import get_type_hints

from betimes.config.rule import Key, keys_of
from betimes.config.settings import Settings
from betimes.config.values import KINDS, show_value

HEAD = """\
# Configuration

A setting comes from a TOML file (`betimes.toml` here, or the one named by `--config` or
`BETIMES_CONFIG`), is overruled by its environment variable, and that by a flag
(`--set group.name=value`, or a flag of its own where there is one). Without any, the default holds.

Durations are written `15s`, `1h30m`, `250ms`, `PT15M`, or as a number of seconds. Lists are TOML
arrays in the file and separated by commas elsewhere. An empty variable counts as not set. Unknown
names are refused. `betimes server check` shows every value and where it came from.

This page is made by `scripts/write_reference.py`.
"""


def markdown() -> str:
    """The whole page."""
    sections: dict[str, list[Key]] = {}
    for key in keys_of(Settings).values():
        sections.setdefault(key.group, []).append(key)
    return HEAD + "".join(_section(group, keys) for group, keys in sections.items())


def _section(group: str, keys: list[Key]) -> str:
    about = (get_type_hints(Settings)[group].__doc__ or "").strip()
    rows = "".join(_row(key) for key in keys)
    head = "| key | default | expected | meaning |\n|---|---|---|---|\n"
    return f"\n## `[{group}]`\n\n{about}\n\n{head}{rows}"


def _row(key: Key) -> str:
    default = "none" if key.default is None else f"`{show_value(key, key.default)}`"
    expected = ", ".join(f"`{choice}`" for choice in key.rule.choices) or _limits(key)
    cells = (
        f"`{key.name}`<br>`{key.environment_name}`",
        default,
        expected,
        key.rule.says,
    )
    return "| " + " | ".join(cells) + " |\n"


def _limits(key: Key) -> str:
    expected = KINDS[key.kind].expected.partition(" such as")[0]
    if key.rule.least is not None:
        expected += f", at least {show_value(key, key.rule.least)}"
    if key.rule.most is not None:
        expected += f", at most {show_value(key, key.rule.most)}"
    return expected
