"""Strategies of canonical requests and answers that this format can express without loss."""

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tests.unit.wire.chat.strategies import (
    counts,
    flags,
    images,
    json_objects,
    names,
    optional,
    set_fields,
    tool_identity,
)
from umg_grpc.v1 import pb
from umg_grpc.v1.limits import MAX_COUNT
from umg_grpc.wire.core.charged_service_tiers import charged_tier
from umg_grpc.wire.messages.server_tools import OUR_CALL

__all__ = ["requests", "responses"]

words = st.text(min_size=1, max_size=20).filter(str.strip)  # providers refuse blank texts
texts = st.text(max_size=30)
data = st.binary(min_size=1, max_size=9)
objects = json_objects.map(lambda value: msgspec.json.encode(value).decode())
marks = st.builds(pb.CacheControl, ttl=st.sampled_from(pb.CacheTtl.values()))

text_parts = st.builds(lambda text: pb.Part(text=pb.TextPart(text=text)), words)
plain_images = images.map(lambda part: pb.Part(media=_without_detail(part.media)))
opaque_parts = st.builds(
    lambda kind: pb.Part(
        opaque=pb.OpaquePart(format="messages", type=f"x_{kind}", json=f'{{"type": "x_{kind}", "n": 1.0}}')
    ),
    names,
)


def _without_detail(media: pb.MediaPart) -> pb.MediaPart:
    media.detail = ""
    return media


sources = st.one_of(
    st.builds(lambda data: {"data": data, "mime_type": "application/pdf"}, data),
    st.builds(lambda text: {"data": text.encode(), "mime_type": "text/plain"}, texts),
    st.builds(lambda name: {"uri": f"https://files.test/{name}"}, names),
    st.builds(lambda name: {"file_id": name}, names),
    st.builds(
        lambda parts: {"blocks": pb.DocumentBlocks(parts=parts)}, st.lists(text_parts | plain_images, max_size=2)
    ),
)
documents = st.builds(
    lambda source, extra: pb.Part(media=pb.MediaPart(kind=pb.MEDIA_KIND_DOCUMENT, **source, **extra)),
    sources,
    set_fields(title=words, context=words, citable=flags),
)
search_results = st.builds(
    lambda parts, origin, title, extra: pb.Part(
        media=pb.MediaPart(kind=pb.MEDIA_KIND_DOCUMENT, blocks=pb.DocumentBlocks(parts=parts), origin=origin, title=title, **extra)
    ),
    st.lists(text_parts, max_size=2), words, words, set_fields(citable=flags),
)  # fmt: skip
thoughts = st.one_of(
    st.builds(
        lambda texts, state: pb.Part(reasoning=pb.ReasoningPart(texts=texts), state=pb.ReasoningState(format="messages", data=state)),
        st.lists(words, max_size=1), words,
    ),
    st.builds(
        lambda state: pb.Part(reasoning=pb.ReasoningPart(redacted=True), state=pb.ReasoningState(format="messages", data=state)),
        words,
    ),
).filter(lambda part: not part.state.data.startswith("umg."))  # fmt: skip

places = st.builds(
    lambda index, start, length: (index, start, start + length), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)
)
citations = st.one_of(
    st.builds(
        lambda url, title, cited, index: pb.Citation(title=title, cited_text=cited, web=pb.WebSource(url=url, encrypted_index=index)),
        names, texts, texts, words,
    ),
    st.builds(
        lambda place, unit, title, file_id: pb.Citation(
            title=title, document=pb.DocumentSource(document_index=place[0], start=place[1], end=place[2], unit=unit, file_id=file_id)
        ),
        places, st.sampled_from([pb.DOCUMENT_UNIT_CHARACTER, pb.DOCUMENT_UNIT_PAGE, pb.DOCUMENT_UNIT_BLOCK]), texts, st.just("") | names,
    ),
    st.builds(
        lambda place, origin: pb.Citation(
            document=pb.DocumentSource(document_index=place[0], start=place[1], end=place[2], unit=pb.DOCUMENT_UNIT_BLOCK, origin=origin)
        ),
        places, words,
    ),
    st.builds(lambda kind: pb.Citation(opaque=pb.OpaquePart(format="messages", type=f"x_{kind}", json=f'{{"type":"x_{kind}","n":1.0}}')), names),
)  # fmt: skip
cited_parts = st.builds(
    lambda text, sources: pb.Part(text=pb.TextPart(text=text, citations=sources)),
    words,
    st.lists(citations, max_size=2),
)


# Without the ids that the gateway gives to searches of other formats.
search_ids = names.map("srvtoolu_{}".format).filter(lambda call_id: not call_id.startswith(OUR_CALL))


found_pages = st.lists(
    st.builds(pb.SearchResult, url=names, title=texts, page_age=st.just("") | words, encrypted_content=words),
    max_size=2,
)


