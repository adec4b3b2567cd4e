"""Chat bodies under the rules of the families: refused by the path that the caller wrote, or encoded for a provider of
chat.
"""

from dataclasses import dataclass

import msgspec
import pytest

from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.families.text_model_rules import apply, family_model, family_of, split_suffix
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.facts_beside_request import RequestNotes
from umg_grpc.wire.text_format_interface import FaceRequest

CHAT = TEXT_FORMATS["chat"]

Body = dict[str, object]


def decoded(model: str, body: Body) -> FaceRequest:
    whole = {"model": model, "messages": [{"role": "user", "content": "hi"}]} | body
    return CHAT.decode_request(msgspec.json.encode(whole), {})


def admitted(model: str, body: Body) -> tuple[pb.GenerateRequest, bool]:
    """Return the request as a channel gets it, and whether an option of the caller was changed. The id's prefix names the
    model's family.
    """
    base, suffix = split_suffix(model) or (model, None)
    request, stream, notes = decoded(model, body)
    return apply(request, notes.family, family_model(family_of(base), base), suffix, stream=stream)


def encoded_body(request: pb.GenerateRequest, *, edited: bool = False) -> Body:
    """Return the body for a provider of chat, without the fields that every body has."""
    notes = RequestNotes(edited=("reasoning",) if edited else ())
    fields = msgspec.json.decode(CHAT.encode_request(request, "theirs", False, notes=notes).body)
    for name in ("model", "messages", "stream"):
        fields.pop(name, None)
    return fields


def vendor(**config: object) -> Body:
    return {"extra_body": {"vendorg": {"thinking_config": config}}}


def google(**config: object) -> Body:
    return {"extra_body": {"google": {"thinking_config": config}}}


def search(**options: object) -> Body:
    return {"search_parameters": options}


TOOL = {"type": "function", "function": {"name": "web"}}
FLASH, PRO, LEVELS = "famG-2.5-flash", "famG-2.5-pro", "famG-3-pro"


@dataclass(frozen=True)
class Refusal:
    id: str
    model: str
    body: Body
    field: str
    message: str = ""


REFUSALS = [
    *(
        Refusal(f"chat rule 2, readings 9: {name} at the top level", "famQ-3-max", {name: value}, name, f"`parameters.{name}`")
        for name, value in {
            "incremental_output": True, "enable_search": False, "search_options": {"region": "eu"},
            "asr_options": {"language": "de"}, "temperature": 0.7, "top_p": 0,
        }.items()
    ),
    *(
        Refusal(f"chat rule 8: a file on {model}", model, {"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]}]}, "messages[0].content[0]", "/v1/responses")
        for model in ("famO-5", "famQ-3-max", "famX-4", PRO, "famC-sonnet-4-5", "famR-1")
    ),
    Refusal("chat rule 6, readings 12: a search option alone", "famC-sonnet-4-5", {"web_search_options": {}}, "web_search_options", "`tools`"),
    *(
        Refusal(f"readings 1: {path} is for famQ", model, {path: value}, path, f"famQ accept it, not those of {model[:4]}")
        for path, value in {"enable_thinking": False, "parameters": {"enable_search": True}}.items()
        for model in ("famO-5", "famX-4", PRO, "famC-sonnet-4-5", "famR-1")
    ),
    *(
        Refusal(f"readings 1: search_parameters on {model}", model, search(mode="off"), "search_parameters", "famX")
        for model in ("famO-5", "famQ-3-max", PRO, "famC-sonnet-4-5", "famR-1")
    ),
    Refusal("readings 1: a thinking config on famO", "famO-5", vendor(thinking_budget=5), "extra_body.vendorg.thinking_config", "famG"),
    Refusal("readings 1: one that an SDK merged", "famX-4", {"google": {"thinking_config": {}}}, "google.thinking_config"),
    Refusal("readings 1: a search of famG on famO", "famO-5", {"extra_body": {"vendorg": {"tools": [{"vendorgSearch": {}}]}}}, "extra_body.vendorg"),
    Refusal("readings 1: a level on famQ", "famQ-3-max", {"generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW"}}}, "generationConfig.thinkingConfig"),
    *(
        Refusal(f"chat rule 4, readings 8: thinking enabled on {model}", model, {"thinking": {"type": "enabled"}}, "thinking")
        for model in ("famO-5", "famQ-3-max", "famX-4", PRO, LEVELS)
    ),
    Refusal("chat rule 5, readings 10: below automatic", PRO, vendor(thinking_budget=-2), "extra_body.vendorg.thinking_config.thinking_budget"),
    Refusal("generationConfig: a budget on the level tier", LEVELS, vendor(thinking_budget=5), "extra_body.vendorg.thinking_config.thinking_budget", "level"),
    Refusal("generationConfig: a budget on the level tier, as an SDK merges it", LEVELS, {"google": {"thinking_config": {"thinkingBudget": -1}}}, "google.thinking_config.thinkingBudget"),
    Refusal("chat table: a level on the budget tier", FLASH, {"generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW"}}}, "generationConfig.thinkingConfig.thinkingLevel", "budget"),
    Refusal("readings 10: a budget suffix on the level tier", f"{LEVELS}-thinking-1024", {}, "model", "-thinking-low"),
    Refusal("readings 10: a budget suffix beyond the maximum", f"{PRO}-thinking-2147483648", {}, "model", "2147483647"),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.id)
