"""Right answers of the faulty provider, in every format of providers. Each repeats a part of its request, so that an
answer to another request is detected.

Text repeats the nonce of its prompt (`nonce-` and letters or digits). Vectors and scores are computed from the texts
alone (`tests.support.providers.vectors`).
"""

import base64
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.pairs.table import Kind, protocols_of
from tests.support.providers import converse_wire, messages_wire, native_wire, responses_wire
from tests.support.providers.aws_event_stream import exception
from tests.support.providers.chat import Chat
from tests.support.providers.common import compact
from tests.support.providers.faulty import image_answers
from tests.support.providers.scenarios import Answer, ScenarioRequest
from tests.support.providers.server import ReceivedRequest
from tests.support.providers.vectors import numbers, score, tokens, vector

Json = dict[str, Any]
NONCE = re.compile(r"nonce-[0-9a-zA-Z]+")
FIRST = "Answer "
"""Beginning of every text: the piece of a stream that contains it has the first content."""
WORD = "provider fell over"
"""Text in the message of every error."""
TEXT_FORMATS = protocols_of(Kind.TEXT)
FORMATS = protocols_of(Kind.TEXT, Kind.EMBEDDING, Kind.RERANKING)
PATHS = {
    "/chat/completions": "chat",
    "/responses": "responses",
    "/messages": "messages",
    ":generateContent": "native",
    ":streamGenerateContent": "native",
    "/converse": "converse",
    "/converse-stream": "converse",
    "/embeddings": "embeddings",
    ":embedContent": "native_embeddings",
    ":batchEmbedContents": "native_embeddings",
    "/rerank": "rerank",
    ":predict": "vertex_embeddings",
    "rerank/invoke": "bedrock_rerank",
    "/invoke": "bedrock_embeddings",
}
"""End of a path -> the format of its requests; the first that matches. Models that rank at Bedrock end so here."""


def words(nonce: str) -> tuple[str, ...]:
    """Return the text that answers a prompt with the nonce, in the pieces in which it is streamed."""
    return (FIRST, "to ", nonce[:9], nonce[9:], " 🌍", " — do", "ne.")


def text(nonce: str) -> str:
    return "".join(words(nonce))


@dataclass(frozen=True)
class Reply:
    format: str
    nonce: str
    streamed: bool
    pieces: list[bytes]  # the events of a stream; of another answer its one body
    content_at: int  # the piece that has the first content
    finish_at: int  # the piece that has the reason for the end
    end_at: int  # the end marker
    whole: Callable[[], bytes] = field(repr=False)  # the response as one body, also of a stream
    error: Callable[[int, str], Json] = field(repr=False)  # (status, message) -> body
    error_frame: Callable[[list[bytes]], bytes] = field(repr=False)  # (pieces sent before) -> error event

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)

    @property
    def content_type(self) -> str:
        if self.streamed and self.format == "converse":
            return "application/vnd.amazon.eventstream"
        return "text/event-stream; charset=utf-8" if self.streamed else "application/json"

    def refusal(self, status: int, message: str = f"the {WORD}") -> bytes:
        return compact(self.error(status, message)).encode()

    @property
    def limited(self) -> bytes:
        """Event that reports the rate limit, sent before all others."""
        error = self.error(429, "slow down")
        if self.format == "converse":
            return exception("throttlingException", "slow down")
        if self.format == "responses":
            flat = {"type": "error", "code": "rate_limit_exceeded", "message": "slow down", "param": None}
            return f"event: error\ndata: {compact(flat | {'sequence_number': 0})}\n\n".encode()
        return (b"event: error\n" if self.format == "messages" else b"") + f"data: {compact(error)}\n\n".encode()

    def failed(self, sent: int) -> bytes:
        """Return the event that reports a failure. `sent`: number of the stream's pieces sent before."""
        return self.error_frame(self.pieces[:sent])


