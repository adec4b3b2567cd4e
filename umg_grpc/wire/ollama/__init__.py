"""Ollama's API for callers (`POST /api/chat`, `POST /api/generate`); its servers are called in the chat format."""

from dataclasses import replace
from functools import partial

from umg_grpc.wire.ollama.caller_field_paths import chat_path, generate_path
from umg_grpc.wire.ollama.errors import encode_error
from umg_grpc.wire.ollama.request import CHAT_FACE, GENERATE_FACE, decode_chat, decode_generate
from umg_grpc.wire.ollama.response import (
    Members,
    can_express_in_chat,
    can_express_in_text,
    chat_members,
    encode_loaded,
    encode_response,
    generate_members,
)
from umg_grpc.wire.ollama.stream_encoder import StreamEncoder
from umg_grpc.wire.text_format_interface import Elapsed, TextFace

LINES_TYPE = "application/x-ndjson"  # lines of JSON
API_VERSION = "0.32.15"
"""Release of Ollama's server whose bodies are encoded here (github.com/ollama/ollama, `api/types.go`, 2026-08-21). Some
editors reject servers before 0.6.4.
"""


def _timed(face: str, members: Members, elapsed: Elapsed) -> TextFace:
    return replace(
        FACE_FORMATS[face],
        encode_response=partial(encode_response, members, elapsed=elapsed),
        stream_encoder=partial(StreamEncoder, members, elapsed=elapsed),
    )


OLLAMA_CHAT = TextFace(
    name=CHAT_FACE,
    source_headers=(),
    decode_request=decode_chat,
    encode_response=partial(encode_response, chat_members),
    encode_empty=partial(encode_loaded, chat_members),
    can_express=can_express_in_chat,
    stream_encoder=partial(StreamEncoder, chat_members),
    timed=partial(_timed, CHAT_FACE, chat_members),
    encode_error=encode_error,
    wire_path=chat_path,
    heartbeat=b" ",  # clients decode each line, also an empty one; a space before the next line is part of its JSON
    stream_type=LINES_TYPE,
    media_types=(),  # the examples of its documents send JSON as a form (ollama/ollama, docs/api.md)
    error_paths=("/api/",),
    api_version=API_VERSION,
    loses_call_ids=True,
)
OLLAMA_GENERATE = replace(
    OLLAMA_CHAT,
    name=GENERATE_FACE,
    decode_request=decode_generate,
    encode_response=partial(encode_response, generate_members),
    encode_empty=partial(encode_loaded, generate_members),
    can_express=can_express_in_text,
    stream_encoder=partial(StreamEncoder, generate_members),
    timed=partial(_timed, GENERATE_FACE, generate_members),
    wire_path=generate_path,
    error_paths=(),
)
FACE_FORMATS = {CHAT_FACE: OLLAMA_CHAT, GENERATE_FACE: OLLAMA_GENERATE}
