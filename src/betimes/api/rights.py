"""Rights beyond the scope of an operation: judged on what a request results in.

A body says what is asked for; what comes of it also depends on what is stored. So whoever asks for
a further right here is given the merged state, after a patch was applied, and never the body.
"""

from typing import Any

from betimes.api.call import Call
from betimes.domain.errors import Forbidden
from betimes.domain.scopes import Scope


def require(call: Call[Any, Any], scope: Scope, what: str) -> None:
    """Refuse `what` to a caller without a scope; the one sentence for all such refusals.

    Raises:
        Forbidden: the caller lacks the scope.

    """
    if scope not in call.caller.scopes:
        raise Forbidden(f"{what} needs the scope {scope}")
