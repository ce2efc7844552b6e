"""Errors of the API as classes: one for each code, so that `except` can be precise.

Long because it is generated: one class for each code.
"""

# Written by scripts/write_sdk.py; do not edit.

from betimes.sdk.failures import ApiError, ClientError, Unreachable
from betimes.wire.problem import Problem


class MalformedJson(ApiError):
    """The body is no JSON that we accept: syntax, encoding, duplicate names, numbers ..."""


class UnknownParameter(ApiError):
    """The query names a parameter that this operation does not have. Nothing is ..."""


class UnknownField(ApiError):
    """The body has a member that this operation does not know."""


class InvalidParameter(ApiError):
    """A parameter, header or member has a value outside its documented range."""


class CursorInvalid(ApiError):
    """The cursor is not one of ours, or it belongs to another list, filter or order. ..."""


class IdempotencyKeyRequired(ApiError):
    """This operation must not happen twice: send an Idempotency-Key header."""


class IdempotencyKeyInvalid(ApiError):
    """A key is one header with 1 to 255 printable characters."""


class MalformedRequest(ApiError):
    """The request is not HTTP as we understand it."""


class AuthorizationPending(ApiError):
    """Nobody has answered the device yet; ask again after the interval."""


class SlowDown(ApiError):
    """The device asks more often than the interval it was given."""


class ExpiredToken(ApiError):
    """The device code is unknown, used up or too old; begin again."""


class AccessDenied(ApiError):
    """Somebody has refused the device."""


class MissingCredentials(ApiError):
    """Send `Authorization: Bearer <key>`."""


class InvalidCredentials(ApiError):
    """The key is unknown, revoked, or was not copied whole."""


class ExpiredCredentials(ApiError):
    """The key was valid until its expiry; rotate it."""


class ScopeMissing(ApiError):
    """The key is valid and may not do this; the sentence names the scope it lacks."""


class TenantSuspended(ApiError):
    """An administrator has suspended the tenant."""


class CsrfFailed(ApiError):
    """A session that changes something sends its `csrf_token` in the header `Betimes- ..."""


class IpNotAllowed(ApiError):
    """The key may be used only from the networks it is bound to."""


class NotFound(ApiError):
    """There is no such thing, or none that this key may know of."""


class MethodNotAllowed(ApiError):
    """The Allow header names the methods of this path."""


class NotAcceptable(ApiError):
    """The Accept header excludes every form this operation has."""


class RequestTimeout(ApiError):
    """The request took too long to arrive."""


class AlreadyExists(ApiError):
    """The name or id is taken."""


class Conflict(ApiError):
    """The request is fine, the state of things is not."""


class InvalidState(ApiError):
    """The action is not possible in the present state; the sentence names it and what ..."""


class LeaseLost(ApiError):
    """The lease ended, and somebody else may hold the run now. Stop working on it."""


class IdempotencyInProgress(ApiError):
    """The first request with this key is still running."""


class QueueNotEmpty(ApiError):
    """Runs wait in the queue; drain or purge it first."""


class QueueDraining(ApiError):
    """The queue accepts nothing new until it is resumed."""


class WorkerDraining(ApiError):
    """The worker was told to finish and gets no new work."""


class DependencyInUse(ApiError):
    """Something else still needs it."""


class WorkflowVersionConflict(ApiError):
    """Somebody else has just made the same version of the workflow; read it and try again."""


class RetentionExpired(ApiError):
    """It is older than anything that is kept; if it existed, its data was removed."""


class PreconditionFailed(ApiError):
    """Somebody edited the resource after you read it; the ETag header names the ..."""


class PayloadTooLarge(ApiError):
    """The body or one of its parts is larger than documented."""


class BatchTooLarge(ApiError):
    """The batch has more items than documented."""


class UnsupportedMediaType(ApiError):
    """Send `Content-Type: application/json`, without compression."""


class RangeNotSatisfiable(ApiError):
    """The range begins after the end of what there is; `Content-Range` says how long ..."""


