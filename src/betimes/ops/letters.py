"""Dead letters, as the edges use them: the verbs, their values, and letters by a filter."""

from betimes.domain.ids import RunId, TenantId
from betimes.ops.dead_letters import (
    annotate_dead_letter,
    discard,
    estimate_letters,
    get_dead_letter,
    list_dead_groups,
    list_dead_letters,
    redrive,
    redrive_one,
)
from betimes.ops.desk import Desk
from betimes.store.dead_letters import BEGINNING, DeadLetter, LetterFilter, LetterState

__all__ = [
    "BEGINNING",
    "DeadLetter",
    "LetterFilter",
    "LetterState",
    "annotate_dead_letter",
    "discard",
    "estimate_letters",
    "find_letters",
    "get_dead_letter",
    "list_dead_groups",
    "list_dead_letters",
    "redrive",
    "redrive_one",
]


async def find_letters(
    desk: Desk, tenant: TenantId, chosen: LetterFilter, *, most: int
) -> list[RunId]:
    """The runs of letters that fit, oldest death first, no more than a bound."""
    page = await list_dead_letters(desk, tenant, chosen, limit=most)
    runs = [letter.run for letter in page.letters]
    while page.next is not None and len(runs) < most:
        page = await list_dead_letters(
            desk, tenant, chosen, after=page.next, limit=most - len(runs)
        )
        runs += [letter.run for letter in page.letters]
    return runs
