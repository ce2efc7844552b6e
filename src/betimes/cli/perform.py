"""Doing what a verb says: make the call, ask first where it destroys, show what came back."""

from collections.abc import Mapping
from typing import Any

import click

from betimes.cli.also import meant
from betimes.cli.build import members_of, takes_several
from betimes.cli.command import Talk
from betimes.cli.offer import Offer
from betimes.cli.parts import parts_of, with_parts
from betimes.cli.present import PRESENTERS
from betimes.cli.said import body_of, document_of, query_of, whole
from betimes.cli.times import seconds_of
from betimes.cli.tree import Verb

OK, FAILED = 0, 1


class Call:
    """One verb with what was said."""

    def __init__(self, talk: Talk, verb: Verb, offer: Offer, given: Mapping[str, Any]) -> None:
        given = meant(verb.operation, offer, given)
        self.talk, self.verb, self.offer, self.given = talk, verb, offer, given
        now, zone = talk.now, talk.zone
        members = members_of(verb, offer)
        in_query = set(offer.query)
        self.query = query_of(
            [one for one in members if one in in_query], given, now=now, zone=zone
        )
        if given.get("trial"):
            self.query["validate_only"] = True
        self.body: Any = None
        if offer.raw:
            self.body = given["content"].read()
        elif offer.body is not None:
            start = document_of(given["file"]) if given.get("file") else {}
            said = body_of(
                [one for one in members if one not in in_query], given, now=now, zone=zone
            )
            self.body = merged(start, said)
        if verb.operation == "jobs.create":
            self._complete_schedule()
        self._name_jobs()
        self.headers: dict[str, str] = {}
        if given.get("if_match"):
            self.headers["if-match"] = quoted(given["if_match"])
        if given.get("idempotency_key"):
            self.headers["idempotency-key"] = given["idempotency_key"]

    def _complete_schedule(self) -> None:
        """With the parts that were said beside it; --tz is its zone where it has none."""
        parts, schedule = parts_of(self.given), self.body.get("schedule")
        zone = self.talk.wishes.tz
        if zone and schedule and not (isinstance(schedule, dict) and schedule.get("timezone")):
            parts = {"timezone": zone, **parts}
        if parts:
            self.body["schedule"] = with_parts(schedule, parts)

    def _name_jobs(self) -> None:
        """Let jobs be named in filters."""
        for said in (self.query, (self.body or {}).get("filter") if not self.offer.raw else None):
            if isinstance(said, dict) and isinstance(said.get("job"), str):
                said["job"] = self.talk.session.job_id(said["job"])

    def ask(self, path: Mapping[str, str], **more: Any) -> Any:
        """Make the call."""
        body = {**self.body, **more} if more else self.body
        return self.talk.session.call(
            self.offer, path, query=self.query, body=body, headers=self.headers
        )


def perform(talk: Talk, verb: Verb, offer: Offer, noun: str, given: Mapping[str, Any]) -> int:
    """Run a verb; the answer is the exit code."""
    call = Call(talk, verb, offer, given)
    if given.get("watch"):
        from betimes.cli.waking import Waker, types_of  # noqa: PLC0415 -- only who watches pays
        from betimes.cli.watching import watch  # noqa: PLC0415 -- as above

        with Waker(talk.way, types_of(noun or verb.name)) as waker:
            return watch(
                talk, lambda: read(call), seconds=seconds(given["interval"]), pause=waker.pause
            )
    if offer.method == "GET":
        return present(talk, verb, read(call))
    if takes_several(verb, offer):
        return each(call, noun)
    path = path_of(call)
    if verb.danger and not given.get("trial"):
        name = next(iter(path.values()), None)
        talk.confirm(verb.danger.format(name), name=name)
    answer = counted(call, path) if verb.counted else call.ask(path)
    return finish(call, noun, path, answer)


def path_of(call: Call) -> dict[str, str]:
    """The names in the path."""
    return {name: call.given[f"path_{name}"] for name in call.offer.parameters}


def read(call: Call) -> Any:
    """A list as far as it is wanted, or one thing."""
    path = path_of(call)
    if not call.offer.pages:
        return call.ask(path)
    most = None if call.given["everything"] else call.given["limit"]
    return list(call.talk.session.rows(call.offer, path, query=call.query, most=most))


def each(call: Call, noun: str) -> int:
    """The same for several things; the first refusal ends it."""
    (parameter,) = call.offer.parameters
    names = call.given[f"path_{parameter}"]
    if call.verb.danger and not call.given.get("trial"):
        for name in names:
            call.talk.confirm(call.verb.danger.format(name), name=name)
    for name in names:
        answer = call.ask({parameter: name})
        call.talk.done(f"{noun}/{name} {call.verb.done}", answer)
    return OK


def counted(call: Call, path: Mapping[str, str]) -> Any:
    """An action over a filter: count first, ask, then confirm that number."""
    if call.given.get("said_dry_run") or call.given.get("said_confirm_count") is not None:
        return call.ask(path)
    matched = call.ask(path, dry_run=True)["matched"]
    if matched == 0:
        return {"matched": 0, "done": 0, "dry_run": False}
    action = call.body.get("action", call.verb.name).replace("_", " ")
    things = "thing" if matched == 1 else "things"
    call.talk.confirm(f"This will {action} {matched:,} {things}. Go on")
    return call.ask(path, confirm_count=matched)


def finish(call: Call, noun: str, path: Mapping[str, str], answer: Any) -> int:
    """Wait where that was asked for, then tell."""
    talk, verb = call.talk, call.verb
    if call.given.get("wait") and isinstance(answer, Mapping):
        from betimes.cli.follow import await_end  # noqa: PLC0415 -- only who waits pays

        limit = call.given.get("wait_for")
        return await_end(talk, answer, seconds=seconds(limit) if limit else None)
    name = "~".join(path.values()) or noun
    if verb.done and not call.given.get("trial"):
        talk.done(f"{noun}/{name} {verb.done}" if path else f"{noun} {verb.done}", answer)
        return OK
    return present(talk, verb, answer)


def present(talk: Talk, verb: Verb, answer: Any) -> int:
    """Show an answer; some have a form of their own for people, and one may mean failure."""
    presenter = PRESENTERS.get(verb.operation)
    if presenter is not None and talk.for_people and not isinstance(answer, bytes):
        click.echo(presenter(answer, talk.eye()), nl=False)
    else:
        talk.show(answer)
    broken = verb.operation == "audit.verify" and not answer["intact"]
    return FAILED if broken else OK


def merged(under: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """One object over another, objects inside included."""
    found = dict(under)
    for name, value in over.items():
        below = found.get(name)
        if isinstance(value, Mapping) and isinstance(below, dict):
            found[name] = merged(below, value)
        else:
            found[name] = value
    return found


def quoted(etag: str) -> str:
    """An entity tag as HTTP writes it."""
    return etag if etag.startswith('"') else f'"{etag}"'


def seconds(text: str) -> float:
    """`2s`, `1m` or a plain number of seconds."""
    found = seconds_of(text)
    if not found:
        found = float(whole("the number of seconds", text))
    if found <= 0:
        raise click.BadParameter(f"expected a time longer than nothing, got {text!r}.")
    return found