@st.composite
def searches(draw: DrawFn) -> list[pb.Part]:
    """Draw a search of the provider's and its results."""
    call_id, query = draw(search_ids), draw(words)
    call = pb.ServerToolCall(call_id=call_id, name="web_search", queries=[query], format="messages")
    call.input_json = msgspec.json.encode({"query": query}).decode()
    found = pb.ServerToolResult(call_id=call_id, name="web_search")
    if draw(flags):
        found.error_code = "max_uses_exceeded"
    else:
        found.results.extend(draw(found_pages))
    return [pb.Part(server_tool_call=call), pb.Part(server_tool_result=found)]


@st.composite
def code_runs(draw: DrawFn) -> list[pb.Part]:
    """Return code that the provider ran, and its result."""
    call_id = draw(search_ids)
    call = pb.ServerToolCall(call_id=call_id, name="code_execution", format="messages", input_json='{"code": "1"}')
    ran = pb.ServerToolResult(call_id=call_id, name="code_execution", format="messages", output_json='{"n": 1.0}')
    return [pb.Part(server_tool_call=call), pb.Part(server_tool_result=ran)]


calls = st.builds(
    lambda call_id, name, arguments: pb.Part(tool_call=pb.ToolCall(call_id=call_id, name=name, arguments_json=arguments)),
    names, names, objects,
)  # fmt: skip
called = st.lists(calls, max_size=3, unique_by=lambda part: part.tool_call.call_id)


result_parts = st.lists(text_parts | plain_images | documents | search_results, max_size=2)
result_fields = set_fields(is_error=flags)


@st.composite
def results(draw: DrawFn, call: pb.ToolCall) -> pb.Part:
    return pb.Part(tool_result=pb.ToolResult(call_id=call.call_id, parts=draw(result_parts), **draw(result_fields)))


server_parts = searches() | code_runs() | st.just([])
user_parts = st.lists(text_parts | plain_images | documents | search_results | opaque_parts, min_size=1, max_size=3)


@st.composite
def conversations(draw: DrawFn) -> list[pb.Message]:
    """Draw turns as providers require them: users and assistants alternate, the results of calls come first, and no two
    calls have one id.
    """
    turns, ids = [pb.Message(role=pb.ROLE_USER, parts=draw(user_parts))], set[str]()
    for _ in range(draw(st.integers(0, 2))):
        made = [part for part in draw(called) if part.tool_call.call_id not in ids]
        ids.update(part.tool_call.call_id for part in made)
        assistant_parts = [*draw(st.lists(thoughts, max_size=2)), *draw(server_parts)]
        assistant_parts += [*draw(st.lists(cited_parts, min_size=not made, max_size=2)), *made]
        turns.append(pb.Message(role=pb.ROLE_ASSISTANT, parts=assistant_parts))
        answers = [draw(results(part.tool_call)) for part in made]
        turns.append(
            pb.Message(role=pb.ROLE_USER, parts=answers + ([] if answers and draw(flags) else draw(user_parts)))
        )
    return turns


schemas = st.sampled_from(
    ['{"type": "object", "properties": {"b": {"minimum": 1.0}, "a": {}}}', '{"properties":{},"type":"object"}']
)
# Schemas that Claude accepts for its responses and for strict functions.
closed_schemas = st.sampled_from(
    ['{"type":"object","properties":{"b":{"type":"number"}, "a":{"const":1.0}},"additionalProperties":false}', '{"type": "object","properties":{},"additionalProperties":false}']
)  # fmt: skip
functions = st.builds(
    lambda name, schema, extra: pb.Tool(function=pb.FunctionTool(name=name, parameters_json=schema, **extra)),
    names, schemas, set_fields(description=texts, strict=st.just(False)),
) | st.builds(
    lambda name, schema: pb.Tool(function=pb.FunctionTool(name=name, parameters_json=schema, strict=True)), names, closed_schemas
)  # fmt: skip
locations = st.builds(pb.UserLocation, country=names, city=st.just("") | names, region=names, timezone=names)
search_tools = st.builds(
    lambda extra, domains: pb.Tool(web_search=pb.WebSearchTool(declared_type="web_search_20250305", **extra, **domains)),
    set_fields(max_uses=st.integers(1, 99), user_location=locations),
    st.just({}) | st.builds(lambda names: {"allowed_domains": names}, st.lists(names, min_size=1, max_size=2))
    | st.builds(lambda names: {"blocked_domains": names}, st.lists(names, min_size=1, max_size=2)),
)  # fmt: skip
opaque_tools = st.builds(
    lambda kind: pb.Tool(opaque=pb.OpaquePart(format="messages", type=f"x_{kind}", json=f'{{"type":"x_{kind}","name":"n"}}')), names
)  # fmt: skip
tools = st.lists(functions | search_tools | opaque_tools, min_size=1, max_size=3, unique_by=tool_identity)
efforts = st.sampled_from(["low", "medium", "high", "xhigh", "max"])
formats = st.builds(
    lambda schema: pb.ResponseFormat(json_schema=pb.JsonSchemaFormat(schema_json=schema)),
    closed_schemas | st.just('{"type":"string"}'),
)


