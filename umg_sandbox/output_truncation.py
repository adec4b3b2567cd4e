"""Truncation of simulated responses at token limits and stop sequences, and their division into pieces for streams."""

import re
from collections.abc import Iterable, Sequence

from umg_sandbox.prompt_reader import Count

LONGEST_PIECE = 12
LOOK_AHEAD = 16
_PIECE = re.compile(rf"\s*\S{{1,{LONGEST_PIECE}}}|\s+")


def truncate(text: str, tokens: int, count: Count) -> str:
    """Return the longest beginning of a text with at most `tokens` tokens. `count`: returns a text's tokens."""
    if tokens <= 0:
        return ""
    if count(text) <= tokens:
        return text
    low, high = 0, len(text)  # invariant: the first `low` characters fit
    while high - low > 1:
        middle = (low + high) // 2
        if count(text[:middle]) <= tokens:
            low = middle
        else:
            high = middle
    # a longer beginning may have fewer tokens, if characters join to one token
    further = (end for end in range(min(len(text), low + LOOK_AHEAD), low, -1) if count(text[:end]) <= tokens)
    return text[: next(further, low)]


def cut_at_stop(text: str, sequences: Iterable[str]) -> tuple[str, str]:
    """Return (text in front of the first stop sequence in it, this sequence); (whole text, "") if it contains none."""
    places = [(at, sequence) for sequence in sequences if (at := text.find(sequence)) >= 0]
    if not places:
        return text, ""
    at, sequence = min(places, key=lambda place: place[0])
    return text[:at], sequence


def pieces(text: str, ends: Sequence[int] = ()) -> list[str]:
    """Return a text in small pieces for a stream. `ends`: positions in code points at which a piece must end."""
    result, begin = list[str](), 0
    for end in sorted({*(end for end in ends if 0 < end < len(text)), len(text)}):
        result += _PIECE.findall(text[begin:end])
        begin = end
    return result
