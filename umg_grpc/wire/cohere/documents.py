"""Documents of Cohere's chat: decoded from `documents` into parts of the last user message; sources of citations."""

from collections.abc import Sequence

import msgspec
from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.wire.cohere.schema import Document
from umg_grpc.wire.core.json_decoding import MEMBERS_DECODER, JsonObject, decode_or_none, invalid, json_object, parse

TITLE_MEMBER, TEXT_MEMBER = "title", "text"
_NAMED = msgspec.json.Decoder(str)


def decode_documents(documents: Sequence[Raw], request: pb.GenerateRequest, *, citable: bool) -> None:
    """Insert the documents as text files before the last user message. `citable`: the model may cite them. Missing ids
    are `doc:` and the number, as at the vendor (docs.cohere.com, Documents and Citations). Raise
    UmgError(INVALID_FIELD) for other types, and for a conversation without a user message.
    """
    users = [message for message in request.messages if message.role == pb.ROLE_USER]
    if not users:
        raise invalid("documents", "no message of role `user` reads them; add one to `messages`")
    parts = [_decode_document(raw, f"documents[{index}]", f"doc:{index}") for index, raw in enumerate(documents)]
    for part in parts:
        part.media.citable = citable
    parts.extend(users[-1].parts)
    users[-1].ClearField("parts")
    users[-1].parts.extend(parts)


def _decode_document(raw: Raw, at: str, number: str) -> pb.Part:
    media = pb.MediaPart(kind=pb.MEDIA_KIND_DOCUMENT, mime_type="text/plain", media_id=number, title=number)
    if bytes(raw).startswith(b'"'):
        media.data = parse(str, raw, at).encode()
        return pb.Part(media=media)
    document = parse(Document, raw, at)
    media.media_id = document.id or number
    text = json_object(document.data, f"{at}.data")
    members = MEMBERS_DECODER.decode(text)
    media.title = decode_or_none(_NAMED, members.get(TITLE_MEMBER, Raw())) or media.media_id
    # a document that has only a text is sent as this text, so that positions in it are those of the caller's text
    alone = (
        decode_or_none(_NAMED, members[TEXT_MEMBER])
        if members.keys() <= {TEXT_MEMBER, TITLE_MEMBER} and TEXT_MEMBER in members
        else None
    )
    media.data = (alone or text).encode()
    return pb.Part(media=media)


def documents_of(request: pb.GenerateRequest) -> list[pb.MediaPart]:
    """Return the documents of a request in the order in which citations number them."""
    return [
        part.media
        for message in request.messages
        for part in message.parts
        if part.HasField("media") and part.media.kind == pb.MEDIA_KIND_DOCUMENT
    ]


def encode_source(citation: pb.Citation, documents: Sequence[pb.MediaPart]) -> JsonObject | None:
    """Return a citation's source: a document, or a web page with its URL as id; None for sources of other formats."""
    if citation.HasField("web"):
        address = citation.web.url
        # clients require a text, also of a page of which nothing is quoted (@ai-sdk/cohere 4.0.52)
        page: JsonObject = {
            "id": address,
            TITLE_MEMBER: citation.title,
            "url": address,
            TEXT_MEMBER: citation.cited_text,
        }
        return {"type": "document", "id": address, "document": page}
    index = citation.document.document_index
    if not citation.HasField("document") or not 0 <= index < len(documents):
        return None
    media = documents[index]
    text = media.data.decode("utf-8", "replace")
    document: JsonObject = {"id": media.media_id, TITLE_MEMBER: media.title, TEXT_MEMBER: text}
    return {"type": "document", "id": media.media_id, "document": document}
