"""Scores of any scale -> [0, 1]."""

import math
from collections.abc import Sequence

MOST = 16.0
"""Beyond this the logistic function tells numbers apart badly."""
LEAST_REST = 1 / (1 + math.exp(MOST))
"""What the probability leaves to 1 there."""
ROUNDING = 1e-3
"""By so much scores of half precision that are meant to be in [0, 1] may be out of it."""


def in_unit(scores: Sequence[float]) -> list[float]:
    """The finite scores within [0, 1], in the same order of size.

    Scores that all are within it stay as they are, and those that rounding put out of it are put back. Otherwise they
    are raw logits, as some providers give them, and each becomes its probability, whatever its neighbours are.
    """
    if min(scores, default=0.0) >= -ROUNDING and max(scores, default=0.0) <= 1 + ROUNDING:
        return [min(1.0, max(0.0, score)) for score in scores]  # -0.0 as 0.0
    return [logistic(score) for score in scores]


def logistic(logit: float) -> float:
    """The probability of the logit: `1 / (1 + exp(-logit))`, which beyond `MOST` goes on more slowly: it never comes to
    0 or 1, so that large ones stay apart as far as a float can tell them.
    """
    rest = _rest(abs(logit))
    return rest if logit < 0 else 1 - rest


def _rest(size: float) -> float:
    """What the probability of a logit of this size leaves to 1. The two parts meet with one slope."""
    return 1 / (1 + math.exp(size)) if size <= MOST else LEAST_REST / (1 + math.log1p(size - MOST))
