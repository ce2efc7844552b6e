"""`betimes open`: the page of a job or a run, in the browser."""

from urllib.parse import quote

import click

from betimes.cli.command import Talk, service_command
from betimes.cli.completing import NameOf
from betimes.cli.surface import OFFERS
from betimes.domain.errors import NotFound

REFERENCE = "/v1/reference"
HTML = "text/html"
FOUND = 200
OK, FAILED = 0, 1


@service_command("open", example="betimes open nightly-report")
@click.argument("subject", metavar="[JOB|RUN]", required=False, type=NameOf("job", "run"))
@click.option("--print", "only_print", is_flag=True, help="Print the address, open nothing.")
@click.option("--reference", is_flag=True, help="The reference of the API instead.")
def open_page(talk: Talk, *, subject: str | None, only_print: bool, reference: bool) -> int:
    """Open the console, at a job or a run if one is named.

    Where the service has no console, the reference of its API is what there is to open.
    """
    if subject is not None and reference:
        raise click.UsageError("--reference is about no job and no run.")
    path = "/" if subject is None else path_of(talk, subject)
    if reference:
        path = REFERENCE
    elif not has_page(talk, path):
        if subject is not None:
            noun = "run" if subject.startswith("run_") else "job"
            raise NotFound(
                f"the service at {talk.way.url} has no console; "
                f"see it with: betimes {noun} get {subject}"
            )
        talk.remark("this service has no console; this is the reference of its API")
        path = REFERENCE
    return show(talk, talk.way.url.rstrip("/") + path, only_print=only_print)


def path_of(talk: Talk, subject: str) -> str:
    """Where the page of a job or a run is; both are looked up, so that a mistake is told here."""
    if subject.startswith("run_"):
        told = talk.session.call(OFFERS["runs.get"], {"run": subject})
        return f"/runs/{quote(told['id'], safe='')}"
    return f"/jobs/{quote(talk.session.job_id(subject), safe='')}"


def has_page(talk: Talk, path: str) -> bool:
    """Whether the service has something to show there to a browser."""
    told = talk.session.ask("GET", path, headers={"accept": HTML}, refuse=False)
    return told.status == FOUND and told.headers.get("content-type", "").startswith(HTML)


def show(talk: Talk, address: str, *, only_print: bool) -> int:
    """Open an address, or print it where that is wished for or there is no browser."""
    if only_print:
        click.echo(address)
        return OK
    import webbrowser  # noqa: PLC0415 -- only who opens pays

    if webbrowser.open(address):
        talk.remark(f"opened {address}")
        return OK
    talk.remark("there is no browser here; the address is")
    click.echo(address)
    return FAILED
