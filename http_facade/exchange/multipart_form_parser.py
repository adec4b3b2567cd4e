"""Parser of multipart form bodies (`multipart/form-data`, RFC 7578)."""

from collections.abc import Iterator
from email.message import Message

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.multipart_forms import FORM_TYPE, FormPart

MAX_PARTS = 256
MAX_HEAD_BYTES = 8192
"""Maximum size of the headers of a part."""
MAX_BOUNDARY_CHARACTERS = 200
DISPOSITION_HEADER, CONTENT_TYPE = "content-disposition", "content-type"
PART_HEADERS = frozenset({DISPOSITION_HEADER, CONTENT_TYPE})

_LINE_END = b"\r\n"


def parse_form(body: bytes, content_type: str) -> Iterator[FormPart]:
    """Yield the parts (fields and files) of a form. Raise UmgError(MALFORMED_BODY), possibly after some parts."""
    delimiter = b"--" + _boundary(content_type)
    start = _first(body, delimiter)
    for _ in range(MAX_PARTS):
        if body.startswith(b"--", start):
            return
        line = body.find(_LINE_END, start, start + MAX_HEAD_BYTES)
        head_end = body.find(_LINE_END + _LINE_END, line, line + MAX_HEAD_BYTES)
        if line < 0 or head_end < 0 or body[start:line].strip():
            raise _malformed("the headers of a part are not complete")
        end = body.find(_LINE_END + delimiter, head_end + 2)
        if end < 0:
            raise _malformed("its last boundary is missing; send the whole body")
        yield _part(body[line + 2 : head_end], body[head_end + 4 : end])
        start = end + 2 + len(delimiter)
    raise _malformed(f"it has more than {MAX_PARTS} parts; send fewer")


def _boundary(content_type: str) -> bytes:
    header = Message()
    header["content-type"] = content_type
    boundary = header.get_boundary("")
    if not (0 < len(boundary) <= MAX_BOUNDARY_CHARACTERS and boundary.isascii()):
        raise _malformed(f"its content type has no valid boundary; send `{FORM_TYPE}; boundary=...`")
    return boundary.encode()


def _first(body: bytes, delimiter: bytes) -> int:
    start = 0 if body.startswith(delimiter) else body.find(_LINE_END + delimiter)
    if start < 0:
        raise _malformed("the boundary of its content type is not in it")
    return start + len(delimiter) + (0 if start == 0 else 2)


def _part(head: bytes, data: bytes) -> FormPart:
    header = Message()
    for line in head.decode("utf-8", "replace").split("\r\n"):
        title, _, value = line.partition(":")
        if (known := title.strip().lower()) in PART_HEADERS and known not in header:
            header[known] = value.strip()
    name = header.get_param("name", header=DISPOSITION_HEADER)
    if not isinstance(name, str) or not name:
        raise _malformed("a part has no name in its `content-disposition`")
    return FormPart(name, header.get_filename(), data, str(header.get(CONTENT_TYPE, "")))


def _malformed(problem: str) -> UmgError:
    return UmgError(pb.ERROR_REASON_MALFORMED_BODY, f"the form cannot be read: {problem}")
