"""Numbers of tokens, as providers write them."""

Count = int | float | str | None  # `50`, `50.0`, and `"50"` of providers that write 64-bit numbers as text

MOST = 2**53
"""More is nonsense, and several of these have to fit into 64 bits together."""


def as_number(tokens: Count) -> float | None:
    """What is told; None for a text that is no number."""
    if isinstance(tokens, str):
        return int(tokens) if tokens.isdecimal() and len(tokens) < 20 else None
    return tokens


def count(tokens: Count) -> int:
    """A whole number, at least 0: some providers say -1 for what they did not count."""
    return int(min(max(0, as_number(tokens) or 0), MOST))
