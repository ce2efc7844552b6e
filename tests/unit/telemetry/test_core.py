"""Spans, events and metrics: what is noted, and what never goes wrong because of it."""

import asyncio

import pytest

from betimes.domain.errors import Bug, Unavailable
from betimes.telemetry import Event, Outage, Recorder, Telemetry
from betimes.telemetry.catalogue import METRICS
from betimes.telemetry.instruments import OVERFLOW, SERIES_MAX
from betimes.testing import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def telemetry(clock: ManualClock, recorder: Recorder) -> Telemetry:
    return Telemetry(clock=clock, handlers=[recorder])


def test_a_span_measures_and_tells(
    telemetry: Telemetry, recorder: Recorder, clock: ManualClock
) -> None:
    with telemetry.span("role.run", role="worker") as span:
        clock.advance(1.5)
        span.add(reaped=3)
        span.tell(start=1)
    (event,) = recorder.events
    assert event == Event(
        name="role.run",
        level="debug",
        measurements={"seconds": 1.5, "reaped": 3},
        metadata={"outcome": "ok", "role": "worker", "start": 1},
    )
    assert telemetry.reading("betimes_span_seconds", span="role.run", outcome="ok") == 1.5


def test_an_error_passes_through_its_span_and_is_told(
    telemetry: Telemetry, recorder: Recorder
) -> None:
    error = Unavailable("the database is away")
    with pytest.raises(Unavailable), telemetry.span("role.run"):
        raise error
    (event,) = recorder.events
    assert (event.level, event.error, event.metadata["outcome"]) == ("error", error, "error")


def test_an_expected_error_is_debug_talk(telemetry: Telemetry, recorder: Recorder) -> None:
    span = telemetry.span("role.run")
    span.expect_errors()
    with pytest.raises(Unavailable), span:
        raise Unavailable
    assert recorder.events[0].level == "debug"


def test_cancellation_is_no_error(telemetry: Telemetry, recorder: Recorder) -> None:
    with pytest.raises(asyncio.CancelledError), telemetry.span("role.run"):
        raise asyncio.CancelledError
    (event,) = recorder.events
    assert (event.level, event.error, event.metadata["outcome"]) == ("debug", None, "cancelled")


def test_a_failing_handler_stops_nothing(clock: ManualClock, recorder: Recorder) -> None:
    def choke(event: Event) -> None:
        raise OSError(event.name)

    telemetry = Telemetry(clock=clock, handlers=[choke, recorder])
    telemetry.event("node.started")
    assert len(recorder.events) == 1
    assert telemetry.reading("betimes_telemetry_failures_total") == 1


def test_labels_count_apart_and_their_order_does_not_matter(telemetry: Telemetry) -> None:
    depth = telemetry.gauge("betimes_queue_depth")
    depth.set(1, queue="a", state="queued")
    depth.set(2, state="queued", queue="a")
    depth.set(3, queue="b", state="queued")
    assert telemetry.reading("betimes_queue_depth", queue="a", state="queued") == 2
    depth.drop(queue="a", state="queued")
    assert [reading.labels for reading in depth.readings()] == [
        (("queue", "b"), ("state", "queued"))
    ]
    depth.set(4, state="queued", queue="a")
    assert telemetry.reading("betimes_queue_depth", queue="a", state="queued") == 4


def test_a_histogram_counts_into_its_bounds(telemetry: Telemetry) -> None:
    lag = telemetry.histogram("betimes_start_lag_seconds")
    for value in (0.001, 0.0011, 1000):
        lag.observe(value)
    (reading,) = lag.readings()
    assert reading.value == pytest.approx(1000.0021)
    assert (reading.buckets[0], reading.buckets[1], reading.buckets[-1]) == (1, 1, 1)
    assert len(reading.buckets) == len(reading.metric.bounds) + 1


def test_the_number_of_series_is_bounded(telemetry: Telemetry) -> None:
    runs = telemetry.counter("betimes_runs_total")
    for number in range(SERIES_MAX + 10):
        runs.add(outcome=f"o{number}")
    assert telemetry.reading("betimes_runs_total", outcome=OVERFLOW) == 10
    assert telemetry.reading("betimes_telemetry_overflows_total") == 10
    assert len(list(runs.readings())) == SERIES_MAX + 1


def test_unknown_names_and_labels_are_bugs(telemetry: Telemetry) -> None:
    with pytest.raises(Bug, match="no counter betimes_nonsense"):
        telemetry.counter("betimes_nonsense")
    with pytest.raises(Bug, match="no gauge betimes_runs_total"):
        telemetry.gauge("betimes_runs_total")
    telemetry.counter("betimes_runs_total")
    with pytest.raises(Bug, match="is no gauge"):
        telemetry.gauge("betimes_runs_total")
    with pytest.raises(Bug, match=r"expected the labels \(outcome\), got \(tenant\)"):
        telemetry.counter("betimes_runs_total").add(tenant="acme")


def test_the_same_name_is_the_same_instrument(telemetry: Telemetry) -> None:
    assert telemetry.counter("betimes_runs_total") is telemetry.counter("betimes_runs_total")
    telemetry.counter("betimes_runs_total").add(5, outcome="succeeded")
    assert any(reading.value == 5 for reading in telemetry.snapshot())


def test_metric_names_follow_the_conventions() -> None:
    for metric in METRICS.values():
        assert metric.name.startswith("betimes_")
        assert metric.says.endswith(".")
        assert metric.name.endswith("_total") == (metric.kind == "counter")
        assert bool(metric.bounds) == (metric.kind == "histogram")
        assert sorted(metric.bounds) == list(metric.bounds)


def test_an_outage_is_told_once_and_so_is_its_end(
    telemetry: Telemetry, recorder: Recorder, clock: ManualClock
) -> None:
    outage = Outage(duty="reap", telemetry=telemetry, role="janitor")
    outage.ended()
    for _ in range(3):
        outage.failed(Unavailable("away"))
        clock.advance(2)
    outage.ended()
    outage.ended()
    assert [(event.name, event.level) for event in recorder.events] == [
        ("outage.began", "error"),
        ("outage.lasts", "debug"),
        ("outage.lasts", "debug"),
        ("outage.ended", "info"),
    ]
    assert recorder.named("outage.ended")[0].measurements == {"failures": 3, "seconds": 6.0}
    assert recorder.named("outage.began")[0].metadata == {"duty": "reap", "role": "janitor"}
