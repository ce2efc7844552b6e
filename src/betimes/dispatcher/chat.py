"""Messages as chats take them. Whatever comes from users is text, never markup or a mention."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from betimes.dispatcher.message import Notice
from betimes.domain.event import Severity

STYLES = ("slack", "teams", "discord")
COLOURS = {
    Severity.INFO: 0x3B82F6,
    Severity.WARNING: 0xF59E0B,
    Severity.ERROR: 0xDC2626,
    Severity.CRITICAL: 0x7F1D1D,
}
TEAMS_COLOURS = {
    Severity.INFO: "accent",
    Severity.WARNING: "warning",
    Severity.ERROR: "attention",
    Severity.CRITICAL: "attention",
}
SLACK_ESCAPES = {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;"}
SLACK_HEADER_MAX, SLACK_FIELDS_MAX = 150, 10
DISCORD_TITLE_MAX, DISCORD_VALUE_MAX = 256, 1024
MARKDOWN = str.maketrans({one: f"\\{one}" for one in "\\*_~`|>[]()#"})


def chat_body(style: str, notice: Notice) -> bytes:
    """The body of a request to a chat."""
    return msgspec.json.encode(BODIES[style](notice))


def _slack(notice: Notice) -> dict[str, Any]:
    fields = [
        {"type": "mrkdwn", "text": f"*{_slack_text(name)}*\n{_slack_text(value)}"}
        for name, value in list(notice.facts.items())[:SLACK_FIELDS_MAX]
    ]
    title = notice.title[:SLACK_HEADER_MAX]
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": {"type": "plain_text", "text": title, "emoji": False}}
    ]
    if fields:
        blocks.append({"type": "section", "fields": fields})
    context = f"{notice.severity.name.lower()} · {notice.at} · {notice.says}"
    blocks.append(
        {"type": "context", "elements": [{"type": "mrkdwn", "text": _slack_text(context)}]}
    )
    return {"text": _slack_text(notice.title), "blocks": blocks}


def _slack_text(text: str) -> str:
    return text.translate(SLACK_ESCAPES)


def _teams(notice: Notice) -> dict[str, Any]:
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [
            {
                "type": "TextBlock",
                "text": notice.title.translate(MARKDOWN),
                "weight": "bolder",
                "size": "medium",
                "color": TEAMS_COLOURS[notice.severity],
                "wrap": True,
            },
            {
                "type": "FactSet",
                "facts": [
                    {"title": name.translate(MARKDOWN), "value": value.translate(MARKDOWN)}
                    for name, value in notice.facts.items()
                ],
            },
            {
                "type": "TextBlock",
                "text": f"{notice.at} {notice.says}".translate(MARKDOWN),
                "isSubtle": True,
                "wrap": True,
            },
        ],
    }
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    return {"type": "message", "attachments": [attachment]}


def _discord(notice: Notice) -> dict[str, Any]:
    return {
        "content": notice.title.translate(MARKDOWN)[:DISCORD_VALUE_MAX],
        "allowed_mentions": {"parse": []},
        "embeds": [
            {
                "title": notice.title[:DISCORD_TITLE_MAX],
                "description": notice.says,
                "color": COLOURS[notice.severity],
                "timestamp": notice.at,
                "fields": [
                    {
                        "name": name[:DISCORD_TITLE_MAX],
                        "value": value.translate(MARKDOWN)[:DISCORD_VALUE_MAX],
                        "inline": True,
                    }
                    for name, value in notice.facts.items()
                ],
            }
        ],
    }


BODIES: Mapping[str, Callable[[Notice], dict[str, Any]]] = MappingProxyType(
    {"slack": _slack, "teams": _teams, "discord": _discord}
)
