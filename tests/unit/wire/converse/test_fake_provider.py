"""Refusals of the fake provider itself: each rule that it has is broken once, in a body that it accepts otherwise."""

import copy
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.providers import converse_wire
from tests.support.providers.converse import judge
from tests.support.providers.converse_shapes import parameters
from tests.support.providers.server import RefusedError

Json = dict[str, Any]
MODEL = "anthropic.claude-sonnet-5-v1:0"
TEXT, POINT = {"text": "Hi"}, {"cachePoint": {"type": "default"}}
CALL = {"toolUse": {"toolUseId": "a", "name": "f", "input": {}}}
RESULT = {"toolResult": {"toolUseId": "a", "content": [{"text": "1"}]}}
THOUGHT = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": converse_wire.signature("Hm.")}}}
FORGED = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "c2ln"}}}
DOCUMENT = {"document": {"name": "Plan", "format": "txt", "source": {"bytes": "eA=="}}}
PLANS = [{"document": DOCUMENT["document"] | {"name": f"Plan {number}"}} for number in range(6)]
IMAGE = {"image": {"format": "png", "source": {"bytes": "eA=="}}}
TOOL = {"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}}
THINKING = {"additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 1024}}}


def user(*blocks: Json) -> Json:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Json) -> Json:
    return {"role": "assistant", "content": list(blocks)}


WHOLE: Json = {
    "system": [TEXT, POINT],
    "messages": [user(DOCUMENT, IMAGE, TEXT, POINT), assistant(THOUGHT, CALL), user(RESULT, POINT, TEXT)],
    "toolConfig": {"tools": [TOOL, POINT], "toolChoice": {"auto": {}}},
    "inferenceConfig": {"maxTokens": 2000, "temperature": 1},
    **THINKING,
}


@dataclass(frozen=True)
class Refusal:
    """Members that replace those of the whole body, and words of the refusal."""

    id: str
    change: Json
    words: str


def messages(*turns: Json) -> Json:
    return {"messages": list(turns)}


REFUSALS = [
    Refusal("no turns", messages(), "start with a user message"),
    Refusal("a turn of the model first", messages(assistant(TEXT), user(TEXT)), "start with a user message"),
    Refusal("two turns of one role", messages(user(TEXT), user(TEXT)), "alternate"),
    Refusal("a turn without content", messages(user()), "is empty"),
    Refusal("more results than calls", messages(user(TEXT), assistant(TEXT), user(RESULT)), "exceeds the number of toolUse"),
    Refusal("a call without a result", messages(user(TEXT), assistant(THOUGHT, CALL), user(TEXT)), "Expected toolResult blocks"),
    Refusal("a call in the last turn", messages(user(TEXT), assistant(THOUGHT, CALL)), "Expected toolResult blocks"),
    Refusal("a result behind a text", messages(user(TEXT), assistant(THOUGHT, CALL), user(TEXT, RESULT)), "must come first"),
    Refusal("a blank text", messages(user({"text": " \n"})), "is blank"),
    Refusal("a blank system prompt", {"system": [{"text": " "}]}, "is blank"),
    Refusal("a blank text of a result", messages(user(TEXT), assistant(THOUGHT, CALL), user({"toolResult": {"toolUseId": "a", "content": [{"text": ""}]}})), "is blank"),
    Refusal("a cache point first", messages(user(POINT, TEXT)), "nothing available to cache"),
    Refusal("a cache point behind reasoning", messages(user(TEXT), assistant(THOUGHT, POINT, TEXT), user(TEXT)), "after reasoning block"),
    Refusal("five cache points", messages(user(TEXT, POINT), assistant(TEXT, POINT), user(TEXT, POINT)), "Found 5"),
    Refusal("a document without a text", messages(user(DOCUMENT)), "text block is required"),
    Refusal("six documents in two turns", messages(user(TEXT, *PLANS[:3]), assistant(TEXT), user(TEXT, *PLANS[3:])), "more than 5 documents"),
    Refusal("twenty-one images", messages(user(TEXT, *[IMAGE] * 21)), "too many images"),
    Refusal("two documents of one name", messages(user(TEXT, DOCUMENT), assistant(TEXT), user(TEXT, DOCUMENT)), "duplicate document names"),
    Refusal("an illegal name", messages(user(TEXT, {"document": DOCUMENT["document"] | {"name": "plan.txt"}})), "can only contain alphanumeric"),
    Refusal("two spaces in a name", messages(user(TEXT, {"document": DOCUMENT["document"] | {"name": "a  b"}})), "more than one consecutive"),
    Refusal("an image of the model", messages(user(TEXT), assistant(IMAGE), user(TEXT)), "user role only"),
    Refusal("a forged signature", messages(user(TEXT), assistant(FORGED, CALL), user(RESULT)), "Invalid `signature`"),
    Refusal("calls without tools", {"toolConfig": None}, "toolConfig field must be defined"),
    Refusal("two tools of one name", {"toolConfig": {"tools": [TOOL, TOOL]}}, "must be unique"),
    Refusal("a schema of no object", {"toolConfig": {"tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": {}}}}]}}, "must be object"),
    Refusal("a choice of no tool", {"toolConfig": {"tools": [TOOL], "toolChoice": {"tool": {"name": "g"}}}}, "g is not a tool"),
    Refusal("a forced call beside thinking", {"toolConfig": {"tools": [TOOL], "toolChoice": {"any": {}}}}, "forces tool use"),
    Refusal("a small budget", {"additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 1023}}}, "greater than or equal to 1024"),
    Refusal("a limit below the budget", {"inferenceConfig": {"maxTokens": 1024}}, "greater than `thinking.budget_tokens`"),
    Refusal("a temperature beside thinking", {"inferenceConfig": {"temperature": 0.5}}, "may only be set to 1"),
    Refusal("calls without their reasoning", messages(user(TEXT), assistant(CALL), user(RESULT)), "Expected `thinking`"),
    Refusal("an unknown member", {"zork": 1}, r"extraneous key \[zork\]"),
    Refusal("two kinds in one block", messages(user(TEXT | DOCUMENT)), "exactly one member"),
    Refusal("a list for an object", {"inferenceConfig": []}, "expected an object"),
    Refusal("an object for a list", {"messages": {}}, "expected a list"),
    Refusal("no base64", messages(user(TEXT, {"image": {"format": "png", "source": {"bytes": "?"}}})), "invalid base64"),
    Refusal("an unknown format", messages(user(TEXT, {"image": {"format": "bmp", "source": {"bytes": "eA=="}}})), "not a valid enum value"),
    Refusal("an illegal id of a call", messages(user(TEXT), assistant(CALL | {"toolUse": CALL["toolUse"] | {"toolUseId": "a b"}}), user(TEXT)), "does not match"),
    Refusal("a number for a text", messages(user({"text": 1})), "expected a text"),
    Refusal("a member that is missing", messages({"role": "user"}), "Missing required parameter"),
]  # fmt: skip


def test_the_whole_body_is_accepted() -> None:
    judge(parameters(copy.deepcopy(WHOLE), MODEL))


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.id)
def test_a_body_that_breaks_a_rule_is_refused(case: Refusal) -> None:
    body = {name: value for name, value in (copy.deepcopy(WHOLE) | case.change).items() if value is not None}
    with pytest.raises(RefusedError, match=case.words):
        judge(parameters(body, MODEL))
