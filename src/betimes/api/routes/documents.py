"""The OpenAPI document, and a page for people that loads nothing from elsewhere."""

import html
from functools import cache

import msgspec

from betimes.api.call import Call, Reply
from betimes.api.openapi import document
from betimes.api.route import Load, NoQuery, Route
from betimes.wire.base import Members

HTML = "text/html; charset=utf-8"
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"
STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "code{background:#8882;padding:.1em .3em;border-radius:.2em}td{padding:.2rem .8rem .2rem 0;"
    "vertical-align:top}h2{margin-top:2rem}summary{cursor:pointer}pre{overflow:auto}"
)


async def openapi(call: Call[NoQuery, None]) -> Reply:
    """The document."""
    content = _encoded(tuple(call.service.routes), call.service.version)
    return Reply(content=content, cacheable=True)


async def reference(call: Call[NoQuery, None]) -> Reply:
    """A page made from the same table."""
    return Reply(
        content=_page(tuple(call.service.routes), call.service.version),
        media=HTML,
        headers={"Content-Security-Policy": POLICY},
    )


@cache
def _encoded(routes: tuple[Route, ...], version: str) -> bytes:
    return msgspec.json.encode(document(routes, version=version))


@cache
def _page(routes: tuple[Route, ...], version: str) -> bytes:
    told = document(routes, version=version)
    head = (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>Betimes API</title>"
        f"<style>{STYLE}</style><h1>Betimes API {html.escape(version)}</h1>"
        "<p>Every operation; the same as <a href=/v1/openapi.json>OpenAPI 3.1</a>.</p>"
    )
    parts = [head]
    for tag in sorted({route.tag for route in routes}):
        parts.append(f"<h2>{html.escape(tag)}</h2><table>")
        parts += [_row(route, told) for route in routes if route.tag == tag]
        parts.append("</table>")
    return "".join([*parts, "</html>"]).encode()


def _row(route: Route, told: Members) -> str:
    operation = told["paths"][route.path][route.method.lower()]
    codes = sorted(
        {code for answer in operation["responses"].values() for code in answer.get("x-codes", ())}
    )
    links = " ".join(f"<a href=/v1/errors/{code}>{code}</a>" for code in codes)
    names = ", ".join(
        f"<code>{html.escape(entry['name'])}</code>" for entry in operation["parameters"]
    )
    scope = html.escape(str(route.scope)) if route.scope else "none"
    return (
        f"<tr><td><code>{route.method}</code><td><code>{html.escape(route.path)}</code>"
        f"<td><details><summary>{html.escape(route.says)}</summary>"
        f"<p>operation <code>{route.name}</code>, scope <code>{scope}</code></p>"
        f"<p>parameters: {names or 'none'}</p><p>problems: {links}</p></details>"
    )


ROUTES = (
    Route(
        method="GET",
        path="/v1/openapi.json",
        name="meta.openapi",
        says="This document.",
        handler=openapi,
        scope=None,
        answers={200: Members},
        load=Load.FREE,
    ),
    Route(
        method="GET",
        path="/v1/reference",
        name="meta.reference",
        says="This document as a page.",
        handler=reference,
        scope=None,
        answers={200: str},
        answer_media=HTML,
        load=Load.FREE,
    ),
)
