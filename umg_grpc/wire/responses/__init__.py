"""Responses (`POST /v1/responses` and what is stored of it), face and upstream."""

from umg_grpc.wire.chat.errors import encode_error
from umg_grpc.wire.format import TextFormat
from umg_grpc.wire.provider_errors import decode_error
from umg_grpc.wire.responses.fields import FIELDS
from umg_grpc.wire.responses.passing import PassingDecoder
from umg_grpc.wire.responses.paths import wire_path
from umg_grpc.wire.responses.preamble import is_preamble
from umg_grpc.wire.responses.request import decode_count, decode_request, encode_request
from umg_grpc.wire.responses.response import decode_response, encode_count, encode_response, shows
from umg_grpc.wire.responses.stream import StreamEncoder
from umg_grpc.wire.responses.translating import TranslatingDecoder

RESPONSES = TextFormat(
    name="responses",
    source_headers=("openai-beta",),
    decode_request=decode_request,
    encode_response=encode_response,
    shows=shows,
    stream_encoder=StreamEncoder,
    encode_error=encode_error,
    wire_path=wire_path,
    unknown_fields=FIELDS.nested_unknown,
    heartbeat=b": keep-alive\n\n",
    encode_request=encode_request,
    decode_response=decode_response,
    translating_decoder=TranslatingDecoder,
    passing_decoder=PassingDecoder,
    decode_error=decode_error,
    preamble=is_preamble,
    decode_count=decode_count,
    encode_count=encode_count,
)
