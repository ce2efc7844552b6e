"""How much of very many jobs a forecast counts. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from betimes.store.forecast import SharedSpec

EXACT_MAX = 200_000
"""Up to so many jobs every one is counted; of more, a sample of the table."""
SAMPLE_ROWS = 400_000
SAMPLE_PERCENT_MIN = 0.01
FIRES_BUDGET = 1_000_000
"""Fires computed for one answer, in a thread; beyond, the rest of a span goes on as it began."""
FIRES_PER_SPEC_MIN = 200
SPECS_MAX = FIRES_BUDGET // FIRES_PER_SPEC_MIN
"""Of more specifications than these some stand for the others, so that the budget is one."""


def sample_percent(own: int | None, every: float) -> float | None:
    """How much of the table to read; None for all of it. Pure."""
    if (own is not None and own <= EXACT_MAX) or every <= EXACT_MAX:
        return None
    return max(SAMPLE_PERCENT_MIN, min(100.0, 100.0 * SAMPLE_ROWS / every))


def thinned(specs: Sequence[SharedSpec]) -> tuple[list[SharedSpec], float]:
    """As many specifications as are counted, and which part of all jobs they are. Pure.

    Those that most jobs share are counted as they are; of the others every so many-th stands for
    those beside it.
    """
    if len(specs) <= SPECS_MAX:
        return list(specs), 1.0
    half = SPECS_MAX // 2
    ordered = sorted(specs, key=lambda spec: -spec.jobs)
    often, rest = ordered[:half], ordered[half:]
    chosen = rest[:: -(-len(rest) // half)]
    counted = sum(spec.jobs for spec in chosen)
    factor = sum(spec.jobs for spec in rest) / counted
    part = (sum(spec.jobs for spec in often) + counted) / sum(spec.jobs for spec in specs)
    return often + [replace(spec, jobs=spec.jobs * factor) for spec in chosen], part
