"""Every error code there is: its status, its constant title, and what its page says.

A code that is not in this table cannot be answered. `retryable` says whether the same request may
succeed later without any change.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Code:
    """One kind of refusal."""

    code: str
    status: int
    title: str
    says: str
    retryable: bool = False


_ALL = (
    Code("malformed_json", 400, "Malformed JSON", "The body is no JSON that we accept: syntax, encoding, duplicate names, numbers out of range, NUL characters or half surrogates."),
    Code("unknown_parameter", 400, "Unknown parameter", "The query names a parameter that this operation does not have. Nothing is ignored, because a typing mistake must not widen an action."),
    Code("unknown_field", 400, "Unknown field", "The body has a member that this operation does not know."),
    Code("invalid_parameter", 400, "Invalid value", "A parameter, header or member has a value outside its documented range."),
    Code("cursor_invalid", 400, "Invalid cursor", "The cursor is not one of ours, or it belongs to another list, filter or order. Begin again without it."),
    Code("idempotency_key_required", 400, "Idempotency key required", "This operation must not happen twice: send an Idempotency-Key header."),
    Code("idempotency_key_invalid", 400, "Invalid idempotency key", "A key is one header with 1 to 255 printable characters."),
    Code("malformed_request", 400, "Malformed request", "The request is not HTTP as we understand it."),
    Code("authorization_pending", 400, "Authorization pending", "Nobody has answered the device yet; ask again after the interval."),
    Code("slow_down", 400, "Slow down", "The device asks more often than the interval it was given."),
    Code("expired_token", 400, "Expired device code", "The device code is unknown, used up or too old; begin again."),
    Code("access_denied", 400, "Access denied", "Somebody has refused the device."),
    Code("missing_credentials", 401, "Missing credentials", "Send `Authorization: Bearer <key>`."),
    Code("invalid_credentials", 401, "Invalid credentials", "The key is unknown, revoked, or was not copied whole."),
    Code("expired_credentials", 401, "Expired credentials", "The key was valid until its expiry; rotate it."),
    Code("scope_missing", 403, "Scope missing", "The key is valid and may not do this; the sentence names the scope it lacks."),
    Code("tenant_suspended", 403, "Tenant suspended", "An administrator has suspended the tenant."),
    Code("csrf_failed", 403, "Cross-site request refused", "A session that changes something sends its `csrf_token` in the header `Betimes-Csrf`, from a page of its own origin."),
    Code("ip_not_allowed", 403, "Address not allowed", "The key may be used only from the networks it is bound to."),
    Code("not_found", 404, "Not found", "There is no such thing, or none that this key may know of."),
    Code("method_not_allowed", 405, "Method not allowed", "The Allow header names the methods of this path."),
    Code("not_acceptable", 406, "Not acceptable", "The Accept header excludes every form this operation has."),
    Code("request_timeout", 408, "Request timeout", "The request took too long to arrive.", retryable=True),
    Code("already_exists", 409, "Already exists", "The name or id is taken."),
    Code("conflict", 409, "Conflict", "The request is fine, the state of things is not."),
    Code("invalid_state", 409, "Invalid state", "The action is not possible in the present state; the sentence names it and what would be possible."),
    Code("lease_lost", 409, "Lease lost", "The lease ended, and somebody else may hold the run now. Stop working on it."),
    Code("idempotency_in_progress", 409, "Request in progress", "The first request with this key is still running.", retryable=True),
    Code("queue_not_empty", 409, "Queue not empty", "Runs wait in the queue; drain or purge it first."),
    Code("queue_draining", 409, "Queue draining", "The queue accepts nothing new until it is resumed."),
    Code("worker_draining", 409, "Worker draining", "The worker was told to finish and gets no new work."),
    Code("dependency_in_use", 409, "In use", "Something else still needs it."),
    Code("workflow_version_conflict", 409, "Workflow version conflict", "Somebody else has just made the same version of the workflow; read it and try again."),
    Code("retention_expired", 410, "Retention expired", "It is older than anything that is kept; if it existed, its data was removed."),
    Code("precondition_failed", 412, "Precondition failed", "Somebody edited the resource after you read it; the ETag header names the present revision."),
    Code("payload_too_large", 413, "Payload too large", "The body or one of its parts is larger than documented."),
    Code("batch_too_large", 413, "Batch too large", "The batch has more items than documented."),
    Code("unsupported_media_type", 415, "Unsupported media type", "Send `Content-Type: application/json`, without compression."),
    Code("range_not_satisfiable", 416, "Range not satisfiable", "The range begins after the end of what there is; `Content-Range` says how long it is."),
    Code("invalid_schedule", 422, "Invalid schedule", "The schedule cannot be read or would not behave."),
    Code("unknown_timezone", 422, "Unknown time zone", "The zone is not in our time zone data."),
    Code("schedule_never_fires", 422, "Schedule never fires", "The schedule has no fire in the future."),
    Code("schedule_too_frequent", 422, "Schedule too frequent", "The schedule fires more often than the tenant may."),
    Code("schedule_too_expensive", 422, "Schedule too expensive", "Evaluating the schedule takes more steps than one may take; ask for fewer fires, or simplify it."),
    Code("time_in_past", 422, "Time in the past", "The time has passed already."),
    Code("ambiguous_text", 422, "Ambiguous text", "The words can be read in more than one way; `alternatives` names them."),
    Code("invalid_rrule", 422, "Invalid recurrence rule", "The recurrence rule cannot be read."),
    Code("invalid_payload", 422, "Invalid payload", "The payload does not fit its declared schema, or the blob it refers to is not there."),
    Code("unknown_handler", 422, "Unknown handler", "The tenant is strict, and no worker has declared the handler."),
    Code("unknown_queue", 422, "Unknown queue", "The tenant is strict, and the queue has neither settings nor workers."),
    Code("url_not_allowed", 422, "Target not allowed", "The target may not or cannot be called."),
    Code("workflow_cycle", 422, "Workflow cycle", "Nodes of the workflow wait for each other; `cycle` names them, the first one again at the end."),
    Code("workflow_unknown_node", 422, "Unknown workflow node", "A node needs, or refers to, a node that the workflow does not have."),
    Code("backfill_too_large", 422, "Backfill too large", "The span holds more fires than one call may make."),
    Code("confirm_count_mismatch", 422, "Count not confirmed", "The number of things this would touch is not the one you confirmed."),
    Code("idempotency_key_reused", 422, "Idempotency key reused", "The key was used before for a different request."),
    Code("precondition_required", 428, "Precondition required", "Send If-Match with the ETag you read, If-None-Match: *, or force=true."),
    Code("rate_limited", 429, "Rate limited", "Too many requests; Retry-After says when to come back.", retryable=True),
    Code("quota_exceeded", 429, "Quota exceeded", "The tenant has used up what it was given; the answer names the quota."),
    Code("headers_too_large", 431, "Headers too large", "Too many header fields, or too large ones."),
    Code("internal", 500, "Internal error", "Our mistake. The request id leads to it in our logs.", retryable=True),
    Code("overloaded", 503, "Overloaded", "There is no room at the moment; Retry-After says when to come back.", retryable=True),
    Code("database_unavailable", 503, "Database unavailable", "The database does not answer.", retryable=True),
    Code("vault_locked", 503, "Vault locked", "What is sealed cannot be opened or sealed here: the node lacks the master key, or the key of the tenant is gone.", retryable=True),
    Code("draining", 503, "Draining", "This node is about to stop; others serve.", retryable=True),
    Code("upstream_timeout", 504, "Timeout", "The request took longer than it may.", retryable=True),
)  # fmt: skip

CODES: Mapping[str, Code] = MappingProxyType({code.code: code for code in _ALL})
