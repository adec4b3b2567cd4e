"""Encoders of calls whose path or body at a cloud differs from the format's, by rows of `call_shapes`."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Raw

from umg_grpc.knowledge.cloud_call_shapes import CallShape, call_shape
from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS, Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.facts_beside_request import NO_NOTES, RequestNotes
from umg_grpc.wire.text_format_interface import TextProviderFormat, UpstreamRequest
from umg_grpc.wire.unary_format_interface import UnaryProviderFormat

Request = TypeVar("Request")
Response = TypeVar("Response")


def text_format_at(base_url: str, text_format: TextProviderFormat) -> TextProviderFormat:
    """Return a text format whose calls are encoded as the provider at `base_url` accepts them."""
    shape, encode = call_shape(text_format.name, base_url), text_format.encode_request
    if shape is None:
        return text_format

    def encode_request(
        request: pb.GenerateRequest,
        model: str,
        stream: bool,
        quirks: Quirks = NO_QUIRKS,
        notes: RequestNotes = NO_NOTES,
        /,
    ) -> UpstreamRequest:
        return shaped(encode(request, model, stream, quirks, notes), model, stream, shape)

    return replace(text_format, encode_request=encode_request)


def unary_format_at(
    base_url: str, unary_format: UnaryProviderFormat[Request, Response]
) -> UnaryProviderFormat[Request, Response]:
    """Return a format of one request and one response whose calls are encoded as the provider at `base_url` accepts."""
    shape, encode = call_shape(unary_format.protocol, base_url), unary_format.encode_request
    if shape is None:
        return unary_format

    def encode_request(request: Request, model: str, notes: RequestNotes = NO_NOTES, /) -> UpstreamRequest:
        return shaped(encode(request, model, notes), model, False, shape)

    return replace(unary_format, encode_request=encode_request)


def shaped(encoded: UpstreamRequest, model: str, stream: bool, shape: CallShape) -> UpstreamRequest:
    """Return an encoded call in the shape of a cloud. `stream`: whether the response is streamed."""
    pattern = (shape.stream_path if stream else "") or shape.path
    path = pattern.replace("{path}", encoded.path).replace("{model}", quote(model, safe="@"))
    body = encoded.body
    if shape.leaves_out or shape.headers:
        body = _body(body, encoded.headers, shape)
    return msgspec.structs.replace(encoded, path=path, body=body)


def _body(body: bytes, headers: Mapping[str, str], shape: CallShape) -> bytes:
    """Return a body without the members that the path contains, and with members that repeat headers."""
    fields = msgspec.json.decode(body, type=dict[str, Raw])
    for name in shape.leaves_out:
        fields.pop(name, None)
    for header, value in headers.items():
        if (known := shape.headers.get(header.lower())) is not None:
            fields[known.member] = Raw(msgspec.json.encode(known.values.get(value, value)))
    return msgspec.json.encode(fields)
