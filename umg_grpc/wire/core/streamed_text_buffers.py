"""Buffers for texts that are received in pieces, as in the deltas of a stream."""

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.v1 import pb

JOINED_PIECES = 256
MAX_INPUT_CHARACTERS = 4 << 20
"""Maximum characters of tool inputs that a stream's decoder buffers, ten times the largest input of a model."""


class Pieces:
    """Text in pieces, joined from time to time, since small pieces take ten times their size and long to release."""

    __slots__ = ("_blocks", "_last", "size")

    def __init__(self) -> None:
        self._blocks: list[str] = []
        self._last: list[str] = []
        self.size = 0  # in characters

    def __bool__(self) -> bool:
        return bool(self._last or self._blocks)

    def append(self, piece: str) -> None:
        last = self._last
        last.append(piece)
        self.size += len(piece)
        if len(last) >= JOINED_PIECES:
            self._blocks.append("".join(last))
            last.clear()

    def shorten(self, size: int) -> None:
        """Keep only about the first `size` characters of the text."""
        if self.size <= size:
            return
        text, count = list[str](), 0
        for block in (*self._blocks, *self._last):
            if count >= size:
                break
            text.append(block[: size - count])
            count += len(text[-1])
        self._blocks, self._last, self.size = text, [], count

    def text(self) -> str:
        return "".join((*self._blocks, *self._last))


class ToolInputs:
    """Limit, in characters, of the tool inputs of one stream that are buffered until they are complete."""

    def __init__(self) -> None:
        self._size = 0

    def append(self, pieces: Pieces, text: str) -> None:
        """Append to the input of one call. Raise UmgError(UPSTREAM_FAILED) if all inputs together exceed the limit."""
        self._size += len(text)
        if self._size > MAX_INPUT_CHARACTERS:
            message = f"the provider's response calls tools with more than {MAX_INPUT_CHARACTERS} characters of input"
            raise UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, message).with_failure(Failure.TOO_LARGE)
        if text:
            pieces.append(text)

    def take(self, pieces: Pieces) -> str:
        """Return the complete input of a call, and empty `pieces`, so that the input no longer counts."""
        text = pieces.text()
        self._size -= pieces.size
        pieces.shorten(0)
        return text
