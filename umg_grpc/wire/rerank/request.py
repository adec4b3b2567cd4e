"""Rerank requests: decoding of a caller's body, and encoding of the canonical request for a provider."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

import msgspec
from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.v1.limits import MAX_COUNT
from umg_grpc.wire.core.caller_field_paths import wire_paths
from umg_grpc.wire.core.json_decoding import INT64_MAX, JsonObject, check_utf8, invalid, parse, whole
from umg_grpc.wire.core.unknown_field_detection import Fields
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.facts_beside_request import NO_NOTES, DecodedRequest, RequestNotes
from umg_grpc.wire.rerank.document_text import object_text, positions, ranked_texts
from umg_grpc.wire.rerank.schema import PlainBody, RerankBody, RerankOptions
from umg_grpc.wire.text_format_interface import UpstreamRequest

RERANK_PATH = "/rerank"

KNOWN_FIELDS = Fields(RerankBody, {}, {})
"""Known fields of the JSON body, to find unknown ones. The members of documents that are objects are not checked."""

OPTION_FIELDS = {
    "top_n": "top_n",
    "max_chunks_per_document": "max_chunks_per_doc",
    "max_tokens_per_document": "max_tokens_per_doc",
    "priority": "priority",
}
GATEWAY_OPTIONS = ("return_documents", "rank_fields")
UNCARRIED_FIELDS = ("relevant_spans",)

wire_path = wire_paths(
    [(r"^documents\[(\d+)\]\..*", r"documents[\1]"), (r"^max_(chunks|tokens)_per_document", r"max_\1_per_doc")]
)


@dataclass(frozen=True)
class Shape:
    """Options that providers of one rerank API version accept in addition to model, query and documents."""

    name: str
    options: AbstractSet[str]
    always: Mapping[str, object] = field(default_factory=dict)


# the request has the documents already
V1_SHAPE = Shape("rerank", {"top_n", "max_chunks_per_document"}, {"return_documents": False})
V2_SHAPE = Shape("rerank_v2", {"top_n", "max_tokens_per_document", "priority"})


# --- caller -> canonical


def decode_request(
    face: str, body: bytes, headers: Mapping[str, str], model: str = ""
) -> DecodedRequest[pb.RerankRequest]:
    """Decode the JSON body of a rerank request. `face`: name of the caller's format; `model` has no effect, since the
    body contains the model. Raise UmgError: MALFORMED_BODY, MISSING_FIELD or INVALID_FIELD.
    """
    try:
        decoded: PlainBody | RerankBody = _PLAIN.decode(check_utf8(body))
        unknown: Sequence[str] = ()
    except (ValueError, RecursionError):
        decoded = parse(RerankBody, body)
        unknown = KNOWN_FIELDS.unknown(body)
    request = pb.RerankRequest(model=decoded.model, query=decoded.query)
    source = request.source
    source.format, source.body = face, body
    if headers:
        source.headers.update(headers)
    _decode_options(decoded, request)
    _decode_documents(decoded, request)
    notes = RequestNotes(uncarried=list(unknown))
    if decoded.relevant_spans is not None and decoded.relevant_spans.mode == "enabled":
        notes.uncarried.append("relevant_spans")
    return DecodedRequest(request, notes)


_PLAIN = msgspec.json.Decoder(PlainBody)
_KINDS = {b"n": "null", b"t": "a boolean", b"f": "a boolean", b"[": "an array"}  # by the first character


def _decode_options(decoded: RerankOptions, request: pb.RerankRequest) -> None:
    if (top_n := whole(decoded.top_n, "top_n", INT64_MAX)) is not None:
        request.top_n = min(top_n, MAX_COUNT)  # larger than any number of documents, so that it means all of them
    for canonical, name, value in (
        ("max_chunks_per_document", "max_chunks_per_doc", decoded.max_chunks_per_doc),
        ("max_tokens_per_document", "max_tokens_per_doc", decoded.max_tokens_per_doc),
        ("priority", "priority", decoded.priority),
    ):
        if (number := whole(value, name)) is not None:
            setattr(request, canonical, number)
    if decoded.return_documents is not None:
        request.return_documents = decoded.return_documents
    request.rank_fields.extend(decoded.rank_fields or ())


def _decode_documents(decoded: PlainBody | RerankBody, request: pb.RerankRequest) -> None:
    add = request.documents.add  # filled in place: copying a message takes twice the time
    if isinstance(decoded, PlainBody):
        for text in decoded.documents:
            add().text = text
        return
    fields = positions(decoded.rank_fields or ())
    for index, raw in enumerate(decoded.documents):
        _decode_document(raw, add(), fields, f"documents[{index}]")


def _decode_document(raw: Raw, document: pb.RerankDocument, fields: Mapping[str, int], at: str) -> None:
    match bytes(raw)[:1]:
        case b'"':
            document.text = parse(str, raw, at)
        case b"{":
            document.object_json = text = str(raw, "utf-8")
            object_text(text, fields, at)
        case first:  # JSON of any other type
            got = _KINDS.get(first, "a number")
            raise invalid(at, f"expected a string or an object, got {got}; correct its type")


# --- canonical -> provider


def encode_request(
    shape: Shape, request: pb.RerankRequest, model: str, notes: RequestNotes = NO_NOTES
) -> UpstreamRequest:
    """Encode a call of a provider's `POST /rerank`. `shape`: options of the provider's API version. If the caller's
    body is of the same version, its unknown fields are kept. Documents are sent as strings, and the response is not to
    repeat them. Raise UmgError(INVALID_FIELD) for a document that cannot be ranked.
    """
    report, fields = Report(), JsonObject()
    if request.source.format == shape.name:
        fields |= parse(dict[str, Raw], request.source.body)
        for name in UNCARRIED_FIELDS:
            if name in notes.uncarried:
                report.drop(name)
    else:
        notes.report_uncarried(report)
    for name in (*GATEWAY_OPTIONS, *UNCARRIED_FIELDS):
        fields.pop(name, None)
    _encode_options(shape, request, fields, report)
    fields |= {"model": model, "query": request.query, "documents": ranked_texts(request), **shape.always}
    return UpstreamRequest(RERANK_PATH, msgspec.json.encode(fields), {}, report)


def _encode_options(shape: Shape, request: pb.RerankRequest, fields: JsonObject, report: Report) -> None:
    values: dict[str, int] = {descriptor.name: value for descriptor, value in request.ListFields()}
    if request.top_n:
        values["top_n"] = min(request.top_n, len(request.documents))
    for canonical, name in OPTION_FIELDS.items():
        written = fields.pop(name, None) is not None
        if canonical not in values:
            continue
        if written or canonical in shape.options:
            fields[name] = values[canonical]
        elif values[canonical]:  # a priority of 0 is the default
            report.drop(canonical)
