"""OpenTelemetry: a run is linked to the span that enqueued it, and every attempt is a span.

Needs `pip install "betimes[otel]"`. A run has a trace of its own, because a child span that is a
week long helps nobody; the span of its creator is kept as a link.
"""

from contextvars import ContextVar, Token
from typing import Any, NamedTuple

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, TracerProvider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from betimes.sdk.context import Context
from betimes.sdk.control import Control
from betimes.sdk.middleware import AttemptEnd, Middleware
from betimes.sdk.prepared import Prepared


class _Open(NamedTuple):
    span: Span
    token: Token[Any]


_open: ContextVar[_Open | None] = ContextVar("betimes_span", default=None)


class OpenTelemetryMiddleware(Middleware):
    """`App(middleware=[OpenTelemetryMiddleware()])`."""

    def __init__(self, tracer_provider: TracerProvider | None = None) -> None:
        self._tracer = trace.get_tracer("betimes", tracer_provider=tracer_provider)
        self._wire = TraceContextTextMapPropagator()

    def before_enqueue(self, prepared: Prepared[Any]) -> None:
        """Tell the service which span asks for the run."""
        self._wire.inject(prepared.headers)

    def before_attempt(self, context: Context) -> None:
        """Begin the span of an attempt, in the trace of its run."""
        parent = self._wire.extract({"traceparent": context.traceparent})
        span = self._tracer.start_span(
            f"run {context.task}",
            context=parent,
            kind=SpanKind.CONSUMER,
            attributes={
                "messaging.system": "betimes",
                "messaging.destination.name": context.queue,
                "betimes.run_id": context.run_id,
                "betimes.task": context.task,
                "betimes.attempt": context.attempt,
                "betimes.fence": context.fence,
            },
        )
        _open.set(_Open(span, contexts.attach(trace.set_span_in_context(span))))

    def after_attempt(self, context: Context, end: AttemptEnd) -> None:  # noqa: ARG002 -- a hook
        """End it; what a handler raises on purpose is no error of the span."""
        opened = _open.get()
        if opened is None:
            return
        _open.set(None)
        contexts.detach(opened.token)
        error = end.error
        if error is not None and not isinstance(error, Control):
            opened.span.record_exception(error)
            opened.span.set_status(Status(StatusCode.ERROR, str(error)))
        elif error is not None:
            opened.span.set_attribute("betimes.control", type(error).__name__)
        opened.span.set_attribute("betimes.succeeded", end.succeeded)
        opened.span.end()
