"""Commands out of the table: an operation and a verb become something one can type."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import click

from betimes.cli.also import options_of as further_options
from betimes.cli.command import ServiceCommand, Talk
from betimes.cli.completing import NameOf, source_of
from betimes.cli.forms import Look
from betimes.cli.lazy import LazyGroup, Place
from betimes.cli.looks import column
from betimes.cli.offer import Member, Offer
from betimes.cli.said import argument_of, option_of
from betimes.cli.surface import OFFERS
from betimes.cli.tree import ALONE, NOUNS, Noun, Verb

LIMIT_DEFAULT = 50
FILE_FROM = 6
"""So many members make a body that one would rather keep in a file."""
RUNS_MADE = frozenset({"jobs.run", "runs.retry", "runs.replay", "dead_letters.redrive"})
LONG_WORK = frozenset({"runs.bulk", "queues.purge", "tenants.delete"})


def group(name: str) -> click.Group:
    """A noun with its verbs; each is made when it is called."""
    noun = NOUNS[name]
    places = {
        special: Place(path, says) for special, path, says in noun.special
    } | {verb.name: Place("", sentence_of(verb)) for verb in noun.verbs}  # fmt: skip
    verbs = {verb.name: verb for verb in noun.verbs}

    def load(verb: str) -> click.Command:
        return command(verbs[verb], noun, name)

    return NounGroup(name=name, help=noun.says, places=places, load=load)


class NounGroup(LazyGroup):
    """A group whose commands come from the table, or from a module of their own."""

    def __init__(self, *, load: Callable[[str], click.Command], **options: Any) -> None:
        super().__init__(**options)
        self._load = load

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Make or load one command."""
        del ctx
        place = self._places.get(cmd_name)
        if place is None:
            return None
        if not place.path:
            return self._load(cmd_name)
        module, _, function = place.path.partition(":")
        found: click.Command = getattr(import_module(module), function)
        return found


def alone(name: str) -> click.Command:
    """A command that is one operation and no group."""
    return command(ALONE[name], None, "")


def sentence_of(verb: Verb) -> str:
    """What a command says of itself."""
    return verb.says or OFFERS[verb.operation].says


def command(verb: Verb, noun: Noun | None, noun_name: str) -> click.Command:
    """The command of a verb."""
    offer = OFFERS[verb.operation]
    look = look_of(verb, noun, noun_name)

    @click.pass_context
    def called(context: click.Context, /, **given: Any) -> Any:
        from betimes.cli.perform import perform  # noqa: PLC0415 -- help needs none of it

        return perform(Talk(context, look), verb, offer, noun_name, given)

    return ServiceCommand(
        verb.name,
        callback=called,
        params=parameters_of(verb, offer),
        help=sentence_of(verb),
        example=verb.example,
        spelt=spelt_of(verb, offer),
    )


def spelt_of(verb: Verb, offer: Offer) -> dict[str, str]:
    """An action may be said as a flag as well: `--redrive` is `redrive`."""
    members = [one for one in members_of(verb, offer) if one.place == "action"]
    return {f"--{choice}": choice for one in members for choice in one.choices}


def look_of(verb: Verb, noun: Noun | None, noun_name: str) -> Look:
    """The columns of a verb's answers."""
    columns = verb.columns if verb.columns is not None else (noun.columns if noun else "")
    wide = verb.wide
    if wide is None:
        wide = noun.wide if noun and verb.columns is None else ""
    return Look(tuple(map(column, columns.split())), tuple(map(column, wide.split())), noun_name)


def members_of(verb: Verb, offer: Offer) -> tuple[Member, ...]:
    """What one may say, but for what the command takes care of."""
    hidden = {*verb.hides, *(("limit",) if offer.pages else ())}
    return tuple(one for one in (*offer.query, *(offer.body or ())) if one.place not in hidden)


def parameters_of(verb: Verb, offer: Offer) -> list[click.Parameter]:
    """Arguments, then options."""
    several = takes_several(verb, offer)
    made: list[click.Parameter] = [
        click.Argument(
            [f"path_{name}"], metavar=name.upper() + ("..." if several else ""),
            nargs=-1 if several else 1, required=True, type=NameOf(source_of(name, offer.path)),
        )
        for name in offer.parameters
    ]  # fmt: skip
    members = members_of(verb, offer)
    made += [argument_of(one) for one in members if one.place in verb.said]
    if offer.raw:
        made.append(click.Argument(["content"], metavar="FILE", type=click.File("rb")))
    made += [option_of(one) for one in members if one.place not in verb.said]
    return made + further_options(verb.operation, offer) + manners_of(verb, offer)


def takes_several(verb: Verb, offer: Offer) -> bool:
    """Whether one may name several things: where they are all told the same."""
    return bool(verb.done) and len(offer.parameters) == 1 and not verb.said and not offer.tries


def manners_of(verb: Verb, offer: Offer) -> list[click.Parameter]:
    """Options that are about the call and not about what is said."""
    made: list[click.Parameter] = []
    if offer.pages:
        made += [
            click.Option(["--limit"], type=click.IntRange(min=1), default=LIMIT_DEFAULT,
                         show_default=True, help="How many to show."),
            click.Option(["--all", "everything"], is_flag=True, help="Show all of them."),
        ]  # fmt: skip
    if offer.method == "GET":
        made += watch_options()
    if offer.body is not None and len(offer.body) >= FILE_FROM and offer.method != "GET":
        made.append(
            click.Option(["-f", "--file"], metavar="FILE",
                         help="YAML or JSON to begin with; flags overrule it."),
        )  # fmt: skip
    if offer.tries:
        made.append(
            click.Option(["--dry-run", "trial"], is_flag=True, help="Check it, change nothing.")
        )
    if offer.method in ("PUT", "PATCH", "DELETE"):
        made.append(
            click.Option(["--if-match"], metavar="ETAG", help="Only if nobody has changed it.")
        )
    if offer.keyed:
        made.append(
            click.Option(["--idempotency-key"], metavar="KEY", help="The same key acts once only.")
        )
    if verb.operation in RUNS_MADE | LONG_WORK:
        made += wait_options()
    return made


def wait_options() -> list[click.Parameter]:
    """`--wait` with its patience."""
    return [
        click.Option(["--wait"], is_flag=True, help="Wait for its end, --wait=SECONDS at most."),
        click.Option(["--wait-for"], metavar="DURATION", type=str, hidden=True,
                     help="How long --wait waits."),
    ]  # fmt: skip


def watch_options() -> list[click.Parameter]:
    """`-w` with its rhythm."""
    return [
        click.Option(["-w", "--watch"], is_flag=True,
                     help="Go on showing it as it changes; --watch=5s looks less often."),
        click.Option(["--interval"], metavar="DURATION", type=str, default="2s",
                     hidden=True, help="How often --watch looks."),
    ]  # fmt: skip
