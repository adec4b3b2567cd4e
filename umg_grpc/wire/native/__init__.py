"""Native generation (`POST /v1beta/models/{model}:generateContent`), face and upstream."""

import msgspec

from umg_grpc.wire.format import TextFormat
from umg_grpc.wire.native.errors import decode_error, encode_error
from umg_grpc.wire.native.passing import PassingDecoder
from umg_grpc.wire.native.paths import wire_path
from umg_grpc.wire.native.preamble import is_preamble
from umg_grpc.wire.native.request import decode_count, decode_request, encode_request
from umg_grpc.wire.native.response import decode_response, encode_response, shows
from umg_grpc.wire.native.stream import ArrayEncoder, StreamEncoder
from umg_grpc.wire.native.translating import TranslatingDecoder


def encode_count(tokens: int) -> bytes:
    """Body of `:countTokens`."""
    return msgspec.json.encode({"totalTokens": tokens})


NATIVE = TextFormat(
    name="native",
    source_headers=(),
    decode_request=decode_request,
    encode_response=encode_response,
    shows=shows,
    stream_encoder=StreamEncoder,
    encode_error=encode_error,
    wire_path=wire_path,
    heartbeat=b"\n",  # a comment breaks the official client
    encode_request=encode_request,
    decode_response=decode_response,
    translating_decoder=TranslatingDecoder,
    passing_decoder=PassingDecoder,
    decode_error=decode_error,
    preamble=is_preamble,
    key_header="x-goog-api-key",
    model_in_path=True,
    array_encoder=ArrayEncoder,
    decode_count=decode_count,
    encode_count=encode_count,
)
