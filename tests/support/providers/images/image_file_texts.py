"""Image files that name the prompt and the inputs to which they answer, and the parts of received forms."""

import struct
import zlib
from dataclasses import dataclass
from email.message import Message
from email.parser import BytesParser

from tests.support.providers.server import ReceivedRequest, RefusedError

TYPES = (("image/png", b"\x89PNG\r\n\x1a\n"), ("image/jpeg", b"\xff\xd8\xff"), ("image/webp", b"RIFF"))


def png(text: str, width: int = 8, height: int = 8) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    pixels = zlib.compress(bytes(height * (width + 1)), 1)
    description = b"Description\0" + text.encode()
    parts = ((b"IHDR", head), (b"tEXt", description), (b"IDAT", pixels), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


def text_of(data: bytes) -> str:
    at = data.index(b"tEXtDescription\0")
    length = int.from_bytes(data[at - 4 : at], "big")
    return data[at + 16 : at + 4 + length].decode()


@dataclass(frozen=True)
class FormPart:
    name: str
    data: bytes
    file_name: str | None
    type: str


def form_of(received: ReceivedRequest) -> list[FormPart]:
    """Return the parts of a received form. Raise RefusedError for any other body."""
    content_type = received.headers.get("content-type", "")
    if not content_type.startswith("multipart/form-data; boundary="):
        raise RefusedError(f"Unsupported content type: '{content_type}'.", status=415)
    parsed = BytesParser().parsebytes(f"Content-Type: {content_type}\r\n\r\n".encode() + received.body)
    if parsed.defects or not parsed.is_multipart():
        raise RefusedError(f"The form cannot be read: {parsed.defects}")
    parts = list[FormPart]()
    for part in parsed.get_payload():
        assert isinstance(part, Message)
        data, name = part.get_payload(decode=True), part.get_param("name", header="content-disposition")
        assert isinstance(data, bytes)
        assert isinstance(name, str)
        parts.append(FormPart(name, data, part.get_filename(), part.get_content_type()))
    return parts


def check_file(part: FormPart) -> None:
    """Raise RefusedError for a part that is no image file of an accepted type, with its name and type."""
    found = next((mime for mime, start in TYPES if part.data.startswith(start)), None)
    if part.file_name is None or found is None or part.type != found:
        raise RefusedError(f"Invalid file '{part.file_name}': unsupported mimetype ('{part.type}').", part.name)
    extension = part.file_name.rpartition(".")[2]
    if extension not in {"image/png": ("png",), "image/jpeg": ("jpg", "jpeg"), "image/webp": ("webp",)}[found]:
        raise RefusedError(f"Invalid file '{part.file_name}': it is of type {found}.", part.name)
