"""Strategies of canonical requests and answers that chat can express without loss, and of JSON with unknown fields."""

from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from umg_grpc.v1 import pb
from umg_grpc.v1.limits import MAX_COUNT

words = st.text(min_size=1, max_size=20)
texts = st.text(max_size=30)
names = st.text("abcdefghijklmnopqrstuvwxyzABC0123456789_-", min_size=1, max_size=12)
flags = st.booleans()
counts = st.integers(0, 2**27)  # so that sums of several are counts too

json_values = st.recursive(
    st.none() | flags | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
json_objects = st.dictionaries(texts, json_values, max_size=3)
additions = st.dictionaries(names.map("x_".__add__), json_values, max_size=2)


T = TypeVar("T")


def optional(strategy: SearchStrategy[T]) -> SearchStrategy[T | None]:
    return st.none() | strategy


def set_fields(**fields: SearchStrategy[object]) -> SearchStrategy[dict[str, object]]:
    """Return a strategy of some of the fields, each with one of its values."""
    return st.fixed_dictionaries({}, optional=fields)


text_parts = st.builds(lambda text: pb.Part(text=pb.TextPart(text=text)), texts)
spoken_parts = st.builds(lambda text: pb.Part(text=pb.TextPart(text=text)), words)
refusal_parts = st.builds(lambda text: pb.Part(refusal=pb.RefusalPart(text=text)), words)
images = st.builds(
    lambda source, detail: pb.Part(media=pb.MediaPart(kind=pb.MEDIA_KIND_IMAGE, detail=detail, **source)),
    st.fixed_dictionaries(
        {"data": st.binary(min_size=1, max_size=9), "mime_type": st.sampled_from(["image/png", "image/jpeg"])}
    )
    | st.fixed_dictionaries({"uri": names.map("https://images.test/".__add__)}),
    st.sampled_from(["", "low", "high", "auto", "original"]),
)
sounds = st.builds(
    lambda data, mime: pb.Part(media=pb.MediaPart(kind=pb.MEDIA_KIND_AUDIO, data=data, mime_type=mime)),
    st.binary(min_size=1, max_size=9),
    st.sampled_from(["audio/wav", "audio/mpeg"]),
)
opaque_parts = st.builds(
    lambda kind: pb.Part(
        opaque=pb.OpaquePart(format="chat", type=f"x_{kind}", json=f'{{"type": "x_{kind}", "n": 1.0}}')
    ),
    names,
)
reasoning_parts = st.builds(lambda text: pb.Part(reasoning=pb.ReasoningPart(texts=[text])), words)
states = st.builds(lambda data: pb.ReasoningState(data=data, format="native"), words)
function_calls = st.builds(
    lambda call_id, name, arguments, state: pb.Part(
        tool_call=pb.ToolCall(call_id=call_id, name=name, arguments_json=arguments), state=state
    ),
    names, names, words, optional(states),
)  # fmt: skip
custom_calls = st.builds(
    lambda call_id, name, text: pb.Part(tool_call=pb.ToolCall(call_id=call_id, name=name, text=text)),
    names,
    names,
    texts,
)
calls = st.lists(function_calls | custom_calls, max_size=3)

user_messages = st.builds(
    lambda role, parts, name: pb.Message(role=role, parts=parts, name=name),
    st.just(pb.ROLE_USER),
    st.lists(text_parts | images | sounds | opaque_parts, min_size=1, max_size=3),
    st.just("") | names,
)
system_messages = st.builds(
    lambda role, parts: pb.Message(role=role, parts=parts),
    st.sampled_from([pb.ROLE_SYSTEM, pb.ROLE_DEVELOPER]),
    st.lists(text_parts, min_size=1, max_size=2),
)
assistant_messages = st.builds(
    lambda thoughts, text_part, called: pb.Message(role=pb.ROLE_ASSISTANT, parts=[*thoughts, *text_part, *called]),
    st.lists(reasoning_parts, max_size=1),
    st.lists(spoken_parts | refusal_parts, min_size=1, max_size=3),
    calls,
)
tool_messages = st.builds(
    lambda call_id, name, parts: pb.Message(
        role=pb.ROLE_TOOL, parts=[pb.Part(tool_result=pb.ToolResult(call_id=call_id, name=name, parts=parts))]
    ),
    names,
    st.just("") | names,
    st.lists(spoken_parts, max_size=2),
)


def _in_turn(messages: list[pb.Message]) -> list[pb.Message]:
    """Leave out a turn of the model's that follows another one: turns with calls would be merged."""
    roles = [pb.ROLE_UNSPECIFIED, *(message.role for message in messages)]
    return [
        message
        for before, message in zip(roles, messages, strict=False)
        if (before, message.role) != (pb.ROLE_ASSISTANT,) * 2
    ]


messages = st.lists(user_messages | system_messages | assistant_messages | tool_messages, min_size=1, max_size=5).map(
    _in_turn
)

schemas = st.sampled_from(["", '{"type": "object", "properties": {"b": {"minimum": 1.0}, "a": {}}}', "{}"])


def tool_identity(tool: pb.Tool) -> tuple[str, str]:
    """The name of a tool that callers run, which is unique in a request, or the whole tool of another kind."""
    name = tool.function.name or tool.custom.name
    return tool.namespace.name, name or str(tool)


tools = st.one_of(
    st.builds(
        lambda schema, extra, name: pb.Tool(function=pb.FunctionTool(name=name, parameters_json=schema, **extra)),
        schemas, set_fields(description=texts, strict=flags), names,
    ),
    st.builds(lambda extra, name: pb.Tool(custom=pb.CustomTool(name=name, **extra)), set_fields(description=texts), names),
    st.builds(lambda kind: pb.Tool(opaque=pb.OpaquePart(format="chat", type=f"x_{kind}", json=f'{{"type":"x_{kind}"}}')), names),
)  # fmt: skip
choices = st.one_of(
    st.builds(
        pb.ToolChoice,
        mode=st.sampled_from([pb.TOOL_CHOICE_MODE_AUTO, pb.TOOL_CHOICE_MODE_NONE, pb.TOOL_CHOICE_MODE_REQUIRED]),
    ),
    st.builds(lambda name: pb.ToolChoice(mode=pb.TOOL_CHOICE_MODE_REQUIRED, names=[name]), names),
    st.builds(
        lambda mode, chosen: pb.ToolChoice(mode=mode, names=chosen, allowed_tools=True),
        st.sampled_from([pb.TOOL_CHOICE_MODE_AUTO, pb.TOOL_CHOICE_MODE_REQUIRED]),
        st.lists(names, min_size=1, max_size=2),
    ),
)
places = st.builds(pb.UserLocation, country=names, city=st.just("") | names, region=names, timezone=names)
searches = st.one_of(
    st.builds(
        lambda extra: pb.SearchOptions(**extra),
        set_fields(context_size=st.sampled_from(["low", "high"]), user_location=places),
    ),
    st.builds(
        lambda mode, extra: pb.SearchOptions(mode=mode, **extra),
        st.sampled_from([pb.SEARCH_MODE_ON, pb.SEARCH_MODE_OFF, pb.SEARCH_MODE_AUTO]),
        set_fields(return_citations=flags),
    ),
    st.builds(pb.SearchOptions, region=names, recency_days=st.integers(0, 400)),
)
efforts = st.sampled_from(["none", "minimal", "low", "medium", "high", "xhigh", "max"])
reasonings = st.one_of(
    st.builds(pb.ReasoningOptions, effort=efforts),
    st.builds(
        lambda mode, extra: pb.ReasoningOptions(mode=mode, **extra),
        st.sampled_from([pb.REASONING_MODE_ENABLED, pb.REASONING_MODE_DISABLED]),
        set_fields(budget_tokens=st.integers(-1, 9999)),
    ),
)
formats = st.one_of(
    st.just(pb.ResponseFormat(text=pb.TextFormat())),
    st.just(pb.ResponseFormat(json=pb.JsonFormat())),
    st.builds(
        lambda name, schema, extra: pb.ResponseFormat(json_schema=pb.JsonSchemaFormat(name=name, schema_json=schema, **extra)),
        names, schemas, set_fields(strict=flags, description=words),
    ),
)  # fmt: skip
two = st.floats(-2, 2)


def _request(messages: list[pb.Message], enable_thinking: bool, fields: dict[str, object]) -> pb.GenerateRequest:
    request = pb.GenerateRequest(messages=messages, **fields)
    if enable_thinking and request.reasoning.mode and not request.reasoning.HasField("budget_tokens"):
        request.face_hints.enable_thinking = True
    return request


requests = st.builds(
    _request,
    messages,
    st.booleans(),
    set_fields(
        model=names,
        temperature=st.floats(0, 2),
        top_p=st.floats(0, 1),
        max_output_tokens=st.integers(1, MAX_COUNT),
        stop_sequences=st.lists(words, min_size=1, max_size=4),
        candidate_count=st.integers(1, 128),
        seed=st.integers(-(2**63), 2**63 - 1),
        presence_penalty=two,
        frequency_penalty=two,
        logit_bias=st.dictionaries(names, st.floats(-100, 100), max_size=2),
        logprobs=flags,
        top_logprobs=st.integers(0, 20),
        tools=st.lists(tools, max_size=3, unique_by=tool_identity),
        parallel_tool_calls=flags,
        search=searches,
        reasoning=reasonings,
        response_format=formats,
        verbosity=st.sampled_from(["low", "medium", "high"]),
        output_modalities=st.just(["text", "audio"]),
        audio_output=st.builds(
            pb.AudioOutputOptions, format=st.just("mp3"), voice_json=st.sampled_from(["alloy", '{"id":"v1"}'])
        ),
        prediction=st.lists(text_parts, min_size=1, max_size=2),
        store=flags,
        prompt_cache_key=words,
        prompt_cache_retention=st.sampled_from(["in_memory", "24h"]),
        prompt_cache_options_json=st.just('{"mode": "explicit"}'),
        moderation_json=st.just('{"model": "m"}'),
        metadata=st.dictionaries(names, texts, max_size=2),
        user=words,
        safety_identifier=words,
        service_tier=st.sampled_from(["auto", "default", "flex", "priority"]),
        tool_choice=choices,
    ),
)

citations = st.builds(
    lambda title, url, start, length: pb.Citation(title=title, web=pb.WebSource(url=url), start_index=start, end_index=start + length),
    texts, names.map("https://pages.test/".__add__), st.integers(0, 9), st.integers(0, 9),
)  # fmt: skip
plain_logprobs = st.builds(
    lambda token, value, extra: pb.TokenLogprob(token=token, logprob=value, **extra),
    texts, st.floats(-9999, 0), set_fields(raw_bytes=st.binary(max_size=4)),
)  # fmt: skip
logprobs = st.builds(
    lambda entry, others: pb.TokenLogprob(token=entry.token, logprob=entry.logprob, alternatives=others),
    plain_logprobs, st.lists(plain_logprobs, max_size=2),
)  # fmt: skip
generated_images = st.builds(
    lambda data: pb.Part(media=pb.MediaPart(kind=pb.MEDIA_KIND_IMAGE, data=data, mime_type="image/png")),
    st.binary(min_size=1, max_size=9),
)
generated_audio = st.builds(
    lambda data, media_id, transcript, expire: pb.Part(
        media=pb.MediaPart(
            kind=pb.MEDIA_KIND_AUDIO, data=data, media_id=media_id, transcript=transcript, expire_time={"seconds": expire}, mime_type="audio/mpeg"
        )
    ),
    st.binary(min_size=1, max_size=9), names, texts, st.integers(1, 2**33),
)  # fmt: skip


@st.composite
def candidates(draw: DrawFn, index: int) -> pb.Candidate:
    parts = draw(st.lists(reasoning_parts, max_size=1))
    refused = False
    match draw(st.integers(0, 3)):
        case 0:
            text_part = pb.TextPart(
                text=draw(words),
                citations=draw(st.lists(citations, max_size=2)),
                logprobs=draw(st.lists(logprobs, max_size=2)),
            )
            parts.append(pb.Part(text=text_part))
        case 1:
            refused = True
            parts.append(
                pb.Part(refusal=pb.RefusalPart(text=draw(words), logprobs=draw(st.lists(logprobs, max_size=1))))
            )
        case 2:
            parts += [
                pb.Part(text=pb.TextPart(text=draw(words))),
                *draw(st.lists(generated_images, max_size=2)),
                *draw(st.lists(generated_audio, max_size=1)),
            ]
    called = draw(calls)
    parts += called
    plain = [pb.FINISH_REASON_STOP, pb.FINISH_REASON_LENGTH, pb.FINISH_REASON_CONTENT_FILTER]
    reason = (
        pb.FINISH_REASON_TOOL_CALLS if called else pb.FINISH_REASON_REFUSAL if refused else draw(st.sampled_from(plain))
    )
    return pb.Candidate(index=index, message=pb.Message(role=pb.ROLE_ASSISTANT, parts=parts), finish_reason=reason)


usages = st.builds(
    pb.Usage, input_tokens=counts, output_tokens=counts, cache_read_tokens=counts, cache_write_tokens=counts, reasoning_tokens=counts,
    audio_input_tokens=counts, image_input_tokens=counts, audio_output_tokens=counts, image_output_tokens=counts,
    accepted_prediction_tokens=counts, rejected_prediction_tokens=counts,
)  # fmt: skip


@st.composite
def responses(draw: DrawFn) -> pb.GenerateResponse:
    response = pb.GenerateResponse(
        response_id=draw(names), model="m", service_tier=draw(st.sampled_from(["", "default"])),
        system_fingerprint=draw(st.just("") | names), usage=draw(usages),
    )  # fmt: skip
    response.create_time.seconds = draw(st.integers(1, 2**33))
    response.candidates.extend(draw(candidates(index)) for index in range(draw(st.integers(1, 3))))
    return response


ANSWERED = pb.GenerateRequest(
    candidate_count=2,
    model="m",
    face_hints=pb.FaceHints(include_usage=True),
    audio_output=pb.AudioOutputOptions(format="mp3"),
)
