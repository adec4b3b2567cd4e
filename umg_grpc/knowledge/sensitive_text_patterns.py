"""Patterns of secrets, card numbers and e-mail addresses that guards find in texts, each with its source. Pure."""

import re
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from umg_grpc.knowledge.data_files import read_rows


class GuardedPattern(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Pattern of sensitive text, with facts that show whether a match may begin at the end of a window of a stream."""

    name: str
    """Name in masks and reasons; several patterns may share a name."""
    set: str = ""
    """Name of the set in the config: `words` for an operator's word, "" for an operator's pattern."""
    pattern: str
    """Regular expression in RE2's syntax."""
    begins: tuple[str, ...] = ()
    """Literal beginnings: each match begins with one of them; empty if it may begin with any of `characters`."""
    characters: Literal["token", "digits", "text"] = "text"
    """Characters of a match: printable ASCII without spaces, digits with spaces and hyphens, or any."""
    most: int
    margin: int = 1
    """Number of characters after a match that rule out a longer match."""
    check: Literal["", "luhn"] = ""
    """Additional check: `luhn` if the match is a sequence of digits in which card numbers are searched."""
    ignores_case: bool = False
    """Whether the pattern is a phrase: letter case is ignored, and words may be separated by any white space. `begins`
    is then `folded` and has single blanks.
    """
    source: str = ""
    as_of: str = ""


WORDS_SET = "words"
MAX_BLANKS = 50
"""Most white space between two words of a phrase, in characters, for which its beginning is held back in a stream."""
GUARDED_PATTERNS = tuple(read_rows("guarded_patterns", GuardedPattern))
DIGIT_SEPARATORS = " -\u00a0\u2007\u2009\u202f\u2010\u2011\u2013"
"""Blanks and hyphens, also typographic ones, that may separate groups of digits."""
DIGIT_GROUP = re.compile(r"[0-9]+")
MIN_DIGITS, MAX_DIGITS = 13, 19
PATTERN_SETS = tuple(dict.fromkeys(row.set for row in GUARDED_PATTERNS))


def folded(text: str) -> str:
    """Return a text without the difference between upper and lower case, with unchanged length."""
    return "".join(lower if len(lower := each.casefold()) == 1 else each for each in text)


def card_numbers(digits: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of card numbers in groups of digits that single `DIGIT_SEPARATORS` separate. A number is 13 to
    19 digits in whole groups; the first digit is 2 to 6, the last one the check digit (ISO/IEC 7812-1).
    """
    groups, end = [*DIGIT_GROUP.finditer(digits)], 0
    for at, first in enumerate(groups):
        if first.start() < end or first[0][0] not in "23456":
            continue
        number, found = "", 0
        for last in groups[at : at + MAX_DIGITS]:
            number += last[0]
            if len(number) > MAX_DIGITS:
                break
            if len(number) >= MIN_DIGITS and has_check_digit(number):
                found = last.end()
        if found:
            end = found
            yield first.start(), end


def has_check_digit(number: str) -> bool:
    """Return whether the last digit of a number is its check digit by the Luhn formula."""
    digits = [int(each) for each in number]
    doubled = [sum(divmod(2 * each, 10)) for each in digits[-2::-2]]
    return (sum(doubled) + sum(digits[::-2])) % 10 == 0
