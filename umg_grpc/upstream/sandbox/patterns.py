"""Regular expressions of JSON schemas: texts that match them, and whether a text does.

Callers write the patterns, so Python's own engine never sees them: it can take exponential time. Here all places where
a match may have got to are followed at once.
"""

import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

MAX_REPEAT = 2000
POOL = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_ .@#!"
OTHERS = "".join(map(chr, [*range(32, 127), 9, 10, 0xE9, 0x3B1, 0x4E2D]))

Pick = Callable[[str, int], int]
"""(place, n) -> a number in [0, n)."""


class Unsupported(Exception):  # noqa: N818 - says what the pattern is
    """The pattern has what is not understood here: back references, wrong syntax, enormous counts."""


class Exhausted(Exception):  # noqa: N818 - says what the budget is
    """The work allowed for one answer is done."""


@dataclass
class Budget:
    """Steps that may still be taken: a caller's schema must not keep the gateway busy."""

    left: int

    def spend(self, steps: int) -> None:
        """Raises Exhausted when there are no more."""
        self.left -= steps
        if self.left < 0:
            raise Exhausted


@dataclass(frozen=True)
class Chars:
    """One character."""

    ranges: tuple[tuple[int, int], ...] = ()
    categories: tuple[tuple[str, bool], ...] = ()  # Unicode category (`L`, `Nd`), whether it must not be of it
    negated: bool = False

    def has(self, character: str) -> bool:
        """Whether it is one of these."""
        code, category = ord(character), unicodedata.category(character)
        inside = any(low <= code <= high for low, high in self.ranges) or any(
            category.startswith(name) != without for name, without in self.categories
        )
        return inside != self.negated


@dataclass(frozen=True)
class Edge:
    """A place between characters: `^`, `$`, `b`, `B`; "" is any."""

    kind: str


@dataclass(frozen=True)
class Look:
    """`(?=...)`, or `(?!...)` with `negated`."""

    inner: "Node"
    negated: bool


@dataclass(frozen=True)
class Repeat:
    """`low` to `high` times; no limit with None."""

    inner: "Node"
    low: int
    high: int | None


@dataclass(frozen=True)
class Sequence:
    """One after the other."""

    items: "tuple[Node, ...]"


@dataclass(frozen=True)
class Choice:
    """One of them."""

    branches: "tuple[Node, ...]"


Node = Chars | Edge | Look | Repeat | Sequence | Choice

DIGIT = ((48, 57),)
WORD = (*DIGIT, (65, 90), (95, 95), (97, 122))
SPACE = ((9, 13), (32, 32), (0xA0, 0xA0), (0x2028, 0x2029))
CLASSES = {"d": DIGIT, "w": WORD, "s": SPACE}
CONTROLS = {"n": 10, "r": 13, "t": 9, "f": 12, "v": 11, "0": 0, "a": 7, "e": 27}
ANY = Chars(((10, 10), (13, 13)), negated=True)


