"""Conversion of relevance scores of any scale to numbers from 0 to 1."""

import math
from collections.abc import Sequence

MAX_LOGIT = 16.0
"""Logit above which the logistic function hardly distinguishes values; a different curve applies there."""
MIN_REMAINDER = 1 / (1 + math.exp(MAX_LOGIT))
"""1 minus the probability at the logit `MAX_LOGIT`."""
ROUNDING_TOLERANCE = 1e-3
"""Tolerance for scores that exceed [0, 1] only because they were computed in half precision."""


def in_unit(scores: Sequence[float]) -> list[float]:
    """Return a response's scores converted to [0, 1], in the same ranking. Scores within [0, 1], up to rounding, are
    only clamped. Otherwise they are raw logits, which some providers send, and become probabilities.
    """
    if min(scores, default=0.0) >= -ROUNDING_TOLERANCE and max(scores, default=0.0) <= 1 + ROUNDING_TOLERANCE:
        return [min(1.0, max(0.0, score)) for score in scores]  # -0.0 as 0.0
    return [logistic(score) for score in scores]


def logistic(logit: float) -> float:
    """Return the probability of a logit: `1 / (1 + exp(-logit))`. Beyond `MAX_LOGIT` a slower curve applies, which
    never reaches 0 or 1, so that large logits stay distinct.
    """
    remainder = _remainder(abs(logit))
    return remainder if logit < 0 else 1 - remainder


def _remainder(size: float) -> float:
    return 1 / (1 + math.exp(size)) if size <= MAX_LOGIT else MIN_REMAINDER / (1 + math.log1p(size - MAX_LOGIT))
