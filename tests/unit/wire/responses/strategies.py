"""Strategies of canonical requests and answers that responses can express without loss, and of unknown fields."""

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from tests.unit.wire.chat.strategies import (
    counts,
    flags,
    logprobs,
    names,
    optional,
    places,
    set_fields,
    texts,
    tool_identity,
    words,
)
from umg_grpc.v1 import pb
from umg_grpc.v1.limits import MAX_COUNT
from umg_grpc.wire.core.charged_service_tiers import charged_tier
from umg_grpc.wire.responses.encode_options import ENCRYPTED_INCLUDE, LOGPROBS_INCLUDE
from umg_grpc.wire.responses.encode_output import SOURCES_INCLUDE
from umg_grpc.wire.responses.tools import SEARCH_TYPES

__all__ = ["ANSWERED", "requests", "responses"]

Parts = SearchStrategy[pb.Part]


def part(**kind: SearchStrategy[object]) -> Parts:
    return st.builds(pb.Part, **kind)


# --- requests

url_citations = st.builds(
    lambda title, url, start, length: pb.Citation(
        title=title, web=pb.WebSource(url=url), start_index=start, end_index=start + length
    ),
    texts, names.map("https://pages.test/".__add__), st.integers(0, 9), st.integers(0, 9),
)  # fmt: skip
file_citations = st.builds(
    lambda title, file_id, index: pb.Citation(
        title=title, document=pb.DocumentSource(file_id=file_id, document_index=index)
    ),
    texts, names, st.integers(0, 9),
)  # fmt: skip
UNKNOWN_CITATION = pb.Citation(
    opaque=pb.OpaquePart(format="responses", type="file_path", json='{"type":"file_path","file_id":"f","index":1}')
)
citations = url_citations | file_citations | st.just(UNKNOWN_CITATION)

text_parts = part(text=st.builds(pb.TextPart, text=texts))
spoken_parts = part(text=st.builds(pb.TextPart, text=words, citations=st.lists(citations, max_size=2))) | part(
    refusal=st.builds(pb.RefusalPart, text=words)
)
sources: SearchStrategy[dict[str, object]] = st.one_of(
    st.fixed_dictionaries(
        {"data": st.binary(min_size=1, max_size=9), "mime_type": st.sampled_from(["image/png", "image/jpeg"])}
    ),
    st.fixed_dictionaries({"uri": names.map("https://images.test/".__add__)}),
    st.fixed_dictionaries({"file_id": names}),
)
images = st.builds(
    lambda source, detail: pb.Part(media=pb.MediaPart(kind=pb.MEDIA_KIND_IMAGE, detail=detail, **source)),
    sources,
    st.sampled_from(["low", "high", "auto", "original"]),
)
files = st.builds(
    lambda source, detail, name: pb.Part(
        media=pb.MediaPart(kind=pb.MEDIA_KIND_DOCUMENT, detail=detail, filename=name, **source)
    ),
    sources.map(lambda source: source | ({"mime_type": "application/pdf"} if "data" in source else {})),
    st.sampled_from(["", "low", "high", "auto"]),
    names,
)
sounds = st.builds(
    lambda data, mime: pb.Part(media=pb.MediaPart(kind=pb.MEDIA_KIND_AUDIO, data=data, mime_type=mime)),
    st.binary(min_size=1, max_size=9),
    st.sampled_from(["audio/wav", "audio/mpeg"]),
)
opaque_parts = names.map(
    lambda kind: pb.Part(
        opaque=pb.OpaquePart(format="responses", type=f"x_{kind}", json=f'{{"type":"x_{kind}","n":1.0}}')
    )
)

