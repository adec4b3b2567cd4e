"""Strategies of canonical requests and answers that native can express without loss, and of JSON with unknown fields."""

import base64

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tests.unit.wire.chat.strategies import counts, flags, json_values, optional, set_fields, texts, words
from umg_grpc.v1 import pb
from umg_grpc.v1.limits import MAX_COUNT

SEPARATORS = frozenset("\x85\u2028\u2029")

names = st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=8)
json_objects = st.dictionaries(
    texts | st.sampled_from(["user_id", "mime_type", "thinking_budget"]), json_values, max_size=3
)
# Without the characters that a stream writes as escapes; all other JSON comes back byte for byte.
json_texts = json_objects.map(lambda value: msgspec.json.encode(value).decode()).filter(SEPARATORS.isdisjoint)

states = st.binary(min_size=1, max_size=12).map(
    lambda data: pb.ReasoningState(data=base64.b64encode(data).decode(), format="native")
)
blobs = st.one_of(
    st.builds(lambda data: pb.MediaPart(kind=pb.MEDIA_KIND_IMAGE, mime_type="image/png", data=data), st.binary(min_size=1, max_size=9)),
    st.builds(lambda data: pb.MediaPart(kind=pb.MEDIA_KIND_AUDIO, mime_type="audio/mpeg", data=data), st.binary(min_size=1, max_size=9)),
    st.builds(lambda data: pb.MediaPart(kind=pb.MEDIA_KIND_VIDEO, mime_type="video/mp4", data=data), st.binary(min_size=1, max_size=9)),
    st.builds(lambda data: pb.MediaPart(kind=pb.MEDIA_KIND_DOCUMENT, mime_type="application/pdf", data=data), st.binary(min_size=1, max_size=9)),
)  # fmt: skip
files = st.one_of(
    st.builds(lambda name: pb.MediaPart(kind=pb.MEDIA_KIND_DOCUMENT, mime_type="text/plain", uri=f"gs://b/{name}"), names),
    st.builds(lambda name: pb.MediaPart(kind=pb.MEDIA_KIND_IMAGE, mime_type="image/webp", file_id=f"https://h.test/v1beta/files/{name}"), names),
    st.builds(lambda name: pb.MediaPart(kind=pb.MEDIA_KIND_VIDEO, uri=f"https://youtu.be/{name}"), names),
)  # fmt: skip


media_parts = blobs | files


@st.composite
def shown_media(draw: DrawFn) -> pb.Part:
    media = pb.MediaPart()
    media.CopyFrom(draw(media_parts))
    media.detail = draw(st.sampled_from(["", "low", "medium", "high", "ultra_high"]))
    return pb.Part(media=media)


text_parts = st.builds(lambda text: pb.Part(text=pb.TextPart(text=text)), words)
signed_texts = st.builds(lambda text, state: pb.Part(text=pb.TextPart(text=text), state=state), texts, states)
reasoning_parts = st.one_of(
    st.builds(lambda text, state: pb.Part(reasoning=pb.ReasoningPart(texts=[text]), state=state), words, optional(states)),
    st.builds(lambda state: pb.Part(reasoning=pb.ReasoningPart(), state=state), states),
    st.builds(lambda state: pb.Part(reasoning=pb.ReasoningPart(redacted=True), state=state), states),
)  # fmt: skip
calls = st.builds(
    lambda call_id, name, arguments, state: pb.Part(
        tool_call=pb.ToolCall(call_id=call_id, name=name, arguments_json=arguments), state=state
    ),
    st.just("") | names, names, json_texts, optional(states),
)  # fmt: skip
server_tools = st.one_of(
    st.builds(lambda code: pb.Part(server_tool_call=pb.ServerToolCall(name="code_execution", format="native", input_json=code)), json_texts),
    st.builds(lambda out: pb.Part(server_tool_result=pb.ServerToolResult(name="code_execution", format="native", output_json=out)), json_texts),
    st.builds(lambda call_id, args: pb.Part(server_tool_call=pb.ServerToolCall(call_id=call_id, name="url_context", format="native", input_json=args)), names, json_texts),
    st.builds(lambda call_id, out: pb.Part(server_tool_result=pb.ServerToolResult(call_id=call_id, name="new_tool", format="native", output_json=out)), names, json_texts),
).filter(lambda part: '"id"' not in (part.server_tool_call.input_json + part.server_tool_result.output_json))  # fmt: skip
opaque_parts = st.builds(
    lambda kind: pb.Part(opaque=pb.OpaquePart(format="native", type=f"x{kind}", json=f'{{"x{kind}":{{"n":1.0}}}}')),
    names,
)


