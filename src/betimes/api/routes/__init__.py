"""Every route, by noun."""

from betimes.api.route import Route
from betimes.api.routes import (
    cluster,
    dead_letters,
    documents,
    jobs,
    jobs_control,
    jobs_many,
    keys,
    leases,
    meta,
    queues,
    runs,
    runs_control,
    schedules,
    tenants,
    trail,
    workers,
)

ROUTES: tuple[Route, ...] = (
    *meta.ROUTES,
    *documents.ROUTES,
    *tenants.ROUTES,
    *keys.ROUTES,
    *jobs.ROUTES,
    *jobs_control.ROUTES,
    *jobs_many.ROUTES,
    *schedules.ROUTES,
    *runs.ROUTES,
    *runs_control.ROUTES,
    *dead_letters.ROUTES,
    *queues.ROUTES,
    *workers.ROUTES,
    *leases.ROUTES,
    *trail.ROUTES,
    *cluster.ROUTES,
)
