"""`betimes api`: any request, with your key."""

import json
from typing import Any
from urllib.parse import parse_qs

import click

from betimes.cli.command import Talk, service_command
from betimes.cli.said import content_of, json_value, pair
from betimes.cli.session import content_of as body_content
from betimes.cli.trouble import exit_code_of_status

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]
OK = 0


@service_command("api", example="betimes api POST /v1/jobs/report/pause -d reason=upgrade")
@click.argument("method", type=click.Choice(METHODS, case_sensitive=False))
@click.argument("path")
@click.option(
    "-d",
    "--data",
    "parts",
    multiple=True,
    metavar="JSON|@FILE|-|KEY=VALUE",
    help="The body, or one member of it; repeat KEY=VALUE for more.",
)
@click.option(
    "-H", "--header", "headers", multiple=True, metavar="NAME:VALUE", help="A header field."
)
@click.option("-i", "--include", is_flag=True, help="Show status and header fields as well.")
@click.option("--paginate", is_flag=True, help="Follow every page of a list.")
def api(
    talk: Talk,
    method: str,
    path: str,
    *,
    parts: tuple[str, ...],
    headers: tuple[str, ...],
    include: bool,
    paginate: bool,
) -> int:  # fmt: skip
    """Send any request and print what comes back, whatever its status."""
    sent = {name.lower(): value.strip() for name, value in (one.split(":", 1) for one in headers)}
    body = body_of(parts)
    place, _, said = _absolute(path).partition("?")
    if method.upper() == "POST":
        from betimes.sdk import ambient  # noqa: PLC0415 -- only who posts pays

        sent.setdefault("idempotency-key", ambient.new_key())
    items: list[Any] = []
    query: dict[str, Any] = dict(parse_qs(said, keep_blank_values=True))
    while True:
        response = talk.session.ask(
            method.upper(), place, query=query, body=body, headers=sent, refuse=False
        )
        if include:
            click.echo(f"HTTP {response.status}")
            for name, value in response.headers.items():
                click.echo(f"{name}: {value}")
            click.echo()
        content = body_content(response)
        cursor = content.get("next_cursor") if isinstance(content, dict) and paginate else None
        if paginate and isinstance(content, dict) and "items" in content:
            items += content["items"]
            content = items
        if cursor is None:
            break
        query["cursor"] = cursor
    if content is not None:
        _print(talk, content)
    return OK if response.status < 400 else exit_code_of_status(response.status)  # noqa: PLR2004 -- HTTP


def _absolute(path: str) -> str:
    """`jobs`, `v1/jobs` and `/v1/jobs` are one place."""
    if path.startswith("/"):
        return path
    return f"/{path}" if path.startswith("v1/") else f"/v1/{path}"


def _print(talk: Talk, content: Any) -> None:
    """JSON unless another form was asked for: this is the raw call."""
    plain = talk.wishes.output is None and talk.wishes.query is None and talk.wishes.fields is None
    if plain and not isinstance(content, str | bytes):
        click.echo(json.dumps(content, indent=2, ensure_ascii=False))
    else:
        talk.show(content)


def body_of(parts: tuple[str, ...]) -> Any:
    """One JSON value, or an object made of pairs."""
    if not parts:
        return None
    if len(parts) == 1 and (parts[0] == "-" or parts[0][:1] in '{["@'):
        return json_value(parts[0])
    body: dict[str, Any] = {}
    for part in parts:
        name, value = pair(part)
        body[name] = _value(value)
    return body


def _value(text: str) -> Any:
    """A member: JSON where it is JSON, else text; @FILE is the text of a file."""
    if text.startswith("@"):
        return content_of(text)
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text
