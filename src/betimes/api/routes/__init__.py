"""Every route, by noun."""

from betimes.api.route import Route
from betimes.api.routes import (
    cluster,
    dead_letters,
    documents,
    jobs,
    jobs_control,
    keys,
    leases,
    meta,
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
    *schedules.ROUTES,
    *runs.ROUTES,
    *runs_control.ROUTES,
    *dead_letters.ROUTES,
    *workers.ROUTES,
    *leases.ROUTES,
    *trail.ROUTES,
    *cluster.ROUTES,
)
