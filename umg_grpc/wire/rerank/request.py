"""The request, both directions: a caller's body -> canonical, canonical -> a provider's body."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

import msgspec
from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.wire.format import UpstreamRequest
from umg_grpc.wire.json import JsonObject, check_utf8, invalid, parse, whole
from umg_grpc.wire.paths import wire_paths
from umg_grpc.wire.report import Report
from umg_grpc.wire.rerank.documents import object_text, places, ranked_texts
from umg_grpc.wire.rerank.schema import LARGEST, Asked, PlainBody, RerankBody
from umg_grpc.wire.unknown import Fields, note_source

PATH = "/rerank"

FIELDS = Fields(RerankBody, {}, {})
"""A body's. Object documents are the caller's own JSON."""

OPTIONS = {
    "top_n": "top_n",
    "max_chunks_per_document": "max_chunks_per_doc",
    "max_tokens_per_document": "max_tokens_per_doc",
    "priority": "priority",
}
"""Canonical field -> its name on the wire."""
DONE_HERE = ("return_documents", "rank_fields")
UNCARRIED = ("relevant_spans",)

wire_path = wire_paths(
    [
        (r"^documents\[(\d+)\]\..*", r"documents[\1]"),
        (r"^max_(chunks|tokens)_per_document", r"max_\1_per_doc"),
    ]
)


@dataclass(frozen=True)
class Shape:
    """What a provider of one kind is told beside the model, the query and the documents."""

    name: str
    """Of the face whose callers write the same."""
    options: AbstractSet[str]
    """Canonical fields."""
    always: Mapping[str, object] = field(default_factory=dict)


V1 = Shape("rerank", {"top_n", "max_chunks_per_document"}, {"return_documents": False})  # it has them from us
V2 = Shape("rerank_v2", {"top_n", "max_tokens_per_document", "priority"})


# --- caller -> canonical


def decode_request(face: str, body: bytes, headers: Mapping[str, str]) -> pb.RerankRequest:
    """The request with its source. Raises UmgError: MALFORMED_BODY, MISSING_FIELD, INVALID_FIELD."""
    try:
        asked: PlainBody | RerankBody = _PLAIN.decode(check_utf8(body))
        unknown: Sequence[str] = ()
    except (ValueError, RecursionError):
        asked = parse(RerankBody, body)
        unknown = FIELDS.unknown(body)
    request = pb.RerankRequest(model=asked.model, query=asked.query)
    source = request.source
    source.format, source.body = face, body
    source.uncarried_fields.extend(unknown)
    if headers:
        source.headers.update(headers)
    _decode_options(asked, request)
    _decode_documents(asked, request)
    return request


_PLAIN = msgspec.json.Decoder(PlainBody)
_KINDS = {b"n": "null", b"t": "a boolean", b"f": "a boolean", b"[": "an array"}  # by how they begin


def _decode_options(asked: Asked, request: pb.RerankRequest) -> None:
    if (top_n := whole(asked.top_n, "top_n")) is not None:
        request.top_n = min(top_n, LARGEST)  # more than there are documents, and so all of them
    for canonical, name, value in (
        ("max_chunks_per_document", "max_chunks_per_doc", asked.max_chunks_per_doc),
        ("max_tokens_per_document", "max_tokens_per_doc", asked.max_tokens_per_doc),
        ("priority", "priority", asked.priority),
    ):
        if (number := whole(value, name)) is not None:
            setattr(request, canonical, number)
    if asked.return_documents is not None:
        request.return_documents = asked.return_documents
    request.rank_fields.extend(asked.rank_fields or ())
    if asked.relevant_spans is not None and asked.relevant_spans.mode == "enabled":
        request.source.uncarried_fields.append("relevant_spans")


def _decode_documents(asked: PlainBody | RerankBody, request: pb.RerankRequest) -> None:
    add = request.documents.add  # filled in place: a message that is copied costs twice
    if isinstance(asked, PlainBody):
        for text in asked.documents:
            add().text = text
        return
    fields = places(asked.rank_fields or ())
    for index, raw in enumerate(asked.documents):
        _decode_document(raw, add(), fields, f"documents[{index}]")


def _decode_document(raw: Raw, document: pb.RerankDocument, fields: Mapping[str, int], at: str) -> None:
    """A string as text, an object byte for byte."""
    match bytes(raw)[:1]:
        case b'"':
            document.text = parse(str, raw, at)
        case b"{":
            document.object_json = text = str(raw, "utf-8")
            object_text(text, fields, at)
        case first:
            got = _KINDS.get(first, "a number")
            raise invalid(at, f"expected a string or an object, got {got}; correct its type")


# --- canonical -> provider


def encode_request(shape: Shape, request: pb.RerankRequest, model: str) -> UpstreamRequest:
    """The call of `POST /rerank` below `/v1` or `/v2`. A caller's body of the same shape goes on with all that is
    unknown here, and with options that only the other shape has.

    Documents go as strings, and are never asked back: the request has them. Raises UmgError(INVALID_FIELD) for one that
    cannot be ranked.
    """
    report, fields = Report(), JsonObject()
    if request.source.format == shape.name:
        fields |= parse(dict[str, Raw], request.source.body)
        for name in UNCARRIED:
            if name in request.source.uncarried_fields:
                report.drop(name)
    else:
        note_source(request.source, report)
    for name in (*DONE_HERE, *UNCARRIED):
        fields.pop(name, None)
    _encode_options(shape, request, fields, report)
    fields |= {"model": model, "query": request.query, "documents": ranked_texts(request), **shape.always}
    return UpstreamRequest(PATH, msgspec.json.encode(fields), {}, report)


def _encode_options(shape: Shape, request: pb.RerankRequest, fields: JsonObject, report: Report) -> None:
    """Writes into `fields`, in whole numbers: `50.0` as 50, and no null. A `top_n` above the number of documents, which
    not every provider takes, as that number.
    """
    said: dict[str, int] = {descriptor.name: value for descriptor, value in request.ListFields()}
    if request.top_n:
        said["top_n"] = min(request.top_n, len(request.documents))
    for canonical, name in OPTIONS.items():
        written = fields.pop(name, None) is not None
        if canonical not in said:
            continue
        if written or canonical in shape.options:
            fields[name] = said[canonical]
        elif said[canonical]:  # a priority of 0 is everybody's
            report.drop(canonical)