class InvalidSchedule(ApiError):
    """The schedule cannot be read or would not behave."""


class UnknownTimezone(ApiError):
    """The zone is not in our time zone data."""


class ScheduleNeverFires(ApiError):
    """The schedule has no fire in the future."""


class ScheduleTooFrequent(ApiError):
    """The schedule fires more often than the tenant may."""


class ScheduleTooExpensive(ApiError):
    """Evaluating the schedule takes more steps than one may take; ask for fewer fires, ..."""


class TimeInPast(ApiError):
    """The time has passed already."""


class AmbiguousText(ApiError):
    """The words can be read in more than one way; `alternatives` names them."""


class InvalidRrule(ApiError):
    """The recurrence rule cannot be read."""


class InvalidPayload(ApiError):
    """The payload does not fit its declared schema, or the blob it refers to is not there."""


class UnknownHandler(ApiError):
    """The tenant is strict, and no worker has declared the handler."""


class UnknownQueue(ApiError):
    """The tenant is strict, and the queue has neither settings nor workers."""


class UrlNotAllowed(ApiError):
    """The target may not or cannot be called."""


class WorkflowCycle(ApiError):
    """Nodes of the workflow wait for each other; `cycle` names them, the first one ..."""


class WorkflowUnknownNode(ApiError):
    """A node needs, or refers to, a node that the workflow does not have."""


class BackfillTooLarge(ApiError):
    """The span holds more fires than one call may make."""


class ConfirmCountMismatch(ApiError):
    """The number of things this would touch is not the one you confirmed."""


class IdempotencyKeyReused(ApiError):
    """The key was used before for a different request."""


class PreconditionRequired(ApiError):
    """Send If-Match with the ETag you read, If-None-Match: *, or force=true."""


class RateLimited(ApiError):
    """Too many requests; Retry-After says when to come back."""


class QuotaExceeded(ApiError):
    """The tenant has used up what it was given; the answer names the quota."""


class HeadersTooLarge(ApiError):
    """Too many header fields, or too large ones."""


class Internal(ApiError):
    """Our mistake. The request id leads to it in our logs."""


class Overloaded(ApiError):
    """There is no room at the moment; Retry-After says when to come back."""


class DatabaseUnavailable(ApiError):
    """The database does not answer."""


class VaultLocked(ApiError):
    """What is sealed cannot be opened or sealed here: the node lacks the master key, ..."""


class Draining(ApiError):
    """This node is about to stop; others serve."""


class UpstreamTimeout(ApiError):
    """The request took longer than it may."""


