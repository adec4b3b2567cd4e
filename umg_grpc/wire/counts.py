"""Numbers of tokens, as providers write them."""

Count = int | float | str | None  # `50`, `50.0`, and `"50"` of providers that write 64-bit numbers as text

MOST = 2**53
"""More is nonsense, and several of these have to fit into 64 bits together."""


def count(tokens: Count) -> int:
    """A whole number, at least 0: some providers say -1 for what they did not count."""
    if isinstance(tokens, str):
        tokens = int(tokens) if tokens.isdecimal() and len(tokens) < 20 else 0
    return int(min(max(0, tokens or 0), MOST))
