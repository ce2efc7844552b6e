"""What went wrong with a call: a sentence, what to do about it, and an exit code."""

from collections.abc import Mapping

from betimes.sdk.errors import ApiError, ClientError, Unreachable

FAILED, USAGE, NOT_FOUND, FORBIDDEN, CONFLICT, OVERLOADED = 1, 2, 3, 4, 5, 6
EXIT_OF_STATUS: Mapping[int, int] = {
    401: FORBIDDEN, 403: FORBIDDEN, 404: NOT_FOUND, 409: CONFLICT, 410: NOT_FOUND,
    412: CONFLICT, 428: CONFLICT, 429: OVERLOADED, 503: OVERLOADED,
}  # fmt: skip
HINTS = {
    "missing_credentials": "sign in with `betimes login`, or set BETIMES_API_KEY",
    "invalid_credentials": "sign in again with `betimes login`; `betimes doctor` says which key",
    "expired_credentials": "sign in again with `betimes login`",
    "scope_missing": "`betimes whoami` lists what your key may do",
    "precondition_failed": "somebody changed it; read it again and repeat your change",
    "precondition_required": "say --force, or --if-match with the etag you have read",
    "confirm_count_mismatch": "look with --dry-run, then say --confirm-count with that number",
    "already_exists": "`betimes job edit` changes a job; `betimes apply --adopt` takes it over",
    "queue_not_empty": "`betimes queue purge` empties it",
    "invalid_schedule": "try it first: betimes next 'EXPRESSION'",
    "ambiguous_text": "try it first: betimes explain 'WORDS'",
    "unknown_timezone": "zones look like Europe/Oslo",
    "quota_exceeded": "`betimes quota list` shows how much is used",
    "dependency_in_use": "`-o wide` shows what uses it",
    "tenant_suspended": "an administrator opens it with `betimes tenant resume`",
}
UNREACHED = "is it running, and is this its address? `betimes dev` starts one, --url names another"


def sentence_of(error: ClientError) -> str:
    """What happened, with every place that is meant."""
    lines = [str(error)]
    if isinstance(error, ApiError):
        told = error.problem.detail
        errors = error.problem.errors
        if len(errors) > 1 or any(one.detail not in told for one in errors):
            lines += [f"  {one.pointer or '/'}: {one.detail}" for one in errors]
    hint = hint_of(error)
    return "\n".join([*lines, f"hint: {hint}"] if hint else lines)


def hint_of(error: ClientError) -> str:
    """What may help."""
    if isinstance(error, Unreachable):
        return UNREACHED
    if isinstance(error, ApiError):
        if error.retry_after is not None and error.code in ("rate_limited", "overloaded"):
            return f"come back in {error.retry_after:.0f} s"
        return HINTS.get(error.code, "")
    return ""


def exit_code_of(error: ClientError) -> int:
    """The exit code of an error."""
    return exit_code_of_status(error.status) if isinstance(error, ApiError) else FAILED


def exit_code_of_status(status: int) -> int:
    """The same, by the status of an answer that was refused."""
    return EXIT_OF_STATUS.get(status, FAILED)
