"""Cache keys: the requests whose responses are cached, and the requests that share one."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import pytest

from umg_grpc.service.caching.response_cache_key import key_of
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.embedding_formats import EMBEDDING_FORMATS
from umg_grpc.wire.facts_beside_request import NO_NOTES, RequestNotes
from umg_grpc.wire.rerank import RERANK_FORMATS

Body = dict[str, object]

CHAT: Body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "temperature": 0}
RESPONSES: Body = {"model": "m", "input": "Hi", "temperature": 0, "store": False}
MESSAGES: Body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}], "temperature": 0}
NATIVE: Body = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}], "generationConfig": {"temperature": 0}}
BODIES = {"chat": CHAT, "responses": RESPONSES, "messages": MESSAGES, "native": NATIVE}

IMAGE = "data:image/png;base64,iVBORw0KGgo="


def tool(properties: Body) -> Body:
    parameters = {"type": "object", "properties": properties}
    return {"type": "function", "function": {"name": "f", "parameters": parameters}}


def generate(form: str, body: Body | bytes, **headers: str) -> pb.GenerateRequest:
    written = body if isinstance(body, bytes) else msgspec.json.encode(body)
    request = TEXT_FORMATS[form].decode_request(written, headers).canonical
    request.model = request.model or "m"
    return request


WAYS = ("m", "main", "https://provider.example/v1", "m")


def key(
    request: pb.GenerateRequest, owner: str = "key_1", ways: Sequence[str] = WAYS, notes: RequestNotes = NO_NOTES
) -> str | None:
    return key_of(owner, "generate", ways, request, notes)


def showing(url: str) -> Body:
    return {**CHAT, "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]}


@dataclass(frozen=True)
class CacheCase:
    id: str
    form: str
    body: Body


def sampled(form: str) -> Body:
    body = dict(BODIES[form])
    body.pop("temperature", None)
    body.pop("generationConfig", None)
    return body


HAVE_ONE_ANSWER = [
    *(CacheCase(f"{form} at temperature 0", form, body) for form, body in BODIES.items()),
    CacheCase("a seed", "chat", {**CHAT, "temperature": 1, "seed": 7}),
    CacheCase("a seed of 0", "chat", {**CHAT, "temperature": 1, "seed": 0}),
    CacheCase("the caller's own tools", "chat", {**CHAT, "tools": [tool({})]}),
    CacheCase("an image in the request", "chat", showing(IMAGE)),
    CacheCase("one choice", "chat", {**CHAT, "n": 1}),
]

HAVE_SEVERAL = [
    *(CacheCase(f"{form} without a temperature", form, sampled(form)) for form in BODIES),
    CacheCase("temperature 0.1", "chat", {**CHAT, "temperature": 0.1}),
    CacheCase("several choices", "chat", {**CHAT, "n": 2}),
    CacheCase("a stored chat", "chat", {**CHAT, "store": True}),
    CacheCase("a response that is stored", "responses", {**RESPONSES, "store": True}),
    CacheCase("a response that is stored by default", "responses", {"model": "m", "input": "Hi", "temperature": 0}),
    CacheCase("a continued response", "responses", {**RESPONSES, "previous_response_id": "resp_1"}),
    CacheCase("a conversation", "responses", {**RESPONSES, "conversation": "conv_1"}),
    CacheCase("a prompt of the provider", "responses", {**RESPONSES, "prompt": {"id": "pmpt_1"}}),
    CacheCase("a search by responses", "responses", {**RESPONSES, "tools": [{"type": "web_search"}]}),
    CacheCase(
        "a tool of the provider by responses",
        "responses",
        {**RESPONSES, "tools": [{"type": "code_interpreter", "container": {"type": "auto"}}]},
    ),
    CacheCase("a search by chat", "chat", {**CHAT, "web_search_options": {}}),
    CacheCase(
        "a search by messages",
        "messages",
        {**MESSAGES, "tools": [{"type": "web_search_20250305", "name": "web_search"}]},
    ),
    CacheCase(
        "servers of tools",
        "messages",
        {**MESSAGES, "mcp_servers": [{"type": "url", "url": "https://tools.example", "name": "t"}]},
    ),
    CacheCase("a search by native", "native", {**NATIVE, "tools": [{"googleSearch": {}}]}),
    CacheCase("code that the provider runs", "native", {**NATIVE, "tools": [{"codeExecution": {}}]}),
    CacheCase("a cached prefix", "native", {**NATIVE, "cachedContent": "cachedContents/1"}),
    CacheCase("sound", "chat", {**CHAT, "modalities": ["text", "audio"], "audio": {"voice": "a", "format": "wav"}}),
    CacheCase("an image at a URL", "chat", showing("https://camera.example/now.png")),
    CacheCase(
        "a file of the account",
        "responses",
        {**RESPONSES, "input": [{"role": "user", "content": [{"type": "input_file", "file_id": "file-1"}]}]},
    ),
]


@pytest.mark.parametrize("case", HAVE_ONE_ANSWER, ids=lambda case: case.id)
def test_a_request_with_one_answer_has_a_key(case: CacheCase) -> None:
    notes = TEXT_FORMATS[case.form].decode_request(msgspec.json.encode(case.body), {}).notes
    assert key(generate(case.form, case.body), notes=notes) is not None


@pytest.mark.parametrize("case", HAVE_SEVERAL, ids=lambda case: case.id)
def test_a_request_with_several_answers_has_none(case: CacheCase) -> None:
    notes = TEXT_FORMATS[case.form].decode_request(msgspec.json.encode(case.body), {}).notes
    assert key(generate(case.form, case.body), notes=notes) is None


@dataclass(frozen=True)
class Pair:
    id: str
    one: pb.GenerateRequest
    other: pb.GenerateRequest


SAME = [
    Pair("twice", generate("chat", CHAT), generate("chat", CHAT)),
    Pair("keys in another order", generate("chat", CHAT), generate("chat", dict(reversed(CHAT.items())))),
    Pair(
        "inner keys in another order",
        generate("chat", CHAT),
        generate("chat", {**CHAT, "messages": [{"content": "Hi", "role": "user"}]}),
    ),
    Pair("other spaces", generate("chat", CHAT), generate("chat", msgspec.json.format(msgspec.json.encode(CHAT)))),
    Pair("streamed", generate("chat", CHAT), generate("chat", {**CHAT, "stream": True})),
    Pair(
        "harmless fields in another order",
        generate("chat", {**CHAT, "usage": {"a": 1, "b": 2}}),
        generate("chat", {**CHAT, "usage": {"b": 2, "a": 1}}),
    ),
]

DIFFERENT = [
    Pair(
        "the question",
        generate("chat", CHAT),
        generate("chat", {**CHAT, "messages": [{"role": "user", "content": "Ho"}]}),
    ),
    Pair("the model", generate("chat", CHAT), generate("chat", {**CHAT, "model": "n"})),
    Pair("the user", generate("chat", CHAT), generate("chat", {**CHAT, "user": "u"})),
    Pair("a harmless field", generate("chat", CHAT), generate("chat", {**CHAT, "usage": 1})),
    Pair(
        "deep in a harmless field",
        generate("chat", {**CHAT, "usage": [{"a": 1}]}),
        generate("chat", {**CHAT, "usage": [{"a": 2}]}),
    ),
    Pair("the number's form", generate("chat", {**CHAT, "usage": 1}), generate("chat", {**CHAT, "usage": 1.0})),
    Pair("the format", generate("chat", CHAT), generate("messages", MESSAGES)),
    Pair("its version", generate("messages", MESSAGES), generate("messages", MESSAGES, **{"anthropic-beta": "b"})),
    Pair("the seed", generate("chat", {**CHAT, "seed": 1}), generate("chat", {**CHAT, "seed": 2})),
    Pair(
        "whether a stream ends with the usage",
        generate("chat", {**CHAT, "stream": True}),
        generate("chat", {**CHAT, "stream": True, "stream_options": {"include_usage": True}}),
    ),
    Pair("no seed and seed 0", generate("chat", CHAT), generate("chat", {**CHAT, "seed": 0})),
    Pair(
        "the order of a schema, in which models write",
        generate("chat", {**CHAT, "tools": [tool({"a": {}, "b": {}})]}),
        generate("chat", {**CHAT, "tools": [tool({"b": {}, "a": {}})]}),
    ),
]


@pytest.mark.parametrize("case", SAME, ids=lambda case: case.id)
def test_equal_requests_have_equal_cache_keys(case: Pair) -> None:
    assert key(case.one) == key(case.other) is not None


@pytest.mark.parametrize("case", DIFFERENT, ids=lambda case: case.id)
def test_different_requests_have_different_cache_keys(case: Pair) -> None:
    assert key(case.one) != key(case.other)
    assert None not in {key(case.one), key(case.other)}


def test_the_cache_key_depends_on_the_owner() -> None:
    request = generate("chat", CHAT)
    assert key(request, "key_1") != key(request, "key_2")


ELSEWHERE = [
    ("another model", ("n", "main", "https://provider.example/v1", "m")),
    ("another channel", ("m", "backup", "https://provider.example/v1", "m")),
    ("another provider", ("m", "main", "https://other.example/v1", "m")),
    ("another model of the provider", ("m", "main", "https://provider.example/v1", "n")),
    ("one more channel", (*WAYS, "backup", "https://provider.example/v1", "m")),
    ("no channel", ("m",)),
]


@pytest.mark.parametrize("ways", [ways for _, ways in ELSEWHERE], ids=[name for name, _ in ELSEWHERE])
def test_the_cache_key_depends_on_the_targets_of_the_model(ways: Sequence[str]) -> None:
    request = generate("chat", CHAT)
    assert key(request, ways=ways) != key(request)


def test_names_in_the_cache_key_are_not_confused() -> None:
    request = generate("chat", CHAT)
    assert key(request, ways=("ab", "c")) != key(request, ways=("a", "bc"))
    assert key_of("ab", "c", (), request) != key_of("a", "bc", (), request) != key_of("a", "b", ("c",), request)


def test_the_request_is_not_changed_by_its_cache_key() -> None:
    request = generate("chat", {**CHAT, "stream": True, "stream_options": {"include_usage": True}})
    before = request.SerializeToString(deterministic=True)
    key(request)
    assert request.SerializeToString(deterministic=True) == before


def test_the_cache_key_of_a_request_without_a_body_is_made_of_its_fields() -> None:
    one, other = (pb.GenerateRequest(model="m", temperature=0, metadata=labels) for labels in ({"a": "1"}, {"a": "2"}))
    assert None is not key(one) != key(other) is not None


def test_a_part_of_an_unknown_kind_has_no_cache_key() -> None:
    assert key(pb.GenerateRequest(model="m", temperature=0, messages=[pb.Message(parts=[pb.Part()])])) is None


def test_an_image_url_in_a_tool_result_has_no_cache_key() -> None:
    picture = pb.Part(media=pb.MediaPart(kind=pb.MEDIA_KIND_IMAGE, uri="https://camera.example/now.png"))
    answer = pb.Message(parts=[pb.Part(tool_result=pb.ToolResult(parts=[picture]))])
    assert key(pb.GenerateRequest(model="m", temperature=0, messages=[answer])) is None


def test_requests_with_unreadable_numbers_are_not_cached() -> None:
    request = generate("chat", CHAT)
    request.source.body = msgspec.json.encode(CHAT)[:-1] + b',"new":1e999}'
    assert key(request) is None


@pytest.mark.parametrize("form", EMBEDDING_FORMATS)
def test_vectors_always_have_one_answer(form: str) -> None:
    def request(text: str) -> pb.EmbedRequest:
        return pb.EmbedRequest(model="m", inputs=[pb.EmbeddingInput(text=text)])

    one, same, other = (key_of("key_1", form, WAYS, request(text)) for text in ("a", "a", "b"))
    assert one == same != other is not None


@pytest.mark.parametrize("form", RERANK_FORMATS)
def test_rankings_always_have_one_answer(form: str) -> None:
    body = msgspec.json.encode({"model": "m", "query": "q", "documents": ["a", "b"]})
    one, same = (
        key_of("key_1", "rerank", WAYS, RERANK_FORMATS[form].decode_request(body, {}).canonical) for _ in range(2)
    )
    assert one == same is not None
