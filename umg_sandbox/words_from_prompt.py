"""Words and pseudo-random numbers taken from the prompt, from which simulated responses are built."""

import re
from collections.abc import Iterable
from hashlib import blake2b

READ_CHARACTERS = 4000
"""Maximum characters, from the end of a prompt, from which words are taken."""
MAX_OCCURRENCES = 20
"""Maximum occurrences of a name in the prompt that are checked for being whole words."""
MAX_NUMBERS = 50

_MARK = re.compile(r"\[\[[a-z0-9:]+\]\]")  # marks that select faults
_QUOTED = re.compile(r"[\"“‘`]([^\"”’`\n]{2,40})[\"”’`]")
_WORD = re.compile(r"[^\W_][\w'-]*")
_NUMBER = re.compile(r"(?<![\w.])-?\d{1,15}(?:\.\d{1,6})?(?![\w.]*\w)")
_COMMON_TEXT = """
about after again also and answer any are but call can could did does for from give get has have her him his how into
its let like make many more much need now one our out over please say see she should show some tell than that the their
them then there these they this those use using want was were what when where which who why will with would you your
"""
_COMMON = frozenset(_COMMON_TEXT.split())


def digest(*parts: str) -> bytes:
    """Return a hash of 16 bytes of the texts and their order."""
    hashed = blake2b(digest_size=16)
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        hashed.update(len(encoded).to_bytes(8, "big") + encoded)
    return hashed.digest()


class Words:
    """Source of words, numbers and choices for a simulated response, which depend on the prompt alone."""

    def __init__(self, text: str, salt: str = "", without: Iterable[str] = ()) -> None:
        """Extract the words of `text` but for those in `without`. `salt`: varies words and choices for equal texts."""
        self.text = _MARK.sub(" ", text[-READ_CHARACTERS:])
        self._lower = self.text.lower()
        self._seed = digest(salt, self.text).hex()
        self._salient = _salient(self.text, frozenset(without)) or ["simulated"]
        self._next = 0
        numbers = [(float(found) if "." in found else int(found)) for found in _NUMBER.findall(self.text)]
        self.numbers: list[int | float] = list(dict.fromkeys(numbers))[:MAX_NUMBERS]

    def topics(self, maximum: int) -> list[str]:
        """Return at least one and at most `maximum` significant words of the prompt, the most significant first."""
        return self._salient[:maximum]

    def pick(self, place: str, among: int) -> int:
        """Return a number below `among`, by the prompt and `place` (path of the generated value) alone."""
        return int.from_bytes(digest(self._seed, place)[:8], "big") % among

    def phrase(self, minimum: int = 0, maximum: int | None = None) -> str:
        """Return the next word, extended by further ones to `minimum` characters, and cut to `maximum`, if not None."""
        phrase = self._word()
        while len(phrase) < minimum:
            phrase += " " + self._word()
        if maximum is None or len(phrase) <= maximum:
            return phrase
        cut = phrase[:maximum].rstrip()
        return cut + "x" * (max(minimum, 0) - len(cut))

    def mentioned(self, values: Iterable[str]) -> str | None:
        """Return the first of the values that the prompt has as whole words, ignoring case; None if there is none."""
        return next((value for value in values if value and self._has(value.lower())), None)

    def _has(self, words: str) -> bool:
        start = -1
        for _ in range(MAX_OCCURRENCES):
            start = self._lower.find(words, start + 1)
            if start < 0:
                break
            around = self._lower[max(start - 1, 0) : start] + self._lower[start + len(words) : start + len(words) + 1]
            if not any(character.isalnum() or character == "_" for character in around):
                return True
        return False

    def _word(self) -> str:
        word = self._salient[self._next % len(self._salient)]
        self._next += 1
        return word


def _salient(text: str, without: frozenset[str]) -> list[str]:
    """Return a text's significant words except `without`: quoted phrases, names in a sentence, then uncommon words."""
    quoted = [phrase.strip() for phrase in _QUOTED.findall(text) if phrase.strip()]
    names, others = list[str](), list[str]()
    for found in _WORD.finditer(text):
        word = found[0].strip("'-")
        if len(word) < 3 or word.lower() in _COMMON or word in without or word.isdigit():
            continue
        before = text[: found.start()].rstrip(" \"'“‘(`")
        (names if word[0].isupper() and before and before[-1] not in ".!?:\n" else others).append(word[:40])
    return list(dict.fromkeys([*quoted, *names, *others]))
