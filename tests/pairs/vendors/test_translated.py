"""Requests of other formats as vendors of chat get them: members of the vendors' own, and without those of OpenAI alone."""

import json
from dataclasses import dataclass, field

import pytest

from tests.pairs.vendors.features import CALLING, CITY, tools
from tests.pairs.vendors.gateway import Model, send
from tests.pairs.vendors.refusal import Json

QWEN = Model("dashscope", "qwen3.8-max")


@dataclass(frozen=True)
class Case:
    """Body of a caller of another format, the members that are sent, and the changes that are named."""

    id: str
    model: Model
    face: str
    body: Json
    sent: Json
    """Members of the body that is sent; null for an absent one."""
    dropped: dict[str, str | None] = field(default_factory=dict)


def request(**config: object) -> Json:
    return {"contents": [{"role": "user", "parts": [{"text": "x"}]}], "generationConfig": config}


CASES = [
    Case("top_k at a vendor that has it", QWEN, "native", request(topK=40), {"top_k": 40}),
    Case("top_k at another", Model("deepseek", "deepseek-v4-pro"), "native", request(topK=40), {"top_k": None}, {"generationConfig.topK": None}),
    Case("reasoning that is off", QWEN, "native", request(thinkingConfig={"thinkingBudget": 0}), {"enable_thinking": False, "reasoning_effort": None}),
    Case("a forced tool", QWEN, "native", tools(CITY, native=CALLING)["native"], {"tool_choice": "required", "enable_thinking": False}),
    Case("a member of OpenAI alone", Model("zai", "glm-5.3"), "responses", {"input": "x", "service_tier": "priority"}, {"service_tier": None}, {"service_tier": None}),
    Case("a member that the vendor shares", Model("moonshot", "kimi-k3"), "responses", {"input": "x", "prompt_cache_key": "k"}, {"prompt_cache_key": "k"}),
    Case(
        "a value that the vendor has not",
        Model("ark", "doubao-seed-2-1-pro-260915"),
        "native",
        request() | {"serviceTier": "priority"},
        {"service_tier": None},
        {"serviceTier": None},
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_vendor_gets_its_own_members_and_no_others(case: Case) -> None:
    sent = send(case.model, case.face, case.body, stream=False)

    body = json.loads(sent.body)
    assert {name: body.get(name) for name in case.sent} == case.sent
    assert dict(sent.dropped) == case.dropped


@pytest.mark.parametrize(
    "model", [Model("mistral", "mistral-medium-3-5"), Model("openai", "gpt-4.1"), Model("zai", "glm-5.3")]
)
def test_a_vendor_gets_no_signature_of_another(model: Model) -> None:
    call = {"functionCall": {"name": "get_weather", "args": {}}, "thoughtSignature": "c2lnbmF0dXJl"}
    result = {"functionResponse": {"name": "get_weather", "response": {"result": "5"}}}
    turns = [("user", {"text": "x"}), ("model", call), ("user", result)]
    body = tools(CITY)["native"] | {"contents": [{"role": role, "parts": [part]} for role, part in turns]}

    sent = send(model, "native", body, stream=False)

    assert b"c2lnbmF0dXJl" not in sent.body
    assert b"extra_content" not in sent.body
    assert list(sent.dropped) == ["state"]
