"""Mapping of relevance scores of any scale to [0, 1]."""

import math
from collections.abc import Sequence

MAX_LOGIT = 16.0
"""Logit above which the logistic function distinguishes numbers badly."""
MIN_REMAINDER = 1 / (1 + math.exp(MAX_LOGIT))
"""Difference of the probability to 1 at the logit `MAX_LOGIT`."""
ROUNDING = 1e-3
"""Tolerance for scores in half precision that are meant to be in [0, 1]."""


def in_unit(scores: Sequence[float]) -> list[float]:
    """Return scores mapped into [0, 1], in the same order of size.

    If all scores are within it, they are unchanged, and scores outside by rounding are clamped. Otherwise they are raw
    logits, as some providers send them, and each becomes its probability, independent of the other scores.
    """
    if min(scores, default=0.0) >= -ROUNDING and max(scores, default=0.0) <= 1 + ROUNDING:
        return [min(1.0, max(0.0, score)) for score in scores]  # -0.0 as 0.0
    return [logistic(score) for score in scores]


def logistic(logit: float) -> float:
    """Return the probability of the logit: `1 / (1 + exp(-logit))`, with a slower curve beyond `MAX_LOGIT`. It never
    reaches 0 or 1, so that large logits stay distinct as far as floats allow.
    """
    remainder = _remainder(abs(logit))
    return remainder if logit < 0 else 1 - remainder


def _remainder(size: float) -> float:
    """Return 1 minus the probability of a logit of this absolute value. The two branches meet with the same slope."""
    return 1 / (1 + math.exp(size)) if size <= MAX_LOGIT else MIN_REMAINDER / (1 + math.log1p(size - MAX_LOGIT))
