"""Citations of a native response (`groundingMetadata`), in both directions. Their offsets count bytes of UTF-8."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import msgspec
from msgspec import Raw, Struct

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject, decode_or_none
from umg_grpc.wire.core.split_character_repair import replace_halves
from umg_grpc.wire.native.text_offset_conversion import Offsets

SEARCH_TOOL = "web_search"


class Page(Struct, rename="camel"):
    """Cited page: the member `web` of a chunk, or a member that may replace it."""

    uri: str | None = None
    title: str | None = None


class Chunk(Struct, rename="camel"):
    """Element of `groundingChunks`: one cited source."""

    web: Page | None = None
    maps: Page | None = None
    retrieved_context: Page | None = None
    image: Page | None = None


class Segment(Struct, rename="camel"):
    """Member `segment` of a support. A start of 0 is left out."""

    part_index: int | None = None
    start_index: int | None = None
    end_index: int | None = None


class Support(Struct, rename="camel"):
    """Element of `groundingSupports`: a segment of the text with the chunks that it cites."""

    segment: Segment | None = None
    grounding_chunk_indices: list[int] | None = None


class Grounding(Struct, rename="camel"):
    """Member `groundingMetadata`, with the fields that are decoded."""

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
    """`groundingMetadata` with only the members that canonical citations and queries express, to test for others."""

    web_search_queries: list[str] | None = None
    grounding_chunks: list[_ExactChunk] | None = None
    grounding_supports: list[_ExactSupport] | None = None


OWN_MEMBERS = ("webSearchQueries", "groundingChunks", "groundingSupports")
_GROUNDING = msgspec.json.Decoder(Grounding)
_EXACT = msgspec.json.Decoder(_Exact)


MAX_CITED_CHARACTERS = 1 << 20
"""Maximum characters of a streamed text that are kept to locate citations; later positions become the end of these."""


class Text(NamedTuple):
    """Text part of a candidate: its index, and the text, from whose start offsets of citations count."""

    part: int  # index among the parts of the candidate
    part_index: int  # index among the parts as the provider wrote them; -1 for pieces of a stream
    text: str


class Sources(NamedTuple):
    """Content of `groundingMetadata`: (part, citation), queries, and the whole JSON if it has other members, or ""."""

    citations: list[tuple[int, pb.Citation]]  # (part, citation)
    queries: list[str]
    rest: str  # the whole JSON if it has more members than that, else ""


# --- provider -> canonical


def decode_grounding(raw: Raw, texts: Sequence[Text]) -> Sources:
    """Return the citations, search queries and other members of a candidate's `groundingMetadata` (`raw`).

    There is one citation for each page that a support names; without supports, one of the whole first text for each
    page. An object with unexpected types has no citations and is kept as raw JSON, so that the response is not lost.
    """
    document = replace_halves(bytes(raw))
    try:
        grounding = _GROUNDING.decode(document)
    except (ValueError, RecursionError):
        rest = document.decode()
        return Sources([], [], rest if _rest(rest) else "")
    positions = _PartPositions(texts)
    pages = [_page(chunk) for chunk in grounding.grounding_chunks or ()]
    citations = list[tuple[int, pb.Citation]]()
    for support in grounding.grounding_supports or ():
        if support.segment is None or (span := positions.span(support.segment)) is None:
            continue
        part, start, end = span
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
    is_exact = decode_or_none(_EXACT, Raw(document)) is not None
    return Sources(citations, grounding.web_search_queries or [], "" if is_exact else document.decode())


def _page(chunk: Chunk) -> Page:
    return chunk.web or chunk.maps or chunk.retrieved_context or chunk.image or Page()


class _PartPositions:
    """Look-up of a candidate's text parts by offset in UTF-8 bytes, the unit of `groundingMetadata`."""

    def __init__(self, texts: Sequence[Text]) -> None:
        self._texts = texts
        self._offsets = [Offsets(text.text) for text in texts]
        self._ends = list(accumulate(offsets.size for offsets in self._offsets))
        self._by_part_index = {text.part_index: position for position, text in reversed(list(enumerate(texts)))}

    def span(self, segment: Segment) -> tuple[int, int, int] | None:
        """Return (text part, first character, end) of a segment, in code points of the part; None if the part is no
        text. A segment that names no part counts from the start of all texts joined.
        """
        start, end = segment.start_index or 0, segment.end_index or 0
        if segment.part_index:
            position = self._by_part_index.get(segment.part_index)
            if position is None:
                return None
        elif self._texts:
            position = min(bisect_right(self._ends, start), len(self._texts) - 1)
            before = self._ends[position] - self._offsets[position].size
            start, end = start - before, end - before
        else:
            return None
        offsets = self._offsets[position]
        return self._texts[position].part, offsets.code_points(start), offsets.code_points(end)


