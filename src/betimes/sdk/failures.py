"""What may go wrong with a call."""

import socket
import ssl

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
        self.lasting = isinstance(fault, ssl.SSLCertVerificationError) or (
            isinstance(fault, socket.gaierror) and fault.errno != socket.EAI_AGAIN
        )


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
