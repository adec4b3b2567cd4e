"""Files of a response that stay in the provider's base64, for a caller that gets base64, too.

Decoding, copying and encoding a file of megabytes takes many milliseconds of the event loop. `CutBody` cuts the base64
out of a JSON body while the body is received, and checks it piece by piece. The protocol's decoder gets a short string
instead, whose decoded bytes refer to the file that `EncodedFiles.find` returns. A message with a reference stays in the
process: only a caller that looks references up sets `RequestNotes.files`.
"""

from collections import deque
from collections.abc import Iterator

import pybase64

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.image_file_headers import ImageHeader, read_header

LONG_BYTES = 64 << 10
"""Size in bytes from which a JSON string is cut out."""
HEAD_BYTES = 64 << 10
"""Decoded bytes that are kept from the beginning of a file, to read its header."""
PIECE_BYTES = 64 << 10
"""Size in bytes up to which small pieces are joined before they are sent."""
TURN_ITERATIONS = 4
"""Iterations of the event loop for each piece that is read or sent, so that small calls seldom wait for pieces."""
NONCE_BYTES = 16
_NAME = b"umg-file"  # with the nonce and the index, a multiple of 3 bytes: base64 without padding
_INDEX_BYTES = 3


class EncodedFile:
    """Image file that stays in base64, as the pieces received, so that it is never decoded as a whole."""

    def __init__(self) -> None:
        self.header: ImageHeader | None = None
        """Type and size of the image; None before `close`."""
        self._pieces = deque[memoryview]()
        self._head = b""
        self._rest = b""  # last characters, whose quadruple is not complete
        self._is_padded = False

    def add(self, piece: memoryview) -> None:
        """Check the next piece of the file's base64, and append it. Raise ValueError if it is not standard base64."""
        self._pieces.append(piece)
        missing = -len(self._rest) % 4
        if len(piece) < missing:
            self._rest += piece
            return
        self._check(self._rest + piece[:missing])
        end = len(piece) - (len(piece) - missing) % 4
        self._check(piece[missing:end])
        self._rest = bytes(piece[end:])

    def close(self) -> None:
        """End the file, and set `header` (type and size) from its first bytes. Raise ValueError for incomplete base64,
        and UmgError(INVALID_FIELD) if the first bytes do not contain the complete header of an image.
        """
        if self._rest:
            raise ValueError("the base64 is incomplete")
        self.header, self._head = read_header(self._head, "data"), b""

    def pieces(self) -> Iterator[bytes | memoryview]:
        """Yield the base64 in pieces, once. Each piece is released after use, since the release of a whole file of
        megabytes at once takes milliseconds. Small pieces are joined.
        """
        small, size = list[memoryview](), 0
        while self._pieces:
            piece = self._pieces.popleft()
            if small and size + len(piece) > PIECE_BYTES:
                yield _joined(small)
                small, size = [], 0
            small.append(piece)
            size += len(piece)
        yield _joined(small)

    def _check(self, text: bytes | memoryview) -> None:
        """Check base64 that consists of complete groups of four characters."""
        if not text:
            return
        if self._is_padded:
            raise ValueError("the base64 continues after its padding")
        data = pybase64.b64decode(text, validate=True)
        self._is_padded = len(data) < len(text) // 4 * 3
        if len(self._head) < HEAD_BYTES:
            self._head = (self._head + data)[:HEAD_BYTES]


class EncodedFiles:
    """Image files of one call that stay in base64. In canonical messages a short reference replaces each of them."""

    def __init__(self, nonce: bytes) -> None:
        """Create a set without files. `nonce`: random bytes by which a reference differs from all other data."""
        self._prefix = _NAME + nonce
        self._files = list[EncodedFile]()

    def add(self, file: EncodedFile) -> bytes:
        """Add a file. Return the base64 of its reference, which replaces the file's base64 in the body."""
        self._files.append(file)
        return pybase64.b64encode(self._prefix + (len(self._files) - 1).to_bytes(_INDEX_BYTES))

    def find(self, data: bytes) -> EncodedFile | None:
        """Return the file to which image data refer; None if the data are the bytes of an image."""
        if len(data) != len(self._prefix) + _INDEX_BYTES or not data.startswith(self._prefix):
            return None
        return self._files[int.from_bytes(data[-_INDEX_BYTES:])]

    def clear(self) -> None:
        """Release the files after the response, because a connection keeps the notes of its last call in memory."""
        self._files.clear()

    def describe(self, response: pb.GenerateImageResponse) -> bool:
        """Set the media type and size of each image of a response whose data are a reference to a file. Return False if
        a reference also occurs outside of the images: the caller then has to decode the body without references.
        """
        for image in response.result.images:
            if (file := self.find(image.data)) is not None and (header := file.header) is not None:
                image.mime_type, image.width, image.height = header.mime_type, header.width, header.height
        return pybase64.b64encode(self._prefix) not in response.SerializePartialToString()


class CutBody:
    """JSON body that is received in parts, in which references to files replace long base64 strings."""

    def __init__(self, files: EncodedFiles) -> None:
        self._files = files
        self._text = bytearray()
        self._position = 0  # from which the text is to be scanned
        self._start = -1  # of the string at the end of the text; -1 outside of strings
        self._has_escapes = False
        self._file: EncodedFile | None = None  # the string at the end of the text, if it is long
        self._is_whole = False
        self._cuts = 0

    @property
    def text(self) -> bytes | None:
        """The body with references in place of its files. None if no string was long enough to be a file, or if a long
        string is not an image in standard base64, so that the body has to be decoded as a whole.
        """
        return bytes(self._text) if self._cuts and not self._is_whole and self._file is None else None

    def feed(self, part: bytes) -> None:
        """Append the next part of the body. A string that is not an image raises no error: `text` is None then."""
        if self._is_whole:
            return
        try:
            self._cut(part)
        except (ValueError, UmgError):
            self._is_whole = True

    def _cut(self, part: bytes) -> None:
        if self._file is not None:
            end = part.find(b'"')
            self._file.add(memoryview(part)[: end if end >= 0 else len(part)])
            if end < 0:
                return
            self._end_file(self._file)
            part = part[end:]
        self._text += part
        while self._position < len(self._text):
            self._scan()

    def _scan(self) -> None:
        """Scan the received text up to the next beginning or end of a string, or an escape in it."""
        text, start = self._text, self._start
        quote = text.find(b'"', self._position)
        end = quote if quote >= 0 else len(text)
        if start < 0:
            if quote >= 0:
                self._start, self._has_escapes, end = quote + 1, False, quote + 1
            self._position = end
            return
        escape = text.find(b"\\", self._position, end)
        if escape >= 0:
            self._has_escapes, self._position = True, escape + 2
            return
        if end - start >= LONG_BYTES and not self._has_escapes:
            file = self._file = EncodedFile()
            file.add(memoryview(text[start:end]))
            del text[start:end]
            end = start
            if quote >= 0:
                self._end_file(file)
                return
        self._position = end
        if quote >= 0:
            self._start, self._position = -1, end + 1

    def _end_file(self, file: EncodedFile) -> None:
        file.close()
        self._text[self._start : self._start] = (reference := self._files.add(file))
        self._position = self._start + len(reference)
        self._file, self._cuts = None, self._cuts + 1


def _joined(pieces: list[memoryview]) -> bytes | memoryview:
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
