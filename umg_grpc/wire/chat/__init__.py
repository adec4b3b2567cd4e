"""Chat completions (`POST /v1/chat/completions`), face and upstream."""

from umg_grpc.wire.chat.errors import encode_error
from umg_grpc.wire.chat.fields import FIELDS
from umg_grpc.wire.chat.passing import PassingDecoder
from umg_grpc.wire.chat.paths import wire_path
from umg_grpc.wire.chat.preamble import is_preamble
from umg_grpc.wire.chat.request import decode_request, encode_request
from umg_grpc.wire.chat.response import decode_response, encode_response, shows
from umg_grpc.wire.chat.stream import StreamEncoder
from umg_grpc.wire.chat.translating import TranslatingDecoder
from umg_grpc.wire.format import TextFormat
from umg_grpc.wire.provider_errors import decode_error

CHAT = TextFormat(
    name="chat",
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
)
