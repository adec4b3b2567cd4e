"""Limit of the CPU work for JSON schemas and patterns of callers."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

MAX_NESTED = 150
"""Maximum keywords whose checks are nested; each takes three frames of the stack, of which Python allows 1000."""
STEP_SIZE = 64
"""Characters of a value or of its JSON whose check costs one step."""


class Exhausted(Exception):  # noqa: N818 - names the state of the budget
    """Exception for a budget that has no steps left."""


@dataclass
class WorkBudget:
    """Limit of the work on a caller's schemas and patterns, so that they cannot block the gateway: a number of steps
    of some microseconds each.
    """

    left: int
    nested: int = 0
    """Number of keywords whose checks are running."""

    def spend(self, steps: int) -> None:
        """Subtract `steps` from the budget. Raise Exhausted if it has no steps left."""
        self.left -= steps
        if self.left < 0:
            raise Exhausted

    @contextmanager
    def part(self, max_steps: int) -> "Iterator[WorkBudget]":
        """Return a context manager with a budget of at most `max_steps` and at most the steps that are left; the
        steps spent in the block are subtracted from this budget.
        """
        steps = min(max_steps, self.left)
        part = WorkBudget(steps)
        try:
            yield part
        finally:
            self.left -= min(steps, steps - part.left)