@st.composite
def results(draw: DrawFn, call: pb.ToolCall) -> pb.Part:
    """Draw a call's result as the object that the caller wrote, with its text beside it."""
    result = pb.ToolResult(call_id=call.call_id, name=call.name)
    match draw(st.integers(0, 3)):
        case 0:
            text = draw(words)
            result.result_json = msgspec.json.encode({"output": text}).decode()
        case 1:
            text = draw(words)
            result.result_json, result.is_error = msgspec.json.encode({"error": text}).decode(), True
        case 2:
            result.result_json = text = msgspec.json.encode({"x": draw(json_values), "y": 1.0}).decode()
        case _:
            text, result.result_json = "[1.0]", '{"output":[1.0]}'
    result.parts.add().text.text = text
    result.parts.extend(pb.Part(media=media) for media in draw(st.lists(blobs, max_size=1)))
    return pb.Part(tool_result=result)


assistant_parts = st.lists(
    text_parts | signed_texts | reasoning_parts | calls | server_tools | opaque_parts | shown_media(),
    min_size=1,
    max_size=4,
)
user_parts = st.lists(text_parts | shown_media() | opaque_parts, min_size=1, max_size=3)


@st.composite
def conversations(draw: DrawFn) -> list[pb.Message]:
    """Draw turns of alternating roles; each turn begins with the results of the calls before it."""
    turns = list[pb.Message]()
    for number in range(draw(st.integers(1, 4))):
        if number % 2:
            parts = draw(assistant_parts)
            turns.append(pb.Message(role=pb.ROLE_ASSISTANT, parts=parts))
        else:
            pending = [part.tool_call for part in turns[-1].parts if part.HasField("tool_call")] if turns else []
            parts = [draw(results(call)) for call in pending]
            parts += draw(user_parts)
            turns.append(pb.Message(role=pb.ROLE_USER, parts=parts))
    return turns


schemas = st.sampled_from(["", '{"type":"object","properties":{"user_id":{"minimum":1.0},"mime_type":{}}}', "{}"])
functions = st.builds(
    lambda name, schema, native, extra: pb.Tool(
        function=pb.FunctionTool(name=name, parameters_json=schema, native_schema=native and bool(schema), **extra)
    ),
    names, schemas, flags, set_fields(description=texts),
)  # fmt: skip
searches = st.builds(
    lambda kind: pb.Tool(web_search=pb.WebSearchTool(declared_type=kind)),
    st.sampled_from(["googleSearch", "googleSearchRetrieval"]),
)
opaque_tools = st.builds(
    lambda kind: pb.Tool(opaque=pb.OpaquePart(format="native", type=kind, json=f'{{"{kind}":{{}}}}')),
    st.sampled_from(["codeExecution", "urlContext", "newTool"]),
)


MODES = [
    pb.TOOL_CHOICE_MODE_AUTO,
    pb.TOOL_CHOICE_MODE_NONE,
    pb.TOOL_CHOICE_MODE_REQUIRED,
    pb.TOOL_CHOICE_MODE_VALIDATED,
]
declarations = st.lists(functions, max_size=3, unique_by=lambda tool: tool.function.name)
other_tools = st.lists(searches | opaque_tools, max_size=2)
choices = optional(st.sampled_from(MODES).map(lambda mode: pb.ToolChoice(mode=mode)))


