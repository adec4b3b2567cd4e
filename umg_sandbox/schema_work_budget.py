"""Limit of the CPU work for JSON schemas and patterns of callers."""

from dataclasses import dataclass
from typing import Optional

MAX_STEPS = 40_000
"""Maximum steps for one attempt at a value. Each step takes some microseconds."""
REQUEST_STEPS = 5 * MAX_STEPS
"""Maximum steps for all values of one request, since a caller may request many responses and tool calls."""
MAX_NESTED = 150
"""Maximum keywords whose checks are nested; each takes three frames of the stack, of which Python allows 1000. The
persistent maps of jsonschema's resolver panic where the stack ends.
"""
STEP_SIZE = 64
"""Characters of a value or of its JSON whose check costs one step."""


class Exhausted(Exception):  # noqa: N818 - names the state of the budget
    """Exception for a budget that has no steps left."""


@dataclass
class WorkBudget:
    """Limit of the work on a caller's schemas and patterns, so that these cannot block the gateway. It is a number of
    steps, which are also subtracted from an outer budget, if there is one.
    """

    left: int = REQUEST_STEPS
    outer: Optional["WorkBudget"] = None
    nested: int = 0

    def spend(self, steps: int) -> None:
        """Subtract `steps` from the budget. Raise Exhausted if it has no steps left."""
        self.left -= steps
        if self.outer is not None:
            self.outer.spend(steps)
        if self.left < 0:
            raise Exhausted
