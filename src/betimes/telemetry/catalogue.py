"""Every metric there is. A name that is not listed here cannot be used.

A new metric is a new line; the sentence becomes its help text.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Kind = Literal["counter", "gauge", "histogram"]
LAG_BOUNDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 600.0)
SECONDS_BOUNDS = (0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0, 300.0, 3600.0)


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: what it is, and which labels its series carry."""

    name: str
    kind: Kind
    says: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()


_ALL = (
    Metric("betimes_schedule_lag_seconds", "histogram", "From due to queued.", (), LAG_BOUNDS),
    Metric("betimes_start_lag_seconds", "histogram", "From due to started.", (), LAG_BOUNDS),
    Metric("betimes_queue_depth", "gauge", "Runs waiting or running.", ("queue", "state")),
    Metric("betimes_queue_oldest_seconds", "gauge", "Age of the oldest waiting run.", ("queue",)),
    Metric("betimes_runs_total", "counter", "Runs that ended, by outcome.", ("outcome",)),
    Metric("betimes_run_seconds", "histogram", "From started to ended.", (), SECONDS_BOUNDS),
    Metric("betimes_attempt_failures_total", "counter", "Attempts that failed.", ("class",)),
    Metric("betimes_retries_total", "counter", "Attempts after the first."),
    Metric("betimes_dead_letters", "gauge", "Dead letters kept."),
    Metric(
        "betimes_lease_lost_total", "counter", "Leases that ended under their holder.", ("kind",)
    ),
    Metric(
        "betimes_items_failed_total",
        "counter",
        "Items of background duties that failed and were postponed.",
        ("duty",),
    ),
    Metric("betimes_rows_kept_total", "counter", "Rows moved on when their day was dropped."),
    Metric("betimes_fires_missed_total", "counter", "Fires without a run, by reason.", ("reason",)),
    Metric("betimes_catchup_runs_total", "counter", "Missed fires that run late.", ("held",)),
    Metric("betimes_intake_runs_total", "counter", "Runs asked for by SQL.", ("outcome",)),
    Metric("betimes_workflow_turns_total", "counter", "Workflow runs moved on."),
    Metric(
        "betimes_workflow_turns_lost_total",
        "counter",
        "Nodes whose run was over without anybody knowing; must stay 0.",
    ),
    Metric("betimes_relay_rows_total", "counter", "Rows of an outbox, by outcome.", ("outcome",)),
    Metric("betimes_relay_oldest_seconds", "gauge", "Age of the oldest row of an outbox."),
    Metric("betimes_runs_unpublished_total", "counter", "Due runs without a parcel. Must stay 0."),
    Metric("betimes_shard_leader", "gauge", "1 while this node owns the shard.", ("shard",)),
    Metric("betimes_shard_fence", "gauge", "Epoch under which this node owns it.", ("shard",)),
    Metric("betimes_clock_skew_seconds", "gauge", "This node's clock minus the database's."),
    Metric("betimes_target_held_total", "counter", "Deliveries that had to wait.", ("why",)),
    Metric("betimes_breaker_opened_total", "counter", "Breakers that have opened."),
    Metric(
        "betimes_webhook_deliveries_total",
        "counter",
        "Webhooks, chats and mails sent to endpoints.",
        ("outcome",),
    ),
    Metric("betimes_deliveries_handed_out_total", "counter", "Events put into mailboxes."),
    Metric("betimes_alerts_fired_total", "counter", "Alerts that began.", ("condition",)),
    Metric("betimes_quota_used_ratio", "gauge", "Share of a quota in use.", ("quota",)),
    Metric("betimes_tx_retries_total", "counter", "Transactions repeated, by cause.", ("cause",)),
    Metric("betimes_hints_total", "counter", "Hints received.", ("channel",)),
    Metric("betimes_oldest_snapshot_seconds", "gauge", "Age of the snapshot that holds up vacuum."),
    Metric("betimes_hot_update_ratio", "gauge", "Updates that touched no index.", ("table",)),
    Metric("betimes_dead_rows", "gauge", "Rows that wait for vacuum.", ("table",)),
    Metric("betimes_role_up", "gauge", "1 while the role runs.", ("role",)),
    Metric("betimes_role_crashes_total", "counter", "Crashes of a role.", ("role",)),
    Metric(
        "betimes_span_seconds",
        "histogram",
        "Duration of every span.",
        ("span", "outcome"),
        SECONDS_BOUNDS,
    ),
    Metric("betimes_requests_total", "counter", "Requests answered.", ("operation", "status")),
    Metric(
        "betimes_requests_shed_total",
        "counter",
        "Creations turned away because the system is behind, by the signal that said so.",
        ("signal",),
    ),
    Metric(
        "betimes_request_seconds",
        "histogram",
        "From a request to its answer.",
        ("operation",),
        SECONDS_BOUNDS,
    ),
    Metric("betimes_telemetry_failures_total", "counter", "Events a handler choked on."),
    Metric(
        "betimes_telemetry_overflows_total", "counter", "Readings without a series of their own."
    ),
)

METRICS: Mapping[str, Metric] = MappingProxyType({metric.name: metric for metric in _ALL})
