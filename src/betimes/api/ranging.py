"""Parts of what is large: one range of bytes, as RFC 9110 has it."""

import re

from betimes.api.call import Reply, Request
from betimes.api.problem import Trouble

RANGE = {"Range": "One range of bytes, such as `bytes=0-1023` or `bytes=-512`."}
_ONE = re.compile(r"bytes=(?:(?P<first>\d{1,18})-(?P<last>\d{0,18})|-(?P<tail>\d{1,18}))")


def ranged(request: Request, reply: Reply) -> Reply:
    """The part of an answer that was asked for; all of it where nothing, or nonsense, was."""
    reply.headers["Accept-Ranges"] = "bytes"
    asked = _ONE.fullmatch((request.header(b"range") or "").strip())
    if asked is None:
        return reply
    content = reply.content or b""
    size = len(content)
    if asked["tail"] is not None:
        first, last = max(size - int(asked["tail"]), 0), size - 1
    else:
        first = int(asked["first"])
        last = min(int(asked["last"] or size), size - 1)
        if asked["last"] and int(asked["last"]) < first:
            return reply  # backwards is no range, and is not heard
    if first >= size:
        raise Trouble(
            "range_not_satisfiable",
            f"expected a range within {size} bytes, got {asked[0]}",
            headers={"Content-Range": f"bytes */{size}"},
        )
    reply.status = 206
    reply.content = content[first : last + 1]
    reply.headers["Content-Range"] = f"bytes {first}-{last}/{size}"
    return reply
