"""Search for sensitive texts by patterns, in whole texts and in texts that arrive in pieces."""

import re
import string
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec
import re2

from umg_grpc.knowledge.sensitive_text_patterns import DIGIT_SEPARATORS, GuardedPattern, card_numbers, folded

MATCH_CHARACTERS = {"token": "".join(map(chr, range(0x21, 0x7F))), "digits": f"{string.digits}{DIGIT_SEPARATORS}"}
"""Name in a pattern's row -> characters of which its matches consist; `text` has any."""
MAX_BYTES = 2**26
"""Maximum bytes of a compiled pattern, of several thousand words."""
MAX_HELD = 2**16
"""Maximum characters of a text that are held back in wait of the end of a match."""
BLANK_RUN = re.compile(r"\s+")
ESCAPED_BLANK = re.compile(rb"\\[nrt]")
ESCAPE_SEQUENCE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
ESCAPED_CHARACTERS = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}


class Match(NamedTuple):
    """Sensitive text that a pattern found: its start and end in the text."""

    start: int
    end: int
    row: GuardedPattern

    @property
    def mask(self) -> str:
        """Text by which a guard replaces the match."""
        return f"[{self.row.name.upper()}]"


class Beginnings:
    """Search for the beginning of a match at the end of an incomplete text, for patterns of the same characters."""

    def __init__(self, rows: Sequence[GuardedPattern]) -> None:
        self._characters = MATCH_CHARACTERS.get(rows[0].characters)
        self._ignores_case = rows[0].ignores_case
        self._most = max(row.most for row in rows)
        begins = [begin for row in rows for begin in row.begins]
        self._whole = re.compile("|".join(map(re.escape, begins))) if begins else None
        self._partial = frozenset(begin[:size] for begin in begins for size in range(1, len(begin)))
        self._longest = max(map(len, begins), default=1) - 1

    def begun(self, text: str) -> int:
        """Return the number of characters at the end of a text that may be the beginning of a match."""
        tail = text[-self._most :]
        if self._characters is not None:
            tail = tail[len(tail.rstrip(self._characters)) :]
        if self._whole is None:
            return len(tail)
        if not self._ignores_case:
            return self._size(tail)
        return _uncollapsed(tail, self._size(BLANK_RUN.sub(" ", folded(tail))))

    def _size(self, text: str) -> int:
        if self._whole is not None and (found := self._whole.search(text)) is not None:
            return len(text) - found.start()
        sizes = range(min(self._longest, len(text)), 0, -1)
        return next((size for size in sizes if text[-size:] in self._partial), 0)


