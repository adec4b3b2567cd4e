"""Characters that a provider cut in two: half a surrogate pair at the end of one delta, the other half in the next; or
raw bytes so.
"""

import re
from typing import TypeVar

import msgspec

T = TypeVar("T")

# Halves are carried through JSON decoding as private characters of the last plane: surrogates from here on, stray bytes
# from _BYTE on.
_SURROGATE, _BYTE = 0x100000, 0x100800

_ESCAPE = re.compile(
    rb"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u([dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
_PAIR = re.compile("([\U00100000-\U001003ff])([\U00100400-\U001007ff])")
_BYTES = re.compile("[\U00100880-\U001008ff]+")
_ANY = re.compile("[\U00100000-\U001008ff]")
_STRAY = re.compile("[\udc80-\udcff]")


def placeheld(document: bytes) -> bytes:
    """The JSON with every half of a character as a placeholder that `Mender` knows: valid UTF-8, no lone surrogates."""
    text = document.decode("utf-8", "surrogateescape")
    text = _STRAY.sub(lambda stray: chr(_BYTE + ord(stray[0]) - 0xDC00), text)
    return _ESCAPE.sub(_hold, text.encode())


def decode(decoder: msgspec.json.Decoder[T], document: bytes) -> T:
    """The JSON, with U+FFFD for every half of a character. Raises ValueError, RecursionError."""
    try:
        if not document.isascii():
            str(document, "utf-8")  # the decoder does not look into what it keeps raw
        return decoder.decode(document)
    except msgspec.ValidationError:
        raise  # its types are wrong, not its characters
    except (msgspec.DecodeError, UnicodeDecodeError):
        return decoder.decode(mended(document))


def mended(document: bytes) -> bytes:
    """The JSON with U+FFFD for every half of a character."""
    return _ANY.sub("\ufffd", placeheld(document).decode()).encode()


def well_formed(document: bytes) -> bytes:
    """The bytes, which go on as they came, with U+FFFD for what is no UTF-8: nobody could read them at all. Free where
    all is ASCII.
    """
    if not document.isascii():
        try:
            str(document, "utf-8")
        except UnicodeDecodeError:
            return document.decode("utf-8", "replace").encode()
    return document


def _hold(escape: "re.Match[bytes]") -> bytes:
    return chr(_SURROGATE + int(escape[3], 16) - 0xD800).encode() if escape[3] else escape[0]


class Mender:
    """Puts the halves of one text together again. A half at the end of a delta is held back for the next."""

    def __init__(self) -> None:
        self._held = ""

    def mend(self, text: str) -> str:
        """What can be told of the text so far."""
        text = _BYTES.sub(_bytes, _PAIR.sub(_pair, self._held + text))
        half = next((start for start in range(max(0, len(text) - 3), len(text)) if _open(text[start:])), len(text))
        self._held = text[half:]
        return _ANY.sub("\ufffd", text[:half])

    def rest(self) -> str:
        """What is left at the end: U+FFFD for a half that stayed one."""
        held, self._held = self._held, ""
        return "\ufffd" if held else ""


def _pair(pair: "re.Match[str]") -> str:
    return chr(0x10000 + ((ord(pair[1]) - _SURROGATE) << 10) + (ord(pair[2]) - _SURROGATE - 0x400))


def _bytes(run: "re.Match[str]") -> str:
    """The characters of the bytes, and placeholders for those that are none yet."""
    decoded = bytes(ord(character) - _BYTE for character in run[0]).decode("utf-8", "surrogateescape")
    return _STRAY.sub(lambda stray: chr(_BYTE + ord(stray[0]) - 0xDC00), decoded)


def _open(tail: str) -> bool:
    """Whether the next delta may complete the tail: a high surrogate, or the first bytes of a character."""
    if len(tail) == 1 and 0x100000 <= ord(tail) < 0x100400:
        return True
    values = [ord(character) - _BYTE for character in tail]
    if not all(0x80 <= value <= 0xFF for value in values) or not tail:
        return False
    needed = 2 if 0xC2 <= values[0] < 0xE0 else 3 if 0xE0 <= values[0] < 0xF0 else 4 if 0xF0 <= values[0] < 0xF5 else 0
    return len(values) < needed and all(value < 0xC0 for value in values[1:])
