"""Whether chunks say anything yet: the first may have nothing in its parts."""

import re

import msgspec
from msgspec import Raw, Struct

from umg_grpc.wire.json import ABSENT
from umg_grpc.wire.preamble import are_nothing, is_nothing, preamble

CANDIDATE = frozenset({"index", "content", "safetyRatings"})


class _Content(Struct):
    parts: list[dict[str, Raw]] | None = None


class _Chunk(Struct, rename="camel"):
    candidates: list[dict[str, Raw]] | None = None
    prompt_feedback: Raw = ABSENT
    error: Raw = ABSENT


_CHUNK = msgspec.json.Decoder(_Chunk)
_CONTENT = msgspec.json.Decoder(_Content | None)


def _says_nothing(data: bytes) -> bool:
    chunk = _CHUNK.decode(data)
    if not is_nothing(chunk.prompt_feedback) or not is_nothing(chunk.error):
        return False
    for candidate in chunk.candidates or ():
        content = _CONTENT.decode(candidate.get("content", b"null"))
        parts = (content.parts if content is not None else None) or ()
        if not are_nothing(candidate, CANDIDATE) or not all(are_nothing(part) for part in parts):
            return False
    return True


is_preamble = preamble(_says_nothing, re.compile(rb'"text": ?"[^"]'))
