"""A caller of the running service over plain HTTP, and the four generation formats for this caller."""

import copy
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tests.support.callers.api import ApiClient, Reply

QUESTION = "Tell me of Paris"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
"""A complete image of one pixel."""
PDF = "JVBERi0xLjQKMSAwIG9iago8PC9UeXBlL0NhdGFsb2cvUGFnZXMgMiAwIFI+PgplbmRvYmoKMiAwIG9iago8PC9UeXBlL1BhZ2VzL0tpZHNbMyAwIFJdL0NvdW50IDE+PgplbmRvYmoKMyAwIG9iago8PC9UeXBlL1BhZ2UvUGFyZW50IDIgMCBSPj4KZW5kb2JqCnRyYWlsZXI8PC9Sb290IDEgMCBSPj4KJSVFT0YK"
WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}

# Values of a wrong type, by the type in a table.
NO_NUMBERS = ("1", True, [1], {"value": 1})
NO_INTEGERS = ("1", 1.5, True, [1])
NO_STRINGS = (5, True, ["x"], {"value": "x"})
NO_BOOLEANS = ("true", 1, [True], {})
NO_ARRAYS = ("x", 5, True, {"0": "x"})
NO_OBJECTS = ("x", 5, True, ["x"])

# Fields that differ between two answers to the same request.
PASSING = frozenset({"id", "created", "created_at", "completed_at", "createTime", "responseId", "item_id"})


@dataclass(frozen=True)
class Frame:
    """One event of a stream."""

    event: str  # "" without an `event:` line
    data: Any  # decoded; a string where it is no JSON


def frames_of(reply: Reply) -> list[Frame]:
    """Return the events of a reply, which must be a stream."""
    assert reply.status == 200, reply.text
    assert reply.headers["content-type"].partition(";")[0] == "text/event-stream"
    frames = []
    for block in re.split(r"\r?\n\r?\n", reply.text):
        lines = [line for line in block.splitlines() if line and not line.startswith(":")]
        if not lines:
            continue
        members = dict(line.split(": ", 1) for line in lines)
        assert members.keys() <= {"event", "data"}, block
        data = members["data"]
        frames.append(Frame(members.get("event", ""), json.loads(data) if data[0] == "{" else data))
    return frames


def lasting(value: Any) -> Any:
    """Return a response without the fields that differ between answers."""
    if isinstance(value, dict):
        return {name: lasting(each) for name, each in value.items() if name not in PASSING}
    return [lasting(each) for each in value] if isinstance(value, list) else value


def placed(body: dict[str, Any], path: str, value: object) -> None:
    """Set a value at a dotted path of a body."""
    *heads, last = path.split(".")
    for head in heads:
        body = body.setdefault(head, {})
    body[last] = value


class Face:
    """One of the formats, for its callers."""

    name: ClassVar[str]
    path = ""
    model = ""
    question_field = ""

    def __init__(self, gateway: ApiClient) -> None:
        self.gateway = gateway

    def prompt(self, text: str) -> Any:
        """Return the value of `question_field` for a text."""
        return [{"role": "user", "content": text}]

    def body(self, fields: Mapping[str, object] | None = None, *, text: str = QUESTION, model: str = "") -> Any:
        made: dict[str, Any] = {"model": model or self.model, self.question_field: self.prompt(text)}
        for path, value in (fields or {}).items():
            placed(made, path, copy.deepcopy(value))
        return made

    async def post(
        self,
        fields: Mapping[str, object] | None = None,
        *,
        text: str = QUESTION,
        model: str = "",
        key: str | None = None,
    ) -> Reply:
        headers = None if key is None else {"authorization": f"Bearer {key}"}
        return await self.gateway.post(self.path_of(model), self.body(fields, text=text, model=model), headers)

    def path_of(self, model: str) -> str:
        """Return the path of a call for a model; "" is the usual one."""
        return self.path

    async def answer(self, fields: Mapping[str, object] | None = None, **options: Any) -> Any:
        """Return the body of a response, which must be a 200. `options`: those of `post`."""
        reply = await self.post(fields, **options)
        assert reply.status == 200, reply.text
        return reply.body

    async def stream(self, fields: Mapping[str, object] | None = None, **options: Any) -> list[Frame]:
        """Return the events of a streamed answer, which must be a 200. `options`: those of `post`."""
        return frames_of(await self.post({**(fields or {}), "stream": True}, **options))

    def error(self, reply: Reply, status: int) -> Any:
        """Return the error of a reply, in the format's own body."""
        raise NotImplementedError

    def names(self, error: Any, field: str) -> bool:
        """Return whether an error names a field."""
        return field in error["message"]

    async def takes(self, field: str, *values: object, **options: Any) -> None:
        """Check that each value is accepted in the field."""
        for value in values:
            reply = await self.post({**options.get("fields", {}), field: value}, **_rest(options))
            assert reply.status == 200, f"{field} = {value!r}: {reply.text}"

    async def refuses(self, field: str, *values: object, named: str = "", **options: Any) -> None:
        """Check that each value is a 400 that names the field."""
        for value in values:
            reply = await self.post({**options.get("fields", {}), field: value}, **_rest(options))
            assert reply.status == 400, f"{field} = {value!r}: {reply.status} {reply.text}"
            error = self.error(reply, 400)
            assert self.names(error, named or field), f"{field} = {value!r}: {reply.text}"

    async def misses(self, field: str) -> None:
        """Check that the field is required, and that null counts as absent."""
        for body in ({name: value for name, value in self.body().items() if name != field}, self.body({field: None})):
            reply = await self.gateway.post(self.path, body)
            assert reply.status == 400, reply.text
            assert self.names(self.error(reply, 400), field), reply.text

    async def ignores_null(self, *fields: str, **options: Any) -> None:
        """Check that an explicit null is the same as an absent field."""
        usual = lasting(await self.answer(options.get("fields"), **_rest(options)))
        for field in fields:
            reply = await self.answer({**options.get("fields", {}), field: None}, **_rest(options))
            assert lasting(reply) == usual, field

    def text(self, body: Any) -> str:
        """Return the text of a response."""
        raise NotImplementedError

    def streamed_text(self, frames: Iterable[Frame]) -> str:
        """Return the text of a stream."""
        raise NotImplementedError


