"""What schemathesis cannot know about us."""

from http import HTTPStatus
from typing import Any

from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi import checks

BAD_REQUEST, MULTI_STATUS = HTTPStatus.BAD_REQUEST, HTTPStatus.MULTI_STATUS

_created = checks._created_a_resource


def created(*, parent: Any, **more: Any) -> bool:
    """Whether a request has made something: one that was only to be checked has not."""
    tried = str((parent.query or {}).get("validate_only", "")).lower()
    return tried not in ("true", "1") and bool(_created(parent=parent, **more))


_rejected = checks._openapi_negative_data_rejection


def rejected(context: Any, response: Any, case: Any) -> bool | None:
    """Whether what does not fit was refused: a batch of independent items says so item by item."""
    if response.status_code == MULTI_STATUS:
        items = response.json()["items"]
        if items and all(item["status"] >= BAD_REQUEST for item in items):
            return None
    return _rejected(context, response, case)


_conforms = APIOperation.validate_response


def conforms(operation: Any, response: Any, **more: Any) -> bool | None:
    """Whether an answer is as the document says: a part of one is not."""
    if response.status_code == HTTPStatus.PARTIAL_CONTENT:
        return None
    return _conforms(operation, response, **more)


checks._created_a_resource = created
APIOperation.validate_response = conforms  # type: ignore[method-assign, assignment]
checks._openapi_negative_data_rejection = rejected
