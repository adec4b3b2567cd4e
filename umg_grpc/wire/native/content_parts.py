"""Parts of a native turn (`parts`: text, media, calls): decoded from a body, and encoded for a provider or a caller."""

import re
from typing import assert_never

import msgspec
import pybase64
from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.wire.core.base64_media import decode_base64, file_type, normal_mime, sniff
from umg_grpc.wire.core.json_decoding import JsonObject, invalid, is_present, json_object, missing
from umg_grpc.wire.core.reasoning_state_conversion import is_placeholder, read
from umg_grpc.wire.native import schema
from umg_grpc.wire.native.server_tools import decode_server_tool
from umg_grpc.wire.native.tool_calls import decode_call

RESOLUTION_PREFIX = "MEDIA_RESOLUTION_"
OUTPUT_KEY, ERROR_KEY = "output", "error"  # keys of a result
REASONING_SEPARATOR = "\n\n"

MEDIA_KINDS = {"image": pb.MEDIA_KIND_IMAGE, "audio": pb.MEDIA_KIND_AUDIO, "video": pb.MEDIA_KIND_VIDEO}
# Media types of bytes whose type is neither given nor detected.
DEFAULT_TYPES = {
    pb.MEDIA_KIND_IMAGE: "image/png",
    pb.MEDIA_KIND_AUDIO: "audio/wav",
    pb.MEDIA_KIND_VIDEO: "video/mp4",
    pb.MEDIA_KIND_DOCUMENT: "application/pdf",
}
SUFFIX_TYPES = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "webp": "image/webp",
    "gif": "image/gif",
    "heic": "image/heic",
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "mp4": "video/mp4",
    "mov": "video/mov",
    "webm": "video/webm",
    "pdf": "application/pdf",
    "txt": "text/plain",
    "csv": "text/csv",
    "html": "text/html",
}

_OWN_FILE = re.compile(r"(?:^|/v\d\w*/)files/[\w-]+$")
_SUFFIX = re.compile(r"\.(\w+)(?:[?#].*)?$")
_VIDEO_SITE = re.compile(r"^https?://(?:www\.|m\.)?(?:youtube\.com|youtu\.be)/")


# --- wire -> canonical


def decode_part(part: schema.ProviderPart, target: pb.Part, at: str) -> None:
    """Decode a part into `target`; one of an unknown kind as raw JSON. Raise UmgError with the path of the field."""
    if part.text is not None:
        if part.thought:
            target.reasoning.SetInParent()
            if part.text:
                target.reasoning.texts.append(part.text)
        else:
            target.text.text = part.text
    elif part.function_call is not None:
        decode_call(part.function_call, target.tool_call, f"{at}.functionCall")
    elif part.function_response is not None:
        _decode_result(part.function_response, target.tool_result, f"{at}.functionResponse")
    elif part.inline_data is not None:
        _decode_blob(part.inline_data, target.media, f"{at}.inlineData")
    elif part.file_data is not None:
        _decode_file(part.file_data, target.media, f"{at}.fileData")
    elif not decode_server_tool(part, target, at):
        _decode_rest(part, target, at)
    if part.thought and target.WhichOneof("kind") != "reasoning":
        target.thought = True
    if part.thought_signature and not is_placeholder(part.thought_signature):
        target.state.CopyFrom(read(part.thought_signature, "native"))
    if part.media_resolution is not None and target.HasField("media"):
        target.media.detail = resolution(part.media_resolution.level)


def resolution(level: str | None) -> str:
    """Return a media resolution in short form (`high` for `MEDIA_RESOLUTION_HIGH`); "" for None or unspecified."""
    word = (level or "").removeprefix(RESOLUTION_PREFIX).lower()
    return "" if word == "unspecified" else word


def _decode_rest(part: schema.ProviderPart, target: pb.Part, at: str) -> None:
    if bytes(part.opaque).startswith(b"{"):  # otherwise a caller's own member of this name
        target.opaque.format, target.opaque.json = "native", str(part.opaque, "utf-8")
        target.opaque.type = kind_of(part.opaque)
    elif part.thought and part.thought_signature:
        target.reasoning.redacted = True  # hidden reasoning, of which only the state is kept
    elif part.thought_signature:
        target.text.SetInParent()
    else:
        raise invalid(at, "the part is empty; send text, inlineData, fileData, functionCall or functionResponse")


def kind_of(part: Raw) -> str:
    """Return the kind of an unknown part: the name of its first member that not all parts share; "" without one."""
    keys = msgspec.json.decode(part, type=dict[str, Raw])
    return next((key for key in keys if key not in ("thought", "thoughtSignature", "thought_signature")), "")


