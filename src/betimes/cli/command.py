"""A command that knows the shared options, and what its answers go through."""

import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Any

import click

from betimes.cli import machine
from betimes.cli.forms import Answer, Look, answer_of, picked, text_of
from betimes.cli.invocation import invocation_of
from betimes.cli.looks import Eye
from betimes.cli.times import zone_of
from betimes.cli.wishes import FORMS, Wishes, shared_options
from betimes.sdk import ambient

if TYPE_CHECKING:  # loaded when something is asked, not for --help
    from betimes.cli.session import Session
    from betimes.sdk.errors import Unreachable
    from betimes.sdk.exchange import Response
    from betimes.sdk.way import Way

RHYTHMS = {"--watch": "--interval", "--wait": "--wait-for"}
OURS = ("look", "new_profile")
HINT = "Options that every command has: betimes options"


class ServiceCommand(click.Command):
    """A command that talks to the service: the shared options stand anywhere behind it."""

    def __init__(
        self,
        *arguments: Any,
        example: str = "",
        spelt: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self._spelt = spelt or {}
        taken = {flag for one in self.params if isinstance(one, click.Option) for flag in one.opts}
        self.params += shared_options(wishes_of, hidden=True, taken=frozenset(taken))
        self.example = example

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """`--watch=5s` is two options, because a value that may be missing would eat arguments."""
        plain = [self._spelt.get(one, one) for one in args]
        return super().parse_args(ctx, [part for one in plain for part in _apart(one)])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """An example where there is one, and where the rest is explained."""
        del ctx
        if self.example:
            with formatter.section("Example"):
                formatter.write_text(self.example)
        formatter.write_paragraph()
        formatter.write_text(HINT)


def _apart(argument: str) -> list[str]:
    flag, equals, value = argument.partition("=")
    if equals and flag in RHYTHMS:
        return [flag, f"{RHYTHMS[flag]}={value}"]
    return [argument]


def wishes_of(context: click.Context) -> Wishes:
    """What the line has asked for so far."""
    return invocation_of(context).wishes


class Talk:
    """One command's talk with the service, and with whoever typed it."""

    def __init__(
        self, context: click.Context, look: Look | None = None, *, new_profile: bool = False
    ) -> None:
        self.context = context
        self._new_profile = new_profile
        self.wishes = wishes_of(context)
        self.look = look or Look()
        self._way: Way | None = None
        self._session: Session | None = None
        self._told_retry = False
        self.retry_for: float | None = None
        """Seconds for which a call is tried again; None means as long as clients usually do."""

    @property
    def way(self) -> "Way":
        """Whom we ask."""
        if self._way is None:
            from betimes.cli.session import way_by  # noqa: PLC0415 -- see above

            self._way = way_by(self.wishes, new_profile=self._new_profile)
        return self._way

    @property
    def session(self) -> "Session":
        """The conversation; nothing is connected before the first question."""
        if self._session is None:
            from betimes.cli.session import Session  # noqa: PLC0415 -- see above

            self._session = Session(
                self.way,
                timeout=self.wishes.timeout,
                retry_for=self.retry_for,
                told=self._tell_retry,
            )
            self.context.call_on_close(self._session.client.close)
        return self._session

    def _tell_retry(self, failure: "Response | Unreachable", _pause: float) -> None:
        """Whoever looks at the terminal learns why nothing happens, once."""
        if not self._told_retry and not self.wishes.quiet:
            from betimes.sdk.exchange import Response, problem_of  # noqa: PLC0415 -- see above

            said = "does not answer"
            if isinstance(failure, Response):
                said = f"answers {problem_of(failure)}"
            click.echo(f"the service {said}; trying again", err=True)
        self._told_retry = True

    @property
    def form(self) -> str:
        """The form of what is printed: as said, or as the session of the user has it."""
        form = (
            self.wishes.output
            or ambient.variable("BETIMES_OUTPUT")
            or self.way.profile.get("output")
            or "table"
        )
        if form not in FORMS:
            raise click.UsageError(f"expected an output out of {', '.join(FORMS)}, got {form!r}.")
        return form

    @property
    def for_people(self) -> bool:
        """Whether sentences may stand on stdout."""
        return self.form in ("table", "wide") and not self.wishes.query and not self.wishes.fields

    @property
    def now(self) -> datetime:
        """The time here."""
        return machine.now()

    @property
    def zone(self) -> tzinfo:
        """The zone of the reader."""
        if self.wishes.utc:
            return UTC
        return zone_of(self.wishes.tz or self.way.profile.get("timezone"))

    def eye(self) -> Eye:
        """How the reader looks at what is printed."""
        return Eye(
            now=self.now,
            zone=self.zone,
            colours=colours(self.wishes),
            headers=not self.wishes.no_headers,
        )

    def text(self, value: Any) -> str:
        """An answer in the form that was asked for."""
        answer = answer_of(value) if not isinstance(value, Answer) else value
        chosen = self.wishes.query is not None or self.wishes.fields is not None
        answer = picked(answer, query=self.wishes.query, fields=self.wishes.fields)
        return text_of(answer, self.form, self.look, self.eye(), chosen=chosen)

    def show(self, value: Any) -> None:
        """Print an answer."""
        if isinstance(value, bytes):
            sys.stdout.flush()
            sys.stdout.buffer.write(value)
        elif isinstance(value, str):
            click.echo(value, nl=not value.endswith("\n"))
        else:
            click.echo(self.text(value), nl=False)

    def done(self, sentence: str, value: Any) -> None:
        """Tell people that it is done, and programs what was answered."""
        if not self.for_people or not sentence:
            if value is not None:
                self.show(value)
        elif not self.wishes.quiet:
            click.echo(sentence)

    def remark(self, sentence: str) -> None:
        """Talk beside the data, unless quiet is wished for."""
        if not self.wishes.quiet:
            click.echo(sentence, err=True)

    def confirm(self, question: str, *, name: str | None = None) -> None:
        """Ask before something is destroyed; what has a name is confirmed by it."""
        if self.wishes.yes:
            return
        if not machine.somebody_types():
            raise click.UsageError(f"{question}? Say --yes when nobody can be asked.")
        if name is None:
            click.confirm(f"{question}?", abort=True, err=True)
            return
        typed = click.prompt(f"{question}? Type {name} to go on", err=True, default="")
        if typed != name:
            raise click.Abort


def colours(wishes: Wishes) -> bool:
    """Whether to paint: only on a terminal that can, for whoever did not forbid it."""
    if wishes.no_color or ambient.variable("NO_COLOR") or ambient.variable("TERM") == "dumb":
        return False
    return machine.somebody_reads()


def service_command(
    name: str, *, example: str = "", **options: Any
) -> Callable[[Callable[..., Any]], click.Command]:
    """Decorate a function that takes a `Talk` and its own options as a command."""

    def decorate(function: Callable[..., Any]) -> click.Command:
        @click.pass_context
        def called(context: click.Context, /, **given: Any) -> Any:
            talk = Talk(context, options.get("look"), new_profile=bool(options.get("new_profile")))
            return function(talk, **given)

        called.__doc__ = function.__doc__
        called.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]
        kept: Mapping[str, Any] = {k: v for k, v in options.items() if k not in OURS}
        return click.command(name, cls=ServiceCommand, example=example, **kept)(called)

    return decorate
