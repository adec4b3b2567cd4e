"""Conversion of reasoning budgets in tokens to effort levels, for formats without budgets."""

# Largest budget of each effort: midway between the budgets that gateways use for the efforts (1024, 8192, 24576).
_NEAREST = [(0, "none"), (4608, "low"), (16384, "medium")]


def nearest_effort(budget_tokens: int) -> str:
    """Return the reasoning effort (`none`, `low`, ...) nearest to a budget of tokens; "" for -1, which leaves the
    amount to the model.
    """
    if budget_tokens < 0:
        return ""
    return next((effort for limit, effort in _NEAREST if budget_tokens <= limit), "high")
