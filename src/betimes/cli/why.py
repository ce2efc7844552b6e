"""`betimes why`: what stands in the way of a job or a run."""

import click

from betimes.cli.command import Talk, service_command
from betimes.cli.completing import NameOf
from betimes.cli.perform import present
from betimes.cli.surface import OFFERS
from betimes.cli.times import moment_of, read_time
from betimes.cli.tree import Verb

AHEAD, BEHIND = "It will not run.", "It did not run."
"""The service speaks of what is ahead, people ask about last night."""


@service_command("why", example="betimes why nightly-report --at 2026-03-29T02:00")
@click.argument("subject", metavar="JOB|RUN", type=NameOf("job", "run"))
@click.option("--at", metavar="TIME", help="About this fire time of a job, instead of now.")
def why(talk: Talk, subject: str, at: str | None) -> int:
    """Say why a job or a run did not run, or what it waits for."""
    if subject.startswith("run_"):
        if at is not None:
            raise click.UsageError("--at is about fire times; a run has one already.")
        told = talk.session.call(OFFERS["runs.explain"], {"run": subject})
        return present(talk, Verb("why", "runs.explain"), told)
    query = {"at": read_time(at, now=talk.now, zone=talk.zone)} if at else {}
    told = talk.session.call(OFFERS["jobs.explain"], {"job": subject}, query=query)
    asked = moment_of(query.get("at"))
    if talk.for_people and asked is not None and asked < talk.now:
        told = {**told, "summary": told["summary"].replace(AHEAD, BEHIND, 1)}
    return present(talk, Verb("why", "jobs.explain"), told)
