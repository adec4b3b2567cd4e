"""What several of the fake providers need: judged media, signatures, JSON."""

import base64
import binascii
import hashlib
import hmac
import json
import re
from typing import Any

from tests.providers.scenarios import Media
from tests.providers.server import RefusedError
from tests.providers.typed import Path

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
    """`messages.0.content`, as messages writes paths."""
    return ".".join(str(step) for step in path)


def bracketed(path: Path) -> str:
    """`messages[0].content`, as chat and responses do."""
    said = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return said.removeprefix(".")


def decoded(data: str, at: str) -> bytes:
    """The bytes of standard base64 with its padding. Raises RefusedError."""
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise RefusedError(f"{at}: invalid base64 data", at) from error


def media_of(kind: str, data: bytes, allowed: tuple[str, ...], at: str) -> Media:
    """The medium, whose bytes must be of the type that is said. Raises RefusedError."""
    if kind not in allowed:
        raise RefusedError(f"{at}: unsupported media type {kind}; supported are {', '.join(allowed)}", at)
    if kind in MAGIC and not data.startswith(MAGIC[kind]):
        raise RefusedError(f"{at}: the data does not match the provided media type {kind}", at)
    return Media(kind, data)


def media_at(url: str, allowed: tuple[str, ...], at: str) -> Media:
    """What a data URL holds, or where another points. Raises RefusedError."""
    if url.startswith(("https://", "http://")):
        return Media(address=url)
    found = DATA_URL.fullmatch(url)
    if found is None:
        raise RefusedError(f"{at}: expected a base64-encoded data URL or an http address, got {url[:40]!r}", at)
    return media_of(found[1], decoded(found[2], at), allowed, at)


def sign(text: str) -> str:
    """Base64 that only this provider makes, with `+` and `/` now and then as real ones have."""
    digest = b"".join(hmac.digest(b"a provider's secret", f"{part}{text}".encode(), hashlib.sha256) for part in "abc")
    return base64.b64encode(digest).decode()


def arguments(text: str, at: str) -> None:
    """Raises RefusedError for arguments that are no JSON object: real providers hand them to a template that needs one."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise RefusedError(f"{at}: the arguments are no JSON: {text!r:.80}", at) from error
    if not isinstance(value, dict):
        raise RefusedError(f"{at}: the arguments are no JSON object: {text!r:.80}", at)


def letters(text: str, length: int = 16) -> str:
    """Letters and digits that stand for the text, for ids."""
    return re.sub(r"[^A-Za-z0-9]", "", sign(text))[:length]
