"""Conversion of offsets into a text between characters (code points) and bytes of UTF-8."""

BLOCK_SIZE = 1024  # distance between two precomputed offsets, in bytes or code points
_INNER = bytes(range(0x80, 0xC0))  # bytes of a character after its first


class Offsets:
    """Converter between offsets in code points and in UTF-8 bytes of a text; each conversion takes constant time."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._encoded = b"" if text.isascii() else text.encode()
        self.size = len(self._encoded) or len(text)
        self._points = [0]  # code points before each block of bytes
        self._bytes = [0]  # bytes before each block of code points
        if not self._encoded:
            return
        for start in range(0, self.size, BLOCK_SIZE):
            self._points.append(self._points[-1] + _count_starts(self._encoded[start : start + BLOCK_SIZE]))
        for start in range(0, len(text), BLOCK_SIZE):
            self._bytes.append(self._bytes[-1] + len(text[start : start + BLOCK_SIZE].encode()))

    def code_points(self, offset: int) -> int:
        """Return the number of complete characters before an offset in bytes, limited to the text."""
        offset = max(0, min(offset, self.size))
        if not self._encoded:
            return offset
        block = offset // BLOCK_SIZE
        started = self._points[block] + _count_starts(self._encoded[block * BLOCK_SIZE : offset])
        cut = offset < self.size and self._encoded[offset] in _INNER
        return started - cut

    def bytes(self, point: int) -> int:
        """Return the number of bytes before the character at `point`, limited to the text."""
        point = max(0, min(point, len(self._text)))
        if not self._encoded:
            return point
        block = point // BLOCK_SIZE
        return self._bytes[block] + len(self._text[block * BLOCK_SIZE : point].encode())


def _count_starts(encoded: bytes) -> int:
    return len(encoded.translate(None, _INNER))
