"""Media types of images in a body that is passed through to a provider that rejects wrong types. All else stays."""

import msgspec
import pybase64
from msgspec import Raw, Struct

from umg_grpc.knowledge.model_quirk_definitions import Quirks
from umg_grpc.wire.core.image_file_headers import sniff_image
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, parse
from umg_grpc.wire.core.raw_json_edits import EACH_ELEMENT, edit_values
from umg_grpc.wire.dropped_fields_report import Report

HEAD_CHARACTERS = 32  # characters of base64 that contain the signature of an image

_PATHS = (
    (EACH_ELEMENT, "content", EACH_ELEMENT, "source"),
    (EACH_ELEMENT, "content", EACH_ELEMENT, "content", EACH_ELEMENT, "source"),
)


class _Source(Struct):
    type: str | None = None
    media_type: str | None = None
    data: str | None = None


def fit_media_types(fields: dict[str, Raw], quirks: Quirks, report: Report) -> None:
    """Correct wrong media types of images in the `messages` of a body, in place. `report`: collects the changes."""
    raw = fields.get("messages", ABSENT_MEMBER)
    if not quirks.exact_media_types or b'"media_type"' not in bytes(raw):
        return

    def corrected(source: Raw) -> Raw:
        found = parse(_Source, source, "messages.content.source")
        if not (found.media_type or "").startswith("image/") or found.data is None:
            return source
        actual = _sniffed(found.data)
        if actual in ("", found.media_type):
            return source
        report.drop("messages.content.source.media_type", actual)
        return Raw(msgspec.json.encode(parse(dict[str, Raw], source) | {"media_type": actual}))

    for path in _PATHS:
        raw = edit_values(raw, path, corrected)
    fields["messages"] = raw


def _sniffed(data: str) -> str:
    try:
        return sniff_image(pybase64.b64decode(data[:HEAD_CHARACTERS]))
    except ValueError:
        return ""