@dataclass(frozen=True)
class Pattern:
    """A pattern that was understood. Its methods raise Exhausted."""

    root: Node
    budget: Budget

    def matches(self, text: str) -> bool:
        """Whether it is found anywhere in the text."""
        return bool(self._ends(self.root, text, set(range(len(text) + 1))))

    def sample(self, pick: Pick, more: int = 0) -> str:
        """A text that matches, look-arounds aside. `more`: how often to repeat beyond the least where that is free."""
        return "".join(self._sample(self.root, pick, "", more))

    def _ends(self, node: Node, text: str, starts: set[int]) -> set[int]:
        self.budget.spend(1 + len(starts))
        match node:
            case Chars():
                return {at + 1 for at in starts if at < len(text) and node.has(text[at])}
            case Edge(kind):
                return {at for at in starts if _at_edge(kind, text, at)}
            case Look(inner, negated):
                return {at for at in starts if bool(self._ends(inner, text, {at})) != negated}
            case Sequence(items):
                for item in items:
                    starts = self._ends(item, text, starts)
                return starts
            case Choice(branches):
                return set[int]().union(*(self._ends(branch, text, starts) for branch in branches))
            case Repeat(inner, low, high):
                return self._repeated(inner, low, high, text, starts)

    def _repeated(self, inner: Node, low: int, high: int | None, text: str, starts: set[int]) -> set[int]:
        for _ in range(low):
            starts = self._ends(inner, text, starts)
        reached, times = set(starts), low
        while starts and (high is None or times < high):
            starts = self._ends(inner, text, starts) - reached
            reached |= starts
            times += 1
        return reached

    def _sample(self, node: Node, pick: Pick, at: str, more: int) -> Iterator[str]:
        self.budget.spend(5)
        match node:
            case Chars():
                yield _character(node, pick, at)
            case Sequence(items):
                for index, item in enumerate(items):
                    yield from self._sample(item, pick, f"{at}.{index}", more)
            case Choice(branches):
                chosen = pick(at, len(branches))
                yield from self._sample(branches[chosen], pick, f"{at}|{chosen}", more)
            case Repeat(inner, low, high):
                times = low + more if high is None else min(high, low + more)
                for index in range(times):
                    yield from self._sample(inner, pick, f"{at}*{index}", more)
            case Edge() | Look():
                pass


def _at_edge(kind: str, text: str, at: int) -> bool:
    if kind == "^":
        return at == 0
    if kind == "$":
        return at == len(text)
    word = Chars(WORD)
    inside = (at > 0 and word.has(text[at - 1])) != (at < len(text) and word.has(text[at]))
    return not kind or inside == (kind == "b")


def _character(node: Chars, pick: Pick, at: str) -> str:
    usable = _usable(node)
    return usable[pick(at, len(usable))] if usable else ""


@lru_cache(maxsize=256)
def _usable(node: Chars) -> str:
    """Characters to choose from, plain ones where there are some."""
    for pool in (POOL, OTHERS):
        if usable := "".join(character for character in pool if node.has(character)):
            return usable
    return "".join(chr(low) for low, _ in node.ranges if node.has(chr(low)))


def parse(pattern: str, budget: Budget) -> Pattern | None:
    """The pattern in the dialect of JSON schemas (ECMA 262); None when it is not understood here."""
    reader = _Reader(pattern)
    try:
        root = reader.choice()
        if reader.at < len(pattern):
            return None
        return Pattern(root, budget)
    except (Unsupported, IndexError, ValueError, RecursionError):
        return None


