"""Who may lease what has cost several workers, and when."""

from uuid import UUID

from betimes.domain.ids import WorkerId
from betimes.ops import suspects as module
from betimes.ops.suspects import EMPTYING_TRIES, LOOK_EVERY_SECONDS, Offer, Suspects

WORKER = WorkerId(UUID(int=1))


def looked(suspects: Suspects, *, found: bool, held: int, now: float) -> Offer:
    assert suspects.offer(WORKER, held=held, suspects=0, now=now) is Offer.LOOK
    return suspects.looked(WORKER, found=found, held=held, now=now)


def test_an_empty_worker_looks_for_suspects_first() -> None:
    suspects = Suspects()
    assert looked(suspects, found=True, held=0, now=0.0) is Offer.LOOK
    assert suspects.offer(WORKER, held=1, suspects=1, now=0.1) is Offer.NOTHING
    assert suspects.offer(WORKER, held=0, suspects=0, now=5.0) is Offer.LOOK, "there may be more"


def test_without_suspects_nobody_waits() -> None:
    suspects = Suspects()
    assert looked(suspects, found=False, held=3, now=0.0) is Offer.ORDINARY
    assert suspects.offer(WORKER, held=3, suspects=0, now=1.0) is Offer.ORDINARY
    assert suspects.offer(WORKER, held=0, suspects=0, now=1.0) is Offer.EITHER
    assert suspects.offer(WORKER, held=3, suspects=0, now=LOOK_EVERY_SECONDS) is Offer.LOOK


def test_a_busy_worker_gets_nothing_until_it_is_empty() -> None:
    suspects = Suspects()
    assert looked(suspects, found=True, held=3, now=0.0) is Offer.NOTHING
    assert suspects.offer(WORKER, held=3, suspects=0, now=1.0) is Offer.NOTHING
    assert suspects.offer(WORKER, held=3, suspects=0, now=2.5) is Offer.ORDINARY, "in between"
    assert suspects.offer(WORKER, held=0, suspects=0, now=1.5) is Offer.LOOK, "it is its turn"
    assert suspects.looked(WORKER, found=True, held=0, now=1.5) is Offer.LOOK


def test_one_that_never_is_empty_gets_it_beside_others() -> None:
    suspects = Suspects()
    now = 0.0
    offers: list[Offer] = []
    while len(offers) <= EMPTYING_TRIES:
        if suspects.offer(WORKER, held=3, suspects=0, now=now) is Offer.LOOK:
            offers.append(suspects.looked(WORKER, found=True, held=3, now=now))
        now += 0.5
    assert offers == [Offer.NOTHING] * EMPTYING_TRIES + [Offer.LOOK]
    assert now < 25.0
    assert suspects.offer(WORKER, held=4, suspects=1, now=now) is Offer.ORDINARY


def test_so_many_workers_are_remembered() -> None:
    suspects = Suspects()
    for number in range(module.WORKERS_MAX + 10):
        suspects.offer(WorkerId(UUID(int=number)), held=0, suspects=0, now=0.0)
    assert len(suspects._workers) == module.WORKERS_MAX
