"""Messages format (`POST /v1/messages`): codec for callers' requests and for calls of providers."""

from umg_grpc.wire.core.sse import named_frame
from umg_grpc.wire.messages.account_object_references import OBJECT_RULES
from umg_grpc.wire.messages.caller_field_paths import wire_path
from umg_grpc.wire.messages.context_management import encode_count
from umg_grpc.wire.messages.errors import decode_error, encode_count_error, encode_error
from umg_grpc.wire.messages.first_output_detection import has_no_output
from umg_grpc.wire.messages.passthrough_stream import PassthroughDecoder
from umg_grpc.wire.messages.rate_limit_headers import RATE_LIMIT_PREFIX, rate_limit_headers
from umg_grpc.wire.messages.recognized_json_members import RAW_FIELDS
from umg_grpc.wire.messages.request import decode_count, decode_request, encode_request
from umg_grpc.wire.messages.response import can_express, decode_response, encode_response
from umg_grpc.wire.messages.stream_decoder import TranslatingDecoder
from umg_grpc.wire.messages.stream_encoder import StreamEncoder
from umg_grpc.wire.messages.tool_call_id_positions import CALL_IDS
from umg_grpc.wire.text_format_interface import TextFormat

__all__ = ["MESSAGES_FORMAT", "encode_count_error"]


MESSAGES_FORMAT = TextFormat(
    name="messages",
    source_headers=("anthropic-version", "anthropic-beta"),
    decode_request=decode_request,
    encode_response=encode_response,
    can_express=can_express,
    stream_encoder=StreamEncoder,
    pass_frames=StreamEncoder.pass_frames,
    encode_error=encode_error,
    wire_path=wire_path,
    unknown_fields=RAW_FIELDS.nested_unknown,
    heartbeat=named_frame(b"ping", b'{"type": "ping"}'),
    encode_request=encode_request,
    decode_response=decode_response,
    translating_decoder=TranslatingDecoder,
    passthrough_decoder=PassthroughDecoder,
    decode_error=decode_error,
    has_no_output=has_no_output,
    objects=OBJECT_RULES,
    call_ids=CALL_IDS,
    conversation_field="messages",
    instruction_fields=("system",),
    provider_name="anthropic",
    request_id_header="request-id",
    rate_limit_headers=rate_limit_headers,
    rate_limit_prefix=RATE_LIMIT_PREFIX,
    key_headers=("x-api-key",),
    error_paths=("/v1/messages",),
    has_threads=True,
    decode_count=decode_count,
    encode_count=encode_count,
)
