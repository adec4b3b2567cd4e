"""Sources of an answer, both directions: citations <-> `groundingMetadata`, whose places count bytes of UTF-8."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from msgspec import Raw, Struct

from umg_grpc.v1 import pb
from umg_grpc.wire.json import JsonObject

SEARCH = "web_search"


class Page(Struct, rename="camel"):
    """`web` of a chunk, and what else may stand in its place."""

    uri: str | None = None
    title: str | None = None


class Chunk(Struct, rename="camel"):
    """An element of `groundingChunks`."""

    web: Page | None = None
    maps: Page | None = None
    retrieved_context: Page | None = None
    image: Page | None = None


class Segment(Struct, rename="camel"):
    """`segment` of a support; a start of 0 is left out."""

    part_index: int | None = None
    start_index: int | None = None
    end_index: int | None = None


class Support(Struct, rename="camel"):
    """An element of `groundingSupports`."""

    segment: Segment | None = None
    grounding_chunk_indices: list[int] | None = None


class Grounding(Struct, rename="camel"):
    """`groundingMetadata`, as far as it is decoded."""

    web_search_queries: list[str] | None = None
    grounding_chunks: list[Chunk] | None = None
    grounding_supports: list[Support] | None = None


class _ExactPage(Page, forbid_unknown_fields=True):
    pass


class _ExactChunk(Struct, forbid_unknown_fields=True, rename="camel"):
    web: _ExactPage | None = None


class _ExactSegment(Struct, forbid_unknown_fields=True, rename="camel"):
    start_index: int | None = None
    end_index: int | None = None
    text: str | None = None


class _ExactSupport(Struct, forbid_unknown_fields=True, rename="camel"):
    segment: _ExactSegment | None = None
    grounding_chunk_indices: list[int] | None = None


class _Exact(Struct, forbid_unknown_fields=True, rename="camel"):
    """`groundingMetadata` that says no more than citations and queries do."""

    web_search_queries: list[str] | None = None
    grounding_chunks: list[_ExactChunk] | None = None
    grounding_supports: list[_ExactSupport] | None = None


OURS = ("webSearchQueries", "groundingChunks", "groundingSupports")
_GROUNDING = msgspec.json.Decoder(Grounding)
_EXACT = msgspec.json.Decoder(_Exact)


class Text(NamedTuple):
    """A text part, whose citations count from its own start."""

    part: int  # its number among the parts of the candidate
    place: int  # its number among the parts as the provider wrote them; -1 where those are pieces of a stream
    text: str


class Sources(NamedTuple):
    """What `groundingMetadata` says."""

    citations: list[tuple[int, pb.Citation]]  # (part, citation)
    queries: list[str]
    rest: str  # the whole JSON where it says more than that, else ""


# --- provider -> canonical


def decode_grounding(raw: Raw, texts: Sequence[Text]) -> Sources:
    """The sources of a candidate's texts: one citation for each support and chunk; without supports one of each chunk
    for the whole first text. Raises ValueError for what cannot be read.
    """
    grounding = _GROUNDING.decode(raw)
    pages = [_page(chunk) for chunk in grounding.grounding_chunks or ()]
    citations = list[tuple[int, pb.Citation]]()
    for support in grounding.grounding_supports or ():
        if support.segment is None or (place := _span(support.segment, texts)) is None:
            continue
        part, start, end = place
        for index in support.grounding_chunk_indices or ():
            if 0 <= index < len(pages) and (page := pages[index]).uri:
                source = pb.WebSource(url=page.uri)
                citation = pb.Citation(start_index=start, end_index=end, title=page.title or "", web=source)
                citations.append((part, citation))
    if not grounding.grounding_supports and texts:
        whole = [page for page in pages if page.uri]
        citations += [
            (texts[0].part, pb.Citation(title=page.title or "", web=pb.WebSource(url=page.uri or ""))) for page in whole
        ]
    return Sources(citations, grounding.web_search_queries or [], "" if _is_exact(raw) else str(raw, "utf-8"))


def _page(chunk: Chunk) -> Page:
    return chunk.web or chunk.maps or chunk.retrieved_context or chunk.image or Page()


def _span(segment: Segment, texts: Sequence[Text]) -> tuple[int, int, int] | None:
    """(part, first code point, the one after the last) of a segment; None for one of no text.

    A segment without a part counts from the start of all text, which is that of the first part where there is one.
    """
    start, end = segment.start_index or 0, segment.end_index or 0
    for text in texts:
        size = len(text.text) if text.text.isascii() else len(text.text.encode())
        if segment.part_index:
            if text.place == segment.part_index:
                return text.part, _code_point(text.text, start), _code_point(text.text, end)
        elif start < size or text is texts[-1]:
            return text.part, _code_point(text.text, start), _code_point(text.text, min(end, size))
        else:
            start, end = start - size, end - size
    return None


def _code_point(text: str, offset: int) -> int:
    """The place of a byte in code points; of one inside a character the place of that character."""
    if text.isascii():
        return max(0, min(offset, len(text)))
    return len(text.encode()[: max(0, offset)].decode("utf-8", "ignore"))


def _is_exact(raw: Raw) -> bool:
    try:
        _EXACT.decode(raw)
    except ValueError:
        return False
    return True


# --- canonical -> caller


class Cited(NamedTuple):
    """A text and its sources, on the way to a caller."""

    text: str
    citations: Sequence[pb.Citation]
    place: int | None  # its number among the parts as they are written; None where the text is one with the first
    before: int = 0  # bytes of text that precede it there


def encode_grounding(cited: Sequence[Cited], queries: Sequence[str], rest: str) -> JsonObject | Raw:
    """`groundingMetadata`; {} for none. A page is one chunk however often it is cited.

    `rest` is a provider's own: it stands as it is where the citations are still those that it states.
    """
    if rest and _states(rest, cited):
        return Raw(rest.encode())
    chunks, supports = dict[tuple[str, str], int](), dict[tuple[int | None, int, int], tuple[str, list[int]]]()
    spans = any(citation.HasField("start_index") for text in cited for citation in text.citations)
    for text in cited:
        for citation in text.citations:
            if not citation.HasField("web"):
                continue  # a place in a document: native has no words for it
            chunk = chunks.setdefault((citation.web.url, citation.title), len(chunks))
            if not spans and len(cited) == 1:
                continue  # of the whole text
            start = citation.start_index if citation.HasField("start_index") else 0
            end = citation.end_index if citation.HasField("end_index") else len(text.text)
            first, last = (text.before + len(text.text[:edge].encode()) for edge in (start, end))
            place = (text.place, first, last)
            indices = supports.setdefault(place, (text.text[start:end], []))[1]
            if chunk not in indices:
                indices.append(chunk)
    fields: JsonObject = {name: value for name, value in _rest(rest).items() if name not in OURS}
    if queries:
        fields["webSearchQueries"] = list(queries)
    if chunks:
        fields["groundingChunks"] = [{"web": {"uri": url, "title": title}} for url, title in chunks]
    if supports:
        fields["groundingSupports"] = [
            {"segment": _segment(*place, text), "groundingChunkIndices": indices}
            for place, (text, indices) in supports.items()
        ]
    return fields


def _states(rest: str, cited: Sequence[Cited]) -> bool:
    """Whether these are the citations of that JSON."""
    texts = [Text(part, -1 if text.place is None else text.place, text.text) for part, text in enumerate(cited)]
    try:
        told = decode_grounding(Raw(rest.encode()), texts).citations
    except (ValueError, RecursionError):
        return False
    return told == [(part, citation) for part, text in enumerate(cited) for citation in text.citations]


def _segment(place: int | None, start: int, end: int, text: str) -> JsonObject:
    fields: JsonObject = {} if place is None else {"partIndex": place}
    if start:
        fields["startIndex"] = start
    return {**fields, "endIndex": end, "text": text}


def _rest(text: str) -> dict[str, Raw]:
    """What must be shown beside the sources, such as search suggestions; nothing where it is no object."""
    try:
        return msgspec.json.decode(text, type=dict[str, Raw]) if text else {}
    except (ValueError, RecursionError):
        return {}
