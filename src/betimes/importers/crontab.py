"""Crontabs: every line becomes a job, a setting for the lines below it, or a refusal."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from betimes.domain.errors import Refused
from betimes.importers.verdict import Verdict, digest, judged, slug
from betimes.importers.vixie import Expression, model, read_expression
from betimes.importers.walls import zone_info

SETTING = re.compile(
    r"""\s*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>[^\s=#"']+))\s*=\s*(?P<value>.*)"""
)
FIELDS = 5
ZONES = ("CRON_TZ", "TZ")
NOT_OURS = {
    "MAILTO": "mail about output is not sent; the log of a run keeps it",
    "MAILFROM": "mail about output is not sent; the log of a run keeps it",
    "RANDOM_DELAY": "cron waits for a random time of so many minutes; give the job a `jitter`",
    "START_HOURS_RANGE": "that is anacron's",
}
LENGTH_MAX = 1_000
SIXTH_FIELD = re.compile(
    r"(?:[*?](?:/[0-9]+)?|[0-9][0-9,/-]*|(?:mon|tue|wed|thu|fri|sat|sun)\b)(?:\s|$)", re.IGNORECASE
)
RETURN = "the line ends with a carriage return, which cron hands to the shell; it was taken away"


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """What a crontab does not say itself.

    `system` crontabs have a column with the user. `flavour` says whose crontab it is where that
    matters: cronie obeys CRON_TZ, Debian's cron does not; None leaves it open.
    """

    timezone: str | None = None
    system: bool = False
    user: str | None = None
    flavour: str | None = None
    handler: str = "shell"
    queue: str | None = None
    prefix: str = "cron"


