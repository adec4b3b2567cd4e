"""Content parts of messages and tool results in the responses format, in both directions."""

from typing import assert_never

import msgspec

from umg_grpc.v1 import pb
from umg_grpc.wire.core.base64_media import (
    check_address,
    data_url,
    decode_file,
    decode_image,
    decode_input_audio,
    encode_input_audio,
    file_type,
    is_data_url,
    parse_data_url,
)
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, JsonObject, invalid, json_text, missing, parse
from umg_grpc.wire.core.prompt_cache_breakpoints import decode_breakpoint
from umg_grpc.wire.dropped_fields_report import Report, foreign, unknown_part, untranslatable
from umg_grpc.wire.responses import schema

IMAGE_DETAILS = ("auto", "low", "high", "original")
FILE_DETAILS = ("auto", "low", "high")
BETWEEN_TEXTS = "\n\n"

# --- caller -> canonical


def decode_content(content: str | list[msgspec.Raw], target: pb.Message | pb.ToolResult, at: str) -> None:
    """Append a text or content parts to `target`. Raise UmgError(MISSING_FIELD, INVALID_FIELD) with the path."""
    if isinstance(content, str):
        target.parts.add().text.text = content
        return
    for index, raw in enumerate(content):
        decode_part(raw, target, f"{at}[{index}]")


def decode_part(raw: msgspec.Raw, target: pb.Message | pb.ToolResult, at: str) -> None:  # noqa: PLR0912 - one case a kind
    """Append a content part to `target`, one of unknown type as raw JSON. Raise UmgError with the field's path."""
    match parse(schema.Kind, raw, at).type:
        case "input_text":
            plain, part = parse(schema.TextPart, raw, at), target.parts.add()
            part.text.text = plain.text
            if (mark := plain.prompt_cache_breakpoint) is not ABSENT_MEMBER:
                decode_breakpoint(mark, part)
        case "output_text":
            decoded = parse(schema.OutputText, raw, at)
            text = target.parts.add().text
            text.text = decoded.text
            for index, annotation in enumerate(decoded.annotations or ()):
                parse(schema.Kind, annotation, f"{at}.annotations[{index}]")
                text.citations.append(decode_annotation(annotation))
        case "refusal":
            target.parts.add().refusal.text = parse(schema.RefusalPart, raw, at).refusal
        case "input_image":
            image, part = parse(schema.ImagePart, raw, at), target.parts.add()
            _decode_image(image, part.media, at)
            if (mark := image.prompt_cache_breakpoint) is not ABSENT_MEMBER:
                decode_breakpoint(mark, part)
        case "input_file":
            file, part = parse(schema.FilePart, raw, at), target.parts.add()
            _decode_file(file, part.media, at)
            if (mark := file.prompt_cache_breakpoint) is not ABSENT_MEMBER:
                decode_breakpoint(mark, part)
        case "input_audio":
            sound, part = parse(schema.AudioPart, raw, at), target.parts.add()
            audio = sound.input_audio
            decode_input_audio(audio.data, audio.format, part.media, f"{at}.input_audio.data")
            if (mark := sound.prompt_cache_breakpoint) is not ABSENT_MEMBER:
                decode_breakpoint(mark, part)
        case None:
            raise missing(f"{at}.type")
        case unknown:  # types grow with the format: an unknown one is kept as raw JSON
            opaque = target.parts.add().opaque
            opaque.format, opaque.type, opaque.json = "responses", unknown, str(raw, "utf-8")


def _decode_image(image: schema.ImagePart, media: pb.MediaPart, at: str) -> None:
    media.kind, media.detail = pb.MEDIA_KIND_IMAGE, image.detail or ""
    if image.image_url is None:
        if image.file_id is None:
            raise missing(f"{at}.image_url")
        media.file_id = image.file_id
        return
    field = f"{at}.image_url"
    if image.file_id is not None:
        raise invalid(field, "`file_id` is given as well; send one of the two")
    decode_image(image.image_url, media, field)


