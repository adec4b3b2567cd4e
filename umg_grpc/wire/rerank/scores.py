"""Scores of any scale -> [0, 1]."""

import math
from collections.abc import Sequence

MOST = 16.0
"""Beyond this the logistic function tells no two numbers apart well."""
ROUNDING = 1e-3
"""By so much scores of half precision that are meant to be in [0, 1] may be out of it."""


def in_unit(scores: Sequence[float]) -> list[float]:
    """The finite scores within [0, 1], in the same order of size.

    Scores that all are within it stay as they are. Otherwise they are raw logits, as some providers give them, and each
    becomes its probability by the logistic function; where one is beyond 16 or -16 all are shrunk to that first, so
    that none become equal. Scores out of range by no more than rounding does are squeezed into it instead: their
    provider means probabilities.
    """
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    if low >= 0 and high <= 1:
        return [score + 0.0 for score in scores]  # -0.0 as 0.0
    if low >= -ROUNDING and high <= 1 + ROUNDING:
        low, high = min(low, 0.0), max(high, 1.0)
        return [(score - low) / (high - low) for score in scores]
    shrunk = min(1.0, MOST / max(-low, high))
    return [logistic(score * shrunk) for score in scores]


def logistic(logit: float) -> float:
    """The probability of the logit, in [0, 1]."""
    if logit < 0:
        grown = math.exp(logit)
        return grown / (1 + grown)
    return 1 / (1 + math.exp(-logit))
