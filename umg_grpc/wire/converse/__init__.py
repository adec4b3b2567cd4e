"""Converse format of Amazon Bedrock (`POST /model/{modelId}/converse`, `/converse-stream`), for providers only. Source:
botocore 1.44.8, service model of bedrock-runtime.
"""

from umg_grpc.wire.converse.account_object_references import OBJECT_RULES
from umg_grpc.wire.converse.errors import decode_error
from umg_grpc.wire.converse.request import encode_request
from umg_grpc.wire.converse.response import decode_response
from umg_grpc.wire.converse.stream_decoder import TranslatingDecoder
from umg_grpc.wire.text_format_interface import TextProviderFormat

CONVERSE_FORMAT = TextProviderFormat(
    name="converse",
    encode_request=encode_request,
    decode_response=decode_response,
    translating_decoder=TranslatingDecoder,
    decode_error=decode_error,
    objects=OBJECT_RULES,
    provider_name="aws.bedrock",
)