user_messages = st.builds(
    lambda parts: [pb.Message(role=pb.ROLE_USER, parts=parts)],
    st.lists(text_parts | images | files | sounds | opaque_parts, min_size=1, max_size=3),
)
system_messages = st.builds(
    lambda role, parts: [pb.Message(role=role, parts=parts)],
    st.sampled_from([pb.ROLE_SYSTEM, pb.ROLE_DEVELOPER]),
    st.lists(text_parts, min_size=1, max_size=2),
)
phases = st.sampled_from(["", "commentary", "final_answer"])
messages_ = st.builds(
    lambda item_id, phase, parts: pb.Message(
        role=pb.ROLE_ASSISTANT, message_id=f"msg_{item_id}", phase=phase, parts=parts
    ),
    names, phases, st.lists(spoken_parts, min_size=1, max_size=3),
)  # fmt: skip
item_ids = st.just("") | names
calls = st.builds(
    lambda call_id, name, arguments, item_id: pb.Message(
        role=pb.ROLE_ASSISTANT,
        parts=[
            pb.Part(
                tool_call=pb.ToolCall(
                    call_id=call_id, name=name, arguments_json=arguments, item_id=item_id and f"fc_{item_id}"
                )
            )
        ],
    ),
    names, names, words, item_ids,
)  # fmt: skip
custom_calls = st.builds(
    lambda call_id, name, text, item_id: pb.Message(
        role=pb.ROLE_ASSISTANT,
        parts=[
            pb.Part(tool_call=pb.ToolCall(call_id=call_id, name=name, text=text, item_id=item_id and f"ctc_{item_id}"))
        ],
    ),
    names, names, texts, item_ids,
)  # fmt: skip


def searched(item_id: str, queries: list[str], urls: list[str]) -> list[pb.Part]:
    found = ",".join(f'{{"type":"url","url":"{url}"}}' for url in urls)
    encoded_queries = ",".join(f'"{query}"' for query in queries)
    action = f'{{"type":"search","query":"{queries[0]}","queries":[{encoded_queries}],"sources":[{found}]}}'
    call = pb.ServerToolCall(
        call_id=f"ws_{item_id}", name="web_search", queries=queries, input_json=action, format="responses"
    )
    parts = [pb.Part(server_tool_call=call)]
    if urls:
        results = [pb.SearchResult(url=url) for url in urls]
        result = pb.ServerToolResult(call_id=f"ws_{item_id}", name="web_search", results=results)
        parts.append(pb.Part(server_tool_result=result))
    return parts


search_parts = st.builds(
    searched, names, st.lists(names, min_size=1, max_size=2), st.lists(names.map("https://a.test/".__add__), max_size=2)
)
searches = search_parts.map(lambda parts: pb.Message(role=pb.ROLE_ASSISTANT, parts=parts))
states = st.builds(pb.ReasoningState, data=words, format=st.just("responses"))
thoughts = st.builds(
    lambda item_id, summaries, raw, state: pb.Part(
        reasoning=pb.ReasoningPart(item_id=f"rs_{item_id}", summaries=summaries, texts=raw), state=state
    ),
    names, st.lists(words, max_size=2), st.lists(words, max_size=2), states,
)  # fmt: skip
made = messages_ | calls | custom_calls | searches
turns = st.builds(
    lambda thought, item: [*([pb.Message(role=pb.ROLE_ASSISTANT, parts=[thought])] if thought else []), item],
    optional(thoughts),
    made,
)
results = st.builds(
    lambda call_id, parts, custom, item_id: [
        pb.Message(
            role=pb.ROLE_TOOL,
            parts=[
                pb.Part(
                    tool_result=pb.ToolResult(
                        call_id=call_id, parts=parts, custom=custom, item_id=item_id and f"fco_{item_id}"
                    )
                )
            ],
        )
    ],
    names, st.lists(part(text=st.builds(pb.TextPart, text=words)) | images | files, max_size=2), flags, item_ids,
)  # fmt: skip
unknown_items = opaque_parts.map(lambda opaque: [pb.Message(parts=[opaque])])
conversations = st.lists(user_messages | system_messages | turns | results | unknown_items, min_size=1, max_size=5).map(
    lambda groups: [message for group in groups for message in group]
)

