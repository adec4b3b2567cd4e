"""Unit of costs and budgets: whole micro-credits, and their text in credits."""

import re

MICRO_CREDITS = 1_000_000
GROUPED_NUMBER = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]*)?")


def credits_text(micro_credits: int) -> str:
    """Return micro-credits as an exact decimal number of credits."""
    whole, micros = divmod(micro_credits, MICRO_CREDITS)
    return f"{whole}.{micros:06d}"


def without_thousands(number: str) -> str:
    """Return a number without the commas between its thousands. Any other comma stays, so that `1,5` is no number."""
    return number.replace(",", "") if GROUPED_NUMBER.fullmatch(number) else number
