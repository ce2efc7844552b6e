"""Who we are: signing in and out, and profiles."""

import sys

import click

from betimes.cli.command import Talk, service_command
from betimes.cli.forms import Look
from betimes.cli.invocation import say
from betimes.cli.looks import column
from betimes.cli.surface import OFFERS
from betimes.domain.errors import BadSetting, Forbidden, NotFound
from betimes.sdk import ambient, profiles
from betimes.sdk.profiles import DEFAULT, MEMBERS, Profiles, veiled

LOOK = Look(
    tuple(map(column, ["CURRENT=current", "NAME=name", "URL=url", "KEY=api_key", "TENANT=tenant"])),
    (column("OUTPUT=output"), column("TIMEZONE=timezone")),
)


def _name(talk: Talk, known: Profiles) -> str:
    return talk.wishes.profile or ambient.variable("BETIMES_PROFILE") or known.current


@service_command(
    "login", new_profile=True, example="betimes login --url https://betimes.example --profile work"
)
@click.option("--key-stdin", is_flag=True, help="Read a key from standard input and keep it.")
@click.option("--answer", metavar="CODE", help="Let in the device that shows this code.")
@click.option("--refuse", metavar="CODE", help="Refuse the device that shows this code.")
def login(talk: Talk, *, key_stdin: bool, answer: str | None, refuse: str | None) -> int:
    """Sign in: show a code, wait until somebody lets it in, and keep the key in the profile."""
    if answer or refuse:
        told = talk.session.call(
            OFFERS["auth.answer_device"],
            body={"user_code": answer or refuse, "approve": refuse is None},
        )
        verdict = "was let in" if told["approved"] else "was refused"
        talk.done(f"{told['name']} {verdict}", told)
        return 0
    key = sys.stdin.readline().strip() if key_stdin else _ask_device(talk)
    if not key:
        raise BadSetting("expected an API key on standard input, got nothing")
    path = profiles.place()
    known = profiles.read(path)
    name = talk.wishes.profile or ambient.variable("BETIMES_PROFILE") or known.current
    kept = dict(known.by_name.get(name, {}))
    known.by_name[name] = {**kept, "url": talk.way.url, "api_key": key}
    if talk.wishes.tenant:
        known.by_name[name]["tenant"] = talk.wishes.tenant
    if len(known.by_name) == 1:
        known.current = name
    profiles.write(path, known)
    say(f"signed in to {talk.way.url}; the key is in the profile {name}")
    return 0


def _ask_device(talk: Talk) -> str:
    from betimes.sdk.errors import AuthorizationPending, SlowDown  # noqa: PLC0415 -- see Talk

    asking = talk.session.call(OFFERS["auth.device"], body={})
    say(f"your code is {asking['user_code']}")
    say(f"let it in at {asking['verification_uri_complete']}")
    say(f"or, from where you are signed in: betimes login --answer {asking['user_code']}")
    pause = float(asking["interval"])
    left = float(asking["expires_in"])
    while left > 0:
        ambient.pause(pause)
        left -= pause
        try:
            told = talk.session.call(
                OFFERS["auth.device_token"], body={"device_code": asking["device_code"]}
            )
        except AuthorizationPending:
            continue
        except SlowDown:
            pause += 5.0
            continue
        return str(told["token"])
    raise Forbidden("nobody has answered the code in time; begin again")


@service_command("logout")
def logout(talk: Talk) -> int:
    """Forget the key of the profile; the key itself works until it is revoked."""
    path = profiles.place()
    known = profiles.read(path)
    name = _name(talk, known)
    if known.by_name.get(name, {}).pop("api_key", None) is None:
        say(f"the profile {name} holds no key")
        return 0
    profiles.write(path, known)
    say(f"the profile {name} holds no key any more")
    return 0


@click.group()
def profile() -> None:
    """Profiles: where the service is and who you are, by name."""


@profile.command(cls=type(login), name="list")
@click.pass_context
def list_profiles(context: click.Context) -> int:
    """List profiles; keys are shown by their beginning."""
    talk = Talk(context, LOOK)
    known = profiles.read(profiles.place())
    rows = [
        {
            "current": "*" if name == known.current else "",
            "name": name,
            **{key: veiled(key, members[key]) for key in MEMBERS if key in members},
        }
        for name, members in sorted(known.by_name.items())
    ]
    talk.show(rows)
    return 0


@profile.command()
@click.argument("name")
def use(name: str) -> int:
    """Make a profile the one that counts when none is named."""
    path = profiles.place()
    known = profiles.read(path)
    known.get(name)
    known.current = name
    profiles.write(path, known)
    say(f"the profile {name} counts from now on")
    return 0


@profile.command("set")
@click.argument("name", default=DEFAULT)
@click.argument("pairs", nargs=-1, metavar="[KEY=VALUE]...")
def set_profile(name: str, pairs: tuple[str, ...]) -> int:
    """Set members of a profile; an empty value takes one away.

    KEY is url, api_key, tenant, output or timezone.
    """
    path = profiles.place()
    known = profiles.read(path)
    members = known.by_name.setdefault(name, {})
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or key not in MEMBERS:
            raise click.UsageError(f"expected KEY=VALUE with a KEY out of {', '.join(MEMBERS)}.")
        members[key] = value
        if not value:
            del members[key]
    if len(known.by_name) == 1:
        known.current = name
    profiles.write(path, known)
    say(f"the profile {name} is kept in {path}")
    return 0


@profile.command("rm")
@click.argument("name")
def remove_profile(name: str) -> int:
    """Forget a profile and its key."""
    path = profiles.place()
    known = profiles.read(path)
    if known.by_name.pop(name, None) is None:
        raise NotFound(f"there is no profile {name!r}")
    if known.current == name:
        known.current = DEFAULT
    profiles.write(path, known)
    say(f"the profile {name} is forgotten")
    return 0
