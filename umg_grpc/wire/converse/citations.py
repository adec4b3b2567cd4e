"""Citations in Converse responses, decoded."""

from collections.abc import Mapping

import msgspec
from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.wire.converse.schema import Citation, Location

DOCUMENT_UNITS: "Mapping[str, pb.DocumentUnit.ValueType]" = {
    "document_char": pb.DOCUMENT_UNIT_CHARACTER,
    "document_page": pb.DOCUMENT_UNIT_PAGE,
    "document_chunk": pb.DOCUMENT_UNIT_BLOCK,
    "search_result_location": pb.DOCUMENT_UNIT_BLOCK,
}
_CITATION = msgspec.json.Decoder(Citation)


def decode_citation(raw: Raw) -> pb.Citation:
    """Return a citation of its block's whole text; raw JSON for unknown locations. Raise ValueError for others."""
    cited = _CITATION.decode(raw)
    passages = [passage.text for passage in cited.source_content or () if passage.text]
    citation = pb.Citation(cited_text="".join(passages), title=cited.title or "")
    location = cited.location
    if location is not None and location.web is not None and location.web.url:
        citation.web.url = location.web.url
        return citation
    for name, unit in DOCUMENT_UNITS.items():
        place: Location | None = getattr(location, name, None)
        if place is not None:
            _decode_place(place, unit, citation.document)
            if name == "search_result_location":
                citation.document.origin = cited.source or ""
            return citation
    citation.opaque.CopyFrom(pb.OpaquePart(format="converse", type="citation", json=str(raw, "utf-8")))
    return citation


def _decode_place(place: Location, unit: "pb.DocumentUnit.ValueType", target: pb.DocumentSource) -> None:
    index = place.search_result_index if place.document_index is None else place.document_index
    target.document_index, target.unit = max(0, index or 0), unit
    target.start, target.end = max(0, place.start or 0), max(0, place.end or 0)