# --- canonical -> caller


class Cited(NamedTuple):
    """Text part of a response with its citations: index of the encoded part, bytes of text before it in that part."""

    text: str
    citations: Sequence[pb.Citation]
    part_index: int | None  # index among the encoded parts; None if the text belongs to the first
    before: int = 0  # bytes of text that precede it there


def encode_grounding(cited: Sequence[Cited], queries: Sequence[str], rest: str) -> JsonObject | Raw:
    """Return `groundingMetadata`; {} without citations and queries. A page is one chunk, even if cited several times.
    `rest`: provider's own JSON ("" if there is none), unchanged if it has the same citations.
    """
    if _rest(rest) and _has_citations(rest, cited):
        return Raw(rest.encode())
    chunks, supports = dict[tuple[str, str], int](), dict[tuple[int | None, int, int], tuple[str, dict[int, None]]]()
    spans = any(citation.HasField("start_index") for text in cited for citation in text.citations)
    for text in cited:
        offsets = Offsets(text.text if text.citations else "")
        for citation in text.citations:
            if not citation.HasField("web"):
                continue  # a position in a document, which native cannot express
            chunk = chunks.setdefault((citation.web.url, citation.title), len(chunks))
            if not spans and len(cited) == 1:
                continue  # of the whole text
            start = citation.start_index if citation.HasField("start_index") else 0
            end = citation.end_index if citation.HasField("end_index") else len(text.text)
            first, last = (text.before + offsets.bytes(edge) for edge in (start, end))
            span = (text.part_index, first, last)
            if span not in supports:
                supports[span] = text.text[start:end], {}
            supports[span][1][chunk] = None
    fields: JsonObject = {name: value for name, value in _rest(rest).items() if name not in OWN_MEMBERS}
    if queries:
        fields["webSearchQueries"] = list(queries)
    if chunks:
        fields["groundingChunks"] = [{"web": {"uri": url, "title": title}} for url, title in chunks]
    if supports:
        fields["groundingSupports"] = [
            {"segment": _segment(*span, text), "groundingChunkIndices": list(indices)}
            for span, (text, indices) in supports.items()
        ]
    return fields


def _has_citations(rest: str, cited: Sequence[Cited]) -> bool:
    texts = [
        Text(part, -1 if text.part_index is None else text.part_index, text.text) for part, text in enumerate(cited)
    ]
    decoded = decode_grounding(Raw(rest.encode()), texts).citations
    return decoded == [(part, citation) for part, text in enumerate(cited) for citation in text.citations]


def _segment(part_index: int | None, start: int, end: int, text: str) -> JsonObject:
    fields: JsonObject = {} if part_index is None else {"partIndex": part_index}
    if start:
        fields["startIndex"] = start
    return {**fields, "endIndex": end, "text": text}


def _rest(text: str) -> dict[str, Raw]:
    try:
        return msgspec.json.decode(text, type=dict[str, Raw]) if text else {}
    except (ValueError, RecursionError):
        return {}
