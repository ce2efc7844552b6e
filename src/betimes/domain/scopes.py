"""What a key may do: scopes, the kinds of keys that carry them, and the roles of people."""

from collections.abc import Mapping
from enum import StrEnum, unique
from types import MappingProxyType


@unique
class Scope(StrEnum):
    """One permission; every operation of the API asks for exactly one."""

    JOBS_READ = "jobs:read"
    JOBS_WRITE = "jobs:write"
    RUNS_READ = "runs:read"
    RUNS_WRITE = "runs:write"
    PAYLOADS_READ = "payloads:read"
    QUEUES_READ = "queues:read"
    QUEUES_WRITE = "queues:write"
    WORKERS_LEASE = "workers:lease"
    WORKERS_READ = "workers:read"
    WORKERS_WRITE = "workers:write"
    BLOBS_READ = "blobs:read"
    BLOBS_WRITE = "blobs:write"
    SECRETS_READ = "secrets:read"
    SECRETS_WRITE = "secrets:write"
    SECRETS_USE = "secrets:use"
    EVENTS_READ = "events:read"
    NOTIFICATIONS_READ = "notifications:read"
    NOTIFICATIONS_WRITE = "notifications:write"
    USAGE_READ = "usage:read"
    OPERATIONS_READ = "operations:read"
    OPERATIONS_WRITE = "operations:write"
    AUDIT_READ = "audit:read"
    KEYS_READ = "keys:read"
    KEYS_WRITE = "keys:write"
    MEMBERS_READ = "members:read"
    MEMBERS_WRITE = "members:write"
    TENANTS_ADMIN = "tenants:admin"
    CLUSTER_READ = "cluster:read"
    CLUSTER_WRITE = "cluster:write"
    METRICS_READ = "metrics:read"


READS = frozenset(
    {
        Scope.JOBS_READ,
        Scope.RUNS_READ,
        Scope.QUEUES_READ,
        Scope.WORKERS_READ,
        Scope.EVENTS_READ,
        Scope.NOTIFICATIONS_READ,
        Scope.USAGE_READ,
        Scope.OPERATIONS_READ,
    }
)
OPERATES = READS | {
    Scope.RUNS_WRITE,
    Scope.QUEUES_WRITE,
    Scope.WORKERS_WRITE,
    Scope.PAYLOADS_READ,
    Scope.OPERATIONS_WRITE,
}
EDITS = OPERATES | {
    Scope.JOBS_WRITE,
    Scope.BLOBS_READ,
    Scope.BLOBS_WRITE,
    Scope.SECRETS_READ,
    Scope.SECRETS_USE,
    Scope.NOTIFICATIONS_WRITE,
}
ADMINISTERS_TENANT = EDITS | {
    Scope.SECRETS_WRITE,
    Scope.AUDIT_READ,
    Scope.KEYS_READ,
    Scope.KEYS_WRITE,
    Scope.MEMBERS_READ,
    Scope.MEMBERS_WRITE,
    # To serve queues themselves, and above all to make and revoke the keys of those that do.
    Scope.WORKERS_LEASE,
}
EVERYTHING = frozenset(Scope)

OF_KIND: Mapping[str, frozenset[Scope]] = MappingProxyType(
    {
        "sk": ADMINISTERS_TENANT,
        "wk": frozenset({Scope.WORKERS_LEASE, Scope.BLOBS_READ, Scope.BLOBS_WRITE}),
        "rk": READS | {Scope.AUDIT_READ},
        "ak": EVERYTHING,
    }
)
"""The most a key of a kind may do; without scopes of its own it may do all of it."""

OF_ROLE: Mapping[str, frozenset[Scope]] = MappingProxyType(
    {"viewer": READS, "operator": OPERATES, "editor": EDITS, "admin": ADMINISTERS_TENANT}
)
"""What members may do. Operators start what editors have written, with whatever secrets it uses,
but do not decide where a secret goes: `secrets:use` begins with editors, `secrets:write`, which
says where a secret may go at all, with administrators."""