def _decode_file(file: schema.FilePart, media: pb.MediaPart, at: str) -> None:
    """Decode an `input_file` into `media`: a URL, a file id, or bytes as data URL (from SDKs) or bare base64."""
    media.kind, media.filename, media.detail = pb.MEDIA_KIND_DOCUMENT, file.filename or "", file.detail or ""
    sources = [name for name in ("file_data", "file_url", "file_id") if getattr(file, name) is not None]
    if not sources:
        raise missing(f"{at}.file_data")
    if len(sources) > 1:
        raise invalid(f"{at}.{sources[1]}", f"`{sources[0]}` is given as well; send one of them")
    if file.file_data is not None:
        decode_file(file.file_data, media, f"{at}.file_data")
    elif file.file_url is not None:
        if is_data_url(file.file_url):
            media.mime_type, media.data = parse_data_url(file.file_url, f"{at}.file_url")
        else:
            media.uri = check_address(file.file_url, f"{at}.file_url", "bytes go into `file_data`")
    elif file.file_id is not None:
        media.file_id = file.file_id


class Annotation(msgspec.Struct):
    """Annotation of a text: `url_citation` or `file_citation`."""

    type: str | None = None
    url: str | None = None
    title: str | None = None
    start_index: int | float | None = None
    end_index: int | float | None = None
    file_id: str | None = None
    filename: str | None = None
    index: int | float | None = None


_ANNOTATION = msgspec.json.Decoder(Annotation)
LAST_INDEX = 2**31 - 1


def decode_annotation(raw: msgspec.Raw) -> pb.Citation:
    """Return an annotation as a citation. An annotation that cites neither a web page nor a file becomes raw JSON."""
    try:
        decoded = _ANNOTATION.decode(raw)
    except msgspec.ValidationError:
        decoded = Annotation(type=_kind(raw))
    if decoded.type == "url_citation" and decoded.url is not None:
        citation = pb.Citation(title=decoded.title or "", web=pb.WebSource(url=decoded.url))
        if decoded.start_index is not None and decoded.end_index is not None:
            citation.start_index, citation.end_index = _index(decoded.start_index), _index(decoded.end_index)
        return citation
    if decoded.type == "file_citation" and decoded.file_id is not None:
        document = pb.DocumentSource(file_id=decoded.file_id, document_index=_index(decoded.index or 0))
        return pb.Citation(title=decoded.filename or "", document=document)
    return pb.Citation(opaque=pb.OpaquePart(format="responses", type=decoded.type or "", json=str(raw, "utf-8")))


def _kind(raw: msgspec.Raw) -> str | None:
    try:
        return msgspec.json.decode(raw, type=schema.Kind).type
    except msgspec.ValidationError:
        return None


def _index(value: float) -> int:
    return min(max(0, int(value)), LAST_INDEX)


# --- canonical -> caller or provider


def encode_citation(citation: pb.Citation, length: int) -> object:
    """Return an annotation; None for a citation that has none. Without offsets it covers `length` characters."""
    match citation.WhichOneof("source"):
        case "web":
            start = citation.start_index if citation.HasField("start_index") else 0
            end = citation.end_index if citation.HasField("end_index") else length
            return {
                "type": "url_citation",
                "url": citation.web.url,
                "title": citation.title,
                "start_index": start,
                "end_index": end,
            }
        case "document" if citation.document.file_id:
            document = citation.document
            return {
                "type": "file_citation",
                "file_id": document.file_id,
                "filename": citation.title,
                "index": document.document_index,
            }
        case "opaque" if citation.opaque.format == "responses":
            return json_text(citation.opaque.json, "citations.opaque.json")
        case "document" | "opaque" | None:
            return None
        case unhandled:
            assert_never(unhandled)


def encode_annotations(text: pb.TextPart) -> list[object]:
    """Return the citations of a text as its `annotations`, without citations that the format cannot express."""
    length = len(text.text)
    encoded = (encode_citation(citation, length) for citation in text.citations)
    return [annotation for annotation in encoded if annotation is not None]


def encode_logprob(entry: pb.TokenLogprob) -> JsonObject:
    """Return the log probability of a token as an element of `logprobs`, with the alternatives of the token."""
    return {**_token(entry), "top_logprobs": [_token(other) for other in entry.alternatives]}


def _token(entry: pb.TokenLogprob) -> JsonObject:
    known = entry.raw_bytes if entry.HasField("raw_bytes") else entry.token.encode()
    return {"token": entry.token, "bytes": list(known), "logprob": entry.logprob}


# --- canonical -> provider


