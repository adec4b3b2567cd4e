"""Bodies that came in the vendor's own format: changed only where its refusal is certain, and the change is named."""

import json
from dataclasses import dataclass, field

import pytest

from tests.pairs.vendors.gateway import Model, send
from tests.pairs.vendors.refusal import Json

USER = "u" * 80
TURNS = [
    {"role": "user", "content": "Hi."},
    {"role": "assistant", "content": "Hello."},
    {"role": "user", "content": "x"},
]


AT = "generationConfig.thinkingConfig"


def thinking(**options: object) -> Json:
    return {"generationConfig": {"thinkingConfig": options}}


@dataclass(frozen=True)
class Case:
    """Body of a caller in the format of its vendor, the members that are sent, and the changes that are named."""

    id: str
    model: Model
    body: Json
    sent: Json
    """Members of the body that is sent; null for an absent one."""
    dropped: dict[str, str | None] = field(default_factory=dict)
    face: str = "chat"


CASES = [
    Case(
        "the limit's newer name",
        Model("openai", "gpt-5-mini"),
        {"max_tokens": 9},
        {"max_completion_tokens": 9, "max_tokens": None},
    ),
    Case(
        "both names of the limit",
        Model("openai", "o3"),
        {"max_tokens": 9, "max_completion_tokens": 8},
        {"max_completion_tokens": 8, "max_tokens": None},
    ),
    Case(
        "the limit's older name",
        Model("openai", "gpt-4.1"),
        {"max_tokens": 9},
        {"max_tokens": 9, "max_completion_tokens": None},
    ),
    Case(
        "a limit above the model's",
        Model("groq", "groq/openai/gpt-oss-120b"),
        {"max_tokens": 70_000},
        {"max_tokens": 65_536},
        {"max_tokens": "65536"},
    ),
    Case(
        "sampling of a model that reasons",
        Model("openai", "gpt-6-sol"),
        {"temperature": 0.5},
        {"temperature": None},
        {"temperature": None},
    ),
    Case(
        "an effort that the vendor refuses",
        Model("xai", "grok-4.20-0309-reasoning"),
        {"reasoning_effort": "low"},
        {"reasoning_effort": None},
        {"reasoning_effort": None},
    ),
    Case(
        "the only effort of a model",
        Model("mistral", "mistral-large-4"),
        {"reasoning_effort": "low"},
        {"reasoning_effort": "high"},
        {"reasoning_effort": "high"},
    ),
    Case(
        "a level of a model that has budgets alone",
        Model("gemini", "gemini-2.5-pro"),
        thinking(thinkingLevel="HIGH", includeThoughts=True),
        thinking(thinkingBudget=24_576, includeThoughts=True),
        {f"{AT}.thinkingLevel": "budget 24576"},
        "native",
    ),
    Case(
        "a level beside a budget",
        Model("gemini", "gemini-2.5-flash-lite"),
        thinking(thinkingLevel="HIGH", thinkingBudget=512),
        thinking(thinkingBudget=512),
        {f"{AT}.thinkingLevel": None},
        "native",
    ),
    Case(
        "thinking that cannot be off",
        Model("gemini", "gemini-3.1-pro-preview"),
        thinking(thinkingBudget=0),
        thinking(thinkingLevel="LOW"),
        {f"{AT}.thinkingBudget": "effort low"},
        "native",
    ),
    Case(
        "probabilities that no model has",
        Model("groq", "groq/openai/gpt-oss-120b"),
        {"logprobs": True},
        {"logprobs": None},
        {"logprobs": None},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_body_of_the_vendors_format_is_changed_where_its_refusal_is_certain(case: Case) -> None:
    turns = {"messages": TURNS} if case.face == "chat" else {"contents": [{"role": "user", "parts": [{"text": "x"}]}]}
    sent = send(case.model, case.face, turns | case.body, stream=False)

    body = json.loads(sent.body)
    assert {name: body.get(name) for name in case.sent} == case.sent
    assert dict(sent.dropped) == case.dropped


@pytest.mark.parametrize("vendor", ["openai", "azure"])
def test_a_long_id_of_a_user_is_hashed_where_the_vendor_refuses_it(vendor: str) -> None:
    model = "azure/gpt-4.1" if vendor == "azure" else "gpt-4.1"
    sent = send(Model(vendor, model, "gpt-4.1"), "chat", {"messages": TURNS, "user": USER}, stream=False)

    assert len(json.loads(sent.body)["user"]) <= 64
    assert sent.dropped == {"user": "hashed"}


def test_instructions_stay_in_their_place_as_a_users_turn_at_a_strict_template() -> None:
    messages = [*TURNS[:2], {"role": "system", "content": "Be brief."}, TURNS[2]]
    sent = send(
        Model("vllm", "vllm/Qwen/Qwen3.5-32B", "Qwen/Qwen3.5-32B"), "chat", {"messages": messages}, stream=False
    )

    found = json.loads(sent.body)["messages"]
    assert [message["role"] for message in found] == ["user", "assistant", "user", "user"]
    assert "Be brief." in found[2]["content"]
    assert list(sent.dropped) == ["messages.role"]
