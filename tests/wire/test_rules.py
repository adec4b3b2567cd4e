"""What a codec lets through keeps the rules of the schema: the service does not hold it against them again."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from umg_grpc.errors import UmgError
from umg_grpc.service.validation import check
from umg_grpc.wire import FORMATS

NUMBERS = st.sampled_from([-3, -2.5, -2, -1, 0, 1, 2, 2.5, 3, 20, 21, 50.0, 128, 129, 100.5, 2**31, 2**63, 1e300])
TEXTS = st.sampled_from(
    ["", "a", "low", "auto", "required", "user", "5m", "x" * 600, "data:image/png;base64,aGk=", "http://h/i.png"]
)
LEAVES = st.none() | st.booleans() | NUMBERS | TEXTS
MAPS = st.dictionaries(TEXTS, LEAVES, max_size=70)
VALUES = LEAVES | st.lists(LEAVES, max_size=6) | MAPS | st.lists(MAPS, max_size=3)

TOOL = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["function", "custom", "new"]),
        "function": st.fixed_dictionaries({"name": TEXTS, "strict": LEAVES}),
    }
)
PART = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "image_url", "input_audio", "new"])},
    optional={
        "text": TEXTS,
        "image_url": st.fixed_dictionaries({"url": TEXTS, "detail": LEAVES}),
        "input_audio": st.fixed_dictionaries({"data": TEXTS, "format": TEXTS}),
    },
)
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "developer", "user", "assistant", "tool", "function", "robot"])},
    optional={
        "content": LEAVES | st.lists(PART, max_size=3),
        "name": LEAVES,
        "tool_call_id": LEAVES,
        "reasoning_content": LEAVES,
        "tool_calls": st.lists(
            st.fixed_dictionaries({"id": TEXTS, "type": st.just("function"), "function": st.fixed_dictionaries({"name": TEXTS, "arguments": TEXTS})}),
            max_size=2,
        ),
    },
)  # fmt: skip
THINKING = st.fixed_dictionaries(
    {"thinking_config": st.fixed_dictionaries({"thinking_budget": NUMBERS, "include_thoughts": LEAVES})}
)
FIELDS: dict[str, st.SearchStrategy[object]] = {
    **dict.fromkeys(("temperature", "top_p", "top_k", "n", "stop", "seed", "presence_penalty", "max_tokens"), VALUES),
    **dict.fromkeys(("max_completion_tokens", "frequency_penalty", "logit_bias", "logprobs", "top_logprobs"), VALUES),
    **dict.fromkeys(("tool_choice", "response_format", "reasoning_effort", "metadata", "user", "verbosity"), VALUES),
    **dict.fromkeys(("modalities", "audio", "prediction", "service_tier", "prompt_cache_key", "thinking"), VALUES),
    "tools": st.lists(TOOL, max_size=3),
    "functions": st.lists(st.fixed_dictionaries({"name": TEXTS}), max_size=2),
    "web_search_options": MAPS,
    "search_parameters": st.fixed_dictionaries({"mode": TEXTS}, optional={"return_citations": LEAVES}),
    "parameters": st.fixed_dictionaries({"search_options": st.fixed_dictionaries({"recency_days": NUMBERS, "region": TEXTS})}),
    "extra_body": st.fixed_dictionaries({"vendorg": THINKING}),
    "vendorg": THINKING,
}  # fmt: skip


@st.composite
def bodies(draw: st.DrawFn) -> dict[str, object]:
    """A body that is right but for one or two fields, which are anything."""
    body: dict[str, object] = {"model": draw(st.just("m") | TEXTS), "messages": [{"role": "user", "content": "Hi"}]}
    if draw(st.booleans()):
        body["messages"] = draw(st.lists(MESSAGE, max_size=3))
    for name in draw(st.lists(st.sampled_from(sorted(FIELDS)), max_size=2)):
        body[name] = draw(FIELDS[name])
    return body


@settings(max_examples=2000, deadline=None)
@given(bodies())
def test_a_chat_body_that_is_accepted_keeps_the_rules(body: dict[str, object]) -> None:
    try:
        request = FORMATS["chat"].decode_request(json.dumps(body).encode(), {}).canonical
    except UmgError:
        return
    check(request)