schemas = st.sampled_from(["", '{"type": "object", "properties": {"b": {"minimum": 1.0}, "a": {}}}', "{}"])
functions = st.builds(
    lambda name, schema, strict, extra: pb.Tool(
        function=pb.FunctionTool(name=name, parameters_json=schema, strict=strict, **extra)
    ),
    names, schemas, flags, set_fields(description=texts),
)  # fmt: skip
tools = st.one_of(
    functions,
    st.builds(lambda name, extra: pb.Tool(custom=pb.CustomTool(name=name, **extra)), names, set_fields(description=texts, format_json=st.just('{"type":"text"}'))),
    st.builds(
        lambda kind, extra: pb.Tool(web_search=pb.WebSearchTool(declared_type=kind, **extra)),
        st.sampled_from(SEARCH_TYPES),
        set_fields(context_size=st.sampled_from(["low", "medium", "high"]), user_location=places, allowed_domains=st.just(["a.test"])),
    ),
    st.builds(
        lambda extra: pb.Tool(file_search=pb.FileSearchTool(**extra)),
        set_fields(vector_store_ids=st.just(["vs_1"]), max_results=st.integers(1, 50), options_json=st.just('{"filters":{"type":"eq","key":"a","value":"b"}}')),
    ),
    names.map(lambda kind: pb.Tool(opaque=pb.OpaquePart(format="responses", type=f"x_{kind}", json=f'{{"type":"x_{kind}"}}'))),
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
    st.just(pb.ToolChoice(opaque=pb.OpaquePart(format="responses", type="file_search", json='{"type":"file_search"}'))),
)
toolings = set_fields(tools=st.lists(tools, min_size=1, max_size=3, unique_by=tool_identity)) | set_fields(
    tools=st.lists(functions, max_size=1), tool_choice=choices
)
formats = st.one_of(
    st.just(pb.ResponseFormat(text=pb.TextFormat())),
    st.just(pb.ResponseFormat(json=pb.JsonFormat())),
    st.builds(
        lambda name, schema, extra: pb.ResponseFormat(json_schema=pb.JsonSchemaFormat(name=name, schema_json=schema, **extra)),
        names, st.sampled_from(["{}", '{"type": "object"}']), set_fields(strict=flags, description=words),
    ),
)  # fmt: skip
continued = st.one_of(
    st.just({}),
    st.fixed_dictionaries({"previous_response_id": names}),
    st.fixed_dictionaries({"conversation_id": names}),
)
requests = st.builds(
    lambda conversation, extra, tooling, before: pb.GenerateRequest(
        messages=conversation, store=True, **extra, **tooling, **before
    ),
    conversations,
    set_fields(
        model=names,
        instructions=st.lists(part(text=st.builds(pb.TextPart, text=words)), min_size=1, max_size=1),
        temperature=st.floats(0, 2),
        top_p=st.floats(0, 1),
        max_output_tokens=st.integers(1, MAX_COUNT),
        top_logprobs=st.integers(0, 20),
        parallel_tool_calls=flags,
        max_tool_calls=st.integers(1, 99),
        reasoning=st.builds(
            pb.ReasoningOptions,
            effort=st.sampled_from(["none", "minimal", "low", "medium", "high", "xhigh", "max"]),
            summary=st.sampled_from(["", "auto", "concise", "detailed"]),
        ),
        response_format=formats,
        verbosity=st.sampled_from(["low", "medium", "high"]),
        include=st.lists(
            st.sampled_from([ENCRYPTED_INCLUDE, SOURCES_INCLUDE, "file_search_call.results"]), unique=True
        ),
        truncation=st.sampled_from([pb.TRUNCATION_AUTO, pb.TRUNCATION_DISABLED]),
        prompt_template=st.builds(
            lambda prompt_id, extra: pb.PromptTemplate(prompt_id=prompt_id, **extra),
            names,
            set_fields(version=names, variables_json=st.just('{"a": "b"}')),
        ),
        prompt_cache_key=words,
        prompt_cache_retention=st.sampled_from(["in_memory", "24h"]),
        prompt_cache_options_json=st.just('{"mode": "explicit"}'),
        moderation_json=st.just('{"model": "m"}'),
        metadata=st.dictionaries(names, texts, max_size=2),
        user=words,
        safety_identifier=words,
        service_tier=st.sampled_from(["auto", "default", "flex", "priority"]),
    ),
    toolings,
    continued,
)

