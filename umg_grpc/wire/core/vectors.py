"""Vectors as they travel (`Embedding.values`): float32 elements, little-endian, one after the other.

In JSON they are numbers or base64. msgspec reads and writes `bytes` as base64 itself, straight from the buffer.
"""

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec
import orjson
from msgspec import Raw

from umg_grpc.wire.json import JsonObject

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ELEMENT_BYTES = 4
PIECE_BYTES = 96 * 2**10
"""Of packed vectors that are written in one go: some 300 KB of numbers, in less than a millisecond."""
SLICE_BYTES = 512 * 2**10
BLOCK = 64
"""Vectors that are looked at in one go."""

# --- to JSON


def json_pieces(
    head: bytes,
    vectors: Iterable[bytes],
    item: Callable[[int, bytes], JsonObject],
    encode: Callable[[list[JsonObject]], bytes],
    tail: bytes,
) -> Iterator[bytes]:
    """`head`, the `item` of each place and vector with commas between, and `tail`: a piece for each `PIECE_BYTES`, made
    when it is asked for.
    """
    before, items, size = head, list[JsonObject](), 0
    for place, vector in enumerate(vectors):
        if size >= PIECE_BYTES:
            yield b"".join((before, memoryview(encode(items))[1:-1]))
            before, items, size = b",", [], 0
        items.append(item(place, vector))
        size += len(vector)
    yield b"".join((before, memoryview(encode(items))[1:-1], tail))


def slices(body: bytes) -> Iterator[bytes]:
    """A body that is there already, in pieces."""
    for start in range(0, len(body), SLICE_BYTES):
        yield body[start : start + SLICE_BYTES]


def json_with_numbers(document: JsonObject | list[JsonObject]) -> bytes:
    """The document in JSON, each vector in it (`elements`) as an array of numbers: in the fewest digits that are the
    same float32. Several in one go, which is twice as fast as one vector after the other.
    """
    return orjson.dumps(document, option=orjson.OPT_SERIALIZE_NUMPY)


def elements(packed: bytes) -> "NDArray[np.float32]":
    """The vector as an array of this machine."""
    import numpy as np  # here: it costs 15 MB, and not every process embeds

    return np.frombuffer(packed, "<f4").astype(np.float32, copy=False)


# --- from JSON

_NUMBERS = msgspec.json.Decoder(list[float])
_EITHER = msgspec.json.Decoder(bytes | list[float])


def from_numbers(vector: Raw | list[float]) -> bytes:
    """The vector that an array of numbers has. Raises ValueError."""
    return pack(vector if isinstance(vector, list) else _NUMBERS.decode(vector))


def from_either(vector: Raw | list[float] | bytes) -> bytes:
    """The vector that an array of numbers has, or a text in base64. Raises ValueError."""
    read = _EITHER.decode(vector) if isinstance(vector, Raw) else vector
    return read if isinstance(read, bytes) else pack(read)


def pack(numbers: Sequence[float]) -> bytes:
    """The numbers as float32. Raises ValueError for one that is larger than those."""
    try:
        return struct.pack(f"<{len(numbers)}f", *numbers)
    except OverflowError as error:
        raise ValueError(str(error)) from None


def are_whole(vectors: Sequence[bytes]) -> bool:
    """Whether each has elements, whole ones, and all of these are finite numbers."""
    import numpy as np  # see above

    if any(not vector or len(vector) % ELEMENT_BYTES for vector in vectors):
        return False
    blocks = (b"".join(vectors[start : start + BLOCK]) for start in range(0, len(vectors), BLOCK))
    return all(np.isfinite(elements(block)).all() for block in blocks)


# --- JSON that is passed on: looked at, and not read, which takes several times as long

_NO_NUMBERS = (b'"', b"l", b"u", b"{")  # of texts, null, false, true, objects


def count_numbers(text: bytes) -> int:
    """How many elements an array of numbers has; 0 for anything else."""
    import numpy as np  # see above; it counts five times as fast as `bytes` do

    if not text.startswith(b"[") or text.rfind(b"[") or not text[1:16].strip(b" \t\r\n]"):
        return 0
    if any(sign in text for sign in _NO_NUMBERS):
        return 0
    return int(np.count_nonzero(np.frombuffer(text, np.uint8) == ord(","))) + 1


def count_either(text: bytes) -> int:
    """How many elements an array of numbers has, or a text in base64; 0 for anything else."""
    if not text.startswith(b'"'):
        return count_numbers(text)
    letters, padding = len(text) - 2, text.count(b"=", -3)
    length, rest = divmod(letters // 4 * 3 - padding, ELEMENT_BYTES)
    return 0 if letters % 4 or rest else length
