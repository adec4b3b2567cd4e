"""Encoding of `multipart/form-data` bodies (RFC 7578) for video providers."""

from collections.abc import Iterable
from hashlib import sha256
from typing import NamedTuple


class Part(NamedTuple):
    """Field of a form: a text if `file_name` is "", otherwise a file."""

    name: str
    content: bytes
    file_name: str = ""
    content_type: str = ""


def encode_form(parts: Iterable[Part]) -> tuple[bytes, str]:
    """Return (form body, content type). The boundary is derived from the content: equal forms have equal bodies."""
    parts = tuple(parts)
    digest = sha256()
    for part in parts:
        digest.update(part.content)
    boundary = f"form-{digest.hexdigest()[:32]}"
    pieces = list[bytes]()
    for part in parts:
        disposition = f'form-data; name="{_quoted(part.name)}"'
        if part.file_name:
            disposition += f'; filename="{_quoted(part.file_name)}"'
        head = f"--{boundary}\r\nContent-Disposition: {disposition}\r\n"
        if part.content_type:
            head += f"Content-Type: {part.content_type}\r\n"
        pieces += [f"{head}\r\n".encode(), part.content, b"\r\n"]
    pieces.append(f"--{boundary}--\r\n".encode())
    return b"".join(pieces), f"multipart/form-data; boundary={boundary}"


def _quoted(name: str) -> str:
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
