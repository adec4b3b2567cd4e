"""Repair of characters that a provider splits between two deltas: surrogate pairs, or bytes of one UTF-8 character."""

import re
from typing import TypeVar

import msgspec

Decoded = TypeVar("Decoded")

# Halves are represented during JSON decoding by private-use characters of the last plane: surrogates from _SURROGATE,
# stray bytes from _BYTE on.
_SURROGATE, _BYTE = 0x100000, 0x100800

_ESCAPE = re.compile(
    rb"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u([dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
# A surrogate pair, a run of stray bytes, or a single half or byte.
_HELD = re.compile(
    "([\U00100000-\U001003ff])([\U00100400-\U001007ff])|([\U00100880-\U001008ff]+)|[\U00100000-\U001008ff]"
)
_PLACEHOLDER = re.compile("[\U00100000-\U001008ff]")
_STRAY = re.compile("[\udc80-\udcff]")


def escape_halves(document: bytes) -> bytes:
    """Return valid UTF-8 JSON with a placeholder for each half of a split character (a lone surrogate, or a byte that
    is not UTF-8). A character that equals a placeholder becomes the two placeholders of its surrogate pair.
    """
    text = _PLACEHOLDER.sub(_split, document.decode("utf-8", "surrogateescape"))
    text = _STRAY.sub(lambda stray: chr(_BYTE + ord(stray[0]) - 0xDC00), text)
    return _ESCAPE.sub(_placeholder, text.encode())


def decode(decoder: msgspec.json.Decoder[Decoded], document: bytes) -> Decoded:
    """Return JSON decoded by `decoder`, with U+FFFD for each half of a split character (a lone surrogate, or a byte
    that is not UTF-8). Raise ValueError or RecursionError for JSON that is invalid otherwise.
    """
    try:
        if not document.isascii():
            str(document, "utf-8")  # the decoder does not check the parts that it keeps raw
        return decoder.decode(document)
    except msgspec.ValidationError:
        raise  # the types are wrong, not the characters
    except (msgspec.DecodeError, UnicodeDecodeError):
        return decoder.decode(replace_halves(document))


def replace_halves(document: bytes) -> bytes:
    """Return JSON with U+FFFD for each half of a split character: a lone surrogate, or a byte that is not UTF-8."""
    return unescape_halves(escape_halves(document))


def unescape_halves(document: bytes) -> bytes:
    """Return text with the placeholders of `escape_halves` joined to characters. A lone half becomes U+FFFD."""
    return _HELD.sub(_restored, document.decode()).encode()


def replace_invalid_utf8(document: bytes) -> bytes:
    """Return bytes unchanged if they are UTF-8, else with U+FFFD for each invalid sequence."""
    if not document.isascii():
        try:
            str(document, "utf-8")
        except UnicodeDecodeError:
            return document.decode("utf-8", "replace").encode()
    return document


def _placeholder(escape: "re.Match[bytes]") -> bytes:
    return chr(_SURROGATE + int(escape[3], 16) - 0xD800).encode() if escape[3] else escape[0]


class SurrogateJoiner:
    """Joiner of characters split between the deltas of one text: half a character is kept until the next delta."""

    def __init__(self) -> None:
        self._held = ""

    def join(self, text: str) -> str:
        """Return the complete characters of a delta, beginning with a half kept from the previous delta. `text`: the
        delta, with placeholders (from `escape_halves`) for halves of characters.
        """
        text = self._held + text
        half = next(
            (start for start in range(max(0, len(text) - 3), len(text)) if _is_incomplete(text[start:])), len(text)
        )
        self._held = text[half:]
        return _HELD.sub(_restored, text[:half])

    def rest(self) -> str:
        """Return U+FFFD if half a character was kept and the text has ended, else ""."""
        held, self._held = self._held, ""
        return "\ufffd" if held else ""


def _split(character: "re.Match[str]") -> str:
    offset = ord(character[0]) - 0x10000
    return chr(_SURROGATE + (offset >> 10)) + chr(_SURROGATE + 0x400 + (offset & 0x3FF))


def _restored(held: "re.Match[str]") -> str:
    """Return the characters for matched placeholders: of two surrogates, or of single bytes; U+FFFD for a lone half."""
    if held[1]:
        return chr(0x10000 + ((ord(held[1]) - _SURROGATE) << 10) + (ord(held[2]) - _SURROGATE - 0x400))
    if held[3]:
        stray = bytes(ord(character) - _BYTE for character in held[3])
        return _STRAY.sub("\ufffd", stray.decode("utf-8", "surrogateescape"))
    return "\ufffd"


def _is_incomplete(tail: str) -> bool:
    """Return whether `tail` may be completed to a character by the next delta: a high surrogate, or the first bytes of
    a UTF-8 character. `tail`: the end of a text with placeholders.
    """
    if len(tail) == 1 and 0x100000 <= ord(tail) < 0x100400:
        return True
    values = [ord(character) - _BYTE for character in tail]
    if not all(0x80 <= value <= 0xFF for value in values) or not tail:
        return False
    needed = 2 if 0xC2 <= values[0] < 0xE0 else 3 if 0xE0 <= values[0] < 0xF0 else 4 if 0xF0 <= values[0] < 0xF5 else 0
    return len(values) < needed and all(value < 0xC0 for value in values[1:])
