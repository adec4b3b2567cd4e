"""Numbers of tokens, as providers write them."""

Count = int | float | str | None  # `50`, `50.0`, and `"50"` of providers that write 64-bit numbers as text


def count(tokens: Count) -> int:
    """A whole number, at least 0: some providers say -1 for what they did not count."""
    if type(tokens) is int:  # nearly always
        return max(0, tokens)
    if isinstance(tokens, str):
        tokens = int(tokens) if tokens.isdecimal() else 0
    return max(0, int(tokens or 0))
