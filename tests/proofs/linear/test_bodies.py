"""Growth of bodies that the other tests do not cover: errors, vectors, ranks, conversations, bytes in pieces, unknown
parts.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import pytest

from tests.proofs.linear.cost import Work, line_growth, time_growth
from tests.proofs.linear.work import accepting
from tests.support.providers.aws_event_stream import event
from umg_grpc.service.conversations import message_threads, response_input_items, stored_responses
from umg_grpc.store.table_definitions import ResponseRow, ThreadRow
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.converse import CONVERSE_FORMAT
from umg_grpc.wire.core.sse import SseSplitter, split
from umg_grpc.wire.embedding_formats import EMBEDDING_FORMATS
from umg_grpc.wire.errors.error_message_redaction import clean
from umg_grpc.wire.facts_beside_request import NO_NOTES, DecodedRequest
from umg_grpc.wire.rerank import RERANK_FORMATS
from umg_grpc.wire.unary_format_interface import ClientShape, UnaryFormat

NATIVE = TEXT_FORMATS["native"]
REQUEST = pb.GenerateRequest(model="m")


@dataclass(frozen=True)
class Case:
    id: str
    make: Callable[[int], Work]
    size: int = 512
    """Smaller of the two sizes whose times are compared."""


def _body(value: object) -> bytes:
    return json.dumps(value).encode()


def unknown_parts(size: int) -> Work:
    body = _body({"candidates": [{"content": {"parts": [{"x": {"n": 1}}] * size}, "finishReason": "STOP"}]})
    return accepting(lambda: NATIVE.decode_response(body, REQUEST, False))


def candidates_with_unknown_parts(size: int) -> Work:
    body = _body({"candidates": [{"content": {"parts": [{"x": {"n": 1}}]}, "finishReason": "STOP"}] * size})
    return accepting(lambda: NATIVE.decode_response(body, REQUEST, False))


def streamed_unknown_parts(size: int) -> Work:
    chunk = _body({"candidates": [{"content": {"parts": [{"x": {"n": 1}}] * size}, "finishReason": "STOP"}]})
    frames = b"data: " + chunk + b"\n\n"
    return accepting(lambda: NATIVE.translating_decoder(REQUEST).feed(frames))


def sources_of_a_long_text(size: int) -> Work:
    supports = [
        {"segment": {"startIndex": 8 * place, "endIndex": 8 * place + 6}, "groundingChunkIndices": [0]}
        for place in range(size)
    ]
    sources = {"groundingChunks": [{"web": {"uri": "https://pages.test"}}], "groundingSupports": supports}
    text = {"text": "é text " * size}
    body = _body({"candidates": [{"content": {"parts": [text]}, "finishReason": "STOP", "groundingMetadata": sources}]})

    def call() -> None:
        answer = NATIVE.decode_response(body, REQUEST, False)
        NATIVE.encode_response(answer, REQUEST)

    return accepting(call)


def deltas_between_comments(size: int) -> Work:
    choice = {"index": 0, "delta": {"content": "a"}, "finish_reason": None}
    frame = b"data: " + _body({"id": "c", "model": "m", "choices": [choice]}) + b"\n\n: keep-alive\n\n"
    return lambda: TEXT_FORMATS["chat"].translating_decoder(REQUEST).feed(frame * size)


def pieces_of_an_event(size: int) -> Work:
    pieces = [b"data: ", *[b"x" * 40 + b"\r"] * size, b"\n\n"]

    def call() -> None:
        splitter = SseSplitter()
        for piece in pieces:
            list(split(splitter.whole(piece)))

    return call


def lines_of_an_event(size: int) -> Work:
    frames = b"data: x\r\n" * size + b"\n"
    return lambda: list(split(frames))


def _error(letters: str) -> Callable[[int], Work]:
    def make(size: int) -> Work:
        body = _body({"error": {"message": letters * size, "type": letters * size, "code": 1, "param": letters * size}})

        def call() -> None:
            for codec in TEXT_FORMATS.values():
                error = codec.decode_error(400, {}, body)
                codec.encode_error(error, 400)

        return call

    return make


def details_of_an_error(size: int) -> Work:
    details = [{"@type": "x", "reason": "r", "fieldViolations": [{"field": "f"}], "retryDelay": "1s"}] * size
    body = _body({"error": {"message": "m", "status": "INVALID_ARGUMENT", "details": details}})
    return lambda: [codec.decode_error(400, {}, body) for codec in TEXT_FORMATS.values()]


def _cleaning(letters: str) -> Callable[[int], Work]:
    return lambda size: lambda: clean(letters * size, limit=len(letters) * size)


def embeddings(size: int) -> Work:
    body = _body({"model": "m", "input": ["text"] * size})
    answer = _body({
        "object": "list", "model": "m", "usage": {"prompt_tokens": 1, "total_tokens": 1},
        "data": [{"object": "embedding", "index": place, "embedding": [0.5, 1.0]} for place in range(size)],
    })  # fmt: skip
    return _unary(EMBEDDING_FORMATS["embeddings"], EMBEDDING_FORMATS, body, answer)


def native_embeddings(size: int) -> Work:
    item = {"model": "models/m", "content": {"parts": [{"text": "text"}]}, "taskType": "RETRIEVAL_QUERY"}
    body, answer = _body({"requests": [item] * size}), _body({"embeddings": [{"values": [0.5, 1.0]}] * size})
    return _unary(EMBEDDING_FORMATS["native_embeddings"], EMBEDDING_FORMATS, body, answer)


def _ranking(name: str) -> Callable[[int], Work]:
    def make(size: int) -> Work:
        body = _body({"model": "m", "query": "q", "documents": ["text"] * size})
        results = [{"index": place, "relevance_score": 0.5} for place in reversed(range(size))]
        return _unary(RERANK_FORMATS[name], RERANK_FORMATS, body, _body({"id": "r", "results": results}))

    return make


Request, Response = TypeVar("Request"), TypeVar("Response")


def _unary(
    codec: UnaryFormat[Request, Response],
    formats: Mapping[str, UnaryFormat[Request, Response]],
    body: bytes,
    answer: bytes,
) -> Work:
    def call() -> None:
        request, notes = codec.decode_request(body, {})
        for pass_ in (False, True):
            response = codec.decode_response(answer, request, pass_)
            codec.encode_response(response, request, ClientShape.SDK)
        response = codec.decode_response(answer, request, False)
        for target in formats.values():
            accepting(lambda to=target: to.encode_request(request, "m", notes))()
            accepting(lambda to=target: to.encode_response(response, request, ClientShape.DOCUMENTED))()

    return accepting(call)


def _conversation(size: int) -> pb.GenerateRequest:
    parts = [pb.Part(text=pb.TextPart(text="ask"))]
    return pb.GenerateRequest(model="m", messages=[pb.Message(role=pb.ROLE_USER, parts=parts)] * size)


def _answer() -> pb.GenerateResponse:
    message = pb.Message(role=pb.ROLE_ASSISTANT, parts=[pb.Part(text=pb.TextPart(text="answer"))])
    return pb.GenerateResponse(response_id="r", candidates=[pb.Candidate(message=message)])


def continued_responses(size: int) -> Work:
    request, answer = _conversation(size), _answer()

    def call() -> None:
        row = ResponseRow(owner="o", object_id="r", channel="c", upstream_response_id="")
        stored_responses._pack(row, request, answer, b"", streamed=False)
        stored_responses._continue(row, DecodedRequest(_conversation(1), NO_NOTES))

    return call


def continued_threads(size: int) -> Work:
    body = {
        "model": "m",
        "max_tokens": 9,
        "thread": {"type": "create"},
        "messages": [{"role": "user", "content": "ask"}] * size,
    }
    request = TEXT_FORMATS["messages"].decode_request(_body(body), {}).canonical
    more = _body(
        body
        | {
            "thread": {"type": "continue", "previous_message_id": "r"},
            "messages": [{"role": "user", "content": "more"}],
        }
    )
    canonical, _, notes = TEXT_FORMATS["messages"].decode_request(more, {})
    following = DecodedRequest(canonical, notes)
    answer = _answer()

    def call() -> None:
        row = ThreadRow(owner="o", object_id="r", channel="c", upstream_response_id="")
        message_threads._pack(row, request, answer)
        message_threads._whole(row, following)

    return call


def items_of_a_response(size: int) -> Work:
    request = _conversation(size)
    return lambda: response_input_items.page(request.messages, "o", pb.ListInputItemsRequest(response_id="r"))


def blocks_of_a_whole_response(size: int) -> Work:
    call = {"toolUse": {"toolUseId": "a", "name": "f", "input": {"a": 1}}}
    thought = {"reasoningContent": {"redactedContent": "YWI="}}
    cited = {"citationsContent": {"content": [{"text": "a"}], "citations": [{"title": "a"}] * size}}
    content = [*([{"text": "é text"}, call, thought, {"news": {}}] * size), cited]
    body = _body({"output": {"message": {"content": content}}, "stopReason": "end_turn"})
    return accepting(lambda: CONVERSE_FORMAT.decode_response(body, REQUEST, False))


def _events(*events: tuple[str, Mapping[str, object]]) -> Callable[[int], Work]:
    """Return the work on a stream of AWS frames in which some events are repeated, read in pieces."""
    ending = event("messageStop", {"stopReason": "end_turn"}) + event("metadata", {"usage": {"inputTokens": 1}})

    def make(size: int) -> Work:
        repeated = b"".join(event(name, dict(payload)) for name, payload in events) * size
        data = event("messageStart", {"role": "assistant"}) + event(*CALL) + repeated + ending

        def call() -> None:
            decoder = CONVERSE_FORMAT.translating_decoder(REQUEST)
            for at in range(0, len(data), 200):
                decoder.feed(data[at : at + 200])
            decoder.close()

        return accepting(call)

    return make


CALL = ("contentBlockStart", {"contentBlockIndex": 0, "start": {"toolUse": {"toolUseId": "a", "name": "f"}}})
STOP = ("contentBlockStop", {"contentBlockIndex": 0})


def _delta(index: int, **member: object) -> tuple[str, Mapping[str, object]]:
    return "contentBlockDelta", {"contentBlockIndex": index, "delta": member}


CASES = [
    Case("parts of an unknown kind", unknown_parts),
    Case("candidates with a part of an unknown kind", candidates_with_unknown_parts),
    Case("streamed parts of an unknown kind", streamed_unknown_parts),
    Case("sources of a long text", sources_of_a_long_text),
    Case("deltas between comments", deltas_between_comments),
    Case("pieces of an event", pieces_of_an_event, 2048),
    Case("lines of an event", lines_of_an_event, 2048),
    Case("an error of letters", _error("a"), 4096),
    Case("an error of blanks", _error(" "), 4096),
    Case("an error of quotes", _error('" '), 4096),
    Case("an error of names", _error("a."), 4096),
    Case("details of an error", details_of_an_error),
    Case("a message of letters", _cleaning("a"), 4096),
    Case("a message of digits", _cleaning("1"), 4096),
    Case("a message of dots", _cleaning("a."), 4096),
    Case("a message of colons", _cleaning("1:"), 4096),
    Case("a message of blanks", _cleaning(" "), 4096),
    Case("a message of assignments", _cleaning("secret : "), 4096),
    Case("a message of keys", _cleaning("sk-a"), 4096),
    Case("embeddings", embeddings, 256),
    Case("embeddings of the native format", native_embeddings, 256),
    Case("ranks", _ranking("rerank"), 256),
    Case("ranks of the second version", _ranking("rerank_v2"), 256),
    Case("a continued response", continued_responses),
    Case("a continued thread", continued_threads),
    Case("items of a response", items_of_a_response),
    Case("blocks of Bedrock", blocks_of_a_whole_response, 256),
    Case("texts of Bedrock", _events(_delta(1, text="é text"))),
    Case("inputs of Bedrock", _events(_delta(0, toolUse={"input": "[1,"}))),
    Case("redacted pieces of Bedrock", _events(_delta(1, reasoningContent={"redactedContent": "YWI="}))),
    Case("citations of Bedrock", _events(_delta(1, citation={"title": "a"}))),
    Case("calls of Bedrock", _events(STOP, CALL)),
    Case("unknown events of Bedrock", _events(("news", {"a": 1}))),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_work_grows_with_the_size_of_its_input(case: Case) -> None:
    assert not line_growth(case.make, 32)
    assert not time_growth(case.make, case.size)
