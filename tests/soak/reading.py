"""Answers as a caller hears them, read without the gateway's codecs: the text, whether it is whole, the error."""

import json
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass
class Heard:
    """What one answer said. `ended` is what the format ends a whole answer with; `error` is the error's message."""

    text: str = ""
    finish: str = ""
    ended: bool = False
    error: str = ""

    @property
    def is_whole(self) -> bool:
        return self.ended and bool(self.finish) and not self.error

    @property
    def looks_whole(self) -> bool:
        """Whether a client would take it for a whole answer, error or not."""
        return self.ended and bool(self.finish)


class UnreadableError(Exception):
    """An answer that is not of its format."""


def demand(holds: object, what: str) -> None:
    """Raises UnreadableError where something does not hold."""
    if not holds:
        raise UnreadableError(what)


# --- streams


def events(stream: bytes) -> Iterator[tuple[str, str]]:
    """(name, data) of each event of a stream, which ends with an empty line."""
    text = stream.decode().replace("\r\n", "\n")
    demand(text.endswith("\n\n"), f"the stream ends inside an event: {text[-200:]!r}")
    for block in text.split("\n\n"):
        name, data = "", list[str]()
        for line in block.split("\n"):
            if line.startswith("event:"):
                name = line[6:].strip()
            elif line.startswith("data:"):
                data.append(line[5:].strip())
        if data:
            yield name, "\n".join(data)


def chat_stream(stream: bytes) -> Heard:
    heard = Heard()
    for _, data in events(stream):
        demand(not heard.ended, "an event after [DONE]")
        demand(not heard.error, "an event after the error")
        if data == "[DONE]":
            heard.ended = True
            continue
        chunk = json.loads(data)
        if "error" in chunk:
            heard.error = chat_error(chunk)
            continue
        for choice in chunk["choices"]:
            heard.text += choice["delta"].get("content") or ""
            heard.finish = choice.get("finish_reason") or heard.finish
    return heard


def messages_stream(stream: bytes) -> Heard:
    heard, started, open_block = Heard(), False, False
    for name, data in events(stream):
        event = json.loads(data)
        demand(name == event["type"], f"event {name} with data of {event['type']}")
        demand(not heard.ended and not heard.error, "an event after the end")
        match name:
            case "message_start":
                demand(not started, "message_start twice")
                started = True
            case "content_block_start":
                demand(started and not open_block, "a block in a block")
                open_block = True
                heard.text += event["content_block"].get("text", "")
            case "content_block_delta":
                demand(open_block, "a delta outside of a block")
                heard.text += event["delta"].get("text", "")
            case "content_block_stop":
                demand(open_block, "the end of no block")
                open_block = False
            case "message_delta":
                heard.finish = event["delta"].get("stop_reason") or heard.finish
            case "message_stop":
                demand(not open_block, "message_stop in a block")
                heard.ended = True
            case "error":
                heard.error = messages_error(event)
    return heard


def responses_stream(stream: bytes) -> Heard:
    heard, told, failed = Heard(), -1, ""
    for name, data in events(stream):
        event = json.loads(data)
        demand(name == event["type"], f"event {name} with data of {event['type']}")
        demand(not heard.ended and not heard.error, "an event after the end")
        demand(not failed or name == "error", "a response that failed without an error behind it")
        demand(event.get("sequence_number", told + 1) > told, "sequence numbers that do not rise")
        told = event.get("sequence_number", told)
        match name:
            case "response.output_text.delta":
                heard.text += event["delta"]
            case "response.completed" | "response.incomplete":
                demand(heard.text == responses_text(event["response"]), "deltas that are not the final text")
                heard.finish, heard.ended = event["response"]["status"], True
            case "response.failed":
                failed = event["response"]["error"]["message"]
                demand(event["response"]["status"] == "failed" and failed, "a response that failed without a reason")
            case "error":
                heard.error = event.get("message") or event["error"]["message"]
                demand(heard.error, "an error without a message")
                demand(failed in ("", heard.error), "two reasons for one failure")
    demand(not failed or heard.error, "a response that failed without an error behind it")
    return heard