class PatternSearch:
    """Search for all patterns of a guard. The time is linear in the length of the text (RE2)."""

    def __init__(self, rows: Sequence[GuardedPattern]) -> None:
        kinds = dict.fromkeys((row.characters, row.ignores_case, not row.begins) for row in rows)
        self._beginnings = [
            Beginnings([row for row in rows if (row.characters, row.ignores_case, not row.begins) == kind])
            for kind in kinds
        ]
        plain = [row for row in rows if not row.check and not row.ignores_case]
        checked = [[row] for row in rows if row.check]  # apart: a number without check digit may hide another match
        phrases = [*_joined([row for row in rows if row.ignores_case])]
        self._searches = [(_union(group), group) for group in (plain, *checked, phrases) if group]

    def find(self, text: str, start: int = 0) -> list[Match]:
        """Return the matches that begin at the index `start` or later, in their order and without overlaps."""
        found, data = list[Match](), text.encode()  # a search in a text that is not ASCII takes 30 times as long
        if b"\\" in data:  # "\nAKIA..." in the text of a log: the letter is no part of the secret
            data = ESCAPED_BLANK.sub(b"  ", data)
        for expression, group in self._searches:
            for match in expression.finditer(data):
                row = group[match.lastindex - 1]
                at, end = match.span() if text.isascii() else _characters(data, *match.span())
                inner = card_numbers(text[at:end]) if row.check else [(0, end - at)]
                found += [Match(at + first, at + last, row) for first, last in inner if at + first >= start]
        return [*_without_overlaps(sorted(found, key=lambda each: (each.start, -each.end)))]

    def mask(self, text: str, matches: Iterable[Match]) -> str:
        """Return the text with a mask in place of each match."""
        pieces, at = list[str](), 0
        for match in matches:
            pieces += [text[at : match.start], match.mask]
            at = match.end
        return "".join((*pieces, text[at:]))

    def cut(self, context: str, text: str) -> int:
        """Return the length of a text's part that no later text can change into a match. `context`: text before it."""
        if len(text) > MAX_HELD:
            return len(text)
        held, complete = len(text), 0
        before = len(context)
        for match in self.find(context + text, before):
            if _is_open(match, context + text):
                held = min(held, match.start - before)
                break
            complete = match.end - before
        rest = text[complete:]
        return max(complete, min(held, *(len(text) - each.begun(rest) for each in self._beginnings)))

    def masked_json(self, text: str) -> tuple[str, list[Match]]:
        """Return a JSON text with masks in place of the matches in its strings, keys and numbers; and the matches. A
        text that is not JSON is searched as plain text.
        """
        if not (matches := self.find(_unescaped(text))):
            return text, matches
        try:
            document = msgspec.json.decode(text)
        except (ValueError, RecursionError):
            masked = self.mask(text, self.find(text))
            rest = self.find(_unescaped(masked))
            return (masked, matches) if not rest else (rest[0].mask, matches)
        return msgspec.json.encode(self._masked_value(document)).decode(), matches

    def _masked_value(self, value: object) -> object:
        match value:
            case str():
                return self.mask(value, self.find(value))
            case dict():
                return {self._masked_value(key): self._masked_value(each) for key, each in value.items()}
            case list():
                return [self._masked_value(each) for each in value]
            case int() | float() if not isinstance(value, bool) and (found := self.find(str(value))):
                return self.mask(str(value), found)
            case _:  # true, false, null, and numbers without a match
                return value


def _uncollapsed(text: str, size: int) -> int:
    """Return the length of the end of a text with `size` characters, where each run of white space counts as one."""
    start = len(text)
    for _ in range(size):
        start -= 1
        while start and text[start].isspace() and text[start - 1].isspace():
            start -= 1
    return len(text) - start


def _is_open(match: Match, text: str) -> bool:
    rest, characters = text[match.end :], MATCH_CHARACTERS.get(match.row.characters)
    if len(rest) < match.row.margin:
        return True
    return characters is not None and len(text) - match.start < match.row.most and not rest.strip(characters)


def _joined(phrases: Sequence[GuardedPattern]) -> Iterator[GuardedPattern]:
    """Yield one pattern that matches any of the phrases, without groups: each group would make the search slower."""
    if phrases:
        pattern, most = "|".join(row.pattern for row in phrases), max(row.most for row in phrases)
        yield msgspec.structs.replace(phrases[0], pattern=pattern, most=most)


def _union(rows: Sequence[GuardedPattern]) -> "re2._Regexp":
    options = re2.Options()
    options.log_errors, options.max_mem = False, MAX_BYTES
    groups = (f"({'(?i)' if row.ignores_case else ''}{row.pattern})" for row in rows)
    return re2.compile("|".join(groups).encode(), options)


def _characters(data: bytes, start: int, end: int) -> tuple[int, int]:
    first = len(data[:start].decode())
    return first, first + len(data[start:end].decode())


def _without_overlaps(matches: Iterable[Match]) -> Iterator[Match]:
    end = 0
    for match in matches:
        if match.start >= end:
            yield match
            end = match.end


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    plain = ESCAPE_SEQUENCE.sub(
        lambda found: chr(int(found[1], 16)) if found[1] else ESCAPED_CHARACTERS.get(found[2], found[2]), text
    )
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # two escapes may be one character
