"""Figures: JSON lines on stdout for machines, words and a table on stderr for people."""

import json
import sys
from collections.abc import Sequence
from time import perf_counter

PERCENTILES = (50, 95, 99)
WIDTH = 30


class Report:
    """Collects the figures of one part."""

    def __init__(self, part: str) -> None:
        self._part = part
        self._began = perf_counter()
        self._rows: list[tuple[str, str]] = []

    def tell(self, figure: str, settings: dict[str, object], **values: object) -> None:
        """One figure with the settings it holds for."""
        line = {"bench": self._part, "figure": figure, "settings": settings, **values}
        print(json.dumps(line), flush=True)
        words = "  ".join(f"{name} {_shown(one)}" for name, one in values.items())
        self._rows.append((figure, words))
        self.progress(f"{figure}: {words}")

    def progress(self, words: str) -> None:
        """What is going on, with the seconds since the beginning."""
        seconds = perf_counter() - self._began
        print(f"[{self._part} {seconds:6.1f} s] {words}", file=sys.stderr, flush=True)

    def table(self) -> None:
        """All figures once more."""
        print(f"\n{self._part}", file=sys.stderr)
        for figure, words in self._rows:
            print(f"  {figure:<{WIDTH}} {words}", file=sys.stderr)
        print(file=sys.stderr, flush=True)


class Bar:
    """A progress bar that is drawn on terminals only."""

    def __init__(self, total: int, what: str) -> None:
        self._total = max(total, 1)
        self._what = what
        self._shown = sys.stderr.isatty()

    def draw(self, done: int) -> None:
        """So much is done."""
        if self._shown:
            filled = int(WIDTH * min(done / self._total, 1.0))
            bar = "#" * filled + "." * (WIDTH - filled)
            end = "\n" if done >= self._total else ""
            print(f"\r{self._what:<20} [{bar}] {done:,}", end=end, file=sys.stderr, flush=True)


def lags_ms(seconds: Sequence[float]) -> dict[str, float]:
    """Percentiles of lags in milliseconds."""
    if not seconds:
        return {f"p{one}_ms": float("nan") for one in PERCENTILES}
    ordered = sorted(seconds)
    found = {f"p{one}_ms": _percentile(ordered, one) for one in PERCENTILES}
    return {**found, "max_ms": round(ordered[-1] * 1e3, 2)}


def _percentile(ordered: Sequence[float], percent: int) -> float:
    place = min(len(ordered) - 1, len(ordered) * percent // 100)
    return round(ordered[place] * 1e3, 2)


def _shown(one: object) -> str:
    return f"{one:,}" if isinstance(one, int | float) else str(one)