def native_stream(stream: bytes) -> Heard:
    heard = Heard()
    for _, data in events(stream):
        chunk = json.loads(data)
        demand(not heard.error, "an event after the error")
        if "error" in chunk:
            heard.error = native_error(chunk)
            continue
        _native_chunk(chunk, heard)
    heard.ended = bool(heard.finish)
    return heard


# --- whole answers


def chat_answer(body: Json) -> Heard:
    (choice,) = body["choices"]
    return Heard(choice["message"]["content"], choice["finish_reason"], True)


def messages_answer(body: Json) -> Heard:
    return Heard("".join(block.get("text", "") for block in body["content"]), body["stop_reason"], True)


def responses_answer(body: Json) -> Heard:
    return Heard(responses_text(body), body["status"], True)


def responses_text(response: Json) -> str:
    parts = [part for item in response["output"] if item["type"] == "message" for part in item["content"]]
    return "".join(part.get("text", "") for part in parts)


def native_answer(body: Json) -> Heard:
    heard = Heard(ended=True)
    _native_chunk(body, heard)
    return heard


def _native_chunk(chunk: Json, heard: Heard) -> None:
    for candidate in chunk.get("candidates") or ():
        for part in candidate.get("content", {}).get("parts") or ():
            heard.text += part.get("text", "")
        heard.finish = candidate.get("finishReason") or heard.finish


def embeddings_answer(body: Json) -> Heard:
    demand([item["index"] for item in body["data"]] == list(range(len(body["data"]))), "vectors out of order")
    return vectors([item["embedding"] for item in body["data"]])


def native_embeddings_answer(body: Json) -> Heard:
    return vectors([item["values"] for item in body["embeddings"]])


def rerank_answer(body: Json) -> Heard:
    return ranking([(each["index"], each["relevance_score"]) for each in body["results"]])


def vectors(of: Iterable[list[float]]) -> Heard:
    """Vectors as text, as `questions.right` has them: to the last bit of a float32, whoever wrote the digits."""
    return packed_vectors(struct.pack(f"<{len(each)}f", *each) for each in of)


def packed_vectors(of: Iterable[bytes]) -> Heard:
    """The same of packed float32."""
    return Heard(" ".join(each.hex() for each in of), "stop", True)


def ranking(of: list[tuple[int, float]]) -> Heard:
    """A ranking as text, likewise."""
    return Heard(" ".join(f"{index}:{score:.3f}" for index, score in of), "stop", True)


# --- errors: the message, of a body that is the format's own


def chat_error(body: Json) -> str:
    demand(set(body) == {"error"}, f"no error of the format: {body}")
    demand(set(body["error"]) >= {"message", "type", "param", "code"}, f"no error of the format: {body}")
    return _said(body["error"])


def messages_error(body: Json) -> str:
    demand(body["type"] == "error" and set(body["error"]) >= {"type", "message"}, f"no error of the format: {body}")
    return _said(body["error"])


def native_error(body: Json) -> str:
    demand(set(body["error"]) >= {"code", "message", "status"}, f"no error of the format: {body}")
    return _said(body["error"])


def _said(error: Json) -> str:
    demand(isinstance(error["message"], str) and error["message"], f"an error without a message: {error}")
    message: str = error["message"]
    return message


@dataclass(frozen=True)
class Reader:
    """How the clients of a format read it."""

    whole: Callable[[Json], Heard]
    error: Callable[[Json], str]
    stream: Callable[[bytes], Heard] | None = None


READERS = {
    "chat": Reader(chat_answer, chat_error, chat_stream),
    "responses": Reader(responses_answer, chat_error, responses_stream),
    "messages": Reader(messages_answer, messages_error, messages_stream),
    "native": Reader(native_answer, native_error, native_stream),
    "embeddings": Reader(embeddings_answer, chat_error),
    "native_embeddings": Reader(native_embeddings_answer, native_error),
    "rerank": Reader(rerank_answer, chat_error),
}
