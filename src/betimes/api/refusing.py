"""Refusals of requests with an idempotency key: what was answered once is answered again.

Much is looked at before a key is: whether a queue drains, a name is free, a job is there. Whoever
repeats a request whose answer got lost is told that answer, not what has become of things since.
"""

from typing import Any

from betimes.api.acting import replied
from betimes.api.call import Call, Reply
from betimes.api.problem import Trouble, body_of
from betimes.ops.acting import Answer
from betimes.ops.idempotency import Once, answered, keep_refusal

KEPT = frozenset(
    {
        *("already_exists", "conflict", "invalid_state", "queue_not_empty", "dependency_in_use"),
        "workflow_version_conflict",
    }
)
"""Outcomes of sound requests: they are kept. A queue that drains says only: not now."""
ABOUT_KEYS = frozenset({"idempotency_in_progress", "idempotency_key_reused"})


async def told_before(call: Call[Any, Any], trouble: Trouble) -> Reply | None:
    """What the same request was answered before; otherwise the refusal is kept if it may be."""
    if call.key is None or call.only_try or trouble.code in ABOUT_KEYS:
        return None
    desk = call.service.desk
    if trouble.code in KEPT:
        body = body_of(trouble, call.request.id)
        refusal = Answer(status=trouble.status, body=body, headers=trouble.headers)
        known = await keep_refusal(desk, call.tenant, call.key, refusal)
    else:
        known = await answered(desk, call.tenant, call.key)
    return None if known is None else replied(Once(value=None, answer=known, replayed=True))
