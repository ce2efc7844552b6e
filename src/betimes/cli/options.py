"""`betimes options`: the options that every command has."""

import click

from betimes.cli.wishes import SHARED, Shared

VARIABLES = (
    ("BETIMES_URL", "Address of the service."),
    ("BETIMES_RETRY_FOR", "Seconds for which a service that does not answer is asked, 60."),
    ("BETIMES_API_KEY", "API key."),
    ("BETIMES_API_KEY_FILE", "File that holds the API key."),
    ("BETIMES_PROFILE", "Profile to use."),
    ("BETIMES_TENANT", "Act for this tenant."),
    ("BETIMES_OUTPUT", "Form of what is printed."),
    ("NO_COLOR", "No colours, whatever its value."),
)
CODES = (
    ("0", "it went well"),
    ("1", "an error"),
    ("2", "it was said wrongly"),
    ("3", "there is no such thing"),
    ("4", "not signed in, or not allowed"),
    ("5", "conflict: it is in another state, or somebody changed it"),
    ("6", "too many requests, or no room"),
    ("7", "what was waited for failed"),
    ("8", "what was waited for goes on"),
    ("130", "interrupted"),
)


@click.command("options")
def options() -> None:
    """List what every command understands: options, variables, exit codes."""
    click.echo(text(), nl=False)


def text() -> str:
    """The list."""
    formatter = click.HelpFormatter(width=88)
    with formatter.section("Options, before or behind any command that talks to the service"):
        formatter.write_dl([(_flags(shared), shared.says) for shared in SHARED])
    with formatter.section("Variables; options overrule them, they overrule the profile"):
        formatter.write_dl(list(VARIABLES))
    with formatter.section("Exit codes"):
        formatter.write_dl(list(CODES))
    return formatter.getvalue()


def _flags(shared: Shared) -> str:
    flags = ", ".join(shared.flags)
    kind = shared.kind
    if isinstance(kind, click.Choice):
        return f"{flags} {'|'.join(map(str, kind.choices))}"
    metavar = shared.metavar
    return f"{flags} {metavar}" if metavar else flags