request_fields = set_fields(
    response_format=formats,
    stop_sequences=st.lists(words, min_size=1, max_size=4),
    cache_control=marks,
    user=words,
    service_tier=st.sampled_from(["auto", "standard_only"]),
)
samplings = set_fields(temperature=st.floats(0, 1), top_p=st.floats(0, 1), top_k=st.integers(0, 99).map(float))
thinking_samplings = set_fields(temperature=st.just(1.0), top_p=st.floats(0.95, 1))
optional_marks = optional(marks)


@st.composite
def requests(draw: DrawFn) -> pb.GenerateRequest:
    request = pb.GenerateRequest(
        model="m",
        messages=draw(conversations()),
        max_output_tokens=draw(st.integers(5000, MAX_COUNT)),
        **draw(request_fields),
    )
    request.instructions.extend(draw(st.lists(text_parts, max_size=2)))
    for part in request.instructions:
        if (mark := draw(optional_marks)) is not None:
            part.cache_control.CopyFrom(mark)
    thinks = draw(flags)
    if draw(flags):
        request.tools.extend(draw(tools))
        if (mark := draw(optional_marks)) is not None and not request.tools[0].HasField("opaque"):
            request.tools[0].cache_control.CopyFrom(mark)
        _choose(draw, request, forced=not thinks)
    if thinks:
        _think(draw, request)
    else:
        request.MergeFrom(pb.GenerateRequest(**draw(samplings)))
        if draw(flags):
            request.reasoning.mode = pb.REASONING_MODE_DISABLED
    if draw(flags):
        request.reasoning.effort = draw(efforts)
    return request


def _choose(draw: DrawFn, request: pb.GenerateRequest, forced: bool) -> None:
    modes = [pb.TOOL_CHOICE_MODE_AUTO, pb.TOOL_CHOICE_MODE_NONE] + [pb.TOOL_CHOICE_MODE_REQUIRED] * forced
    if draw(flags):
        request.tool_choice.mode = draw(st.sampled_from(modes))
        if request.tool_choice.mode == pb.TOOL_CHOICE_MODE_REQUIRED and draw(flags):
            request.tool_choice.names.append(draw(names))
        if request.tool_choice.mode != pb.TOOL_CHOICE_MODE_NONE and draw(flags):
            request.parallel_tool_calls = draw(flags)


def _think(draw: DrawFn, request: pb.GenerateRequest) -> None:
    request.MergeFrom(pb.GenerateRequest(**draw(thinking_samplings)))
    modes = [pb.REASONING_MODE_ADAPTIVE, pb.REASONING_MODE_BETWEEN_TOOLS]
    if not any(part.HasField("tool_result") for part in request.messages[-1].parts):
        modes.append(pb.REASONING_MODE_ENABLED)  # which requires the reasoning of a turn that continues
    reasoning = request.reasoning
    reasoning.mode = draw(st.sampled_from(modes))
    if reasoning.mode == pb.REASONING_MODE_ENABLED:
        reasoning.budget_tokens = draw(st.integers(1025, 4999))
    if reasoning.mode != pb.REASONING_MODE_BETWEEN_TOOLS:
        reasoning.display = draw(st.sampled_from(["", "summarized", "omitted"]))


REASONS = [
    pb.FINISH_REASON_STOP,
    pb.FINISH_REASON_LENGTH,
    pb.FINISH_REASON_STOP_SEQUENCE,
    pb.FINISH_REASON_PAUSE,
    pb.FINISH_REASON_REFUSAL,
    pb.FINISH_REASON_CONTEXT_FULL,
    pb.FINISH_REASON_COMPACTION,
]


answer_parts = st.lists(
    (thoughts | cited_parts | opaque_parts).map(lambda part: [part]) | searches() | code_runs(), max_size=4
)


@st.composite
def responses(draw: DrawFn) -> pb.GenerateResponse:
    parts = [part for group in draw(answer_parts) for part in group]
    made = draw(called)
    reason = pb.FINISH_REASON_TOOL_CALLS if made else draw(st.sampled_from(REASONS))
    candidate = pb.Candidate(
        message=pb.Message(role=pb.ROLE_ASSISTANT, parts=[*parts, *made]),
        finish_reason=reason,
        stop_sequence=draw(words) if reason == pb.FINISH_REASON_STOP_SEQUENCE else "",
        container_json=draw(st.sampled_from(["", '{"id":"container_1","expires_at":"2026-01-01T00:00:00Z"}'])),
    )
    if reason == pb.FINISH_REASON_REFUSAL:
        candidate.finish_message, candidate.refusal_category = draw(texts), draw(texts)
    read, written, hour, fresh = (draw(counts) for _ in range(4))
    usage = pb.Usage(
        input_tokens=read + written + hour + fresh,
        output_tokens=draw(counts),
        cache_read_tokens=read,
        cache_write_tokens=written,
        long_cache_write_tokens=hour,
        reasoning_tokens=draw(counts),
        web_search_requests=draw(counts),
    )
    tier = draw(st.sampled_from(["", "standard", "priority"]))
    usage.service_tier = charged_tier(tier)
    return pb.GenerateResponse(
        response_id=draw(names), model="m", candidates=[candidate], usage=usage, service_tier=tier
    )
