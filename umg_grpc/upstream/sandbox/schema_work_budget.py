"""Budget of CPU work for a caller's JSON schemas and patterns."""

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
    """Signal that a budget has no steps left."""


@dataclass
class Budget:
    """Number of steps that work on a caller's schemas and patterns may still take, so that it cannot block the
    gateway.
    """

    left: int
    nested: int = 0
    """Number of keywords whose checks are running."""

    def spend(self, steps: int) -> None:
        """Subtract steps from the budget. Raise Exhausted if none are left."""
        self.left -= steps
        if self.left < 0:
            raise Exhausted

    @contextmanager
    def part(self, max_steps: int) -> "Iterator[Budget]":
        """Return a context manager with a separate budget of at most `max_steps`, whose spent steps are subtracted at
        the end.
        """
        steps = min(max_steps, self.left)
        part = Budget(steps)
        try:
            yield part
        finally:
            self.left -= min(steps, steps - part.left)
