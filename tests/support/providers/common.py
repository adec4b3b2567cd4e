"""Functions that several fake providers share: validation of media, signatures, JSON."""

import base64
import binascii
import hashlib
import hmac
import json
import re
from typing import Any

from tests.support.providers.scenarios import Media
from tests.support.providers.server import RefusedError
from tests.support.providers.typed_dict_validation import Path

MAGIC = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
    "application/pdf": (b"%PDF-",),
}
IMAGES = tuple(kind for kind in MAGIC if kind.startswith("image/"))
DATA_URL = re.compile(r"data:([a-z0-9.+-]+/[a-z0-9.+-]+);base64,(.*)", re.DOTALL)


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def dotted(path: Path) -> str:
    """Return a path in a body in the style of messages: `messages.0.content`."""
    return ".".join(str(step) for step in path)


def bracketed(path: Path) -> str:
    """Return a path in a body in the style of chat and responses: `messages[0].content`."""
    path_text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return path_text.removeprefix(".")


def decoded(data: str, at: str) -> bytes:
    """Decode standard base64 with its padding. Raise RefusedError."""
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise RefusedError(f"{at}: invalid base64 data", at) from error


def media_of(kind: str, data: bytes, allowed: tuple[str, ...], at: str) -> Media:
    """Return the media of a request. Raise RefusedError if the bytes are not of the declared type."""
    if kind not in allowed:
        raise RefusedError(f"{at}: unsupported media type {kind}; supported are {', '.join(allowed)}", at)
    if kind in MAGIC and not data.startswith(MAGIC[kind]):
        raise RefusedError(f"{at}: the data does not match the provided media type {kind}", at)
    return Media(kind, data)


def media_at(url: str, allowed: tuple[str, ...], at: str) -> Media:
    """Return the media at a URL: the content of a data URL, or the address of an http URL. Raise RefusedError."""
    if url.startswith(("https://", "http://")):
        return Media(address=url)
    found = DATA_URL.fullmatch(url)
    if found is None:
        raise RefusedError(f"{at}: expected a base64-encoded data URL or an http address, got {url[:40]!r}", at)
    return media_of(found[1], decoded(found[2], at), allowed, at)


def sign(text: str) -> str:
    """Return base64 that only this provider can make, with `+` and `/` now and then as in real signatures."""
    digest = b"".join(hmac.digest(b"a provider's secret", f"{part}{text}".encode(), hashlib.sha256) for part in "abc")
    return base64.b64encode(digest).decode()


def arguments(text: str, at: str) -> None:
    """Raise RefusedError for arguments that are no JSON object, which the templates of real providers require."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise RefusedError(f"{at}: the arguments are no JSON: {text!r:.80}", at) from error
    if not isinstance(value, dict):
        raise RefusedError(f"{at}: the arguments are no JSON object: {text!r:.80}", at)


def letters(text: str, length: int = 16) -> str:
    """Return letters and digits derived from the text, for ids."""
    return re.sub(r"[^A-Za-z0-9]", "", sign(text))[:length]
