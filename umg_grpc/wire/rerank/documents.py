"""What is ranked of a document. Local and simulated rerankers use it too: they know strings only, as providers do."""

from collections.abc import Sequence
from contextlib import suppress

import msgspec
from msgspec import Raw, Struct

from umg_grpc.v1 import pb
from umg_grpc.wire.json import given, invalid

TEXT = "text"
BETWEEN = "\n"  # members that are ranked together; not shown


class PlainDocument(Struct):
    """An object document as nearly all are."""

    text: str


_PLAIN = msgspec.json.Decoder(PlainDocument)
_MEMBERS = msgspec.json.Decoder(dict[str, Raw])
_STRING = msgspec.json.Decoder(str)


def ranked_texts(request: pb.RerankRequest) -> list[str]:
    """What is ranked of each document of the request, in order. Raises UmgError(INVALID_FIELD), naming the document."""
    fields = request.rank_fields
    return [
        ranked_text(document, fields, f"documents[{index}]") if document.object_json else document.text
        for index, document in enumerate(request.documents)
    ]


def ranked_text(document: pb.RerankDocument, rank_fields: Sequence[str] = (), at: str = "documents") -> str:
    """What is ranked of the document at the path `at`: a text as it is; of an object the members that `rank_fields`
    names, on a line each and in that order, or its `text` where it has none of them.

    A member that is null is not there; one that is no string is ranked as its JSON, save `text`, which must be a string
    (not shown). Raises UmgError(INVALID_FIELD) for an object without any, or what is no object.
    """
    if document.HasField("text"):
        return document.text
    if not rank_fields:
        with suppress(ValueError, RecursionError):  # then it is told below what is wrong
            return _PLAIN.decode(document.object_json).text
    members = _read(document, at)
    texts = [_member(members, name, at) for name in rank_fields if name in members]
    if not texts and TEXT in members:
        texts = [_member(members, TEXT, at)]
    if not texts:
        named = "".join(f"`{name[:64]}` or " for name in rank_fields if name != TEXT)
        raise invalid(at, f"the object has no {named}`text` to rank; add one, or name its members in `rank_fields`")
    return BETWEEN.join(texts)


def _read(document: pb.RerankDocument, at: str) -> dict[str, Raw]:
    """The members that say something."""
    try:
        members = _MEMBERS.decode(document.object_json)
    except (ValueError, RecursionError):
        raise invalid(at, "it is not one JSON object; correct it") from None
    return {name: raw for name, raw in members.items() if given(raw)}


def _member(members: dict[str, Raw], name: str, at: str) -> str:
    raw = members[name]
    if bytes(raw).startswith(b'"'):
        return _STRING.decode(raw)
    if name == TEXT:
        raise invalid(at, "expected its `text` to be a string; correct its type")
    return str(raw, "utf-8")
