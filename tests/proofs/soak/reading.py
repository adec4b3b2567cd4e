"""Decoding of answers by a caller, without the gateway's codecs: the text, whether it is complete, the error."""

import json
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass
class ReceivedAnswer:
    """Decoded answer. `ended`: it has the format's end of a complete answer; `error`: the error's message."""

    text: str = ""
    finish: str = ""
    ended: bool = False
    error: str = ""

    @property
    def is_whole(self) -> bool:
        return self.ended and bool(self.finish) and not self.error

    @property
    def looks_whole(self) -> bool:
        """Whether a client would take the response for a complete one, error or not."""
        return self.ended and bool(self.finish)


class UnreadableError(Exception):
    """Answer that does not conform to its format."""


def require(holds: object, message: str) -> None:
    """Raise UnreadableError unless the condition holds."""
    if not holds:
        raise UnreadableError(message)


# --- streams


def events(stream: bytes) -> Iterator[tuple[str, str]]:
    """Yield (name, data) of each event of a stream, which ends with an empty line."""
    text = stream.decode().replace("\r\n", "\n")
    require(text.endswith("\n\n"), f"the stream ends inside an event: {text[-200:]!r}")
    for block in text.split("\n\n"):
        name, data = "", list[str]()
        for line in block.split("\n"):
            if line.startswith("event:"):
                name = line[6:].strip()
            elif line.startswith("data:"):
                data.append(line[5:].strip())
        if data:
            yield name, "\n".join(data)


def chat_stream(stream: bytes) -> ReceivedAnswer:
    received = ReceivedAnswer()
    for _, data in events(stream):
        require(not received.ended, "an event after [DONE]")
        require(not received.error, "an event after the error")
        if data == "[DONE]":
            received.ended = True
            continue
        chunk = json.loads(data)
        if "error" in chunk:
            received.error = chat_error(chunk)
            continue
        for choice in chunk["choices"]:
            received.text += choice["delta"].get("content") or ""
            received.finish = choice.get("finish_reason") or received.finish
    return received


def messages_stream(stream: bytes) -> ReceivedAnswer:
    received, started, open_block = ReceivedAnswer(), False, False
    for name, data in events(stream):
        event = json.loads(data)
        require(name == event["type"], f"event {name} with data of {event['type']}")
        require(not received.ended and not received.error, "an event after the end")
        match name:
            case "message_start":
                require(not started, "message_start twice")
                started = True
            case "content_block_start":
                require(started and not open_block, "a block in a block")
                open_block = True
                received.text += event["content_block"].get("text", "")
            case "content_block_delta":
                require(open_block, "a delta outside of a block")
                received.text += event["delta"].get("text", "")
            case "content_block_stop":
                require(open_block, "the end of no block")
                open_block = False
            case "message_delta":
                received.finish = event["delta"].get("stop_reason") or received.finish
            case "message_stop":
                require(not open_block, "message_stop in a block")
                received.ended = True
            case "error":
                received.error = messages_error(event)
    return received


def responses_stream(stream: bytes) -> ReceivedAnswer:
    received, last_number, failed = ReceivedAnswer(), -1, ""
    for name, data in events(stream):
        event = json.loads(data)
        require(name == event["type"], f"event {name} with data of {event['type']}")
        require(not received.ended and not received.error, "an event after the end")
        require(not failed or name == "error", "a response that failed without an error behind it")
        require(event.get("sequence_number", last_number + 1) > last_number, "sequence numbers that do not rise")
        last_number = event.get("sequence_number", last_number)
        match name:
            case "response.output_text.delta":
                received.text += event["delta"]
            case "response.completed" | "response.incomplete":
                require(received.text == responses_text(event["response"]), "deltas that are not the final text")
                received.finish, received.ended = event["response"]["status"], True
            case "response.failed":
                failed = event["response"]["error"]["message"]
                require(event["response"]["status"] == "failed" and failed, "a response that failed without a reason")
            case "error":
                received.error = event.get("message") or event["error"]["message"]
                require(received.error, "an error without a message")
                require(failed in ("", received.error), "two reasons for one failure")
    require(not failed or received.error, "a response that failed without an error behind it")
    return received


def native_stream(stream: bytes) -> ReceivedAnswer:
    received = ReceivedAnswer()
    for _, data in events(stream):
        chunk = json.loads(data)
        require(not received.error, "an event after the error")
        if "error" in chunk:
            received.error = native_error(chunk)
            continue
        _native_chunk(chunk, received)
    received.ended = bool(received.finish)
    return received


def cohere_stream(stream: bytes) -> ReceivedAnswer:
    received, open_block = ReceivedAnswer(), False
    for name, data in events(stream):
        event = json.loads(data)
        require(name == event["type"], f"event {name} with data of {event['type']}")
        require(not received.ended and not received.error, "an event after the end")
        match name:
            case "content-start":
                require(not open_block, "a block in a block")
                open_block = True
                received.text += event["delta"]["message"]["content"]["text"]
            case "content-delta":
                require(open_block, "a delta outside of a block")
                received.text += event["delta"]["message"]["content"]["text"]
            case "content-end":
                require(open_block, "the end of no block")
                open_block = False
            case "message-end" if event["delta"]["finish_reason"] == "ERROR":
                received.error = event["delta"]["error"]
                require(received.error, "an error without a message")
            case "message-end":
                require(not open_block, "message-end in a block")
                received.finish, received.ended = event["delta"]["finish_reason"], True
    return received


