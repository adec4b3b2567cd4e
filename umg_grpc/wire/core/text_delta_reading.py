"""Reading of frames in a provider's stream that differ in their text alone: one is decoded, and the text of the others
is cut out.
"""

import re
from collections.abc import Callable
from typing import NamedTuple, Self

import msgspec

_STRING = re.compile(rb'"(?!")[^"\\]*(?:\\.[^"\\]*)*"')
"""JSON string, except for the empty one, which appends nothing and may have another meaning."""
_PADDING = re.compile(rb'"obfuscation": ?"')
_TEXT, _TEXTS = msgspec.json.Decoder(str), msgspec.json.Decoder(list[str])
PROBE_TEXT = "\N{BLACK STAR} probe"


class TextDeltaFrames(NamedTuple):
    """Bytes around the text of a frame that only appends text. Frames with the same bytes only append text, too."""

    head: bytes
    tail: bytes  # from the text to the end, or to the padding of any length
    end: bytes  # from the padding to the end of the frame; b"" without padding

    @classmethod
    def learn(cls, frame: bytes, text: str, read: Callable[[bytes], str | None]) -> Self | None:
        """Return the bytes around the text of a frame; None if the place of the text is not certain. `read`: returns
        the text that a frame appends, None for any other frame; it is called with another text in the same place.
        """
        literal = msgspec.json.encode(text)
        if frame.count(literal) != 1 or not frame.endswith((b"\n\n", b"\r\n\r\n")):
            return None
        head, _, tail = frame.partition(literal)
        if read(head + msgspec.json.encode(PROBE_TEXT) + tail) != PROBE_TEXT:
            return None  # these bytes occur elsewhere, and the text is written in another way
        if (padding := _PADDING.search(tail)) is None:
            return cls(head, tail, b"")
        return cls(head, tail[: padding.end()], tail[tail.index(b'"', padding.end()) :])

    def text(self, frames: bytes) -> str | None:
        """Return the text of a single frame that matches; None for others. Raise ValueError as `texts` does."""
        head, tail, end = self
        if end or not frames.startswith(head) or not frames.endswith(tail):
            return None
        literal = frames[len(head) : -len(tail)]
        return _TEXT.decode(literal) if _STRING.fullmatch(literal) else None

    def texts(self, frames: bytes, start: int) -> tuple[list[str], int]:
        """Return the texts of the leading frames that match, and the position behind them. Raise ValueError for a text
        that is no valid JSON string, for example with half of a character.
        """
        found, (head, tail, end), literal = list[bytes](), self, _STRING.match
        size, rest = len(head), len(tail)
        begin, due = start, 1  # a row is searched when `due` bytes have matched, and twice as many next time
        while frames.startswith(head, start):
            if not end and start - begin >= due:
                due = 2 * (start - begin)
                row, start = self._row(frames, start, start + due)
                if row:
                    found += row
                    continue
            if (text := literal(frames, start + size)) is None or not frames.startswith(tail, text.end()):
                break
            behind = text.end() + rest
            if end:
                behind = frames.find(b'"', behind)
                if not frames.startswith(end, behind):
                    break
                behind += len(end)
            found.append(text[0])
            start = behind
        return _TEXTS.decode(b"[%b]" % b",".join(found)), start

    def _row(self, frames: bytes, start: int, stop: int) -> tuple[list[bytes], int]:
        """Return the texts, as JSON, of the frames that begin at `start` and end before `stop`, found by one search;
        and the position behind them. Return no text, and `start`, if another frame is between them.
        """
        head, tail, _ = self
        last = frames.rfind(tail, start, stop)
        texts = frames[start + len(head) : max(last, start)].split(tail + head)
        return (texts, last + len(tail)) if all(map(_STRING.fullmatch, texts)) else ([], start)
