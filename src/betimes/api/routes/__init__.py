"""Every route, by noun."""

from betimes.api.route import Route
from betimes.api.routes import jobs, jobs_control, meta, runs

ROUTES: tuple[Route, ...] = (
    *meta.ROUTES,
    *jobs.ROUTES,
    *jobs_control.ROUTES,
    *runs.ROUTES,
)
