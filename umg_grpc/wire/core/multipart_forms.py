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


def encode_form(fields: Iterable[tuple[str, str] | FilePart], files: Iterable[FilePart] = ()) -> tuple[bytes, str]:
    """Return (body of a form of `fields`, then `files`; content type). The boundary is a hash of all parts."""
    parts, digest = (*fields, *files), hashlib.blake2b(digest_size=16)
    for part in parts:
        if isinstance(part, FilePart):
            digest.update(b"%d:" % len(part.data))
            digest.update(part.data)
        else:
            digest.update(f"{len(part[0])}:{part[0]}{len(part[1])}:{part[1]}".encode())
    boundary = f"umg-{digest.hexdigest()}".encode()
    pieces = list[bytes]()
    for part in parts:
        head = b'--%b\r\nContent-Disposition: form-data; name="%b"' % (boundary, _quoted(part[0]))
        if isinstance(part, FilePart):
            kind = _LINE_ENDS.sub("", part.mime_type).encode()
            head += b'; filename="%b"\r\nContent-Type: %b' % (_quoted(part.file_name), kind)
        pieces += [head, b"\r\n\r\n", part.data if isinstance(part, FilePart) else part[1].encode(), b"\r\n"]
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