class _Reader:
    """Recursive descent over one pattern."""

    def __init__(self, pattern: str) -> None:
        self.text = pattern
        self.at = 0

    def choice(self) -> Node:
        branches = [self._sequence()]
        while self._take("|"):
            branches.append(self._sequence())
        return branches[0] if len(branches) == 1 else Choice(tuple(branches))

    def _sequence(self) -> Node:
        items = list[Node]()
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            items.append(self._repeated(self._atom()))
        return Sequence(tuple(items))

    def _take(self, expected: str) -> bool:
        if self.text.startswith(expected, self.at):
            self.at += len(expected)
            return True
        return False

    def _next(self) -> str:
        self.at += 1
        return self.text[self.at - 1]

    def _repeated(self, inner: Node) -> Node:
        while self.at < len(self.text):
            if self._take("*"):
                inner = Repeat(inner, 0, None)
            elif self._take("+"):
                inner = Repeat(inner, 1, None)
            elif self._take("?"):
                inner = Repeat(inner, 0, 1)
            elif (counts := self._counts()) is not None:
                inner = Repeat(inner, *counts)
            else:
                break
            _ = self._take("?") or self._take("+")  # lazy or possessive: the same texts match
        return inner

    def _counts(self) -> tuple[int, int | None] | None:
        """`{2}`, `{2,}`, `{2,5}`; None where a brace stands for itself."""
        end = self.text.find("}", self.at)
        if self.text[self.at] != "{" or end < 0:
            return None
        low, comma, high = self.text[self.at + 1 : end].partition(",")
        if not low.isdecimal() or (high and not high.isdecimal()):
            return None
        self.at = end + 1
        least, most = int(low), int(high) if high else (None if comma else int(low))
        if least > MAX_REPEAT or (most is not None and most < least):
            raise Unsupported
        return least, most

    def _atom(self) -> Node:
        character = self._next()
        match character:
            case "^" | "$":
                return Edge(character)
            case ".":
                return ANY
            case "(":
                return self._group()
            case "[":
                return self._class()
            case "\\":
                return self._escaped()
            case "*" | "+" | "?":
                raise Unsupported
        return _one(ord(character))

    def _group(self) -> Node:
        look: bool | None = None
        behind = False
        if self._take("?"):
            if self._take("=") or self._take("!"):
                look = self.text[self.at - 1] == "!"
            elif self._take("<=") or self._take("<!"):
                behind = True
            elif self._take("<") or self._take("P<"):
                self.at = self.text.index(">", self.at) + 1
            elif not self._take(":"):
                raise Unsupported
        inner = self.choice()
        if not self._take(")"):
            raise Unsupported
        if behind:
            return Edge("")  # what stands before is not looked at
        return inner if look is None else Look(inner, look)

    def _escaped(self) -> Node:
        if self.text[self.at] in "bB":
            return Edge(self._next())
        if self.text[self.at] in "AzZ":
            return Edge("^" if self._next() == "A" else "$")
        return self._escape()

    def _escape(self) -> Chars:
        character = self._next()
        if character.lower() in CLASSES:
            return Chars(CLASSES[character.lower()], negated=character.isupper())
        if character in "pP" and self._take("{"):
            end = self.text.index("}", self.at)
            name = self.text[self.at : end].rpartition("=")[2]
            self.at = end + 1
            name = {"Letter": "L", "Number": "N", "Alphabetic": "L", "Punctuation": "P"}.get(name, name)
            if len(name) > 2:
                raise Unsupported  # a script
            return Chars(categories=((name, character == "P"),))
        if character in CONTROLS:
            return _one(CONTROLS[character])
        if character in "xu":
            digits = 2 if character == "x" else 4
            if self._take("{"):
                digits = self.text.index("}", self.at) - self.at
            code = int(self.text[self.at : self.at + digits], 16)
            self.at += digits
            _ = self._take("}")
            return _one(code)
        if character.isalnum():
            raise Unsupported  # a back reference, or what only newer dialects have
        return _one(ord(character))

    def _class(self) -> Chars:
        negated = self._take("^")
        ranges, categories = list[tuple[int, int]](), list[tuple[str, bool]]()
        first = True
        while first or self.text[self.at] != "]":
            if first and self.text[self.at] == "]":
                break  # ECMA: the empty class
            first = False
            low = self._class_item()
            if low is None:
                chars = self._escape()
                ranges += _complement(chars.ranges) if chars.negated else chars.ranges
                categories += chars.categories
                continue
            high = low
            if self.text[self.at] == "-" and self.text[self.at + 1] != "]":
                self.at += 1
                end = self._class_item()
                if end is None or end < low:
                    raise Unsupported
                high = end
            ranges.append((low, high))
        self.at += 1
        return Chars(tuple(ranges), tuple(categories), negated)

    def _class_item(self) -> int | None:
        """A character's code; None before an escape that means several."""
        character = self._next()
        if character != "\\":
            return ord(character)
        if self._take("b"):
            return 8
        if self.text[self.at] in "dDwWsSpP":
            return None
        [(code, _)] = self._escape().ranges
        return code


def _one(code: int) -> Chars:
    return Chars(((code, code),))


def _complement(ranges: tuple[tuple[int, int], ...]) -> list[tuple[int, int]]:
    result, start = list[tuple[int, int]](), 0
    for low, high in sorted(ranges):
        if start < low:
            result.append((start, low - 1))
        start = high + 1
    return [*result, (start, 0x10FFFF)]
