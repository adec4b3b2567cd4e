"""`multipart/form-data` bodies. Callers' forms are converted to JSON: bracketed names become members and items
(`metadata[a][]=x`), files become data URLs. Forms for providers are encoded as the official SDKs do.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from umg_grpc.wire.core.base64_media import data_url, sniff
from umg_grpc.wire.core.json_decoding import JsonObject, echo, invalid

FORM_TYPE = "multipart/form-data"
MAX_DEPTH = 16
_NAME = re.compile(r"([^\[\]]+)((?:\[[^\[\]]*\])*)")
_LINE_ENDS = re.compile(r"[\r\n]")
_PART = re.compile(r"\[([^\[\]]*)\]")


class FormPart(NamedTuple):
    """Part of a `multipart/form-data` body: a field, or an uploaded file (with a file name)."""

    name: str
    file_name: str | None
    data: bytes
    content_type: str = ""

    @property
    def text(self) -> str:
        """The field as text. Raises UmgError(INVALID_FIELD) if it is not UTF-8."""
        try:
            return self.data.decode()
        except UnicodeDecodeError:
            raise invalid(echo(self.name), "the field is not UTF-8; encode it, or send a file with a name") from None

    @property
    def is_file(self) -> bool:
        """Whether the part is an uploaded file."""
        return self.file_name is not None

    @property
    def url(self) -> str:
        """The file as a data URL, with the media type of its first bytes, else `application/octet-stream`."""
        return data_url(sniff(self.data) or "application/octet-stream", self.data)


class FilePart(NamedTuple):
    """File of a form for a provider."""

    name: str
    file_name: str
    mime_type: str
    data: bytes


def encode_form(fields: Iterable[tuple[str, str]], files: Sequence[FilePart]) -> tuple[bytes, str]:
    """Return (body of a form with the files at its end, content type). The boundary is a hash of all parts."""
    fields, digest = tuple(fields), hashlib.blake2b(digest_size=16)
    for name, value in fields:
        digest.update(f"{len(name)}:{name}{len(value)}:{value}".encode())
    for file in files:
        digest.update(b"%d:" % len(file.data))
        digest.update(file.data)
    boundary = f"umg-{digest.hexdigest()}".encode()
    pieces = list[bytes]()
    for name, value in fields:
        pieces.append(b'--%b\r\nContent-Disposition: form-data; name="%b"\r\n\r\n' % (boundary, _quoted(name)))
        pieces += [value.encode(), b"\r\n"]
    for file in files:
        head = b'--%b\r\nContent-Disposition: form-data; name="%b"; filename="%b"\r\nContent-Type: %b\r\n\r\n'
        kind = _LINE_ENDS.sub("", file.mime_type).encode()
        pieces.append(head % (boundary, _quoted(file.name), _quoted(file.file_name), kind))
        pieces += [file.data, b"\r\n"]
    pieces.append(b"--%b--\r\n" % boundary)
    return b"".join(pieces), f"{FORM_TYPE}; boundary={boundary.decode()}"


def _quoted(name: str) -> bytes:
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A").encode()


def form_object(parts: Sequence[FormPart]) -> JsonObject:
    """Return a form as a JSON object of strings. Files become data URLs; repeated names and names with `[]` become
    lists. Raise UmgError(INVALID_FIELD) for a name that is malformed or contradicts another.
    """
    fields: JsonObject = {}
    for part in parts:
        _insert(fields, part.name, part.url if part.is_file else part.text)
    return fields


def _insert(fields: JsonObject, name: str, value: str) -> None:
    found = _NAME.fullmatch(name)
    path = [] if found is None else [found[1], *_PART.findall(found[2])]
    if not path or len(path) > MAX_DEPTH or "" in path[:-1]:
        raise invalid(echo(name), "the name of a form field is `a`, `a[b]` or `a[]`; correct it")
    is_list = path[-1] == ""
    *parents, last = path[:-1] if is_list else path
    target = fields
    for parent in parents:
        inner = target.setdefault(parent, {})
        if not isinstance(inner, dict):
            raise invalid(echo(name), "another field gives its parent a value; send one of them")
        target = inner
    if last not in target:
        target[last] = [value] if is_list else value
        return
    before = target[last]
    if isinstance(before, dict):
        raise invalid(echo(name), "another field gives it members; send one of them")
    target[last] = [*(before if isinstance(before, list) else [before]), value]
