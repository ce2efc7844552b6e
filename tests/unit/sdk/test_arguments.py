"""Parameters as payloads: checked by annotations, sent as JSON, described by a schema."""

import enum
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from pydantic import BaseModel

from betimes import App, Context, Unfit
from betimes.sdk.arguments import Arguments


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Line:
    product: uuid.UUID
    price: Decimal


class Customer(BaseModel):
    id: int
    boss: "Customer | None" = None


class Invoice(BaseModel):
    customer: Customer
    sent_at: datetime


def arguments(function: Any) -> Arguments:
    return Arguments(function, function.__name__)


def everything(
    ctx: Context,
    line: Line,
    invoice: Invoice,
    colours: list[Colour],
    at: datetime,
    note: str | None = None,
    *,
    tries: int = 3,
) -> str:
    return f"{line} {invoice} {colours} {at} {note} {tries}"


LINE = Line(uuid.UUID(int=7), Decimal("12.50"))
INVOICE = Invoice(
    customer=Customer(id=1, boss=Customer(id=2)), sent_at=datetime(2026, 1, 2, tzinfo=UTC)
)
AT = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)


def test_what_goes_in_comes_out() -> None:
    """Dataclasses, models, enums, decimals, ids and times survive the way through JSON."""
    known = arguments(everything)
    payload = known.encode((LINE, INVOICE, [Colour.RED], AT), {"tries": 5})
    assert payload is not None
    assert set(msgspec.json.decode(payload)) == {"line", "invoice", "colours", "at", "tries"}
    found = known.decode(payload)
    assert found == {
        "line": LINE,
        "invoice": INVOICE,
        "colours": [Colour.RED],
        "at": AT,
        "tries": 5,
    }


def test_what_is_left_out_has_the_default_of_the_function() -> None:
    """Defaults are not frozen into payloads: the handler that runs later decides."""

    def greet(name: str = "you", times: int = 1) -> str:
        return name * times

    known = arguments(greet)
    assert known.encode((), {}) is None
    assert known.decode(None) == known.decode(b"null") == {}
    assert known.decode(b'{"times":2}') == {"times": 2}
    assert known.call(Context.__new__(Context), {"times": 2}) == "youyou"


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ((Line("no", Decimal(1)), INVOICE, [], AT), "line.product"),  # type: ignore[arg-type]
        ((LINE, INVOICE, ["green"], AT), "colours"),
        ((LINE, INVOICE, [], "yesterday"), "at"),
        ((LINE, object(), [], AT), "object"),
    ],
)
def test_what_does_not_fit_is_refused_before_it_is_sent(args: tuple[Any, ...], told: str) -> None:
    with pytest.raises(Unfit, match="everything") as refused:
        arguments(everything).encode(args, {})
    assert told in str(refused.value)


def test_wrong_calls_are_refused_as_python_does() -> None:
    with pytest.raises(TypeError, match="missing a required argument: 'line'"):
        arguments(everything).encode((), {})
    with pytest.raises(TypeError, match="unexpected"):
        arguments(everything).encode((LINE, INVOICE, [], AT), {"colour": 1})


def test_a_payload_of_somebody_else_is_checked_too() -> None:
    known = arguments(everything)
    with pytest.raises(Unfit, match="unknown field"):
        known.decode(b'{"surprise":1}')
    with pytest.raises(Unfit, match="missing required field"):
        known.decode(b"{}")
    with pytest.raises(Unfit, match="truncated"):
        known.decode(b"{")


def test_the_schema_says_what_is_accepted() -> None:
    """An independent reader of the schema agrees with us about what fits."""
    known = arguments(everything)
    schema = known.schema
    assert schema is not None
    judge = jsonschema_rs.validator_for(schema)
    payload = known.encode((LINE, INVOICE, [Colour.RED], AT), {})
    assert payload is not None
    good = msgspec.json.decode(payload)
    assert judge.is_valid(good)
    assert not judge.is_valid({**good, "surprise": 1})
    assert not judge.is_valid({**good, "colours": ["green"]})
    assert not judge.is_valid({**good, "invoice": {"customer": {"id": "x"}, "sent_at": "now"}})
    assert not judge.is_valid({name: one for name, one in good.items() if name != "line"})
    assert not judge.is_valid(None)


def test_who_needs_nothing_accepts_nothing() -> None:
    def tidy(ctx: Context, days: int = 30) -> None:
        """Needs no arguments."""

    schema = arguments(tidy).schema
    assert schema is not None
    judge = jsonschema_rs.validator_for(schema)
    assert judge.is_valid(None)
    assert judge.is_valid({})
    assert not judge.is_valid({"days": "many"})


def test_the_context_is_no_argument() -> None:
    def bare(ctx, number):  # type: ignore[no-untyped-def]
        return number

    def late(ctx: "Context", number: "int") -> int:
        return number

    def none(number: int) -> int:
        return number

    assert [arguments(one).takes_context for one in (bare, late, none)] == [True, True, False]
    assert arguments(bare).encode((1,), {}) == b'{"number":1}'


def test_parameters_without_a_name_are_refused() -> None:
    def many(*numbers: int) -> None:
        """Takes any number of them."""

    with pytest.raises(TypeError, match="named parameters"):
        arguments(many).encode((1,), {})


def test_annotations_json_cannot_hold_are_refused_with_a_sentence() -> None:
    class Opaque:
        pass

    def store(thing: Opaque) -> None:
        """Takes something that has no JSON."""

    with pytest.raises(Unfit, match="store"):
        arguments(store).encode((Opaque(),), {})


def test_results_are_read_as_annotated() -> None:
    def when(ctx: Context) -> timedelta | None:
        return None

    def anything(ctx: Context):  # type: ignore[no-untyped-def]
        return None

    assert arguments(when).result(b'"PT5M"') == timedelta(minutes=5)
    assert arguments(anything).result(b"[1]") == [1]


def test_an_app_touches_nothing_and_refuses_a_second_task_of_a_name() -> None:
    app = App("http://127.0.0.1:1", "key")

    @app.task
    def twice(number: int) -> int:
        return 2 * number

    assert (twice.name, twice(4), twice.call(4), twice.__name__) == ("twice", 8, 8, "twice")
    assert app.name == "test_arguments" or app.name.endswith(".test_arguments")
    with pytest.raises(ValueError, match="'twice'"):
        app.task(name="twice")(lambda: None)
    with pytest.raises(TypeError, match="'quue'"):
        app.task(quue="mail")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="'dely'"):
        twice.configure(dely=1)  # type: ignore[call-arg]


def test_parameters_without_names_are_refused_where_they_are_written() -> None:
    app = App(name="test")

    def starred(*numbers: int) -> None: ...

    def doubly(**numbers: int) -> None: ...

    for function, told in ((starred, r"\*numbers"), (doubly, r"\*\*numbers")):
        with pytest.raises(TypeError, match=told):
            app.task(function)