@dataclass(slots=True)
class Reader:
    """Goes through the lines and remembers what holds for those below."""

    where: Where
    environment: dict[str, str] = field(default_factory=dict)
    timezone: str | None = None
    notes: tuple[str, ...] = ()

    def lines(self, text: str) -> Iterator[Verdict]:
        """A verdict for every line that says something."""
        if text and not text.endswith("\n"):
            self.notes = ("cron ignores or refuses a file whose last line does not end",)
        lines = text.split("\n")
        for number, line in enumerate(lines, 1):
            notes = self.notes if number == len(lines) else ()
            body = line
            if line.endswith("\r"):
                body = line.rstrip("\r")
                notes += (RETURN,)
            if not body.strip(" \t") or body.lstrip(" \t").startswith("#"):
                continue
            verdict = self._line(body, f"line {number}")
            yield replace(verdict, warnings=(*verdict.warnings, *notes))

    def _line(self, line: str, place: str) -> Verdict:
        found = SETTING.fullmatch(line)
        if found is not None:
            name = found["double"] or found["single"] or found["bare"] or ""
            return self._set(name, _unquoted(found["value"]), Verdict(place=place, source=line))
        try:
            return self._command(line, Verdict(place=place, source=line))
        except Refused as refused:
            return Verdict(place=place, source=line, reason=refused.sentence)

    def _set(self, name: str, value: str, verdict: Verdict) -> Verdict:
        warnings: tuple[str, ...] = ()
        if name in ZONES:
            return self._set_zone(name, value, verdict)
        if name in NOT_OURS and value:
            warnings = (f"{name}: {NOT_OURS[name]}",)
        if "$" in value:
            warnings += (f"cron does not expand {value!r}; neither do we",)
        self.environment[name] = value
        return replace(verdict, warnings=warnings)

    def _set_zone(self, name: str, value: str, verdict: Verdict) -> Verdict:
        if name == "TZ":
            self.environment[name] = value
            note = "TZ reaches the commands only; cron does not schedule by it"
            return replace(verdict, warnings=(note,))
        if self.where.flavour == "debian":
            self.environment[name] = value
            note = "Debian's cron does not schedule by CRON_TZ; it was taken as a variable"
            return replace(verdict, warnings=(note,))
        try:
            zone_info(value)
        except Refused as refused:
            self.timezone = ""
            return replace(verdict, reason=f"{refused.sentence}; the lines below have no zone")
        self.timezone = value
        note = (
            "cronie does not catch up when the clock of CRON_TZ jumps; these jobs do, "
            "as under Debian's cron"
        )
        if self.where.flavour is None:
            note = f"taken as the zone of the lines below, as cronie does; {note}"
        return replace(verdict, warnings=(note,))

    def _command(self, line: str, verdict: Verdict) -> Verdict:
        expression, rest, warnings = self._when(line)
        user = self.where.user
        if self.where.system:
            user, _, rest = rest.partition(" ") if " " in rest else (rest, "", "")
            rest = rest.lstrip(" \t")
        if not rest.strip():
            missing = "the command, or the user," if self.where.system else "the command"
            return replace(verdict, reason=f"{missing} is missing behind the time")
        if self.timezone == "":
            return replace(verdict, reason="the zone that was set above it is unknown")
        command, stdin = split_percent(rest)
        warnings += self._about(expression, command)
        return replace(
            verdict,
            job=self._job(expression, command, stdin, user),
            warnings=warnings,
            model=model(expression, self._zone()),
        )

    def _when(self, line: str) -> tuple[Expression, str, tuple[str, ...]]:
        body = line.strip(" \t").replace("\t", " ")
        warnings: tuple[str, ...] = ()
        if body.startswith("-"):
            body = body[1:]
            warnings = ("the `-` in front only keeps cron's own log silent; it was left out",)
        count = 1 if body.startswith("@") else FIELDS
        parts = body.split(None, count)
        if len(parts) < count:
            raise Refused(f"five fields and a command were expected, got {len(parts)} fields")
        expression = read_expression(" ".join(parts[:count]))
        return expression, parts[count] if len(parts) > count else "", warnings

    def _about(self, expression: Expression, command: str) -> tuple[str, ...]:
        notes = list(expression.notes)
        day, weekday = expression.fields[2], expression.fields[4]
        if "*" not in (day.text, weekday.text):
            meaning = "both must match" if expression.together else "either is enough"
            notes.append(f"both day fields are set: for cron {meaning}, and so it stays")
        if SIXTH_FIELD.match(command):
            notes.append("the command begins like a sixth field; cron has five, seconds included")
        if command.endswith("\\"):
            notes.append("cron knows no lines that go on in the next one")
        if self._zone_is_guessed():
            notes.append("read in UTC; cron takes the zone of its machine: say --tz")
        if len(command) > LENGTH_MAX:
            notes.append(f"cron cuts commands off at {LENGTH_MAX} characters, we do not")
        return tuple(notes)

    def _zone(self) -> str:
        return self.timezone or self.where.timezone or "UTC"

    def _zone_is_guessed(self) -> bool:
        return not self.timezone and self.where.timezone is None

    def _job(
        self, expression: Expression, command: str, stdin: str | None, user: str | None
    ) -> dict[str, Any]:
        payload: dict[str, Any] = {"command": command}
        if stdin is not None:
            payload["stdin"] = stdin
        if user:
            payload["user"] = user
        passed = {name: value for name, value in self.environment.items() if name not in NOT_OURS}
        if passed:
            payload["env"] = passed
        program = command.split(None, 1)[0].rpartition("/")[2] if command.strip() else "job"
        job: dict[str, Any] = {
            "name": f"{self.where.prefix}-{slug(program)}-"
            f"{digest(expression.text, self._zone(), command, stdin or '', user or '')}",
            "description": command[:200],
            "schedule": {
                **expression.members,
                "timezone": self._zone(),
                "overlap": "allow",
                "catchup": {"policy": "none"},
            },
            "handler": self.where.handler,
            "payload": payload,
            "retry": {"max_attempts": 1},
        }
        if self.where.queue:
            job["queue"] = self.where.queue
        mail = self.environment.get("MAILTO")
        if mail:
            job["metadata"] = {"mailto": mail}
        return job


def read_crontab(text: str, where: Where) -> list[Verdict]:
    """A verdict for every line of a crontab that is neither empty nor a comment."""
    return judged(list(Reader(where).lines(text)))


def split_percent(text: str) -> tuple[str, str | None]:
    r"""The command, and what it reads, letter by letter as Debian's cron goes.

    In the command `\%` is `%` and `\\` is `\`; the first bare `%` ends it. Behind it every bare `%`
    ends a line, and only `\%` is changed.
    """
    command = ""
    letters = iter(text)
    for letter in letters:
        if letter == "%":
            return command.rstrip(" \t"), _stdin("".join(letters))
        following = next(letters, "") if letter == "\\" else ""
        command += following if following in ("%", "\\") else letter + following
    return command.rstrip(" \t"), None


def _stdin(text: str) -> str:
    lines = re.sub(r"\\?%", lambda found: "%" if len(found[0]) > 1 else "\n", text)
    return lines if lines.endswith("\n") else f"{lines}\n"


def _unquoted(value: str) -> str:
    text = value.rstrip(" \t")
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    return text
