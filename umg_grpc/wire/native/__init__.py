"""Native generation (`POST /v1beta/models/{model}:generateContent`): codec for bodies of callers and of providers."""

import msgspec

from umg_grpc.wire.native.account_object_references import OBJECT_RULES
from umg_grpc.wire.native.caller_field_paths import wire_path
from umg_grpc.wire.native.errors import decode_error, encode_error
from umg_grpc.wire.native.first_output_detection import has_no_output
from umg_grpc.wire.native.passthrough_stream import PassthroughDecoder
from umg_grpc.wire.native.request import decode_count, decode_request, encode_request
from umg_grpc.wire.native.response import can_express, decode_response, encode_response
from umg_grpc.wire.native.stream_decoder import TranslatingDecoder
from umg_grpc.wire.native.stream_encoder import ArrayEncoder, StreamEncoder
from umg_grpc.wire.native.tool_call_id_positions import CALL_IDS
from umg_grpc.wire.text_format_interface import TextFormat


def encode_count(tokens: int, original: int | None) -> bytes:
    """Return the response to a call of `:countTokens`. `original` is not used: requests contain no edits."""
    return msgspec.json.encode({"totalTokens": tokens})


NATIVE_FORMAT = TextFormat(
    name="native",
    source_headers=(),
    decode_request=decode_request,
    encode_response=encode_response,
    can_express=can_express,
    stream_encoder=StreamEncoder,
    encode_error=encode_error,
    wire_path=wire_path,
    heartbeat=b"\n",  # a comment breaks the official client
    encode_request=encode_request,
    decode_response=decode_response,
    translating_decoder=TranslatingDecoder,
    passthrough_decoder=PassthroughDecoder,
    decode_error=decode_error,
    has_no_output=has_no_output,
    objects=OBJECT_RULES,
    call_ids=CALL_IDS,
    conversation_field="contents",
    instruction_fields=("systemInstruction", "system_instruction"),
    provider_name="gcp.gemini",
    key_headers=("x-vendorg-api-key", "x-goog-api-key"),
    key_parameter="key",
    error_paths=("/v1beta/",),
    array_encoder=ArrayEncoder,
    decode_count=decode_count,
    encode_count=encode_count,
)
