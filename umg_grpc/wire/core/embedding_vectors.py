"""Embedding vectors in their canonical form (`Embedding.values`): consecutive little-endian float32 elements. In JSON
they are numbers or base64. msgspec reads and writes `bytes` as base64 directly from the buffer.
"""

import binascii
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec
import orjson
from msgspec import Raw

from umg_grpc.wire.core.json_decoding import JsonObject

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ELEMENT_BYTES = 4
PIECE_BYTES = 96 * 2**10
"""Bytes of packed vectors that are encoded at a time: about 300 KB of numbers, in less than a millisecond."""
SLICE_BYTES = 512 * 2**10
UNIT_TOLERANCE = 0.01
"""Deviation from 1 up to which a vector counts as normalized; some providers round its numbers."""
BLOCK_SIZE = 64

# --- to JSON


def json_pieces(
    head: bytes,
    vectors: Iterable[bytes],
    item: Callable[[int, bytes], object],
    encode: Callable[[list[object]], bytes],
    tail: bytes,
) -> Iterator[bytes]:
    """Yield `head`, the embeddings as a JSON array without its brackets, and `tail`, in pieces of about `PIECE_BYTES`.

    `item`: (index, packed vector) -> JSON value. `encode`: encodes these values when the next piece is requested.
    """
    before, items, size = head, list[object](), 0
    for position, vector in enumerate(vectors):
        if size >= PIECE_BYTES:
            yield b"".join((before, memoryview(encode(items))[1:-1]))
            before, items, size = b",", [], 0
        items.append(item(position, vector))
        size += len(vector)
    yield b"".join((before, memoryview(encode(items))[1:-1], tail))


def slices(body: bytes) -> Iterator[bytes]:
    """Yield an encoded body in parts of `SLICE_BYTES` bytes, so that no single write is long."""
    for start in range(0, len(body), SLICE_BYTES):
        yield body[start : start + SLICE_BYTES]


def json_with_numbers(document: JsonObject | Sequence[object]) -> bytes:
    """Encode a document whose vectors are arrays of `elements`: each as a JSON array of the shortest numbers that give
    the same float32. Encoding several vectors at once is twice as fast as encoding each alone.
    """
    return orjson.dumps(document, option=orjson.OPT_SERIALIZE_NUMPY)


def elements(packed: bytes) -> "NDArray[np.float32]":
    """Return a packed vector (little-endian float32) as an array in the machine's byte order."""
    import numpy as np  # not at the top: it costs 15 MB, and not every process embeds

    return np.frombuffer(packed, "<f4").astype(np.float32, copy=False)


# --- from JSON

_NUMBERS = msgspec.json.Decoder(list[float])
_TEXTS = msgspec.json.Decoder(list[str])
_STANDARD_ALPHABET = str.maketrans("-_", "+/")


def from_numbers(vector: Raw | list[float]) -> bytes:
    """Return a JSON array of numbers (or numbers as texts) packed as float32. Raise ValueError for anything else."""
    if isinstance(vector, list):
        return pack(vector)
    try:
        return pack(_NUMBERS.decode(vector))
    except msgspec.ValidationError:
        return pack(list(map(float, _TEXTS.decode(vector))))


def from_either(vector: Raw | list[float] | bytes) -> bytes:
    """Return a vector as packed little-endian float32. `vector`: an array as for `from_numbers`, or base64 (in either
    alphabet, with or without padding, as JSON or decoded already). Raise ValueError for any other value.
    """
    if not isinstance(vector, Raw):
        return from_numbers(vector) if isinstance(vector, list) else vector
    if not bytes(vector).startswith(b'"'):
        return from_numbers(vector)
    letters = msgspec.json.decode(vector, type=str).translate(_STANDARD_ALPHABET).rstrip("=")
    return binascii.a2b_base64(letters + "=" * (-len(letters) % 4), strict_mode=True)


def shorten(vector: bytes, length: int) -> bytes:
    """Return the first `length` numbers of a packed vector. If the vector is normalized (norm 1), so is the result."""
    import numpy as np  # imported here as in `elements`

    numbers = elements(vector)
    first = numbers[:length]
    norm = np.linalg.norm(first)
    if abs(np.linalg.norm(numbers) - 1) < UNIT_TOLERANCE and norm > 0:
        first = first / norm
    return first.astype("<f4").tobytes()


def normalized(vector: bytes) -> bytes:
    """Return a packed vector scaled to the Euclidean norm 1; a vector of zeros unchanged."""
    import numpy as np  # imported here as in `elements`

    numbers = elements(vector)
    norm = np.linalg.norm(numbers)
    return (numbers / norm).astype("<f4").tobytes() if norm > 0 else vector


def pack(numbers: Sequence[float]) -> bytes:
    """Return numbers as packed little-endian float32. Raise ValueError for a number that float32 cannot hold."""
    try:
        return struct.pack(f"<{len(numbers)}f", *numbers)
    except OverflowError as error:
        raise ValueError(str(error)) from None


def are_whole(vectors: Sequence[bytes]) -> bool:
    """Return whether packed vectors are valid: not empty, without incomplete elements, and all numbers finite."""
    import numpy as np  # imported here as in `elements`

    if any(not vector or len(vector) % ELEMENT_BYTES for vector in vectors):
        return False
    blocks = (b"".join(vectors[start : start + BLOCK_SIZE]) for start in range(0, len(vectors), BLOCK_SIZE))
    return all(np.isfinite(elements(block)).all() for block in blocks)


# --- JSON that is passed through: scanned instead of decoded, which would take several times as long

_NO_NUMBERS = (b'"', b"l", b"u", b"{")  # first characters or letters of texts, null, false, true and objects


def count_numbers(text: bytes) -> int:
    """Return the number of elements of a JSON array of numbers without decoding it; 0 for any other JSON value."""
    import numpy as np  # imported here as in `elements`; it counts five times as fast as `bytes.count`

    if not text.startswith(b"[") or text.rfind(b"[") or not text[1:16].strip(b" \t\r\n]"):
        return 0
    if any(sign in text for sign in _NO_NUMBERS):
        return 0
    return int(np.count_nonzero(np.frombuffer(text, np.uint8) == ord(","))) + 1


def count_either(text: bytes) -> int:
    """Return the number of elements of a vector (JSON array or base64) without decoding it; 0 for any other JSON."""
    if not text.startswith(b'"'):
        return count_numbers(text)
    letters, padding = len(text) - 2, text.count(b"=", -3)
    length, rest = divmod(letters // 4 * 3 - padding, ELEMENT_BYTES)
    return 0 if letters % 4 or rest else length
