"""Messages (`POST /v1/messages`), face and upstream."""

from umg_grpc.wire.format import TextFormat
from umg_grpc.wire.messages.errors import decode_error, encode_count_error, encode_error
from umg_grpc.wire.messages.fields import FIELDS
from umg_grpc.wire.messages.passing import PassingDecoder
from umg_grpc.wire.messages.paths import wire_path
from umg_grpc.wire.messages.preamble import is_preamble
from umg_grpc.wire.messages.request import decode_count, decode_request, encode_request
from umg_grpc.wire.messages.response import decode_response, encode_count, encode_response, shows
from umg_grpc.wire.messages.stream import StreamEncoder
from umg_grpc.wire.messages.translating import TranslatingDecoder
from umg_grpc.wire.sse import named_frame

__all__ = ["MESSAGES", "encode_count_error"]


MESSAGES = TextFormat(
    name="messages",
    source_headers=("anthropic-version", "anthropic-beta"),
    decode_request=decode_request,
    encode_response=encode_response,
    shows=shows,
    stream_encoder=StreamEncoder,
    encode_error=encode_error,
    wire_path=wire_path,
    unknown_fields=FIELDS.nested_unknown,
    heartbeat=named_frame(b"ping", b'{"type": "ping"}'),
    encode_request=encode_request,
    decode_response=decode_response,
    translating_decoder=TranslatingDecoder,
    passing_decoder=PassingDecoder,
    decode_error=decode_error,
    preamble=is_preamble,
    key_header="x-api-key",
    decode_count=decode_count,
    encode_count=encode_count,
)
