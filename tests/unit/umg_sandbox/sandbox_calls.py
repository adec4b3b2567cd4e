"""Requests to the sandbox, and its responses."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.stream_aggregator import StreamAggregator
from umg_grpc.wire.facts_beside_request import NO_NOTES, RequestNotes
from umg_sandbox import SandboxText

MODEL, IMAGE_MODEL = "famO-5", "famG-2.5-flash-image"


def count(text: str) -> int:
    """Count four characters as a token."""
    return -(-len(text) // 4)


def sandbox(**options: float | Callable[[], float] | Callable[[], str]) -> SandboxText:
    given: dict[str, object] = {"owner": lambda: "me", "tokens_per_second": 0, **options}
    return SandboxText(count=count, **given)


def text(words: str) -> pb.Part:
    return pb.Part(text=pb.TextPart(text=words))


def user(*parts: str | pb.Part) -> pb.Message:
    return pb.Message(role=pb.ROLE_USER, parts=[text(part) if isinstance(part, str) else part for part in parts])


def assistant(*parts: str | pb.Part) -> pb.Message:
    return pb.Message(role=pb.ROLE_ASSISTANT, parts=[text(part) if isinstance(part, str) else part for part in parts])


def called(name: str, call_id: str = "call_1", arguments: str = "{}") -> pb.Part:
    return pb.Part(tool_call=pb.ToolCall(call_id=call_id, name=name, arguments_json=arguments))


def result(words: str, call_id: str = "call_1") -> pb.Part:
    return pb.Part(tool_result=pb.ToolResult(call_id=call_id, parts=[text(words)]))


def function(name: str, schema: str = "", native: bool = False) -> pb.Tool:
    return pb.Tool(function=pb.FunctionTool(name=name, parameters_json=schema, native_schema=native))


def make_request(*messages: str | pb.Message, source: str = "", **fields: object) -> pb.GenerateRequest:
    request = pb.GenerateRequest(
        model=MODEL, messages=[user(each) if isinstance(each, str) else each for each in messages], **fields
    )
    if source:
        request.source.format = source
    return request


@dataclass
class SandboxAnswer:
    response: pb.GenerateResponse
    messages: list[pb.StreamGenerateResponse] = field(default_factory=list)
    dropped: str = ""

    @property
    def parts(self) -> list[pb.Part]:
        return list(self.response.candidates[0].message.parts)

    @property
    def text(self) -> str:
        return "".join(part.text.text for part in self.parts)

    @property
    def calls(self) -> list[pb.ToolCall]:
        return [part.tool_call for part in self.parts if part.HasField("tool_call")]

    @property
    def reasoning(self) -> pb.Part:
        [part] = [part for part in self.parts if part.HasField("reasoning")]
        return part

    @property
    def kinds(self) -> list[str | None]:
        return [part.WhichOneof("kind") for part in self.parts]

    @property
    def finish(self) -> str:
        return pb.FinishReason.Name(self.response.candidates[0].finish_reason).removeprefix("FINISH_REASON_")

    @property
    def usage(self) -> pb.Usage:
        return self.response.usage


def model_for(request: pb.GenerateRequest) -> str:
    return IMAGE_MODEL if "image" in request.output_modalities else MODEL


def generate(
    request: pb.GenerateRequest, model: str = "", upstream: SandboxText | None = None, notes: RequestNotes = NO_NOTES
) -> SandboxAnswer:
    """Return the response to a request that is not streamed."""
    upstream = upstream or sandbox()
    call = upstream.prepare(request, model or model_for(request), notes, stream=False)
    complete = asyncio.run(call.send(10))
    return SandboxAnswer(complete, dropped=call.report.header())


def stream(request: pb.GenerateRequest, model: str = "", upstream: SandboxText | None = None) -> SandboxAnswer:
    call = (upstream or sandbox()).prepare(request, model or model_for(request), stream=True)

    async def read_stream() -> list[pb.StreamGenerateResponse]:
        return [message async for message in call.stream(10)]

    return aggregate(asyncio.run(read_stream()), call.report.header())


def aggregate(messages: list[pb.StreamGenerateResponse], dropped: str = "") -> SandboxAnswer:
    """Return the aggregate of a stream. Fails unless its events are in the order that `GenerateEvent` states."""
    check_order(messages)
    aggregator = StreamAggregator()
    for message in messages:
        aggregator.feed(message)
    return SandboxAnswer(aggregator.response(), messages, dropped)


def check_order(messages: list[pb.StreamGenerateResponse]) -> None:
    events = [event for message in messages for event in message.events]
    kinds = [event.WhichOneof("kind") for event in events]
    assert kinds.index("started") == 0
    assert kinds.count("started") == 1
    parts, open_parts, finished = dict[int, int](), set[tuple[int, int]](), set[int]()
    for event, kind in zip(events, kinds, strict=True):
        index, place = event.candidate_index, (event.candidate_index, event.part_index)
        if kind == "part_started":
            assert event.part_index == parts.get(index, 0), "parts are numbered as they start"
            parts[index] = event.part_index + 1
            open_parts.add(place)
        elif kind == "part_ended":
            open_parts.remove(place)
        elif kind == "finished":
            assert index not in finished, "a candidate finishes once"
            assert index not in {owner for owner, _ in open_parts}, "parts end before it"
            finished.add(index)
        elif kind not in ("started", "usage"):
            assert place in open_parts, f"{kind} of a part that is not open"
    assert not open_parts, "every part is ended"


def refused(request: pb.GenerateRequest, model: str = "", notes: RequestNotes = NO_NOTES) -> UmgError:
    """Return the error of a request that is rejected before it is sent."""
    try:
        sandbox().prepare(request, model or model_for(request), notes, stream=False)
    except UmgError as error:
        return error
    raise AssertionError("it was accepted")


def deltas(messages: Iterable[pb.StreamGenerateResponse], kind: str) -> list[pb.GenerateEvent]:
    return [event for message in messages for event in message.events if event.WhichOneof("kind") == kind]
