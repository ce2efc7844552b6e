"""Any line that is imported fires as its source would, in any zone; any text gets a verdict."""

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from betimes.importers import Verdict, compare
from betimes.importers.crontab import Where, read_crontab
from betimes.importers.kubernetes import Where as Cluster
from betimes.importers.kubernetes import read_manifests

ZONES = st.sampled_from(
    ["UTC", "Europe/Berlin", "America/New_York", "America/Santiago", "Australia/Lord_Howe",
     "Africa/Casablanca", "Asia/Kathmandu", "America/Havana", "Europe/Dublin", "Pacific/Chatham"]
)  # fmt: skip
MONTHS = ["jan", "Feb", "MAR", "apr", "sep", "oct", "dec"]
WEEKDAYS = ["sun", "Mon", "TUE", "wed", "sat"]


@st.composite
def terms(draw: st.DrawFn, low: int, high: int, names: list[str]) -> str:
    kind = draw(st.sampled_from(["star", "step", "value", "range", "stepped", "name"]))
    first = draw(st.integers(low, high))
    last = draw(st.integers(first, high))
    step = draw(st.integers(1, high + 20))
    if kind == "name" and names:
        return draw(st.sampled_from(names))
    return {
        "star": "*", "step": f"*/{step}", "value": f"{first}", "range": f"{first}-{last}",
        "stepped": f"{first}-{last}/{step}", "name": f"{last}",
    }[kind]  # fmt: skip


def fields(low: int, high: int, names: list[str] | None = None) -> st.SearchStrategy[str]:
    return st.lists(terms(low, high, names or []), min_size=1, max_size=3).map(",".join)


CRON = st.tuples(
    fields(0, 59), fields(0, 23), fields(1, 31), fields(1, 12, MONTHS), fields(0, 7, WEEKDAYS)
).map(" ".join)
ROBFIG = st.tuples(
    fields(0, 59), fields(0, 23), fields(1, 31), fields(1, 12, MONTHS), fields(0, 6, WEEKDAYS)
).map(" ".join)
# The months in which clocks are set, so that most spans hold a jump.
STARTS = st.builds(
    lambda year, month, day: datetime(year, month, day, tzinfo=UTC),
    st.integers(2024, 2030),
    st.sampled_from([3, 4, 9, 10, 11]),
    st.integers(1, 28),
)


def agrees(verdict: Verdict, start: datetime, *, days: int) -> None:
    comparison = compare(verdict, start, start + timedelta(days=days))
    if comparison is None:
        assert verdict.job is None or verdict.model is None
        return
    assert (comparison.missing, comparison.extra) == ((), ()), verdict.source


@given(CRON, ZONES, STARTS)
@settings(max_examples=120, deadline=None)
def test_lines_of_crontabs(expression: str, zone: str, start: datetime) -> None:
    (verdict,) = read_crontab(f"{expression} command\n", Where(timezone=zone))
    assert verdict.job is not None or "no such date" in verdict.reason, verdict
    agrees(verdict, start, days=16)


@given(ROBFIG, ZONES, STARTS)
@settings(max_examples=120, deadline=None)
def test_schedules_of_cron_jobs(expression: str, zone: str, start: datetime) -> None:
    pod = {"containers": [{"name": "c", "image": "x"}]}
    document = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "x"},
        "spec": {
            "schedule": expression,
            "timeZone": zone,
            "jobTemplate": {"spec": {"template": {"spec": pod}}},
        },
    }
    (verdict,) = read_manifests([document], Cluster())
    assert verdict.job is not None or "no such date" in verdict.reason, verdict
    agrees(verdict, start, days=16)


@given(st.text(max_size=200))
@settings(max_examples=300, deadline=None)
def test_any_text_gets_a_verdict_for_every_line(text: str) -> None:
    verdicts = read_crontab(text, Where(timezone="UTC"))
    lines = [line.rstrip("\r") for line in text.split("\n")]
    told = [one for one in lines if one.strip(" \t") and not one.lstrip(" \t").startswith("#")]
    assert len(verdicts) == len(told)
    for verdict in verdicts:
        assert verdict.kind in ("imported", "refused", "setting")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["kind", "apiVersion", "metadata", "spec", "name", "schedule", "items",
                         "jobTemplate", "template", "containers", "env", "timeZone"]),
        inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@given(JSON)
@settings(max_examples=300, deadline=None)
def test_any_document_gets_a_verdict(document: object) -> None:
    shaped = document
    if isinstance(document, dict):
        shaped = {**document, "kind": "CronJob", "apiVersion": "batch/v1"}
    for verdict in read_manifests([shaped, document], Cluster()):
        assert verdict.job or verdict.reason
