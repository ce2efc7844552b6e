"""What is to do follows from the files and from what the database remembers, nothing else."""

from collections.abc import Sequence

import pytest

from betimes.domain.errors import Bug, Conflict
from betimes.store.migrate import Applied, Migration, complaints_of, in_order, known, pending_of


def step(number: int, kind: str = "expand", text: str = "SELECT 1;") -> Migration:
    return Migration(number, f"{number:04}_{kind}_probe", kind, text)


def applied(steps: Sequence[Migration]) -> list[Applied]:
    return [Applied(one.number, one.name, one.kind, one.checksum) for one in steps]


STEPS = (step(1), step(2), step(3))


def test_a_new_database_needs_everything() -> None:
    assert pending_of(STEPS, []) == STEPS


def test_only_what_is_missing_is_pending() -> None:
    assert pending_of(STEPS, applied(STEPS[:2])) == STEPS[2:]
    assert pending_of(STEPS, applied(STEPS)) == ()


def test_a_changed_file_is_a_changed_history() -> None:
    past = applied([step(1, text="SELECT 2;")])
    with pytest.raises(Conflict, match="0001_expand_probe was changed") as told:
        pending_of(STEPS, past)
    assert told.value.code == "migration_changed"


def test_a_hole_in_the_history_is_refused() -> None:
    with pytest.raises(Conflict, match="0002_expand_probe was never applied") as told:
        pending_of(STEPS, applied([STEPS[0], STEPS[2]]))
    assert told.value.code == "migration_missing"


def test_a_database_behind_is_not_served() -> None:
    [complaint] = complaints_of(STEPS, applied(STEPS[:1]))
    assert "lacks 2 migration(s), first 0002_expand_probe" in complaint
    assert "betimes server migrate" in complaint


def test_a_database_ahead_is_served_as_long_as_it_was_only_expanded() -> None:
    assert complaints_of(STEPS, applied(STEPS)) == []
    assert complaints_of(STEPS, applied([*STEPS, step(4)])) == []
    [complaint] = complaints_of(STEPS, applied([*STEPS, step(4), step(5, "contract")]))
    assert "0005_contract_probe" in complaint
    assert "upgrade betimes" in complaint


@pytest.mark.parametrize(
    "names",
    [
        ["0000_expand_a.sql"],
        ["0001_expand_a.sql", "0001_expand_b.sql"],
        ["0001_change_a.sql"],
        ["1_expand_a.sql"],
        ["0001_expand_a.txt"],
    ],
)
def test_names_with_doubles_or_no_kind_are_refused(names: list[str]) -> None:
    with pytest.raises(Bug):
        in_order(dict.fromkeys(names, "SELECT 1;"))


def test_numbers_may_leave_gaps() -> None:
    steps = in_order(dict.fromkeys(["0001_expand_a.sql", "0030_expand_b.sql"], "SELECT 1;"))
    assert [one.number for one in steps] == [1, 30]


def test_files_are_read_in_the_order_of_their_numbers() -> None:
    steps = in_order({"0002_contract_b.sql": "SELECT 2;", "0001_expand_a.sql": "SELECT 1;"})
    assert [(one.number, one.name, one.kind) for one in steps] == [
        (1, "0001_expand_a", "expand"),
        (2, "0002_contract_b", "contract"),
    ]


def test_a_step_without_a_transaction_is_sent_statement_by_statement() -> None:
    text = "-- transaction: no\nSELECT 1;  -- one; two\n\nSELECT\n  ';' AS kept;\n"
    assert step(1, text=text).statements == ["SELECT 1", "SELECT\n  ';' AS kept"]
    assert step(1, text="SELECT 1;\nSELECT 2;\n").statements == ["SELECT 1;\nSELECT 2;\n"]


def test_our_own_steps_can_be_read() -> None:
    numbers = [one.number for one in known()]
    assert numbers == sorted(set(numbers))
    assert len({one.checksum for one in known()}) == len(known())