def reply(path: str, body: bytes) -> Reply | None:
    """Return the right answer to a request; None for a path that no provider serves. The request is not checked."""
    request = json.loads(body) if body.startswith(b"{") else {}
    found = NONCE.findall(body.decode())
    nonce = found[-1] if found else ""
    if (image := image_answers.format_of(path, request)) is not None:
        return _image_reply(image, nonce, request)
    name = next((name for end, name in PATHS.items() if path.endswith(end)), None)
    if name is None:
        return None
    if name in TEXT_FORMATS:
        in_path = path.endswith((":streamGenerateContent", "/converse-stream"))
        streamed = in_path if name in IN_PATHS else request.get("stream") is True
        return _text_reply(name, nonce, request, path, streamed)
    return _unstreamed(name, nonce, VECTORS[name](request))


def _image_reply(name: str, nonce: str, request: Json) -> Reply:
    answer = image_answers.whole(name, nonce, request)
    if request.get("stream") is not True:
        return _unstreamed(name, nonce, answer)
    frames = image_answers.frames(name, nonce)

    def whole() -> bytes:
        return compact(answer).encode()

    finish = image_answers.COUNT if name == "ark_images" else len(frames) - 1
    return Reply(name, nonce, True, frames, 0, finish, len(frames) - 1, whole, ERRORS[name], ERROR_FRAMES[name])


def _unstreamed(name: str, nonce: str, value: Json) -> Reply:
    body = compact(value).encode()
    return Reply(name, nonce, False, [body], 0, 0, 0, lambda: body, ERRORS[name], lambda _: b"")


def _text_reply(name: str, nonce: str, body: Json, path: str, streamed: bool) -> Reply:
    model = body.get("model") or path.removesuffix("/converse").rpartition("/")[2].partition(":")[0]
    request, answer = (
        ScenarioRequest(model=model, stream=streamed, turns=(("user", nonce),)),
        Answer(words=words(nonce)),
    )
    received = ReceivedRequest("POST", path, {}, {}, json.dumps(body).encode())
    if not streamed:
        return _unstreamed(name, nonce, _whole(name, request, answer, body, received))
    frames = list(_frames(name, request, answer, body, received))
    first = next(place for place, frame in enumerate(frames) if FIRST.encode() in frame)
    finish, last = len(frames) - FINISHING[name], len(frames) - 1
    if name == "chat" and b'"usage":{' not in frames[-2]:
        finish += 1  # the request did not select usage

    def whole() -> bytes:
        return compact(_whole(name, request, answer, body, received)).encode()

    return Reply(name, nonce, True, frames, first, finish, last, whole, ERRORS[name], ERROR_FRAMES[name])


FINISHING = {"chat": 3, "responses": 1, "messages": 2, "native": 1, "converse": 2}
"""Number of last events, from the one with the reason for the end on."""
IN_PATHS = ("native", "converse")
"""Formats whose paths state whether the response is a stream."""


def _whole(name: str, request: ScenarioRequest, answer: Answer, body: Json, received: ReceivedRequest) -> Json:
    match name:
        case "chat":
            return Chat().whole(request, answer, received)
        case "responses":
            return responses_wire.whole(request, answer, body, f"resp_{answer_id(request)}")
        case "messages":
            return messages_wire.whole(request, answer, False)
        case "converse":
            return converse_wire.whole(request, answer, body)
        case _:
            return native_wire.whole(request, answer, shown=True, ids=True)


def _frames(
    name: str, request: ScenarioRequest, answer: Answer, body: Json, received: ReceivedRequest
) -> Iterator[bytes]:
    match name:
        case "chat":
            return Chat().frames(request, answer, received)
        case "responses":
            return responses_wire.frames(_whole(name, request, answer, body, received), answer)
        case "messages":
            return messages_wire.frames(request, answer, False)
        case "converse":
            return converse_wire.frames(request, answer, body)
        case _:
            return map(native_wire.frame, native_wire.chunks(request, answer, shown=True, ids=True))


def answer_id(request: ScenarioRequest) -> str:
    """Return the id of a response, of letters and digits."""
    return re.sub(r"[^0-9a-zA-Z]", "", request.turns[0][1]) or "1"


