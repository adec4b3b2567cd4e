"""Files of the web pages: their scripts, styles and texts, compressed once, below a path that changes with them."""

import gzip
import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable

from aiohttp import hdrs, web

from http_facade.exchange.page_headers import HTML_TYPE, SAFE_HEADERS
from http_facade.exchange.request_bodies import JSON_TYPE

DISTRIBUTION_NAME = "unified-model-gateway"
ASSETS_PATH = "/assets"
CHECKED_CACHES, KEPT_FOR_GOOD = "no-cache", "public, max-age=31536000, immutable"
"""Values of `cache-control`: caches check before each use whether a file has changed, or keep it, as its path has the
digest of all files.
"""
GZIP_ENCODING = "gzip"
DIGEST_BYTES = 8
DIGEST_PATTERN = re.compile(rf"[0-9a-f]{{{2 * DIGEST_BYTES}}}/")
FILE_TYPES = {
    ".html": HTML_TYPE,
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": JSON_TYPE,
    ".txt": "text/plain; charset=utf-8",
}


@dataclass(frozen=True)
class StaticFile:
    """File with its content type. Nothing in it is secret, so that it may be compressed."""

    body: bytes
    content_type: str

    @cached_property
    def etag(self) -> str:
        """Strong entity tag of the file as it is; that of the compressed one ends with its encoding."""
        return hashlib.blake2b(self.body, digest_size=16).hexdigest()

    @cached_property
    def compressed(self) -> bytes:
        """The file as gzip, which is made when it is first sent."""
        return gzip.compress(self.body, mtime=0)


def assets_path() -> str:
    """Return the path below which browsers keep the files: `/assets/` and the digest of all."""
    return f"{ASSETS_PATH}/{_digest()}"


def page_text(name: str) -> str:
    """Return the text of a page for values that are inserted later."""
    return _page_files()[name].body.decode()


def named_response(request: web.BaseRequest, name: str) -> web.Response | None:
    """Return the file with a path below the folder of all files; None if there is none.

    The path may begin with the digest of all files. That of another version, whose process has sent the page, gets the
    file of this version, which caches do not keep.
    """
    found = DIGEST_PATTERN.match(name)
    file = _page_files().get(name[found.end() :] if found else name)
    is_current = found is not None and found[0] == f"{_digest()}/"
    return None if file is None else file_response(request, file, KEPT_FOR_GOOD if is_current else CHECKED_CACHES)


def file_response(request: web.BaseRequest, file: StaticFile, cache_control: str = CHECKED_CACHES) -> web.Response:
    """Return a file, compressed if the client takes that, or 304 if the client's copy is current."""
    headers = {hdrs.CACHE_CONTROL: cache_control, hdrs.VARY: hdrs.ACCEPT_ENCODING, **SAFE_HEADERS}
    packs = GZIP_ENCODING in request.headers.get(hdrs.ACCEPT_ENCODING, "") and len(file.compressed) < len(file.body)
    etag = f"{file.etag}-{GZIP_ENCODING}" if packs else file.etag
    if any(tag.value in (etag, "*") for tag in request.if_none_match or ()):
        response = web.Response(status=304, headers=headers)
    else:
        headers[hdrs.CONTENT_TYPE] = file.content_type
        if packs:
            headers[hdrs.CONTENT_ENCODING] = GZIP_ENCODING
        response = web.Response(headers=headers, body=file.compressed if packs else file.body)
    response.etag = etag
    return response


@cache
def _digest() -> str:
    digest = hashlib.blake2b(version(DISTRIBUTION_NAME).encode(), digest_size=DIGEST_BYTES)
    for name, body in sorted(_read().items()):
        digest.update(name.encode() + body)
    return digest.hexdigest()


@cache
def _page_files() -> Mapping[str, StaticFile]:
    """Return the files by their path, with the gateway's version and the path of the files inserted."""
    values = {b"{{version}}": version(DISTRIBUTION_NAME).encode(), b"{{assets}}": assets_path().encode()}
    found = {}
    for name, body in _read().items():
        filled = body
        for placeholder, value in values.items():
            filled = filled.replace(placeholder, value)
        found[name] = StaticFile(filled, FILE_TYPES[name[name.rfind(".") :]])
    return found


@cache
def _read() -> Mapping[str, bytes]:
    return dict(_files_in(files("http_facade").joinpath("assets"), ""))


def _files_in(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        path = f"{prefix}{entry.name}"
        if entry.is_dir():
            yield from _files_in(entry, f"{path}/")
        else:
            yield path, entry.read_bytes()
