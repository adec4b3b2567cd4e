"""Conversion from any format to any other: the fields that docs/fidelity.md calls exact are kept, answers mean the
same, and streams decode equally however they are cut.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.pairs.fidelity.measure import at, everything, same, understood
from tests.pairs.fidelity.sample import FORMATS as NAMES
from tests.pairs.fidelity.sample import Sample
from tests.support.callers.http_caller import decode_stream
from tests.unit.wire.chat import strategies as chat
from tests.unit.wire.laws import cuts
from tests.unit.wire.messages import strategies as messages
from tests.unit.wire.native import strategies as native
from tests.unit.wire.responses import strategies as responses
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.core.response_to_events import response_to_events
from umg_grpc.wire.core.stream_aggregator import StreamAggregator

SOME: dict[str, Any] = {"chat": chat, "responses": responses, "messages": messages, "native": native}
INEXPRESSIBLE = (pb.ERROR_REASON_UNTRANSLATABLE, pb.ERROR_REASON_UNSUPPORTED_FIELD)
every_face = pytest.mark.parametrize("one", NAMES)
modest = settings(
    max_examples=16,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


def always_exact() -> dict[tuple[str, str], set[str]]:
    """Return for each pair the fields beside the conversation that it converts exactly, for every value."""
    kinds = defaultdict(set)
    for rows in everything().values():
        for row in rows:
            if isinstance(row.sample, Sample) and row.sample.path.isidentifier():
                for pair, cell in row.cells.items():
                    kinds[pair, row.sample.path].add(cell.kind)
    exact = defaultdict(set)
    for (pair, path), found in kinds.items():
        if found == {"exact"}:
            exact[pair].add(path)
    return exact


EXACT = always_exact()


def some(face: str, name: str, data: st.DataObject) -> Any:
    """Draw a value that the format can express without loss."""
    strategy = getattr(SOME[face], name)
    return data.draw(strategy() if callable(strategy) else strategy)


def answers(face: str, data: st.DataObject) -> pb.GenerateResponse:
    """Draw a response whose parts of the usage are no more than their sums, with no media, and no text beside a refusal."""
    answer: pb.GenerateResponse = some(face, "responses", data)
    read, written, thought, rest = data.draw(st.tuples(*[st.integers(0, 2**29)] * 4))
    answer.usage.CopyFrom(
        pb.Usage(
            input_tokens=read + written + rest,
            output_tokens=thought + rest,
            cache_read_tokens=read,
            cache_write_tokens=written,
            reasoning_tokens=thought,
        )
    )
    kinds = {part.WhichOneof("kind") for candidate in answer.candidates for part in candidate.message.parts}
    assume(not {"text", "refusal"} <= kinds)
    assume("media" not in kinds)  # not every face can express media
    return answer


def hop(request: pb.GenerateRequest, face: str) -> tuple[pb.GenerateRequest, set[str]]:
    """Encode for a provider and decode again. Return the request and the report. Raise UmgError if it is impossible."""
    upstream = TEXT_FORMATS[face].encode_request(request, "m", False)
    sent = understood(face, upstream.body)
    sent.model = "m"
    return sent, set(upstream.report.dropped)


def spoken(request: pb.GenerateRequest, role: int) -> list[str]:
    """Return the texts of a role, in order, without blank ones."""
    return [
        part.text.text
        for message in request.messages
        if message.role == role
        for part in message.parts
        if part.text.text.strip()
    ]


def is_empty(media: pb.MediaPart) -> bool:
    return media.HasField("data") and not media.data


def calls(request: pb.GenerateRequest) -> list[tuple[str, Any]]:
    """Return the name and arguments of each call; characters that formats replace in names are normalized."""
    parts = [part for message in request.messages for part in message.parts if part.HasField("tool_call")]
    return [(re.sub(r"\W", "_", part.tool_call.name).lstrip("_"), arguments(part.tool_call)) for part in parts]


def arguments(call: pb.ToolCall) -> Any:
    """Return the arguments of a call; text that is no JSON object is wrapped in a list, as is an object that wraps it."""
    if call.HasField("text"):
        return [call.text]
    try:
        read = json.loads(call.arguments_json.strip(" \t\r\n") or "{}")  # blank means none
    except ValueError:
        return [call.arguments_json]
    if isinstance(read, dict) and set(read) <= {"input", "raw_arguments"}:
        return list(read.values())
    return read if isinstance(read, dict) else [call.arguments_json]


def may_call(request: pb.GenerateRequest) -> bool:
    """Return whether the model may call a function of the request."""
    has_functions = any(tool.HasField("function") for tool in request.tools)
    return has_functions and request.tool_choice.mode != pb.TOOL_CHOICE_MODE_NONE


def is_in_order(pieces: Iterable[str], text: str) -> bool:
    position = 0
    for piece in pieces:
        position = text.find(piece, position)
        if position < 0:
            return False
        position += len(piece)
    return True


@every_face
@modest
@given(data=st.data())
def test_a_request_keeps_the_fields_that_the_table_marks_as_exact(one: str, data: st.DataObject) -> None:
    request = some(one, "requests", data)
    request.ClearField("source")
    try:
        first, _ = hop(request, one)
    except UmgError as error:
        if error.reason not in INEXPRESSIBLE:
            raise
        return
    first.ClearField("source")
    if not (spoken(first, pb.ROLE_USER) or spoken(first, pb.ROLE_ASSISTANT)):
        return  # no text that every format can send as a turn
    if any(is_empty(part.media) for message in first.messages for part in message.parts):
        return
    for other in NAMES:
        check_exact_fields(first, one, other)


def check_exact_fields(first: pb.GenerateRequest, one: str, other: str) -> None:
    """Check that the other format keeps the fields of a request that came in the first one."""
    try:
        second, reported = hop(first, other)
    except UmgError as error:
        if error.reason not in INEXPRESSIBLE:
            raise
        return
    for path in EXACT[one, other]:
        if path == "parallel_tool_calls" and not may_call(first):
            continue
        if path == "top_logprobs" and not first.top_logprobs and not first.logprobs:
            continue  # it requests nothing, and providers refuse it (`test_vendor_answers`)
        if (value := at(first, path)) is not None and path not in reported:
            assert same(value, at(second, path)), (other, path)
    for role in (pb.ROLE_USER, pb.ROLE_ASSISTANT):
        assert is_in_order(spoken(first, role), "\0".join(spoken(second, role))), other
    assert calls(first) == calls(second), other


# --- answers


def gist(answer: pb.GenerateResponse) -> tuple[Any, ...]:
    """Return the fields that every format can express: text, calls, end and total usage."""
    candidate = answer.candidates[0]
    parts = candidate.message.parts
    called = [part.tool_call for part in parts if part.HasField("tool_call")]
    return (
        "".join(part.text.text + part.refusal.text for part in parts),
        [(call.name, arguments(call)) for call in called],
        END.get(candidate.finish_reason, "stop"),
        (answer.usage.input_tokens, answer.usage.output_tokens),
    )


END = {
    pb.FINISH_REASON_LENGTH: "length",
    pb.FINISH_REASON_CONTEXT_FULL: "length",
    # other formats have no words for these, and the response must not look complete
    pb.FINISH_REASON_OTHER: "length",
    pb.FINISH_REASON_PAUSE: "length",
    pb.FINISH_REASON_COMPACTION: "length",
    pb.FINISH_REASON_TOOL_CALLS: "calls",
    pb.FINISH_REASON_CONTENT_FILTER: "filter",
    pb.FINISH_REASON_REFUSAL: "filter",
    pb.FINISH_REASON_RECITATION: "filter",
}
WITH_USAGE = pb.GenerateRequest(model="m", candidate_count=2, face_hints=pb.FaceHints(include_usage=True))


def read_whole(answer: pb.GenerateResponse, face: str) -> pb.GenerateResponse:
    """Return the response as a client of the format decodes it."""
    return TEXT_FORMATS[face].decode_response(TEXT_FORMATS[face].encode_response(answer, WITH_USAGE), WITH_USAGE, False)


def read_streamed(answer: pb.GenerateResponse, face: str) -> pb.GenerateResponse:
    encoder = TEXT_FORMATS[face].stream_encoder(WITH_USAGE)
    return aggregated(decode_stream(face, [encoder.feed(response_to_events(answer)) + encoder.close()], WITH_USAGE))


def aggregated(messages: Iterable[pb.StreamGenerateResponse]) -> pb.GenerateResponse:
    aggregator = StreamAggregator()
    for message in messages:
        aggregator.feed(message)
    return aggregator.response()


@pytest.mark.parametrize("read", [read_whole, read_streamed], ids=["whole", "streamed"])
@every_face
@modest
@given(data=st.data())
def test_an_answer_has_the_same_meaning_in_every_format(
    one: str, read: Callable[[pb.GenerateResponse, str], pb.GenerateResponse], data: st.DataObject
) -> None:
    answer = read(answers(one, data), one)
    assume(answer.candidates)
    for other in NAMES:
        assert gist(read(answer, other)) == gist(answer), other


@every_face
@modest
@given(data=st.data())
def test_a_stream_is_decoded_equally_however_it_is_cut(one: str, data: st.DataObject) -> None:
    encoder = TEXT_FORMATS[one].stream_encoder(WITH_USAGE)
    stream = encoder.feed(response_to_events(answers(one, data))) + encoder.close()
    whole, pieces = decode_stream(one, [stream], WITH_USAGE), decode_stream(one, data.draw(cuts(stream)), WITH_USAGE)
    assert aggregated(pieces) == aggregated(whole)
    assert steps(pieces) == steps(whole)
    for other in NAMES:
        if other in ("chat", "responses"):
            assert shown(pieces, other) == shown(whole, other), other
            continue
        # the usage that the others send before the end depends on when it arrives
        read = [aggregated(decode_stream(other, [shown(messages, other)], WITH_USAGE)) for messages in (pieces, whole)]
        assert gist(read[0]) == gist(read[1]), other


def steps(messages: list[pb.StreamGenerateResponse]) -> list[pb.GenerateEvent]:
    """Return the events without the running usage counts: only the last count is final."""
    return [event for message in messages for event in message.events if not event.HasField("usage")]


def shown(messages: list[pb.StreamGenerateResponse], face: str) -> bytes:
    """Return the face's bytes."""
    encoder = TEXT_FORMATS[face].stream_encoder(WITH_USAGE)
    return b"".join([*(encoder.feed(message) for message in messages), encoder.close()])
