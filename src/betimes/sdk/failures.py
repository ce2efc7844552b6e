"""What may go wrong with a call."""

from betimes.wire.problem import Problem


class ClientError(Exception):
    """The root of everything the client library raises on purpose."""


class Unreachable(ClientError):
    """The server did not answer; `sent` says whether it may have seen the request.

    `lasting` says that asking again would not help: its name or its certificate is not known.
    """

    def __init__(self, address: str, fault: BaseException, *, sent: bool) -> None:
        told = str(fault) or type(fault).__name__
        super().__init__(f"expected an answer from {address}, got none: {told}")
        self.address = address
        self.sent = sent
        self.lasting = _is_lasting(fault)


def _is_lasting(fault: BaseException) -> bool:
    import socket  # noqa: PLC0415 -- who has met no fault has no network loaded
    import ssl  # noqa: PLC0415 -- as above

    if isinstance(fault, socket.gaierror):
        return fault.errno != socket.EAI_AGAIN
    return isinstance(fault, ssl.SSLCertVerificationError)


class ApiError(ClientError):
    """The server refused; `problem` is what it said, `retry_after` seconds when it named some."""

    def __init__(self, problem: Problem, *, retry_after: float | None = None) -> None:
        super().__init__(f"{problem.code}: {problem.detail or problem.title}")
        self.problem = problem
        self.retry_after = retry_after

    @property
    def code(self) -> str:
        """The stable code."""
        return self.problem.code

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.problem.status
