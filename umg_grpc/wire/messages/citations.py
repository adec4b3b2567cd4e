"""Citations in text blocks of the messages format, in both directions."""

from typing import assert_never

import msgspec
from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject, json_text
from umg_grpc.wire.messages import schema

# Type of a location in a document -> (unit of the positions, first position, last position).
LOCATION_TYPES = {
    "char_location": (pb.DOCUMENT_UNIT_CHARACTER, "start_char_index", "end_char_index"),
    "page_location": (pb.DOCUMENT_UNIT_PAGE, "start_page_number", "end_page_number"),
    "content_block_location": (pb.DOCUMENT_UNIT_BLOCK, "start_block_index", "end_block_index"),
}
LOCATION_NAMES = {unit: (name, start, end) for name, (unit, start, end) in LOCATION_TYPES.items()}

_CITATION = msgspec.json.Decoder(schema.Citation)


def decode_citation(raw: Raw) -> pb.Citation:
    """Decode a citation of a block's whole text; one of unknown type or without position as raw JSON. Raise ValueError
    for JSON that is no object with an optional string `type`.
    """
    try:
        cited = _CITATION.decode(raw)
    except msgspec.ValidationError:
        return _opaque_citation(raw, msgspec.json.decode(raw, type=schema.Kind).type or "")
    citation = pb.Citation(cited_text=cited.cited_text or "", title=cited.title or cited.document_title or "")
    if cited.type == "web_search_result_location" and cited.url is not None:
        citation.web.url, citation.web.encrypted_index = cited.url, cited.encrypted_index or ""
    elif cited.type == "search_result_location" and cited.search_result_index is not None:
        location = citation.document
        location.document_index, location.unit = cited.search_result_index, pb.DOCUMENT_UNIT_BLOCK
        location.start, location.end = cited.start_block_index or 0, cited.end_block_index or 0
        location.origin = cited.source or ""
    elif cited.type in LOCATION_TYPES and cited.document_index is not None:
        unit, start, end = LOCATION_TYPES[cited.type]
        location = citation.document
        location.document_index, location.unit, location.file_id = cited.document_index, unit, cited.file_id or ""
        location.start, location.end = getattr(cited, start) or 0, getattr(cited, end) or 0
    else:
        return _opaque_citation(raw, cited.type)
    return citation


def _opaque_citation(raw: Raw, kind: str) -> pb.Citation:
    return pb.Citation(opaque=pb.OpaquePart(format="messages", type=kind, json=str(raw, "utf-8")))


def encode_citation(citation: pb.Citation) -> object:
    """Return an element of `citations`; None if only another format has it. Raise UmgError(INVALID_FIELD) if broken."""
    match citation.WhichOneof("source"):
        case "web":
            return {
                "type": "web_search_result_location",
                "url": citation.web.url,
                "title": citation.title or None,
                "cited_text": citation.cited_text,
                "encrypted_index": citation.web.encrypted_index,
            }
        case "document":
            return _encode_location(citation)
        case "opaque" if citation.opaque.format == "messages":
            return json_text(citation.opaque.json, "citations.opaque.json")
        case "opaque" | None:
            return None  # another format's citation, or one without a source
        case unhandled:
            assert_never(unhandled)


def _encode_location(citation: pb.Citation) -> JsonObject | None:
    location = citation.document
    if location.unit not in LOCATION_NAMES:
        return None  # a whole file, as the responses format cites it
    kind, start, end = LOCATION_NAMES[location.unit]
    if location.origin:
        return {
            "type": "search_result_location",
            "source": location.origin,
            "title": citation.title or None,
            "cited_text": citation.cited_text,
            "search_result_index": location.document_index,
            start: location.start,
            end: location.end,
        }
    encoded: JsonObject = {
        "type": kind,
        "cited_text": citation.cited_text,
        "document_index": location.document_index,
        "document_title": citation.title or None,
        start: location.start,
        end: location.end,
    }
    if location.file_id:
        encoded["file_id"] = location.file_id
    return encoded
