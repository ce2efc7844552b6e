"""Failures are bounded, storable, and grouped by what they have in common."""

import json

from betimes.domain.failure import MESSAGE_CHARACTERS_MAX, fingerprint, to_json
from betimes.domain.outcome import ErrorFacts

STACK = 'Traceback\n  File "{place}/mail.py", line {line}, in send\n    raise X\n'


def facts(message: str, *, line: int = 7, place: str = "/srv/a") -> ErrorFacts:
    return ErrorFacts("SmtpError", message, STACK.format(line=line, place=place))


def test_values_lines_and_folders_make_no_difference() -> None:
    first = facts("user 'ann' has 17 mails at 0x7f2a", line=7)
    second = facts("user 'bob' has 3 mails at 0x99", line=12, place="/opt/b")
    assert fingerprint(first) == fingerprint(second)


def test_type_words_and_function_do() -> None:
    base = facts("no route")
    others = [
        facts("no answer"),
        ErrorFacts("DnsError", base.message, base.stack),
        ErrorFacts(base.type, base.message, base.stack.replace("send", "receive")),
    ]
    assert len({fingerprint(one) for one in (base, *others)}) == 4


def test_the_fingerprint_is_the_same_in_every_process() -> None:
    assert fingerprint(ErrorFacts("A", "b")) == "a6ef4de823eb174e"


def test_what_is_stored_is_bounded_and_clean() -> None:
    stored = json.loads(to_json(ErrorFacts("A", "x\0y\ud800" + "z" * 100_000)))
    assert len(stored["message"]) <= MESSAGE_CHARACTERS_MAX
    assert stored["message"].startswith("x\N{REPLACEMENT CHARACTER}y?z")
