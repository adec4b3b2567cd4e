"""Extraction of the caller's API key from the headers or the query of a request. The service validates it."""

from collections.abc import Mapping

from aiohttp import hdrs

from umg_grpc.base.errors import UmgError
from umg_grpc.operations.wire_formats_by_name import face_of
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FACES
from umg_grpc.wire.model_lists import MODEL_LISTS


def key_headers(face: str) -> tuple[str, ...]:
    """Return the headers, besides `Authorization`, that may contain the API key in the wire format `face`, in order of
    precedence. A model list accepts the headers of all text formats (specification of texts, Authentication rule 3;
    readings, 2).
    """
    if (codec := face_of(face)) is not None:
        return codec.key_headers
    return tuple(name for codec in TEXT_FACES.values() for name in codec.key_headers) if face in MODEL_LISTS else ()


def key_parameter(face: str) -> str:
    """Return the query parameter that may contain the API key in the wire format `face`; "" if there is none."""
    if (codec := face_of(face)) is not None:
        return codec.key_parameter
    return (
        next((codec.key_parameter for codec in TEXT_FACES.values() if codec.key_parameter), "")
        if face in MODEL_LISTS
        else ""
    )


def credentials(headers: Mapping[str, str], query: Mapping[str, str], face: str) -> str | None:
    """Return the caller's API key as the gRPC metadata `authorization`; None for a request without a key. `face`: wire
    format of the route, which has further headers and a query parameter for the key; the header `Authorization` has
    precedence. Raises UmgError(INVALID_KEY) for a value that gRPC metadata cannot contain, which cannot be a key of the
    gateway.
    """
    value = headers.get(hdrs.AUTHORIZATION)
    if value is None:
        key = next((headers[name] for name in key_headers(face) if name in headers), None)
        if key is None and (parameter := key_parameter(face)):
            key = query.get(parameter)
        value = None if key is None else f"Bearer {key}"
    if value is not None and not (value.isascii() and value.isprintable()):
        raise UmgError(pb.ERROR_REASON_INVALID_KEY, "a key has visible ASCII characters only; send yours unchanged")
    return value
