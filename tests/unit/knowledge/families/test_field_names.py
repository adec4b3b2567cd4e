"""Requests of other formats, encoded for a provider of chat with the field names of the model's family."""

from dataclasses import dataclass

import msgspec
import pytest

from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.families.text_model_rules import TEXT_FAMILIES, apply, family_model
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.model_quirks import has_functions, has_search_option

CHAT = TEXT_FORMATS["chat"]
ENABLED, DISABLED, ADAPTIVE = pb.REASONING_MODE_ENABLED, pb.REASONING_MODE_DISABLED, pb.REASONING_MODE_ADAPTIVE

Body = dict[str, object]


def encoded(model: str, source: str, fields: Body, *, stream: bool = True) -> tuple[Body, str]:
    """Return the body for a provider of chat, without the fields that every body has, and the report."""
    request = pb.GenerateRequest(model="m", **fields)
    request.messages.add(role=pb.ROLE_USER).parts.add().text.text = "hi"
    if source:
        request.source.format, request.source.body = source, b"{}"
    upstream = CHAT.encode_request(request, model, stream)
    body = msgspec.json.decode(upstream.body)
    for name in ("model", "messages", "stream", "stream_options"):
        body.pop(name, None)
    return body, upstream.report.header()


def reasoning(**options: object) -> Body:
    return {"reasoning": pb.ReasoningOptions(**options)}


def search(**options: object) -> Body:
    return {"search": pb.SearchOptions(**options)}


@dataclass(frozen=True)
class Case:
    id: str
    models: tuple[str, ...]
    fields: Body
    encoded: Body
    report: str = ""
    stream: bool = True
    sources: tuple[str, ...] = ("", "messages")


PLAIN = ("famO-5", "famX-4")
ALL_BUT_Q = (*PLAIN, "famG-3-pro", "famC-1", "famR-1")
WEB_SEARCH = pb.Tool(web_search=pb.WebSearchTool(context_size="low"))
FUNCTION = pb.Tool(function=pb.FunctionTool(name="f"))
TOOLS = [{"type": "function", "function": {"name": "f"}}]
SAMPLING: Body = {"temperature": 1, "top_p": 0.5}
OTHERS = ("famG-3-pro", "famO-5", "famR-1")


def config(**options: object) -> Body:
    """Return vendor G's thinking config, as its chat endpoint reads it."""
    return {"extra_body": {"google": {"thinking_config": options}}}


