"""What schemathesis cannot know about us."""

from typing import Any

from schemathesis.specs.openapi import checks

_created = checks._created_a_resource


def created(*, parent: Any, **more: Any) -> bool:
    """Whether a request has made something: one that was only to be checked has not."""
    tried = str((parent.query or {}).get("validate_only", "")).lower()
    return tried not in ("true", "1") and bool(_created(parent=parent, **more))


checks._created_a_resource = created
