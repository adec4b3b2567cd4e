"""Token counts and times in provider responses, which some providers send as text, as fractions or as -1."""

from google.protobuf.timestamp_pb2 import Timestamp

from umg_grpc.v1.limits import MAX_COUNT

Count = int | float | str | None  # `50`, `50.0`, and `"50"` of providers that write 64-bit numbers as text


def as_number(tokens: Count) -> float | None:
    """Return a provider's token count as a number, also a count that is sent as a string; None for None and for a text
    that is not a number.
    """
    if isinstance(tokens, str):
        return int(tokens) if tokens.isdecimal() and len(tokens) < 20 else None
    return tokens


def count(tokens: Count) -> int:
    """Return a provider's token count as an integer from 0 to `MAX_COUNT`, so that a wrong count fails no response:
    some providers send -1 for a value that they did not count. 0 for None.
    """
    if type(tokens) is int and 0 <= tokens <= MAX_COUNT:  # nearly every count
        return tokens
    return int(min(max(0, as_number(tokens) or 0), MAX_COUNT))


def completed(input_tokens: Count, output_tokens: Count, total: Count) -> tuple[Count, Count]:
    """Return the tokens of the prompt and of the response; one that the provider left out is the difference of the
    other to the total, None without a total.
    """
    if (number := as_number(total)) is None:
        return input_tokens, output_tokens
    if output_tokens is None:
        return input_tokens, None if input_tokens is None else max(0, number - count(input_tokens))
    return max(0, number - count(output_tokens)) if input_tokens is None else input_tokens, output_tokens


def position(index: Count) -> int:
    """Return a provider's list index as an integer, 0 for None and for negative numbers. Raise ValueError if it is
    larger than `MAX_COUNT`.
    """
    number = int(max(0, as_number(index) or 0))
    if number > MAX_COUNT:
        raise ValueError(f"an index of {number}")
    return number


LAST_SECOND = 253_402_300_799
"""End of the year 9999, the last second that a `Timestamp` may hold."""


def set_time(seconds: Count, target: Timestamp) -> None:
    """Set the timestamp `target` from a provider's Unix seconds. Leave it unset for None, and for a value outside the
    calendar, for example milliseconds.
    """
    number = seconds if type(seconds) is int else as_number(seconds) or 0
    if 0 < number <= LAST_SECOND:
        target.seconds = int(number)
