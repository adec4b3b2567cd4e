"""Moderation format (`POST /v1/moderations`): codec for the bodies of callers and of providers."""

from functools import partial

from umg_grpc.v1 import pb
from umg_grpc.wire.chat.errors import encode_error
from umg_grpc.wire.core.account_object_detection import OBJECT_WORDS, ObjectRules
from umg_grpc.wire.core.provider_key_headers import AZURE_KEY_HEADER
from umg_grpc.wire.errors.provider_errors import decode_error
from umg_grpc.wire.moderations.request import FORMAT_NAME, decode_request, encode_request, wire_path
from umg_grpc.wire.moderations.response import TOO_LONG, decode_response, encode_response
from umg_grpc.wire.unary_format_interface import UnaryFormat

MODERATIONS_FORMAT: UnaryFormat[pb.ModerateRequest, pb.ModerateResponse] = UnaryFormat(
    name=FORMAT_NAME,
    protocol=FORMAT_NAME,
    source_headers=(),
    decode_request=decode_request,
    encode_response=encode_response,
    encode_error=encode_error,
    wire_path=wire_path,
    encode_request=encode_request,
    decode_response=decode_response,
    decode_error=partial(decode_error, too_long=TOO_LONG),
    objects=ObjectRules(free=frozenset({"input"}), words=OBJECT_WORDS),
    provider_name="openai",
    key_headers=(AZURE_KEY_HEADER,),
)
MODERATION_FORMATS = {MODERATIONS_FORMAT.name: MODERATIONS_FORMAT}