BY_CODE: dict[str, type[ApiError]] = {
    "malformed_json": MalformedJson,
    "unknown_parameter": UnknownParameter,
    "unknown_field": UnknownField,
    "invalid_parameter": InvalidParameter,
    "cursor_invalid": CursorInvalid,
    "idempotency_key_required": IdempotencyKeyRequired,
    "idempotency_key_invalid": IdempotencyKeyInvalid,
    "malformed_request": MalformedRequest,
    "authorization_pending": AuthorizationPending,
    "slow_down": SlowDown,
    "expired_token": ExpiredToken,
    "access_denied": AccessDenied,
    "missing_credentials": MissingCredentials,
    "invalid_credentials": InvalidCredentials,
    "expired_credentials": ExpiredCredentials,
    "scope_missing": ScopeMissing,
    "tenant_suspended": TenantSuspended,
    "csrf_failed": CsrfFailed,
    "ip_not_allowed": IpNotAllowed,
    "not_found": NotFound,
    "method_not_allowed": MethodNotAllowed,
    "not_acceptable": NotAcceptable,
    "request_timeout": RequestTimeout,
    "already_exists": AlreadyExists,
    "conflict": Conflict,
    "invalid_state": InvalidState,
    "lease_lost": LeaseLost,
    "idempotency_in_progress": IdempotencyInProgress,
    "queue_not_empty": QueueNotEmpty,
    "queue_draining": QueueDraining,
    "worker_draining": WorkerDraining,
    "dependency_in_use": DependencyInUse,
    "workflow_version_conflict": WorkflowVersionConflict,
    "retention_expired": RetentionExpired,
    "precondition_failed": PreconditionFailed,
    "payload_too_large": PayloadTooLarge,
    "batch_too_large": BatchTooLarge,
    "unsupported_media_type": UnsupportedMediaType,
    "range_not_satisfiable": RangeNotSatisfiable,
    "invalid_schedule": InvalidSchedule,
    "unknown_timezone": UnknownTimezone,
    "schedule_never_fires": ScheduleNeverFires,
    "schedule_too_frequent": ScheduleTooFrequent,
    "schedule_too_expensive": ScheduleTooExpensive,
    "time_in_past": TimeInPast,
    "ambiguous_text": AmbiguousText,
    "invalid_rrule": InvalidRrule,
    "invalid_payload": InvalidPayload,
    "unknown_handler": UnknownHandler,
    "unknown_queue": UnknownQueue,
    "url_not_allowed": UrlNotAllowed,
    "workflow_cycle": WorkflowCycle,
    "workflow_unknown_node": WorkflowUnknownNode,
    "backfill_too_large": BackfillTooLarge,
    "confirm_count_mismatch": ConfirmCountMismatch,
    "idempotency_key_reused": IdempotencyKeyReused,
    "precondition_required": PreconditionRequired,
    "rate_limited": RateLimited,
    "quota_exceeded": QuotaExceeded,
    "headers_too_large": HeadersTooLarge,
    "internal": Internal,
    "overloaded": Overloaded,
    "database_unavailable": DatabaseUnavailable,
    "vault_locked": VaultLocked,
    "draining": Draining,
    "upstream_timeout": UpstreamTimeout,
}


def error_of(problem: Problem, *, retry_after: float | None) -> ApiError:
    """The error that a problem document tells."""
    kind = BY_CODE.get(problem.code, ApiError)
    return kind(problem, retry_after=retry_after)


__all__ = [
    "AccessDenied",
    "AlreadyExists",
    "AmbiguousText",
    "ApiError",
    "AuthorizationPending",
    "BackfillTooLarge",
    "BatchTooLarge",
    "ClientError",
    "ConfirmCountMismatch",
    "Conflict",
    "CsrfFailed",
    "CursorInvalid",
    "DatabaseUnavailable",
    "DependencyInUse",
    "Draining",
    "ExpiredCredentials",
    "ExpiredToken",
    "HeadersTooLarge",
    "IdempotencyInProgress",
    "IdempotencyKeyInvalid",
    "IdempotencyKeyRequired",
    "IdempotencyKeyReused",
    "Internal",
    "InvalidCredentials",
    "InvalidParameter",
    "InvalidPayload",
    "InvalidRrule",
    "InvalidSchedule",
    "InvalidState",
    "IpNotAllowed",
    "LeaseLost",
    "MalformedJson",
    "MalformedRequest",
    "MethodNotAllowed",
    "MissingCredentials",
    "NotAcceptable",
    "NotFound",
    "Overloaded",
    "PayloadTooLarge",
    "PreconditionFailed",
    "PreconditionRequired",
    "QueueDraining",
    "QueueNotEmpty",
    "QuotaExceeded",
    "RangeNotSatisfiable",
    "RateLimited",
    "RequestTimeout",
    "RetentionExpired",
    "ScheduleNeverFires",
    "ScheduleTooExpensive",
    "ScheduleTooFrequent",
    "ScopeMissing",
    "SlowDown",
    "TenantSuspended",
    "TimeInPast",
    "UnknownField",
    "UnknownHandler",
    "UnknownParameter",
    "UnknownQueue",
    "UnknownTimezone",
    "Unreachable",
    "UnsupportedMediaType",
    "UpstreamTimeout",
    "UrlNotAllowed",
    "VaultLocked",
    "WorkerDraining",
    "WorkflowCycle",
    "WorkflowUnknownNode",
    "WorkflowVersionConflict",
    "error_of",
]
