"""Chat completions (`POST /v1/chat/completions`), face and upstream."""

from umg_grpc.v1 import pb
from umg_grpc.wire.chat.errors import encode_error
from umg_grpc.wire.chat.passing import PassingDecoder
from umg_grpc.wire.chat.paths import wire_path
from umg_grpc.wire.chat.request import decode_request, encode_request
from umg_grpc.wire.chat.response import decode_response, encode_response
from umg_grpc.wire.chat.stream import StreamEncoder
from umg_grpc.wire.chat.translating import TranslatingDecoder
from umg_grpc.wire.format import StreamDecoder, TextFormat
from umg_grpc.wire.provider_errors import decode_error


def stream_decoder(request: pb.GenerateRequest, pass_: bool) -> StreamDecoder:
    """Frames as they came, or canonical events."""
    return PassingDecoder(request) if pass_ else TranslatingDecoder(request)


CHAT = TextFormat(
    name="chat",
    source_headers=("openai-beta",),
    decode_request=decode_request,
    encode_response=encode_response,
    stream_encoder=StreamEncoder,
    encode_error=encode_error,
    wire_path=wire_path,
    heartbeat=b": keep-alive\n\n",
    encode_request=encode_request,
    decode_response=decode_response,
    stream_decoder=stream_decoder,
    decode_error=decode_error,
)
