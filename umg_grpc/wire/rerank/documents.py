"""What is ranked of a document. Local and simulated rerankers use it too: they know strings only, as providers do."""

from collections.abc import Iterable, Mapping
from contextlib import suppress

import msgspec
from msgspec import Raw, Struct

from umg_grpc.v1 import pb
from umg_grpc.wire.json import ABSENT, echo, given, invalid

TEXT = "text"
BETWEEN = "\n"  # members that are ranked together; not shown
SHOWN = 3
"""So many names a message repeats."""


class PlainDocument(Struct):
    """An object document as nearly all are."""

    text: str


_PLAIN = msgspec.json.Decoder(PlainDocument)
_MEMBERS = msgspec.json.Decoder(dict[str, Raw])
_STRING = msgspec.json.Decoder(str)


def ranked_texts(request: pb.RerankRequest) -> list[str]:
    """What is ranked of each document of the request, in order. Raises UmgError(INVALID_FIELD), naming the document."""
    fields = places(request.rank_fields)
    return [
        object_text(text, fields, f"documents[{index}]") if (text := document.object_json) else document.text
        for index, document in enumerate(request.documents)
    ]


def places(rank_fields: Iterable[str]) -> Mapping[str, int]:
    """Each name and its place; one that is repeated counts once. Made once a request: the names are looked up in each
    of its objects.
    """
    return {name: place for place, name in enumerate(dict.fromkeys(rank_fields))}


def object_text(document: str, fields: Mapping[str, int], at: str) -> str:
    """What is ranked of the object at the path `at`: the members that `fields` names, on a line each and in that order,
    or its `text` where it has none of them.

    A member that is null is not there; one that is no string is ranked as its JSON, save `text`, which must be a string
    (not shown). Raises UmgError(INVALID_FIELD) for an object without any, or what is no object.
    """
    if not fields:
        with suppress(ValueError, RecursionError):  # then it is told below what is wrong
            return _PLAIN.decode(document).text
    try:
        members = _MEMBERS.decode(document)
    except (ValueError, RecursionError):
        raise invalid(at, "it is not one JSON object; correct it") from None
    named = sorted(members.keys() & fields.keys(), key=fields.__getitem__)  # in the time of the fewer of the two
    texts = [_member(members[name], name, at) for name in named if given(members[name])]
    if not texts:
        if not given(text := members.get(TEXT, ABSENT)):
            raise _without_any(fields, at)
        texts = [_member(text, TEXT, at)]
    return BETWEEN.join(texts)


def _without_any(fields: Mapping[str, int], at: str) -> Exception:
    named = [f"`{echo(name)}`" for name in fields if name != TEXT]
    if len(named) > SHOWN:
        named = ["member of `rank_fields`"]
    wanted = " or ".join([*named, f"`{TEXT}`"])
    return invalid(at, f"the object has no {wanted} to rank; add one, or name its members in `rank_fields`")


def _member(raw: Raw, name: str, at: str) -> str:
    if bytes(raw).startswith(b'"'):
        return _STRING.decode(raw)
    if name == TEXT:
        raise invalid(at, "expected its `text` to be a string; correct its type")
    return str(raw, "utf-8")
