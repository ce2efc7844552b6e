"""What an evaluation may cost.

Whoever asks a schedule something gives a budget of steps, and every walk spends from it: so many
for each year, month, date, segment of a zone or block of fires that it looks at. A step is about a
microsecond of work, but it is counted, not timed: the same question costs the same on every
machine, and what is refused on one node is refused on all.

What is found in constant time (the next fire of a cron expression within the month) spends nothing.
"""

from betimes.domain.errors import TooExpensive
from betimes.schedule.bounds import EVALUATION_STEPS_MAX

FIRES_PER_STEP = 16
"""Fires computed as a block cost little each."""


class Budget:
    """The steps that are left for one evaluation, or for several that belong together."""

    __slots__ = ("left", "steps")

    def __init__(self, steps: int = EVALUATION_STEPS_MAX) -> None:
        self.steps = steps
        self.left = steps

    def spend(self, steps: int) -> None:
        """Take some steps, or refuse to go on.

        Raises:
            TooExpensive: there are not so many left.

        """
        self.left -= steps
        if self.left < 0:
            raise TooExpensive(
                f"expected a schedule that can be evaluated in {self.steps} steps, got one that "
                "takes more; ask for fewer fires or a shorter span, lower COUNT, INTERVAL, "
                "BYSETPOS or max_fires, or name fewer dates, calendars and members"
            )

    def spend_on(self, fires: int) -> None:
        """Take the steps of a block of fires."""
        self.spend(fires // FIRES_PER_STEP + 1)

    @property
    def spent(self) -> int:
        """How many steps were taken."""
        return self.steps - self.left


class OwnBudget(Budget):
    """The budget of a question whose asker gave none: the usual one, and free until it is used.

    Of these there are as many as fires are asked for. So it is made without a step of Python, and
    what is left in the beginning stands in the class.
    """

    __init__ = object.__init__
    left: int = EVALUATION_STEPS_MAX
    steps: int = EVALUATION_STEPS_MAX
