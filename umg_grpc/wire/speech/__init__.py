"""Speech format (`POST /v1/audio/speech`): codec for bodies of callers and providers, and providers' protocols."""

from functools import partial

from umg_grpc.v1 import pb
from umg_grpc.wire.chat.errors import encode_error
from umg_grpc.wire.core.account_object_detection import OBJECT_WORDS, ObjectRules
from umg_grpc.wire.core.provider_key_headers import AZURE_KEY_HEADER
from umg_grpc.wire.errors.provider_errors import decode_error
from umg_grpc.wire.speech import response
from umg_grpc.wire.speech.native_speech import NATIVE_SPEECH
from umg_grpc.wire.speech.request import FORMAT_NAME, decode_request, encode_request, wire_path
from umg_grpc.wire.unary_format_interface import UnaryFormat

SPEECH_FORMAT: UnaryFormat[pb.SpeakRequest, pb.SpeakResponse] = UnaryFormat(
    name=FORMAT_NAME,
    protocol=FORMAT_NAME,
    source_headers=(),
    decode_request=decode_request,
    encode_response=response.encode_response,
    encode_error=encode_error,
    wire_path=wire_path,
    content_type=lambda spoken, _: spoken.content_type,
    wants_stream=lambda _: True,  # bytes are passed on as they come, too
    stream_encoder=response.stream_encoder,
    encode_request=encode_request,
    decode_response=response.decode_response,
    read_headers=response.read_headers,
    stream_decoder=response.stream_decoder,
    is_binary=True,
    decode_error=partial(decode_error, too_long=response.TOO_LONG),
    objects=ObjectRules(free=frozenset({"input", "instructions"}), words=OBJECT_WORDS),
    provider_name="openai",
    key_headers=(AZURE_KEY_HEADER,),
)
SPEECH_FORMATS = {SPEECH_FORMAT.name: SPEECH_FORMAT}
SPEECH_UPSTREAMS = {each.name: each for each in (SPEECH_FORMAT, NATIVE_SPEECH)}
