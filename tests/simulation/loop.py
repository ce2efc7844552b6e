"""An event loop with virtual time: nobody waits, and the seed says who is next.

Time advances only when nothing is ready. Statements to PostgreSQL are made synchronously by the
boundary, so the loop never waits for a socket, and the same seed always gives the same order.

Every callback belongs to a host, by the context it runs in. What belongs to a host that died never
runs again: no `finally`, no polite release. What belongs to a frozen host waits until it thaws,
while the world goes on.
"""

import asyncio
import heapq
from contextlib import suppress
from contextvars import Context, ContextVar
from dataclasses import dataclass, field
from random import Random
from typing import Any

STEPS_MAX = 2_000_000
"""More callbacks than any seed needs; a loop that spins without time passing is found by it."""


@dataclass(eq=False)
class Life:
    """Whether the callbacks of a host run."""

    name: str
    dead: bool = False
    frozen: bool = False
    kept: list[asyncio.Handle] = field(default_factory=list)
    """What became ready while it was frozen."""


WORLD = Life("world")
LIFE: ContextVar[Life] = ContextVar("life", default=WORLD)


class Stuck(Exception):
    """Nothing is ready and nothing will ever be."""


class VirtualLoop(asyncio.BaseEventLoop):
    """A loop for one seed."""

    _ready: Any
    _stopping: bool

    def __init__(self, dice: Random) -> None:
        super().__init__()
        self._dice = dice
        self._now = 0.0
        self._count = 0
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self.steps = 0
        self.tasks: list[asyncio.Task[Any]] = []
        self._numbers: dict[asyncio.Task[Any], int] = {}
        self.faults: list[dict[str, Any]] = []
        """What nobody caught."""
        self.set_exception_handler(lambda _, context: self.faults.append(context))
        self.set_task_factory(self._make_task)

    def time(self) -> float:
        """Virtual seconds since the seed began."""
        return self._now

    def thaw(self, life: Life) -> None:
        """Let a frozen host go on with everything that became ready meanwhile."""
        life.frozen = False
        kept, life.kept = life.kept, []
        self._ready.extend(kept)

    def end(self) -> None:
        """Forget everything that still waits; whatever it says on its way out, nobody hears."""
        for task in self.tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            if not task.done():
                with suppress(BaseException):
                    task.get_coro().close()
        self._ready.clear()
        self._timers.clear()
        self.close()
        self.tasks.clear()
        self._numbers.clear()

    def _check_closed(self) -> None:
        """What is left of a world may still schedule something; it never happens."""

    def _make_task(
        self, loop: asyncio.AbstractEventLoop, work: Any, context: Context | None = None
    ) -> "asyncio.Task[Any]":
        task: asyncio.Task[Any] = asyncio.Task(work, loop=loop, context=context)
        # Kept alive: what is collected early is closed early, and its `finally` would run.
        self._numbers[task] = len(self.tasks)
        self.tasks.append(task)
        return task

    def _number_of(self, handle: asyncio.Handle) -> int:
        numbers = self._numbers
        owner = getattr(handle._callback, "__self__", None)  # type: ignore[attr-defined]
        number = numbers.get(owner) if isinstance(owner, asyncio.Task) else None
        if number is None and handle._args and isinstance(handle._args[0], asyncio.Task):
            number = numbers.get(handle._args[0])
        return -1 if number is None else number

    def _run_once(self) -> None:
        if not self._ready:
            self._advance()
        ready = list(self._ready)
        self._ready.clear()
        if len(ready) > 1:
            # Tasks that were found in a set came in the order of their addresses.
            ready.sort(key=self._number_of)
            self._dice.shuffle(ready)
        for handle in ready:
            if handle._cancelled:
                continue
            life = handle._context.get(LIFE, WORLD)
            if life.dead:
                continue
            if life.frozen:
                life.kept.append(handle)
                continue
            self.steps += 1
            handle._run()
        if self.steps > STEPS_MAX:
            raise Stuck(f"more than {STEPS_MAX} steps by {self._now:.3f} s")

    def call_at(  # type: ignore[override]  # the same, said shorter
        self, when: float, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """As the stock one, on a heap that compares numbers: much is due, and then not."""
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        self._count += 1
        heapq.heappush(self._timers, (when, self._count, timer))
        return timer

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It is found when its time comes."""

    def _advance(self) -> None:
        """On to the next timer, and everything that is due with it."""
        timers = self._timers
        while timers and timers[0][2]._cancelled:
            heapq.heappop(timers)
        if not timers:
            if self._stopping:
                return
            raise Stuck(f"nothing is left to happen at {self._now:.3f} s")
        self._now = max(self._now, timers[0][0])
        while timers and timers[0][0] <= self._now:
            timer = heapq.heappop(timers)[2]
            if not timer._cancelled:
                self._ready.append(timer)

    def _process_events(self, event_list: Any) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """Nobody sleeps, so nobody needs to be woken."""