def encode_part(part: pb.Part, at: str, report: Report, media_detail: str = "") -> object:
    """Return a content part of a tool result or a message of another role than the model. `media_detail`: for images
    that state none, "" for `auto`. Raise UmgError(UNTRANSLATABLE) for content whose loss would change the meaning.
    """
    match part.WhichOneof("kind"):
        case "text":
            if part.text.citations:
                report.drop("citations")
            return {"type": "input_text", "text": part.text.text}
        case "refusal":
            return {"type": "input_text", "text": part.refusal.text}
        case "media":
            return encode_media(part.media, at, report, media_detail)
        case "opaque" if part.opaque.format == "responses":
            return json_text(part.opaque.json, f"{at}.opaque.json")
        case "opaque" if part.opaque.text:
            return {"type": "input_text", "text": part.opaque.text}
        case "opaque":
            raise foreign(part.opaque, at)
        case None:
            raise unknown_part(at)
        case "reasoning" | "tool_call" | "tool_result" | "server_tool_call" | "server_tool_result" | "compaction":
            raise untranslatable(at, "a turn of this role cannot hold it")
        case unhandled:
            assert_never(unhandled)


def encode_media(media: pb.MediaPart, at: str, report: Report, media_detail: str = "") -> JsonObject:
    """Return media as `input_image`, `input_file`, `input_audio`, or texts as `input_text`. `media_detail`: for images
    that state none. Raise UmgError(UNTRANSLATABLE) for other media.
    """
    source, mime = media.WhichOneof("source"), media.mime_type
    titled = source == "blocks" or (source == "data" and not media.filename)
    for field in ("context", "citable", "origin") if titled else ("title", "context", "citable", "origin"):
        if getattr(media, field):
            report.drop(field)
    detail = media.detail or media_detail
    if media.kind == pb.MEDIA_KIND_IMAGE and source in ("data", "uri", "file_id"):
        if detail and detail not in IMAGE_DETAILS:
            report.drop("detail")
        encoded: JsonObject = {"type": "input_image", "detail": detail if detail in IMAGE_DETAILS else "auto"}
        if source == "file_id":
            encoded["file_id"] = media.file_id
        else:
            bytes_of = media.data if source == "data" else b""
            encoded["image_url"] = media.uri or data_url(file_type(mime, bytes_of) or "image/png", bytes_of)
        return encoded
    if (audio := encode_input_audio(media)) is not None:
        return audio
    if media.kind == pb.MEDIA_KIND_DOCUMENT and source == "blocks":
        if all(part.HasField("text") for part in media.blocks.parts):
            texts = [media.title, *(part.text.text for part in media.blocks.parts)]
            return {"type": "input_text", "text": BETWEEN_TEXTS.join(texts).strip()}
    elif media.kind == pb.MEDIA_KIND_DOCUMENT and source is not None:
        return _text_file(media) or _encode_file(media, report)
    kind = pb.MediaKind.Name(media.kind).removeprefix("MEDIA_KIND_").lower()
    raise untranslatable(at, f"responses cannot say this {kind} ({mime or source}); send its bytes in another form")


def _text_file(media: pb.MediaPart) -> JsonObject | None:
    """Return a UTF-8 text file as `input_text`, since some providers reject it as a file; None for any other media."""
    if not (media.mime_type.startswith("text/") and media.HasField("data")):
        return None
    try:
        text = media.data.decode()
    except UnicodeDecodeError:
        return None
    named = media.title or media.filename
    return {"type": "input_text", "text": f"{named}{BETWEEN_TEXTS}{text}" if named else text}


def _encode_file(media: pb.MediaPart, report: Report) -> JsonObject:
    encoded: JsonObject = {"type": "input_file"}
    match media.WhichOneof("source"):
        case "data":
            mime = file_type(media.mime_type, media.data) or "application/pdf"
            encoded["filename"] = media.filename or media.title or f"document.{mime.rpartition('/')[2]}"
            encoded["file_data"] = data_url(mime, media.data)
        case "uri":
            encoded["file_url"] = media.uri
        case "file_id" | "blocks" | None:
            encoded["file_id"] = media.file_id
        case unhandled:
            assert_never(unhandled)
    if media.filename:
        encoded["filename"] = media.filename
    if media.detail in FILE_DETAILS:
        encoded["detail"] = media.detail
    elif media.detail:
        report.drop("detail")
    return encoded


def compact_output(content: list[object], result: pb.ToolResult) -> object:
    """Return content parts as a tool result's `output`. A single text becomes a string, which every provider accepts.
    Without parts, the JSON of `result` is the output.
    """
    match content:
        case []:
            return result.result_json
        case [{"type": "input_text", "text": text}]:
            return text
        case _:  # several parts, or one that is no text
            return content
