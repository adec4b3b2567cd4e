"""Unit of costs and budgets: whole micro-credits, and their text in credits."""

MICRO_CREDITS = 1_000_000


def credits_text(micro_credits: int) -> str:
    """Return micro-credits as an exact decimal number of credits."""
    whole, micros = divmod(micro_credits, MICRO_CREDITS)
    return f"{whole}.{micros:06d}"
