"""Spans around attempts, and the link from a run to who asked for it."""

from collections.abc import Sequence

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import SpanKind, StatusCode

from api_kit import Served
from betimes import App, Context, OpenTelemetryMiddleware, Snooze
from runtime_kit import http, working


class Kept(SpanExporter):
    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.spans += spans
        return SpanExportResult.SUCCESS


async def test_attempts_are_spans_in_the_trace_of_their_run(served: Served, app: App) -> None:
    kept, provider = Kept(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    app.middleware.append(OpenTelemetryMiddleware(provider))
    tracer = provider.get_tracer("tests")

    @app.task(retry={"max_attempts": 2, "initial": 0, "jitter": "none"})
    def shop(ctx: Context) -> str:
        with tracer.start_as_current_span("inside"):
            if ctx.attempt == 1:
                raise RuntimeError("first")
        return "done"

    @app.task
    async def nap(ctx: Context) -> None:
        if ctx.fence == 1:
            raise Snooze(after=0)

    with tracer.start_as_current_span("caller") as caller:
        run = await shop.aenqueue()
    other = await nap.aenqueue()
    async with working(app, http(served, await served.key(kind="wk"))):
        ended = await run.awaited(timeout=20)
        await other.awaited(timeout=20)
    assert ended.run.trace is not None
    assert ended.run.trace.link is not None
    assert f"{caller.get_span_context().trace_id:032x}" in ended.run.trace.link
    attempts = [span for span in kept.spans if span.name == "run shop"]
    assert [span.status.status_code for span in attempts] == [StatusCode.ERROR, StatusCode.UNSET]
    assert {span.kind for span in attempts} == {SpanKind.CONSUMER}
    for span in attempts:
        assert f"{span.context.trace_id:032x}" == ended.run.trace.trace_id
        assert span.attributes is not None
        assert span.attributes["betimes.run_id"] == run.id
    inside = [span for span in kept.spans if span.name == "inside"]
    assert {one.parent and one.parent.span_id for one in inside} == {
        span.context.span_id for span in attempts
    }
    snoozed = [span for span in kept.spans if span.name == "run nap"][0]  # noqa: RUF015
    assert snoozed.attributes is not None
    assert (snoozed.status.status_code, snoozed.attributes["betimes.control"]) == (
        StatusCode.UNSET,
        "Snooze",
    )
    assert trace.get_current_span().get_span_context().is_valid is False