@st.composite
def tools(draw: DrawFn) -> dict[str, object]:
    """Draw tools and options that fit them."""
    declared = draw(declarations)
    fields: dict[str, object] = {"tools": declared + draw(other_tools)}
    if declared:
        choice = draw(choices)
        if choice is not None and choice.mode in MODES[2:] and draw(flags):
            choice.names.append(declared[0].function.name)
        fields["tool_choice"] = choice
    return fields


reasonings = st.one_of(
    st.builds(lambda budget, extra: pb.ReasoningOptions(budget_tokens=budget, **extra), st.integers(-1, 99999), set_fields(include_thoughts=flags)),
    st.builds(lambda level, extra: pb.ReasoningOptions(level=level, **extra), st.sampled_from(["minimal", "low", "medium", "high", "xhigh"]), set_fields(include_thoughts=flags)),
    st.builds(pb.ReasoningOptions, include_thoughts=flags),
)  # fmt: skip
formats = st.one_of(
    st.just(pb.ResponseFormat(text=pb.TextFormat())),
    st.just(pb.ResponseFormat(json=pb.JsonFormat())),
    st.builds(lambda native: pb.ResponseFormat(json_schema=pb.JsonSchemaFormat(schema_json='{"type":"object"}', native_schema=native)), flags),
    st.just(pb.ResponseFormat(enum_text=pb.JsonSchemaFormat(schema_json='{"enum":["a"]}', native_schema=True))),
)  # fmt: skip
images = st.builds(
    pb.ImageOutputOptions,
    aspect_ratio=st.just("16:9"),
    image_size=st.just("") | st.just("2K"),
    mime_type=st.just("") | st.just("image/png"),
)
settings = st.builds(
    pb.SafetySetting, category=st.just("HARM_CATEGORY_HARASSMENT"), threshold=st.sampled_from(["OFF", "BLOCK_NONE"])
)
penalties = st.floats(-2, 2)
requests = st.builds(
    lambda conversation, offered, extra: pb.GenerateRequest(messages=conversation, **offered, **extra),
    conversations(),
    tools(),
    set_fields(
        instructions=st.lists(text_parts, min_size=1, max_size=2),
        temperature=st.floats(0, 2),
        top_p=st.floats(0, 1),
        top_k=st.floats(0, 1000),
        max_output_tokens=st.integers(1, MAX_COUNT),
        stop_sequences=st.lists(words, min_size=1, max_size=4),
        candidate_count=st.integers(1, 128),
        seed=st.integers(-(2**31), 2**31 - 1),
        presence_penalty=penalties,
        frequency_penalty=penalties,
        logprobs=flags,
        top_logprobs=st.integers(1, 20),
        reasoning=reasonings,
        response_format=formats,
        output_modalities=st.lists(st.sampled_from(["text", "image", "audio"]), min_size=1, max_size=2),
        media_detail=st.sampled_from(["low", "medium", "high"]),
        image_output=images,
        audio_output=st.builds(pb.AudioOutputOptions, voice_json=st.just("Kore")),
        cached_content=st.just("cachedContents/1"),
        safety_settings=st.lists(settings, min_size=1, max_size=2),
        metadata=st.dictionaries(names, names, min_size=1, max_size=2),
        service_tier=st.sampled_from(["standard", "flex", "priority"]),
        store=flags,
    ),
)  # fmt: skip


# --- answers


@st.composite
def cited_texts(draw: DrawFn) -> pb.Part:
    """Draw text with sources of its spans, in order."""
    text = draw(st.text("ab é😀\u2028", min_size=2, max_size=12))
    part = pb.Part(text=pb.TextPart(text=text))
    ends = sorted(draw(st.sets(st.integers(1, len(text)), max_size=3)))
    for end in ends:
        urls = draw(st.lists(names, min_size=1, max_size=2, unique=True))
        part.text.citations.extend(
            pb.Citation(
                title=url.upper(),
                web=pb.WebSource(url=f"https://{url}.test"),
                start_index=draw(st.integers(0, end - 1)),
                end_index=end,
            )
            for url in [urls[0]]
        )
    if draw(flags):
        part.text.logprobs.extend(draw(st.lists(likelihoods, max_size=2)))
    if draw(flags):
        part.state.CopyFrom(draw(states))
    return part