def ollama_stream(stream: bytes) -> ReceivedAnswer:
    received, text = ReceivedAnswer(), stream.decode()
    require(text.endswith("\n"), f"the stream ends inside a line: {text[-200:]!r}")
    for line in text.splitlines():  # as the client in Python splits them
        require(not received.ended and not received.error, "a line after the end")
        body = json.loads(line)
        if "error" in body:
            received.error = ollama_error(body)
            continue
        piece = ollama_answer(body)
        received.text += piece.text
        received.finish, received.ended = piece.finish, piece.ended
    return received


# --- whole responses


def chat_answer(body: Json) -> ReceivedAnswer:
    (choice,) = body["choices"]
    return ReceivedAnswer(choice["message"]["content"], choice["finish_reason"], True)


def messages_answer(body: Json) -> ReceivedAnswer:
    return ReceivedAnswer("".join(block.get("text", "") for block in body["content"]), body["stop_reason"], True)


def responses_answer(body: Json) -> ReceivedAnswer:
    return ReceivedAnswer(responses_text(body), body["status"], True)


def responses_text(response: Json) -> str:
    parts = [part for item in response["output"] if item["type"] == "message" for part in item["content"]]
    return "".join(part.get("text", "") for part in parts)


def cohere_answer(body: Json) -> ReceivedAnswer:
    parts = body["message"]["content"]
    return ReceivedAnswer("".join(part.get("text", "") for part in parts), body["finish_reason"], True)


def ollama_answer(body: Json) -> ReceivedAnswer:
    text = body["message"]["content"] if "message" in body else body["response"]
    return ReceivedAnswer(text, body.get("done_reason", ""), body["done"])


def native_answer(body: Json) -> ReceivedAnswer:
    received = ReceivedAnswer(ended=True)
    _native_chunk(body, received)
    return received


def _native_chunk(chunk: Json, received: ReceivedAnswer) -> None:
    for candidate in chunk.get("candidates") or ():
        for part in candidate.get("content", {}).get("parts") or ():
            received.text += part.get("text", "")
        received.finish = candidate.get("finishReason") or received.finish


def embeddings_answer(body: Json) -> ReceivedAnswer:
    require([item["index"] for item in body["data"]] == list(range(len(body["data"]))), "vectors out of order")
    return vectors([item["embedding"] for item in body["data"]])


def native_embeddings_answer(body: Json) -> ReceivedAnswer:
    return vectors([item["values"] for item in body["embeddings"]])


def rerank_answer(body: Json) -> ReceivedAnswer:
    return ranking([(each["index"], each["relevance_score"]) for each in body["results"]])


def vectors(of: Iterable[list[float]]) -> ReceivedAnswer:
    """Return vectors as text, as `questions.right` does: exact to the last bit of a float32, however the digits are
    written.
    """
    return packed_vectors(struct.pack(f"<{len(each)}f", *each) for each in of)


def packed_vectors(of: Iterable[bytes]) -> ReceivedAnswer:
    """Return vectors of packed float32 as text."""
    return ReceivedAnswer(" ".join(each.hex() for each in of), "stop", True)


def ranking(of: list[tuple[int, float]]) -> ReceivedAnswer:
    return ReceivedAnswer(" ".join(f"{index}:{score:.3f}" for index, score in of), "stop", True)


# --- errors: the message of a body in the format


def chat_error(body: Json) -> str:
    require(set(body) == {"error"}, f"no error of the format: {body}")
    require(set(body["error"]) >= {"message", "type", "param", "code"}, f"no error of the format: {body}")
    return _message_of(body["error"])


def messages_error(body: Json) -> str:
    require(body["type"] == "error" and set(body["error"]) >= {"type", "message"}, f"no error of the format: {body}")
    return _message_of(body["error"])


def native_error(body: Json) -> str:
    require(set(body["error"]) >= {"code", "message", "status"}, f"no error of the format: {body}")
    return _message_of(body["error"])


def cohere_error(body: Json) -> str:
    require(set(body) == {"message", "error"}, f"no error of the format: {body}")
    require(chat_error({"error": body["error"]}) == body["message"], f"two messages: {body}")
    return _message_of(body)


def ollama_error(body: Json) -> str:
    require(set(body) == {"error"}, f"no error of the format: {body}")
    return _message_of({"message": body["error"]})


def _message_of(error: Json) -> str:
    require(isinstance(error["message"], str) and error["message"], f"an error without a message: {error}")
    message: str = error["message"]
    return message


@dataclass(frozen=True)
class Reader:
    """Decoders of a format's clients."""

    whole: Callable[[Json], ReceivedAnswer]
    error: Callable[[Json], str]
    stream: Callable[[bytes], ReceivedAnswer] | None = None
    stream_type: str = "text/event-stream"


READERS = {
    "chat": Reader(chat_answer, chat_error, chat_stream),
    "responses": Reader(responses_answer, chat_error, responses_stream),
    "messages": Reader(messages_answer, messages_error, messages_stream),
    "native": Reader(native_answer, native_error, native_stream),
    "ollama_chat": Reader(ollama_answer, ollama_error, ollama_stream, "application/x-ndjson"),
    "ollama_generate": Reader(ollama_answer, ollama_error, ollama_stream, "application/x-ndjson"),
    "cohere": Reader(cohere_answer, cohere_error, cohere_stream),
    "embeddings": Reader(embeddings_answer, chat_error),
    "native_embeddings": Reader(native_embeddings_answer, native_error),
    "rerank": Reader(rerank_answer, chat_error),
}