def _rest(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name != "fields"}


class Chat(Face):
    name = "chat"
    path, model, question_field = "/v1/chat/completions", "famO-5", "messages"

    def error(self, reply: Reply, status: int) -> Any:
        return openai_error(reply, status)

    def names(self, error: Any, field: str) -> bool:
        return error["param"] == field and field in error["message"]

    def text(self, body: Any) -> str:
        return str(body["choices"][0]["message"]["content"])

    def streamed_text(self, frames: Iterable[Frame]) -> str:
        return "".join(delta.get("content") or "" for delta in self.deltas(frames))

    def streamed_reasoning(self, frames: Iterable[Frame]) -> str:
        return "".join(delta.get("reasoning_content") or "" for delta in self.deltas(frames))

    def deltas(self, frames: Iterable[Frame]) -> list[Any]:
        return [choice["delta"] for frame in frames if isinstance(frame.data, dict) for choice in frame.data["choices"]]


class Responses(Face):
    name = "responses"
    path, model, question_field = "/v1/responses", "famO-5", "input"

    def error(self, reply: Reply, status: int) -> Any:
        return openai_error(reply, status)

    def names(self, error: Any, field: str) -> bool:
        return error["param"] == field and field in error["message"]

    def text(self, body: Any) -> str:
        return "".join(part["text"] for item in self.items(body, "message") for part in item["content"])

    def items(self, body: Any, kind: str) -> list[Any]:
        return [item for item in body["output"] if item["type"] == kind]

    def streamed_text(self, frames: Iterable[Frame]) -> str:
        return "".join(frame.data["delta"] for frame in frames if frame.event == "response.output_text.delta")


class Messages(Face):
    name = "messages"
    path, model, question_field = "/v1/messages", "famC-sonnet-4-5", "messages"

    def body(self, fields: Mapping[str, object] | None = None, *, text: str = QUESTION, model: str = "") -> Any:
        return super().body({"max_tokens": 2000, **(fields or {})}, text=text, model=model)

    def error(self, reply: Reply, status: int) -> Any:
        assert reply.status == status, reply.text
        body = reply.body
        assert body["type"] == "error"
        assert body["error"].keys() >= {"type", "message"}
        return body["error"]

    def text(self, body: Any) -> str:
        return "".join(block["text"] for block in self.blocks(body, "text"))

    def blocks(self, body: Any, kind: str) -> list[Any]:
        return [block for block in body["content"] if block["type"] == kind]

    def streamed_text(self, frames: Iterable[Frame]) -> str:
        return "".join(delta["text"] for delta in self.deltas(frames) if delta["type"] == "text_delta")

    def streamed_thinking(self, frames: Iterable[Frame]) -> str:
        return "".join(delta["thinking"] for delta in self.deltas(frames) if delta["type"] == "thinking_delta")

    def deltas(self, frames: Iterable[Frame]) -> list[Any]:
        return [frame.data["delta"] for frame in frames if frame.event == "content_block_delta"]


class Native(Face):
    name = "native"
    model, question_field = "famG-2.5-pro", "contents"
    root = "/v1beta"

    def prompt(self, text: str) -> Any:
        return [{"role": "user", "parts": [{"text": text}]}]

    def body(self, fields: Mapping[str, object] | None = None, *, text: str = QUESTION, model: str = "") -> Any:
        made = super().body(fields, text=text, model=model)
        del made["model"]
        return made

    @property
    def path(self) -> str:  # type: ignore[override]
        return self.of(self.model)

    def of(self, model: str, action: str = "generateContent") -> str:
        return f"{self.root}/models/{model}:{action}"

    def path_of(self, model: str) -> str:
        return self.of(model or self.model)

    async def stream(self, fields: Mapping[str, object] | None = None, **options: Any) -> list[Frame]:
        return frames_of(await NativeStream(self.gateway).post(fields, **{"model": self.model, **options}))

    def error(self, reply: Reply, status: int) -> Any:
        assert reply.status == status, reply.text
        error = reply.body["error"]
        assert error["code"] == status
        assert error.keys() >= {"code", "message", "status"}
        if status == 400:
            assert error["status"] == "INVALID_ARGUMENT"
        return error

    def parts(self, body: Any) -> list[Any]:
        return list(body["candidates"][0]["content"]["parts"])

    def text(self, body: Any) -> str:
        return "".join(part["text"] for part in self.parts(body) if "text" in part and not part.get("thought"))

    def thoughts(self, body: Any) -> str:
        return "".join(part["text"] for part in self.parts(body) if part.get("thought"))

    def streamed_text(self, frames: Iterable[Frame]) -> str:
        return "".join(self.text(frame.data) for frame in frames)

    def streamed_thoughts(self, frames: Iterable[Frame]) -> str:
        return "".join(self.thoughts(frame.data) for frame in frames)


class NativeStream(Native):
    """Caller of `:streamGenerateContent`."""

    def path_of(self, model: str) -> str:
        return self.of(model, "streamGenerateContent") + "?alt=sse"


def openai_error(reply: Reply, status: int) -> Any:
    """Return the error in the body that chat and responses share (readings, 3)."""
    assert reply.status == status, reply.text
    error = reply.body["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    return error