def _decode_result(result: schema.FunctionResponse, target: pb.ToolResult, at: str) -> None:
    if not result.name:
        raise missing(f"{at}.name")
    target.name, target.call_id = result.name, result.id or ""
    if is_present(result.response):
        target.result_json = json_object(result.response, f"{at}.response")
        text, failed = result_text(target.result_json)
        if failed:
            target.is_error = True
        if text:
            target.parts.add().text.text = text
    for index, part in enumerate(result.parts or ()):
        path = f"{at}.parts[{index}]"
        if part.inline_data is not None:
            _decode_blob(part.inline_data, target.parts.add().media, f"{path}.inlineData")
        elif part.file_data is not None:
            _decode_file(part.file_data, target.parts.add().media, f"{path}.fileData")
        else:
            raise invalid(path, "expected inlineData or fileData; send one of them")


def result_text(response: str) -> tuple[str, bool]:
    """Return (a tool result's text: member `output`, `error` of a failure, or the whole object; whether it failed)."""
    members = msgspec.json.decode(response, type=dict[str, Raw])
    present = {name: value for name, value in members.items() if is_present(value)}
    failed = ERROR_KEY in present and OUTPUT_KEY not in present
    if len(present) == 1 and (OUTPUT_KEY in present or failed):
        value = next(iter(present.values()))
        text = str(value, "utf-8")
        return msgspec.json.decode(value, type=str) if text.startswith('"') else text, failed
    return response, failed


def _decode_blob(blob: schema.ProviderBlob, media: pb.MediaPart, at: str) -> None:
    if blob.data is None:
        raise missing(f"{at}.data")
    media.data = decode_base64(blob.data, f"{at}.data")
    if not media.data:
        raise invalid(f"{at}.data", "it is empty; add the file")
    media.mime_type = _mime(blob.mime_type or "") or sniff(media.data)
    if not media.mime_type:
        raise missing(f"{at}.mimeType")
    media.kind = MEDIA_KINDS.get(media.mime_type.partition("/")[0], pb.MEDIA_KIND_DOCUMENT)


def _mime(mime: str) -> str:
    """Return inline data's registered media type. Raw audio keeps the parameters needed to play it (rate, channels)."""
    plain = normal_mime(mime)
    return mime.strip().lower() if plain in ("audio/pcm", "audio/l16") else plain


def _decode_file(file: schema.ProviderFile, media: pb.MediaPart, at: str) -> None:
    if not file.file_uri:
        raise missing(f"{at}.fileUri")
    if is_own_file(file.file_uri):
        media.file_id = file.file_uri
    else:
        media.uri = file.file_uri
    media.mime_type = _mime(file.mime_type or "")
    mime = media.mime_type or ("video/*" if _VIDEO_SITE.match(file.file_uri) else _by_suffix(file.file_uri))
    media.kind = MEDIA_KINDS.get(mime.partition("/")[0], pb.MEDIA_KIND_DOCUMENT)


def is_own_file(name: str) -> bool:
    """Return whether a name looks like the file names and URLs with which providers of this format store files."""
    return _OWN_FILE.search(name) is not None


def _by_suffix(address: str) -> str:
    suffix = _SUFFIX.search(address)
    return SUFFIX_TYPES.get(suffix[1].lower(), "") if suffix else ""


# --- canonical -> wire


def encode_reasoning(part: pb.Part) -> JsonObject:
    """Return reasoning as a part: its texts, else its summaries; without text if the provider hides it."""
    reasoning = part.reasoning
    if reasoning.redacted:
        return {"thought": True}
    texts = reasoning.texts if any(reasoning.texts) else reasoning.summaries
    return {"text": REASONING_SEPARATOR.join(text for text in texts if text), "thought": True}


def encode_media(media: pb.MediaPart) -> JsonObject | None:
    """Return media as `inlineData` or `fileData`; None without bytes or address, as for another provider's file id."""
    match media.WhichOneof("source"):
        case "data":
            data = media.data
            mime = file_type(media.mime_type, data) or DEFAULT_TYPES.get(media.kind, "application/octet-stream")
            return {"inlineData": {"mimeType": mime, "data": pybase64.b64encode_as_string(data)}}
        case "uri":
            return {"fileData": _file(media.uri, media.mime_type)}
        case "file_id" if is_own_file(media.file_id):
            return {"fileData": _file(media.file_id, media.mime_type)}
        case "file_id" | "blocks" | None:
            return None
        case unhandled:
            assert_never(unhandled)


def _file(address: str, mime: str) -> JsonObject:
    mime = mime or _by_suffix(address)
    return {"mimeType": mime, "fileUri": address} if mime else {"fileUri": address}
