"""Cohere's chat (`POST /v2/chat`), for callers only: this vendor is called in the chat completions format."""

from umg_grpc.wire.cohere.caller_field_paths import wire_path
from umg_grpc.wire.cohere.request import FACE_NAME, RAW_FIELDS, decode_request
from umg_grpc.wire.cohere.response import can_express, encode_response
from umg_grpc.wire.cohere.stream_encoder import StreamEncoder
from umg_grpc.wire.cohere_errors import encode_error
from umg_grpc.wire.text_format_interface import TextFace

COHERE_FACE = TextFace(
    name=FACE_NAME,
    source_headers=(),
    decode_request=decode_request,
    encode_response=encode_response,
    can_express=can_express,
    stream_encoder=StreamEncoder,
    encode_error=encode_error,
    wire_path=wire_path,
    heartbeat=b": keep-alive\n\n",
    unknown_fields=RAW_FIELDS.nested_unknown,
    error_paths=("/v2/chat",),
)