CASES = [
    Case("chat rule 5: famG-2.5 thinks", ("famG-2.5-pro",), reasoning(mode=ENABLED), config(thinking_budget=-1, include_thoughts=True)),
    Case("chat rule 5: a budget of famG-2.5", ("famG-2.5-pro",), reasoning(budget_tokens=9), config(thinking_budget=9, include_thoughts=True)),
    Case("chat rule 5: famG-2.5 does not think", ("famG-2.5-pro",), reasoning(mode=DISABLED), config(thinking_budget=0, include_thoughts=True)),
    Case("readings 10: thoughts not included", ("famG-2.5-pro",), reasoning(mode=ENABLED, include_thoughts=False), config(thinking_budget=-1, include_thoughts=False)),
    Case("chat table: a level of famG-3", ("famG-3-pro",), reasoning(level="low"), config(thinking_level="low", include_thoughts=True)),
    Case("chat table: famG-3 thinks", ("famG-3-pro",), reasoning(mode=ADAPTIVE), config(thinking_level="high", include_thoughts=True)),
    Case("native callers request thoughts", ("famG-3-pro",), reasoning(level="low"), config(thinking_level="low"), sources=("native",)),
    Case("chat rule 2: sampling of famQ", ("famQ-3-max",), SAMPLING, {"parameters": SAMPLING}),
    Case("sampling of all others", (*ALL_BUT_Q, "mine"), SAMPLING, SAMPLING),
    # thinking
    Case("chat rule 4: thinking", ("famR-1", "famC-1"), reasoning(mode=ENABLED), {"thinking": {"type": "enabled"}}),
    Case("chat rule 4: a budget", ("famR-1", "famC-1"), reasoning(mode=ENABLED, budget_tokens=2048), {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
    Case("chat rule 4: a budget without a mode", ("famR-1", "famC-1"), reasoning(budget_tokens=9), {"thinking": {"type": "enabled", "budget_tokens": 9}}),
    Case("chat rule 4: an automatic budget", ("famR-1", "famC-1"), reasoning(budget_tokens=-1), {"thinking": {"type": "enabled"}}),
    Case("chat rule 4: adaptive", ("famR-1", "famC-1"), reasoning(mode=ADAPTIVE), {"thinking": {"type": "enabled"}}, "reasoning.mode=enabled"),
    Case("chat rule 4: off", ("famR-1", "famC-1"), reasoning(mode=DISABLED), {"thinking": {"type": "disabled"}}),
    Case("chat rule 4: a budget of zero", ("famR-1", "famC-1"), reasoning(budget_tokens=0), {"thinking": {"type": "disabled"}}),
    Case("chat rule 4: the thoughts are in the response", ("famR-1",), reasoning(mode=ENABLED, include_thoughts=True), {"thinking": {"type": "enabled"}}),
    Case("chat rule 4: beside an effort", ("famR-1",), reasoning(mode=ENABLED, effort="high"), {"thinking": {"type": "enabled"}, "reasoning_effort": "high"}),
    Case("chat rule 4: an effort of none", ("famR-1", "famC-1"), reasoning(mode=ENABLED, effort="none"), {"reasoning_effort": "none"}),
    Case("chat rule 3: thinking", ("famQ-3-max",), reasoning(mode=ENABLED), {"enable_thinking": True}),
    Case("chat rule 3: thinking without a stream", ("famQ-3-max",), reasoning(mode=ENABLED), {"enable_thinking": False}, "reasoning.mode=disabled", stream=False),
    Case("chat rule 3: a budget", ("famQ-3-max",), reasoning(budget_tokens=2048), {"enable_thinking": True}, "reasoning.budget_tokens"),
    Case("chat rule 3: an automatic budget", ("famQ-3-max",), reasoning(mode=ENABLED, budget_tokens=-1), {"enable_thinking": True}),
    Case("chat rule 3: off", ("famQ-3-max",), reasoning(mode=DISABLED), {"enable_thinking": False}),
    Case("chat rule 3: off without a stream", ("famQ-3-max",), reasoning(mode=DISABLED), {"enable_thinking": False}, stream=False),
    Case("no switch: thinking", PLAIN, reasoning(mode=ENABLED), {"reasoning_effort": "medium"}, "reasoning.mode=effort medium"),
    Case("no switch: thinking, named as famQ does", PLAIN, {**reasoning(mode=ENABLED), "face_hints": pb.FaceHints(enable_thinking=True)}, {"reasoning_effort": "medium"}, "reasoning.mode=effort medium"),
    Case("no switch: a budget", PLAIN, reasoning(mode=ENABLED, budget_tokens=2000), {"reasoning_effort": "low"}, "reasoning.budget_tokens=effort low"),
    Case("no switch: an automatic budget", PLAIN, reasoning(mode=ENABLED, budget_tokens=-1), {"reasoning_effort": "medium"}, "reasoning.mode=effort medium"),
    Case("no switch: off", PLAIN, reasoning(mode=DISABLED), {"reasoning_effort": "none"}, "reasoning.mode=effort none"),
    Case("no switch: adaptive", PLAIN, reasoning(mode=ADAPTIVE), {}, "reasoning.mode"),
    Case("no switch: an effort alone", PLAIN, reasoning(mode=ENABLED, budget_tokens=9, effort="high"), {"reasoning_effort": "high"}),
    Case("every family: an effort", (*ALL_BUT_Q, "famQ-3-max"), reasoning(effort="low"), {"reasoning_effort": "low"}),
    Case("no family: as in a gRPC request", ("mine",), reasoning(mode=ENABLED, budget_tokens=9), {"thinking": {"type": "enabled", "budget_tokens": 9}}, sources=("",)),
    Case("no family: as the nearest effort", ("mine",), reasoning(mode=ENABLED, budget_tokens=9), {"reasoning_effort": "low"}, "reasoning.budget_tokens=effort low", sources=("messages",)),
    # search
    *(
        Case(f"search {name}", OTHERS, search(mode=mode), {"web_search_options": {}})
        for name, mode in (("unset", pb.SEARCH_MODE_UNSPECIFIED), ("on", pb.SEARCH_MODE_ON), ("auto", pb.SEARCH_MODE_AUTO))
    ),
    Case("no search", OTHERS, search(mode=pb.SEARCH_MODE_OFF, context_size="low"), {}),
    Case("search in detail", OTHERS, search(mode=pb.SEARCH_MODE_ON, context_size="low"), {"web_search_options": {"search_context_size": "low"}}),
    Case("fields of famQ only", OTHERS, search(region="cn", recency_days=3), {"web_search_options": {}}, "search.region, search.recency_days"),
    Case("fields of famX only", OTHERS, search(return_citations=False), {"web_search_options": {}}, "search.return_citations"),
    Case("sources, the default", OTHERS, search(return_citations=True), {"web_search_options": {}}),
    Case("chat table: search of famX", ("famX-4",), search(mode=pb.SEARCH_MODE_AUTO, return_citations=False), {"search_parameters": {"mode": "auto", "return_citations": False}}),
    Case("chat table: no search of famX", ("famX-4",), search(mode=pb.SEARCH_MODE_OFF), {"search_parameters": {"mode": "off"}}),
    Case("chat table: search of famX in detail", ("famX-4",), search(mode=pb.SEARCH_MODE_ON, context_size="low", region="eu"), {"search_parameters": {"mode": "on"}, "web_search_options": {"search_context_size": "low"}}, "search.region"),
    Case("chat rule 2: search of famQ", ("famQ-3-max",), search(), {"parameters": {"enable_search": True}}),
    Case("chat rule 2: no search of famQ", ("famQ-3-max",), search(mode=pb.SEARCH_MODE_OFF), {"parameters": {"enable_search": False}}),
    Case("chat rule 2: search of famQ in detail", ("famQ-3-max",), search(mode=pb.SEARCH_MODE_AUTO, region="cn", recency_days=0, return_citations=False), {"parameters": {"search_options": {"region": "cn", "recency_days": 0}, "enable_search": True}}, "search.return_citations"),
    Case("chat rule 2: the rest of famQ's", ("famQ-3-max",), {"temperature": 1, "incremental_output": True, "speech_language": "zh"}, {"parameters": {"temperature": 1, "incremental_output": True, "asr_options": {"language": "zh"}}}),
    Case("the rest of famQ's elsewhere", ALL_BUT_Q, {"incremental_output": True, "speech_language": "zh"}, {}, "incremental_output, speech_language", sources=("",)),
    Case("chat rule 6: beside a tool", ("famC-1",), {"tools": [WEB_SEARCH, FUNCTION]}, {"tools": TOOLS, "web_search_options": {"search_context_size": "low"}}),
    Case("chat rule 6: beside a function", ("famC-1",), {"tools": [FUNCTION], "face_hints": pb.FaceHints(legacy_functions=True), **search()}, {"functions": [{"name": "f"}], "web_search_options": {}}),
    Case("no family: famX's field", ("mine",), search(mode=pb.SEARCH_MODE_ON, return_citations=False), {"search_parameters": {"mode": "on", "return_citations": False}}),
    Case("no family: famQ's fields", ("mine",), search(mode=pb.SEARCH_MODE_ON, region="eu"), {"parameters": {"search_options": {"region": "eu"}, "enable_search": True}}),
    Case("no family: a search beside famQ's", ("mine",), search() | {"incremental_output": True}, {"parameters": {"incremental_output": True}, "web_search_options": {}}, sources=("",)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_fields_are_encoded_for_chat_with_the_names_of_the_family(case: Case) -> None:
    for model in case.models:
        for source in case.sources:
            assert encoded(model, source, case.fields, stream=case.stream) == (case.encoded, case.report), (
                model,
                source,
            )


@pytest.mark.parametrize("fields", [{"tools": [WEB_SEARCH]}, search()], ids=["a tool", "an option"])
def test_chat_rule_6_a_search_alone_is_refused(fields: Body) -> None:
    with pytest.raises(UmgError, match="cannot search the web"):
        encoded("famC-1", "responses", fields, stream=False)


def test_a_chat_body_of_the_caller_is_forwarded_unchanged() -> None:
    body: Body = {"temperature": 1, "thinking": {"type": "enabled"}, "search_parameters": {"mode": "on"}}
    whole = {"model": "m", "messages": [{"role": "user", "content": "hi"}]} | body
    request = CHAT.decode_request(msgspec.json.encode(whole), {}).canonical
    for model in ("famQ-3-max", "famO-5", "famC-1", "mine"):
        assert msgspec.json.decode(CHAT.encode_request(request, model, False).body) == whole | {"model": model}


@pytest.mark.parametrize("family", [*TEXT_FAMILIES, ""])
@pytest.mark.parametrize("stream", [True, False])
def test_an_encoded_body_is_accepted_by_another_gateway(family: str, stream: bool) -> None:
    model = f"{family}-2.5-flash" if family else "mine"
    for case in CASES:
        request = pb.GenerateRequest(model=model, **case.fields)
        request.messages.add(role=pb.ROLE_USER).parts.add().text.text = "hi"
        if family == "famC" and has_search_option(request) and not has_functions(request):
            continue  # chat rule 6: refused
        decoded, _, notes = CHAT.decode_request(CHAT.encode_request(request, model, stream).body, {})
        apply(
            decoded, notes.family, family_model(family, model), None, stream=stream
        )  # raises for a request that the family refuses