plain_logprobs = st.builds(lambda token, value: pb.TokenLogprob(token=token, logprob=value), texts, st.floats(-9999, 0))
likelihoods = st.builds(
    lambda entry, others: pb.TokenLogprob(token=entry.token, logprob=entry.logprob, alternatives=others),
    plain_logprobs, st.lists(plain_logprobs, max_size=2),
)  # fmt: skip
generated_media = st.builds(lambda media: pb.Part(media=media), blobs)
thought_images = st.builds(lambda media: pb.Part(media=media, thought=True), blobs)
queries = st.builds(
    lambda pending: pb.Part(server_tool_call=pb.ServerToolCall(name="web_search", queries=pending)),
    st.lists(words, min_size=1, max_size=2),
)
ratings = st.builds(
    pb.SafetyRating,
    category=st.just("HARM_CATEGORY_HARASSMENT"),
    probability=st.sampled_from(["LOW", "HIGH"]),
    blocked=flags,
)
FINISHES = [
    (pb.FINISH_REASON_STOP, ""),
    (pb.FINISH_REASON_LENGTH, ""),
    (pb.FINISH_REASON_CONTENT_FILTER, ""),
    (pb.FINISH_REASON_CONTENT_FILTER, "SPII"),
    (pb.FINISH_REASON_RECITATION, ""),
    (pb.FINISH_REASON_RECITATION, "IMAGE_RECITATION"),
    (pb.FINISH_REASON_OTHER, ""),
    (pb.FINISH_REASON_OTHER, "NO_IMAGE"),
    (pb.FINISH_REASON_STOP, "A_NEW_WORD"),
]


answer_texts = st.lists(cited_texts(), max_size=1)
answer_parts = st.lists(generated_media | thought_images | server_tools | opaque_parts, max_size=2)
messages_of_ends = st.just("") | words


@st.composite
def candidates(draw: DrawFn, index: int) -> pb.Candidate:
    parts = draw(st.lists(reasoning_parts, max_size=1))
    parts += draw(answer_texts)
    parts += draw(answer_parts)
    called = draw(st.lists(calls, max_size=2))
    parts += called
    parts += draw(st.lists(queries, max_size=1))
    reason, word = (pb.FINISH_REASON_TOOL_CALLS, "") if called else draw(st.sampled_from(FINISHES))
    return pb.Candidate(
        index=index,
        message=pb.Message(role=pb.ROLE_ASSISTANT, parts=parts),
        finish_reason=reason,
        provider_reason=word,
        finish_message=draw(messages_of_ends),
        safety_ratings=draw(st.lists(ratings, max_size=2)),
    )


@st.composite
def usages(draw: DrawFn) -> pb.Usage:
    details = [draw(st.integers(0, 99)) for _ in range(6)]
    tools_, thoughts = draw(counts), draw(counts)
    return pb.Usage(
        input_tokens=tools_ + sum(details[:4]) + draw(counts), output_tokens=thoughts + sum(details[4:]) + draw(counts),
        tool_input_tokens=tools_, reasoning_tokens=thoughts, cache_read_tokens=draw(counts), audio_input_tokens=details[0],
        image_input_tokens=details[1], video_input_tokens=details[2], document_input_tokens=details[3],
        audio_output_tokens=details[4], image_output_tokens=details[5],
    )  # fmt: skip


@st.composite
def responses(draw: DrawFn) -> pb.GenerateResponse:
    response = pb.GenerateResponse(response_id=draw(names), model="m", usage=draw(usages()))
    response.create_time.seconds, response.create_time.nanos = (
        draw(st.integers(1, 2**33)),
        draw(st.sampled_from([0, 5000])),
    )
    response.candidates.extend(draw(candidates(index)) for index in range(draw(st.integers(1, 3))))
    return response


ANSWERED = pb.GenerateRequest(model="m", tools=[pb.Tool(web_search=pb.WebSearchTool())])