def test_a_field_that_the_family_does_not_accept_is_refused_by_its_path(case: Refusal) -> None:
    for stream in (False, True):
        with pytest.raises(UmgError) as caught:
            admitted(case.model, case.body | {"stream": stream})
        assert caught.value.metadata == {"field": case.field}
        assert caught.value.name in {"UNSUPPORTED_FIELD", "INVALID_FIELD"}
        assert case.field in caught.value.message
        assert case.message in caught.value.message
        assert CHAT.wire_path(case.field) == case.field  # the path is that of the caller's body


@dataclass(frozen=True)
class EncodedCase:
    id: str
    model: str
    body: Body
    streamed: Body
    unstreamed: Body | None = None
    """Body of the unstreamed request, where it differs from that of the streamed one."""


FAMQ_PARAMETERS = {"parameters": {"temperature": 1, "top_p": 0.5, "incremental_output": True, "enable_search": True, "search_options": {"region": "eu", "recency_days": 3}, "asr_options": {"language": "de"}}}  # fmt: skip
WITH_THOUGHTS = {"include_thoughts": True}
ENCODED = [
    # famQ
    EncodedCase("chat rule 2, readings 9: all of the container", "famQ-3-max", FAMQ_PARAMETERS, FAMQ_PARAMETERS),
    EncodedCase("chat rule 2: null means unset", "famQ-3-max", {"temperature": None, "enable_search": None}, {"temperature": None, "enable_search": None}),
    EncodedCase("chat rule 3, readings 9: thinking in a stream", "famQ-3-max", {"enable_thinking": True}, {"enable_thinking": True}, {"enable_thinking": False}),
    EncodedCase("chat rule 3: no thinking", "famQ-3-max", {"enable_thinking": False}, {"enable_thinking": False}),
    EncodedCase("chat rule 3: beside the default of `thinking`", "famQ-3-max", {"enable_thinking": True, "thinking": {"type": "disabled"}, "x": 1}, {"enable_thinking": True, "thinking": {"type": "disabled"}, "x": 1}, {"enable_thinking": False, "x": 1}),
    # famR, famC, famO, famX
    EncodedCase("chat rule 4, readings 8: thinking of famR", "famR-1", {"thinking": {"type": "enabled"}}, {"thinking": {"type": "enabled"}}),
    EncodedCase("chat rule 4, readings 8: the default is not forced", "famR-1", {}, {}),
    EncodedCase("chat rule 4: thinking of famC", "famC-sonnet-4-5", {"thinking": {"type": "enabled", "budget_tokens": 2048}}, {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
    *(EncodedCase(f"chat table: `thinking` disabled is dropped for {model}", model, {"thinking": {"type": "disabled", "budget_tokens": 9}, "reasoning_effort": "low"}, {"reasoning_effort": "low"}) for model in ("famO-5", "famX-4")),
    EncodedCase("chat rule 6: beside tools the option is kept", "famC-sonnet-4-5", {"web_search_options": {"search_context_size": "low"}, "tools": [TOOL]}, {"web_search_options": {"search_context_size": "low"}, "tools": [TOOL]}),
    EncodedCase("chat table: a search option on famO", "famO-5", {"web_search_options": {}}, {"web_search_options": {}}),
    EncodedCase("chat table: search of famX", "famX-4", search(mode="auto", return_citations=False), search(mode="auto", return_citations=False)),
    EncodedCase("chat rule 7: any temperature", "famO-5", {"temperature": 0.1, "top_p": 1}, {"temperature": 0.1, "top_p": 1}),
    # famG, without a suffix
    EncodedCase("chat rule 5: a budget", FLASH, vendor(thinking_budget=2048), google(thinking_budget=2048)),
    EncodedCase("chat rule 5, readings 10: thoughts in streams only", FLASH, vendor(thinking_budget=2048, include_thoughts=True), google(thinking_budget=2048, include_thoughts=True), google(thinking_budget=2048, include_thoughts=False)),
    EncodedCase("chat rule 5: automatic", FLASH, vendor(thinking_budget=-1, include_thoughts=True), google(thinking_budget=-1, include_thoughts=True), google(thinking_budget=-1, include_thoughts=False)),
    EncodedCase("chat rule 5: off", FLASH, vendor(thinking_budget=0, include_thoughts=True), google(thinking_budget=0, include_thoughts=False)),
    EncodedCase("readings 10: thoughts without a budget", FLASH, vendor(include_thoughts=True), google(include_thoughts=False)),
    EncodedCase("readings 10: an effort without the suffix", FLASH, {"reasoning_effort": "high"}, {}),
    EncodedCase("readings 10: an effort without the suffix, beside a budget", FLASH, {"reasoning_effort": "high", "google": {"thinking_config": {"thinking_budget": 9}, "x": 1}}, {"google": {"x": 1}} | google(thinking_budget=9)),
    EncodedCase("chat table: a level", LEVELS, {"generationConfig": {"thinkingConfig": {"thinkingLevel": "HIGH"}}}, google(thinking_level="high")),
    EncodedCase("readings 10: thoughts of a level", LEVELS, {"generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW"}}} | vendor(include_thoughts=True), google(thinking_level="low", include_thoughts=True), google(thinking_level="low", include_thoughts=False)),
    EncodedCase("chat table: `thinking` disabled on famG", FLASH, {"thinking": {"type": "disabled"}} | vendor(thinking_budget=7), google(thinking_budget=7)),
    EncodedCase("chat table: `thinking` disabled on the level tier", LEVELS, {"thinking": {"type": "disabled", "budget_tokens": 5}}, {}),
    # famG, with a suffix
    EncodedCase("chat rule 5: -thinking", f"{PRO}-thinking", {}, google(thinking_budget=-1, **WITH_THOUGHTS), google(thinking_budget=-1, include_thoughts=False)),
    EncodedCase("chat rule 5: -thinking on the level tier", f"{LEVELS}-thinking", {}, google(**WITH_THOUGHTS), google(include_thoughts=False)),
    EncodedCase("chat rule 5: -thinking-<budget>", f"{PRO}-thinking-1024", {}, google(thinking_budget=1024, **WITH_THOUGHTS), google(thinking_budget=1024, include_thoughts=False)),
    EncodedCase("chat rule 5: -thinking-0", f"{PRO}-thinking-0", {}, google(thinking_budget=0, include_thoughts=False)),
    EncodedCase("chat rule 5: -nothinking", f"{PRO}-nothinking", {}, google(thinking_budget=0, include_thoughts=False)),
    EncodedCase("chat rule 5: -nothinking on the level tier", f"{LEVELS}-nothinking", {}, {"reasoning_effort": "none"} | google(include_thoughts=False)),
    EncodedCase("readings 10: -thinking-low of the largest budget", f"{FLASH}-thinking-low", {}, google(thinking_budget=4915, **WITH_THOUGHTS), google(thinking_budget=4915, include_thoughts=False)),
    EncodedCase("readings 10: -thinking-high of the largest budget", f"{PRO}-thinking-high", {}, google(thinking_budget=26214, **WITH_THOUGHTS), google(thinking_budget=26214, include_thoughts=False)),
    EncodedCase("readings 10: -thinking-high on the level tier", f"{LEVELS}-thinking-high", {}, google(thinking_level="high", **WITH_THOUGHTS), google(thinking_level="high", include_thoughts=False)),
    EncodedCase("chat rule 5: the suffix wins", f"{PRO}-thinking-1024", vendor(thinking_budget=9, other=1), {"extra_body": {"google": {"thinking_config": {"thinking_budget": 1024, **WITH_THOUGHTS}}}}, google(thinking_budget=1024, include_thoughts=False)),
    EncodedCase("chat rule 5: -thinking leaves the body its budget", f"{PRO}-thinking", vendor(thinking_budget=9), google(thinking_budget=9, **WITH_THOUGHTS), google(thinking_budget=9, include_thoughts=False)),
    EncodedCase("chat rule 5: and its choice of thoughts", f"{PRO}-thinking", vendor(include_thoughts=False), google(thinking_budget=-1, include_thoughts=False)),
    *(
        EncodedCase(f"chat table, rule 5: effort {effort} with the suffix", f"{PRO}-thinking", {"reasoning_effort": effort}, google(thinking_budget=budget, **WITH_THOUGHTS), google(thinking_budget=budget, include_thoughts=False))
        for effort, budget in {"minimal": 1638, "low": 6553, "medium": 16384, "high": 26214, "xhigh": 32768, "max": 32768}.items()
    ),
    EncodedCase("chat table: effort none with the suffix", f"{PRO}-thinking", {"reasoning_effort": "none"}, google(thinking_budget=0, include_thoughts=False)),
    EncodedCase("chat table: effort of a given budget", f"{PRO}-thinking", {"reasoning_effort": "low"} | vendor(thinking_budget=1000), google(thinking_budget=200, **WITH_THOUGHTS), google(thinking_budget=200, include_thoughts=False)),
    EncodedCase("readings 10: effort beside max_tokens", f"{PRO}-thinking", {"reasoning_effort": "low", "max_tokens": 9}, {"max_tokens": 9} | google(thinking_budget=-1, **WITH_THOUGHTS), {"max_tokens": 9} | google(thinking_budget=-1, include_thoughts=False)),
    EncodedCase("readings 10: effort with another suffix", f"{PRO}-thinking-7", {"reasoning_effort": "low"}, google(thinking_budget=7, **WITH_THOUGHTS), google(thinking_budget=7, include_thoughts=False)),
    EncodedCase("chat rule 5: effort on the level tier", f"{LEVELS}-thinking", {"reasoning_effort": "medium"}, google(thinking_level="high", **WITH_THOUGHTS), google(thinking_level="high", include_thoughts=False)),
    # no family
    EncodedCase("readings 1: without a family nothing is changed", "mine", {"enable_thinking": True, "temperature": 1, "parameters": {}, "thinking": {"type": "enabled"}, "reasoning_effort": "low", "incremental_output": True} | search(mode="on"), {"enable_thinking": True, "temperature": 1, "parameters": {}, "thinking": {"type": "enabled"}, "reasoning_effort": "low", "incremental_output": True} | search(mode="on")),
]  # fmt: skip


