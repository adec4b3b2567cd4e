"""Responses format (`POST /v1/responses` and stored responses): codec for bodies of callers and of providers."""

from umg_grpc.wire.chat.errors import encode_error
from umg_grpc.wire.core.provider_key_headers import AZURE_KEY_HEADER
from umg_grpc.wire.errors.provider_errors import decode_error
from umg_grpc.wire.responses.account_object_references import OBJECT_RULES
from umg_grpc.wire.responses.caller_field_paths import wire_path
from umg_grpc.wire.responses.first_output_detection import has_no_output
from umg_grpc.wire.responses.passthrough_stream import PassthroughDecoder
from umg_grpc.wire.responses.recognized_json_members import RAW_FIELDS
from umg_grpc.wire.responses.request import decode_compaction, decode_count, decode_request, encode_request
from umg_grpc.wire.responses.response import can_express, decode_response, encode_count, encode_response
from umg_grpc.wire.responses.stream_decoder import TranslatingDecoder
from umg_grpc.wire.responses.stream_encoder import StreamEncoder
from umg_grpc.wire.responses.tool_call_id_positions import CALL_IDS
from umg_grpc.wire.text_format_interface import TextFormat

RESPONSES_FORMAT = TextFormat(
    name="responses",
    source_headers=("openai-beta",),
    decode_request=decode_request,
    encode_response=encode_response,
    can_express=can_express,
    stream_encoder=StreamEncoder,
    pass_frames=StreamEncoder.pass_frames,
    encode_error=encode_error,
    wire_path=wire_path,
    unknown_fields=RAW_FIELDS.nested_unknown,
    heartbeat=b": keep-alive\n\n",
    encode_request=encode_request,
    decode_response=decode_response,
    translating_decoder=TranslatingDecoder,
    passthrough_decoder=PassthroughDecoder,
    decode_error=decode_error,
    has_no_output=has_no_output,
    objects=OBJECT_RULES,
    call_ids=CALL_IDS,
    conversation_field="input",
    provider_name="openai",
    key_headers=(AZURE_KEY_HEADER,),
    error_paths=("/v1/responses",),
    stores_by_default=True,
    decode_count=decode_count,
    encode_count=encode_count,
    decode_compaction=decode_compaction,
)