def _embeddings(request: Json) -> Json:
    inputs = request["input"] if isinstance(request["input"], list) else [request["input"]]
    vectors = [vector(each) for each in inputs]
    packed = request.get("encoding_format") == "base64"
    written = [base64.b64encode(each).decode() if packed else numbers(each) for each in vectors]
    items = [{"object": "embedding", "index": at, "embedding": each} for at, each in enumerate(written)]
    counted = sum(map(tokens, inputs))
    usage = {"prompt_tokens": counted, "total_tokens": counted}
    return {"object": "list", "data": items, "model": request["model"], "usage": usage}


def _native_embeddings(request: Json) -> Json:
    many = request.get("requests")
    texts = ["\n".join(part["text"] for part in each["content"]["parts"]) for each in many or [request]]
    items = [{"values": numbers(vector(each))} for each in texts]
    body: Json = {"embeddings": items} if many else {"embedding": items[0]}
    return body | {"usageMetadata": {"promptTokenCount": sum(map(tokens, texts))}}


def _rerank(request: Json) -> Json:
    texts = [each if isinstance(each, str) else each["text"] for each in request["documents"]]
    ranked = [{"index": at, "relevance_score": score(request["query"], each)} for at, each in enumerate(texts)]
    ranked = sorted(ranked, key=lambda each: -each["relevance_score"])[: request.get("top_n")]
    meta = {"api_version": {"version": "1"}, "billed_units": {"search_units": 1}}
    return {"id": "07734bd2-2473-4f07-94e1-0d9f0e6843cf", "results": ranked, "meta": meta}


def _vertex_embeddings(request: Json) -> Json:
    texts = [each["content"] for each in request["instances"]]
    counted = [{"values": numbers(vector(each)), "statistics": {"token_count": tokens(each)}} for each in texts]
    return {"predictions": [{"embeddings": each} for each in counted]}


def _bedrock_embeddings(request: Json) -> Json:
    return {"id": "1", "embeddings": {"float": [numbers(vector(each)) for each in request["texts"]]}}


VECTORS: dict[str, Callable[[Json], Json]] = {
    "embeddings": _embeddings,
    "native_embeddings": _native_embeddings,
    "vertex_embeddings": _vertex_embeddings,
    "bedrock_embeddings": _bedrock_embeddings,
    "rerank": _rerank,
    "bedrock_rerank": _rerank,
}


# --- errors


def _openai_error(status: int, message: str) -> Json:
    return Chat().error(status, message, None, None)


ERRORS: dict[str, Callable[[int, str], Json]] = {
    "chat": _openai_error,
    "responses": _openai_error,
    "messages": messages_wire.error,
    "native": native_wire.error,
    "converse": converse_wire.error,
    "embeddings": _openai_error,
    "native_embeddings": native_wire.error,
    "rerank": lambda status, message: {"id": "r-1", "message": message},
    "vertex_embeddings": native_wire.error,
    "bedrock_embeddings": lambda status, message: {"message": message},
    "bedrock_rerank": lambda status, message: {"message": message},
    "images": _openai_error,
    "umg_images": image_answers.umg_error,
    "native_images": native_wire.error,
    "ark_images": image_answers.ark_error,
    "dashscope_images": image_answers.dashscope_error,
}
ERROR_FRAMES: dict[str, Callable[[list[bytes]], bytes]] = {
    "chat": lambda _: f"data: {compact(_openai_error(500, f'the {WORD}'))}\n\n".encode(),
    "responses": lambda sent: responses_wire.failed(f"the {WORD}", sent, bare=not sent),
    "messages": lambda _: messages_wire.event(messages_wire.error(529, f"the {WORD}")),
    "native": lambda _: native_wire.frame(native_wire.error(503, f"the {WORD}")),
    "converse": lambda _: converse_wire.error_frame(f"the {WORD}"),
    "images": lambda _: image_answers.error_frame(_openai_error(500, f"the {WORD}")),
    "umg_images": lambda _: image_answers.error_frame(image_answers.umg_error(500, f"the {WORD}")),
    "ark_images": lambda _: image_answers.error_frame(image_answers.ark_error(500, f"the {WORD}")),
}
