"""Transcription formats (`POST /v1/audio/transcriptions`, `/translations`): codecs for callers and providers."""

from dataclasses import replace
from functools import partial

from umg_grpc.v1 import pb
from umg_grpc.wire.chat.errors import encode_error
from umg_grpc.wire.core.account_object_detection import OBJECT_WORDS, ObjectRules
from umg_grpc.wire.core.multipart_forms import FORM_TYPE
from umg_grpc.wire.core.provider_key_headers import AZURE_KEY_HEADER
from umg_grpc.wire.errors.provider_errors import decode_error
from umg_grpc.wire.transcriptions import request, response, transcription_streams
from umg_grpc.wire.unary_format_interface import UnaryFace, UnaryFormat

FREE_FIELDS = frozenset({"prompt", "known_speaker_names", "known_speaker_references", "keywords"})
TRANSCRIPTIONS_FORMAT: UnaryFormat[pb.TranscribeRequest, pb.TranscribeResponse] = UnaryFormat(
    name=request.FORMAT_NAME,
    protocol=request.FORMAT_NAME,
    source_headers=(),
    decode_request=request.decode_request,
    decode_form=request.decode_form,
    media_types=(FORM_TYPE,),
    encode_response=response.encode_response,
    encode_error=encode_error,
    wire_path=request.wire_path,
    content_type=response.content_type,
    wants_stream=request.wants_stream,
    stream_encoder=transcription_streams.stream_encoder,
    encode_request=request.encode_request,
    decode_response=response.decode_response,
    read_headers=response.read_headers,
    stream_decoder=transcription_streams.stream_decoder,
    decode_error=partial(decode_error, too_long=response.TOO_LONG),
    objects=ObjectRules(free=FREE_FIELDS, words=OBJECT_WORDS),
    provider_name="openai",
    key_headers=(AZURE_KEY_HEADER,),
)
TRANSLATIONS_FORMAT: UnaryFormat[pb.TranscribeRequest, pb.TranscribeResponse] = replace(
    TRANSCRIPTIONS_FORMAT,
    name=request.TRANSLATIONS_NAME,
    decode_request=request.decode_translation,
    decode_form=request.decode_translation_form,
    wants_stream=None,
    stream_encoder=None,
)
TRANSCRIPTION_FACES: dict[str, UnaryFace[pb.TranscribeRequest, pb.TranscribeResponse]] = {
    each.name: each for each in (TRANSCRIPTIONS_FORMAT, TRANSLATIONS_FORMAT)
}
TRANSCRIPTION_UPSTREAMS = {TRANSCRIPTIONS_FORMAT.name: TRANSCRIPTIONS_FORMAT}
