"""Long strings of a JSON body (base64 files), cut out before the body is decoded, so that none is copied."""

from collections.abc import Iterator

from msgspec import Raw

LONG_BYTES = 64 << 10
"""Size in bytes from which a string is cut out."""
_MARK = b"umg-long-string-"
_MAX_BACKSLASHES = 64


class LongText(str):
    """Long string of a JSON body, not copied. Its text is that of the placeholder; `content` has the string's bytes."""

    __slots__ = ("content",)

    content: memoryview


class LongStrings:
    """JSON body with its long strings replaced by short placeholders, together with these strings."""

    def __init__(self, body: bytes) -> None:
        """Cut the long strings out of a JSON body; none if it contains a string that looks like a placeholder."""
        self.body = body
        self._contents: dict[str, memoryview] = {}
        self._quoted: dict[bytes, memoryview] = {}
        if len(body) < LONG_BYTES:
            return
        view, pieces, position = memoryview(body), list[bytes | memoryview](), 0
        for start, end in _long_strings(body):
            name = b"%b%d" % (_MARK, len(self._contents))
            self._contents[name.decode()] = view[start:end]
            self._quoted[b'"%b"' % name] = view[start - 1 : end + 1]
            pieces += [view[position:start], name]
            position = end
        short = b"".join([*pieces, view[position:]])
        if short.count(_MARK) == len(self._contents):
            self.body = short
        else:
            self._contents.clear()
            self._quoted.clear()

    def __len__(self) -> int:
        return len(self._contents)

    def restore(self, text: str) -> str:
        """Return the long string for a placeholder, as a `LongText`; any other string unchanged."""
        content = self._contents.get(text)
        if content is None:
            return text
        long = LongText(text)
        long.content = content
        return long

    def restore_raw(self, raw: Raw) -> Raw:
        """Return the JSON of the long string for a placeholder; any other JSON value unchanged."""
        content = self._quoted.get(bytes(raw)) if self._quoted else None
        return raw if content is None else Raw(content)


def _long_strings(body: bytes) -> Iterator[tuple[int, int]]:
    """Yield (first, last position) of each long string without escapes. End at the first that is not valid JSON."""
    start = body.find(b'"')
    while start >= 0:
        end = body.find(b'"', start + 1)
        while end >= 0 and (escapes := _backslashes(body, start, end)) % 2:
            end = body.find(b'"', end + 1)
        if end < 0 or escapes == _MAX_BACKSLASHES:
            return
        if end - start > LONG_BYTES and body.find(b"\\", start, end) < 0:
            yield start + 1, end
        start = body.find(b'"', end + 1)


def _backslashes(body: bytes, start: int, end: int) -> int:
    before = body[max(start + 1, end - _MAX_BACKSLASHES) : end]
    return len(before) - len(before.rstrip(b"\\"))
