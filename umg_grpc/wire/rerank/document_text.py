"""Conversion of documents to the texts that are ranked, since models accept only strings."""

from collections.abc import Iterable, Mapping
from contextlib import suppress

import msgspec
from msgspec import Raw, Struct

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, MEMBERS_DECODER, echo, invalid, is_present

TEXT_MEMBER = "text"
MEMBER_SEPARATOR = "\n"  # separator of members that are ranked together; not shown
MAX_LISTED_NAMES = 3


class PlainDocument(Struct):
    """Document that is an object with `text` as its only member, as most object documents are."""

    text: str


_PLAIN = msgspec.json.Decoder(PlainDocument)
_STRING = msgspec.json.Decoder(str)


def ranked_texts(request: pb.RerankRequest) -> list[str]:
    """Return the text of each document. Raise UmgError(INVALID_FIELD) naming a document without a text."""
    fields = positions(request.rank_fields)
    return [
        object_text(text, fields, f"documents[{index}]") if (text := document.object_json) else document.text
        for index, document in enumerate(request.documents)
    ]


def positions(rank_fields: Iterable[str]) -> Mapping[str, int]:
    """Return name -> position among the distinct names. It is computed once for all documents of a request."""
    return {name: position for position, name in enumerate(dict.fromkeys(rank_fields))}


def object_text(document: str, fields: Mapping[str, int], at: str) -> str:
    """Return the text by which a document that is an object is ranked.

    The text is its members in `fields`, in their order and one per line, or its `text` if it has none of them.
    `document`: JSON of the object; `fields`: name -> position; `at`: path of the document, for errors. A null member
    counts as absent, and a member that is no string is ranked as its JSON, except `text`, which must be a string. Raise
    UmgError(INVALID_FIELD) for an object without a ranked member, and for JSON that is no object.
    """
    if not fields:
        with suppress(ValueError, RecursionError):  # the error is raised below
            return _PLAIN.decode(document).text
    try:
        members = MEMBERS_DECODER.decode(document)
    except (ValueError, RecursionError):
        raise invalid(at, "it is not one JSON object; correct it") from None
    # takes the time of the smaller of the two sets
    named = sorted(members.keys() & fields.keys(), key=fields.__getitem__)
    texts = [_member(members[name], name, at) for name in named if is_present(members[name])]
    if not texts:
        if not is_present(text := members.get(TEXT_MEMBER, ABSENT_MEMBER)):
            raise _nothing_to_rank(fields, at)
        texts = [_member(text, TEXT_MEMBER, at)]
    return MEMBER_SEPARATOR.join(texts)


def _nothing_to_rank(fields: Mapping[str, int], at: str) -> Exception:
    named = [f"`{echo(name)}`" for name in fields if name != TEXT_MEMBER]
    if len(named) > MAX_LISTED_NAMES:
        named = ["member of `rank_fields`"]
    wanted = " or ".join([*named, f"`{TEXT_MEMBER}`"])
    return invalid(at, f"the object has no {wanted} to rank; add one, or name its members in `rank_fields`")


def _member(raw: Raw, name: str, at: str) -> str:
    if bytes(raw).startswith(b'"'):
        return _STRING.decode(raw)
    if name == TEXT_MEMBER:
        raise invalid(at, "expected its `text` to be a string; correct its type")
    return str(raw, "utf-8")
