"""Bodies that are no JSON objects, or no valid text, are malformed in every format of callers."""

from collections.abc import Callable

import pytest

from tests.support.error_checks import raises_error
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FACES
from umg_grpc.wire.embedding_formats import EMBEDDING_FACES
from umg_grpc.wire.rerank import RERANK_FORMATS

FACES = {**TEXT_FACES, **EMBEDDING_FACES, **RERANK_FORMATS}
DECODERS: dict[str, Callable[..., object]] = {
    **{name: face.decode_request for name, face in FACES.items()},
    **{f"{name}, counted": face.decode_count for name, face in TEXT_FACES.items() if face.decode_count is not None},
}
BODIES = [
    *(b"", b"{", b"hello", b"[]", b'"a"', b"null", b"3", b"\xff\xfe{}", b"[" * 9999, b'{"x":' + b"[" * 100_000),
    *(b'{"model":"m"', b'{"model":"\xff"}'),
]  # fmt: skip
INSIDE = [
    ("chat", b'{"model":"m","messages":[{"role":"user","content":"hi"}]} x'),
    ("chat", b'{"x":"\xf0\x9f"}'),
    ("responses", b'{"model":"\\ud83d"}'),
    ("chat", b'{"model":"m","messages":[{"role":"user","content":"\\ud83d"}]}'),
    ("chat", b'{"model":"m","messages":[{"role":"user","content":"a"}],"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    ("messages", b'{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"\\ud83d"}]}'),
    ("messages", b'{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"\\ude00"}]}]}'),
    ("native", b'{"contents":[' * 3000),
    ("native", b'{"contents":[{"parts":[{"text":"\xff"}]}]}'),
    ("cohere", b'{"model":"m","messages":[{"role":"user","content":"\xff"}]}'),
    ("ollama_chat", b'{"model":"m","messages":[],"options":{"a":\xff}}'),
    ("embeddings", b'{"model":"m","input":"\xff"}'),
    ("embeddings", b'{"model":"m","input":"\\ud83d"}'),
    ("native_embedding", b'{"content":"\\ud83d"}'),
    ("rerank", b'{"model":"m","query":"q","documents":[{"text":"a","b":"\xff"}]}'),
    ("rerank_v2", b'{"model":"m","query":"q","documents":["a",{"text":"\\ud83d"}]}'),
    ("rerank", b'{"model":"m","query":"q","documents":[' + b"[" * 100_000),
]  # fmt: skip


@pytest.mark.parametrize("name", DECODERS)
def test_a_body_that_is_no_json_object_is_malformed(name: str) -> None:
    for body in BODIES:
        with raises_error(reason=pb.ERROR_REASON_MALFORMED_BODY):
            DECODERS[name](body, {})


@pytest.mark.parametrize(("name", "body"), INSIDE, ids=lambda value: repr(value[:60]))
def test_a_value_that_is_no_text_is_malformed_at_any_depth(name: str, body: bytes) -> None:
    with raises_error(reason=pb.ERROR_REASON_MALFORMED_BODY):
        DECODERS[name](body, {})