# --- answers

ANSWERED = pb.GenerateRequest(model="m", include=[ENCRYPTED_INCLUDE, SOURCES_INCLUDE, LOGPROBS_INCLUDE])


@st.composite
def messages(draw: DrawFn, index: int) -> list[pb.Part]:
    phase, parts = draw(phases), list[pb.Part]()
    for _ in range(draw(st.integers(1, 3))):
        if draw(flags):
            kind: dict[str, object] = {"refusal": pb.RefusalPart(text=draw(words))}
        else:
            text = pb.TextPart(
                text=draw(words),
                citations=draw(st.lists(citations, max_size=2)),
                logprobs=[_with_bytes(entry) for entry in draw(st.lists(logprobs, max_size=2))],
            )
            kind = {"text": text}
        parts.append(pb.Part(message_id=f"msg_{index}", phase=phase, **kind))
    return parts


def _with_bytes(entry: pb.TokenLogprob) -> pb.TokenLogprob:
    for each in (entry, *entry.alternatives):
        each.raw_bytes = each.raw_bytes or b"x"
    return entry


@st.composite
def items(draw: DrawFn, index: int) -> list[pb.Part]:
    """Draw the parts of one item."""
    match draw(st.integers(0, 7)):
        case 0 | 1 | 2:
            return draw(messages(index))
        case 3:
            thought = pb.ReasoningPart(item_id=f"rs_{index}", summaries=draw(st.lists(words, max_size=2)))
            return [pb.Part(reasoning=thought, state=draw(optional(states)))]
        case 4:
            call = pb.ToolCall(
                call_id=f"call_{index}", name=draw(names), item_id=f"fc_{index}", arguments_json=draw(words)
            )
            return [pb.Part(tool_call=call)]
        case 5:
            custom = pb.ToolCall(call_id=f"call_{index}", name=draw(names), item_id=f"ctc_{index}", text=draw(texts))
            return [pb.Part(tool_call=custom)]
        case 6:
            image = pb.MediaPart(
                kind=pb.MEDIA_KIND_IMAGE,
                data=b"\x89PNG\r\n\x1a\n" + draw(st.binary(max_size=9)),
                media_id=f"ig_{index}",
                mime_type="image/png",
            )
            return [pb.Part(media=image)]
        case _:
            return searched(
                str(index), draw(st.lists(names, min_size=1, max_size=2)), draw(st.lists(names, max_size=2))
            )


usages = st.builds(
    pb.Usage,
    input_tokens=counts,
    output_tokens=counts,
    cache_read_tokens=counts,
    cache_write_tokens=counts,
    reasoning_tokens=counts,
)


@st.composite
def responses(draw: DrawFn) -> pb.GenerateResponse:
    tier, usage = draw(st.sampled_from(["default", "flex"])), draw(usages)
    usage.service_tier = charged_tier(tier)
    response = pb.GenerateResponse(response_id=draw(names), model="m", service_tier=tier, usage=usage)
    response.create_time.seconds = draw(st.integers(1, 2**33))
    parts = [part for index in range(draw(st.integers(0, 4))) for part in draw(items(index))]
    response.usage.web_search_requests = sum(part.HasField("server_tool_call") for part in parts)
    called = any(part.HasField("tool_call") for part in parts)
    refused = any(part.HasField("refusal") for part in parts)
    whole = (
        pb.FINISH_REASON_TOOL_CALLS
        if called
        else pb.FINISH_REASON_REFUSAL if refused else pb.FINISH_REASON_STOP
    )  # fmt: skip
    reason = draw(st.sampled_from([whole, whole, pb.FINISH_REASON_LENGTH, pb.FINISH_REASON_CONTENT_FILTER]))
    message = pb.Message(role=pb.ROLE_ASSISTANT, parts=parts)
    response.candidates.add(message=message, finish_reason=reason)
    return response
