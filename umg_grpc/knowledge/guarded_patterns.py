"""Patterns of secrets, card numbers and e-mail addresses that guards find in texts, each with its source. Pure."""

import re
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from umg_grpc.knowledge.data_files import read_rows


class GuardedPattern(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Pattern of one kind of sensitive text, with the facts by which its beginning is found at the end of a window."""

    name: str
    """Name in masks and reasons; several patterns may have the same one."""
    set: str = ""
    """Name of the set in the config, `words` for a word of the operator's; "" for a pattern of the operator's own."""
    pattern: str
    """Regular expression of RE2."""
    begins: tuple[str, ...] = ()
    """Texts with one of which each match begins; empty if it may begin with any of `characters`."""
    characters: Literal["token", "digits", "text"] = "text"
    """Characters of a match: printable ASCII without spaces, digits with spaces and hyphens, or any."""
    most: int
    """Length of the longest match."""
    margin: int = 1
    """Number of characters behind a match from which on it cannot become longer."""
    check: Literal["", "luhn"] = ""
    """Further check: the match is a row of digits, in which card numbers are searched."""
    ignores_case: bool = False
    """Whether it is a phrase: found in upper and lower case, and with any white space between the words. `begins` is
    `folded`, with single blanks.
    """
    source: str = ""
    as_of: str = ""
    """Date on which the source was read."""


WORDS_SET = "words"
MAX_BLANKS = 50
"""Characters of white space between two words of a phrase up to which its beginning is held back in a stream."""
GUARDED_PATTERNS = tuple(read_rows("guarded_patterns", GuardedPattern))
DIGIT_SEPARATORS = " -\u00a0\u2007\u2009\u202f\u2010\u2011\u2013"
"""Blanks and hyphens between groups of digits, also the ones of typography."""
DIGIT_GROUP = re.compile(r"[0-9]+")
MIN_DIGITS, MAX_DIGITS = 13, 19
PATTERN_SETS = tuple(dict.fromkeys(row.set for row in GUARDED_PATTERNS))
"""Names of the sets, in their order."""


def folded(text: str) -> str:
    """Return a text of the same length without the difference between upper and lower case."""
    return "".join(lower if len(lower := each.casefold()) == 1 else each for each in text)


def card_numbers(digits: str) -> Iterator[tuple[int, int]]:
    """Yield the places of card numbers in a row of groups of digits, divided by single `DIGIT_SEPARATORS`: 13 to 19
    digits in whole groups, of which the first is 2 to 6 and the last the check digit (ISO/IEC 7812-1).
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
