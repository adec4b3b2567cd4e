"""Encoding of `multipart/form-data` bodies for image providers, as the official SDKs send them."""

from collections.abc import Sequence

import msgspec

from umg_grpc.knowledge.families.image_model_rules import PlacedImage
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject, invalid
from umg_grpc.wire.core.multipart_forms import FilePart, encode_form
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.images.providers.request_encoding import FlatRequest, mime_of
from umg_grpc.wire.text_format_interface import UpstreamRequest

_EXTENSIONS = {"image/jpeg": "jpg", "image/png": "png", "image/webp": "webp", "image/gif": "gif"}


def file_part(name: str, placed: PlacedImage, number: int = 0) -> FilePart:
    """Return an input image as a file of a form. `number`: position, for the file name; its extension is that of the
    image's type. Raise UmgError(INVALID_FIELD) for an image without bytes.
    """
    if not placed.image.data:
        raise invalid(placed.path, "the image has no `data`; send its bytes")
    mime = mime_of(placed.image)
    return FilePart(name, f"image{number}.{_EXTENSIONS.get(mime, 'png')}", mime, placed.image.data)


def form_value(value: object) -> str:
    """Return a form field's text, as the SDKs send it: `true` or `false` for booleans, JSON for objects."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return msgspec.json.encode(value).decode() if isinstance(value, dict) else str(value)


def files_of(images: Sequence[PlacedImage], mask: pb.ImageInput | None) -> list[FilePart]:
    """Return the files of an edit: one input image as `image`, or several as `image[]`, and the mask, if any."""
    name = "image" if len(images) == 1 else "image[]"
    files = [file_part(name, placed, number) for number, placed in enumerate(images)]
    if mask is not None:
        files.append(file_part("mask", PlacedImage("mask", mask))._replace(file_name="mask.png"))
    return files


def encode_files(
    path: str, fields: JsonObject, request: pb.GenerateImageRequest, flat: FlatRequest, report: Report
) -> UpstreamRequest:
    """Encode a call with a form of scalar fields, input images and mask. `path`: path below the base URL; `flat`:
    prompt and input images; `report`: fields that are not sent.
    """
    texts = {name: form_value(value) for name, value in fields.items()}
    mask = request.mask if request.HasField("mask") else None
    body, content_type = encode_form(texts.items(), files_of(flat.images, mask))
    return UpstreamRequest(path, body, {"Content-Type": content_type}, report)
