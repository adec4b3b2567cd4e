"""Limit of the work that a caller's schema may cause."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

MAX_NESTED = 150
"""Maximum keywords that are checked one inside another; each takes three frames of the stack, of which Python has
1000.
"""
STEP_SIZE = 64
"""Characters of a value, as a message repeats it, for each step."""


class Exhausted(Exception):  # noqa: N818 - names the state of the budget
    """All steps of a budget are spent."""


@dataclass
class Budget:
    """Number of steps that the work for a caller's schemas and patterns may still take, so that none occupies the
    gateway for long.
    """

    left: int
    nested: int = 0
    """Number of keywords whose checks are running."""

    def spend(self, steps: int) -> None:
        """Take steps from the budget. Raise Exhausted when none are left."""
        self.left -= steps
        if self.left < 0:
            raise Exhausted

    @contextmanager
    def part(self, max_steps: int) -> "Iterator[Budget]":
        """Return a new budget of at most `max_steps` steps, whose spent steps are taken from this one at the end."""
        steps = min(max_steps, self.left)
        part = Budget(steps)
        try:
            yield part
        finally:
            self.left -= min(steps, steps - part.left)
