"""Token counts and times in provider responses, which some providers send as text, as fractions or as -1."""

from google.protobuf.timestamp_pb2 import Timestamp

from umg_grpc.v1.limits import MAX_COUNT

Count = int | float | str | None  # `50`, `50.0`, and `"50"` of providers that write 64-bit numbers as text


def as_number(tokens: Count) -> float | None:
    """Return a provider's token count as a number, also if it was sent as a string; None for any other text."""
    if isinstance(tokens, str):
        return int(tokens) if tokens.isdecimal() and len(tokens) < 20 else None
    return tokens


def count(tokens: Count) -> int:
    """Return a provider's token count as an integer from 0 to `MAX_COUNT`; 0 for None. A wrong count is no error, since
    some providers send -1 for a value that they did not count.
    """
    if type(tokens) is int and 0 <= tokens <= MAX_COUNT:  # nearly every count
        return tokens
    return int(min(max(0, as_number(tokens) or 0), MAX_COUNT))


def completed(input_tokens: Count, output_tokens: Count, total: Count) -> tuple[Count, Count]:
    """Return the tokens of prompt and response. One that the provider left out follows from the total, if known."""
    if (number := as_number(total)) is None:
        return input_tokens, output_tokens
    if output_tokens is None:
        return input_tokens, None if input_tokens is None else max(0, number - count(input_tokens))
    return max(0, number - count(output_tokens)) if input_tokens is None else input_tokens, output_tokens


def position(index: Count) -> int:
    """Return a provider's list index, 0 for None and negative numbers. Raise ValueError above `MAX_COUNT`."""
    number = int(max(0, as_number(index) or 0))
    if number > MAX_COUNT:
        raise ValueError(f"an index of {number}")
    return number


LAST_SECOND = 253_402_300_799
"""End of the year 9999, the last second that a `Timestamp` may hold."""


def set_time(seconds: Count, target: Timestamp) -> None:
    """Set `target` from a provider's Unix seconds, but not for values outside the calendar (milliseconds)."""
    number = seconds if type(seconds) is int else as_number(seconds) or 0
    if 0 < number <= LAST_SECOND:
        target.seconds = int(number)
