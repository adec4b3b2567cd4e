"""Budgets of tokens to think as efforts, for formats that know no budgets."""

# Budget up to which an effort is the nearest: midway between the budgets that gateways give to the efforts (1024, 8192,
# 24576).
_NEAREST = [(0, "none"), (4608, "low"), (16384, "medium")]


def nearest_effort(budget_tokens: int) -> str:
    """The nearest effort; "" for -1, where the model decides."""
    if budget_tokens < 0:
        return ""
    return next((effort for limit, effort in _NEAREST if budget_tokens <= limit), "high")