@pytest.mark.parametrize("case", ENCODED, ids=lambda case: case.id)
def test_a_chat_body_is_encoded_by_the_rules_of_the_family(case: EncodedCase) -> None:
    for stream, expected in ((True, case.streamed), (False, case.unstreamed or case.streamed)):
        body = case.body | {"stream": stream}
        (request, edited), before = admitted(case.model, body), decoded(case.model, body).canonical
        assert encoded_body(request, edited=edited) == expected
        assert edited == (request.reasoning != before.reasoning)


@pytest.mark.parametrize("model", ["famQ-3-max", FLASH, LEVELS, "famC-1", "famO-5", "famX-4", "famR-1", "mine"])
def test_a_request_without_fields_of_a_family_is_unchanged(model: str) -> None:
    body: Body = {"max_tokens": 5, "stop": "x", "tools": [TOOL]}
    request, edited = admitted(model, body)
    assert encoded_body(request) == body
    assert not request.HasField("reasoning")
    assert not edited


def test_the_rules_change_only_the_reasoning_options() -> None:
    body: Body = {"temperature": 1, "top_k": 2, "tools": [TOOL], "web_search_options": {}}
    before, (after, edited) = decoded(f"{PRO}-thinking", body).canonical, admitted(f"{PRO}-thinking", body)
    assert edited
    after.ClearField("reasoning")
    assert after == before
