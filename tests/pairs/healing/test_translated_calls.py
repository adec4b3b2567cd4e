"""Healing of translated calls: refusals of a chat provider, provoked by callers of the other formats."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.pairs.healing.refusing_vendor import BODIES, REFUSALS, Refusal, is_refused, path_of
from tests.pairs.healing.test_safety import Vendor, calls


@dataclass(frozen=True)
class Case:
    """A refusal of a report, and the members by which a caller of another format provokes it."""

    id: str
    source: str
    face: str
    members: dict[str, Any]
    dropped: str


SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
CASES = [
    Case("a temperature of messages", "UKGovernmentBEIS/inspect_ai#3721", "messages", {"temperature": 0.2}, "temperature"),
    Case("a temperature of native", "soberlemur/autopo#57", "native", {"generationConfig": {"temperature": 0.2}}, "generationConfig.temperature"),
    Case("an effort of responses", "liliMozi/openhanako#2092", "responses", {"reasoning": {"effort": "medium"}}, "reasoning.effort=low"),
    Case("stop sequences of messages", "BerriAI/litellm#12635", "messages", {"stop_sequences": ["Daft Punk"]}, "stop_sequences=by the gateway"),
    Case("a limit of responses", "algorithmicsuperintelligence/optillm#4", "responses", {"max_output_tokens": 9000}, "max_output_tokens=4096"),
    Case("a schema of responses", "ItzCrazyKns/Vane#969", "responses", {"text": {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA}}}, "text.format=json_object"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_a_translated_call_is_mended_and_named_as_the_caller_wrote_it(case: Case, tmp_path: Path) -> None:
    refusal = next(each for each in REFUSALS if each.source == case.source)

    class Reported(Vendor):
        refused = ""

        def report(self, body: dict[str, Any]) -> Refusal | None:
            return refusal if is_refused(refusal.refused, body) else None

    vendor = Reported()
    async with calls(tmp_path, vendor) as made:
        body = {"model": "chat-1", **BODIES[case.face], **case.members}
        for attempts in (2, 1):
            before = len(vendor.received)
            async with made.session.post(made.gateway.url + path_of(case.face, "chat-1"), json=body) as response:
                assert response.status == 200, await response.text()
                assert len(vendor.received) - before == attempts
                assert response.headers.get("x-umg-dropped", "") == case.dropped


MISSING = {
    "moonshot": "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1",
    "deepseek": "The `reasoning_content` in the thinking mode must be passed back to the API.",
}
"""Messages of QuantumNous/new-api#4408 and endolith/open-interpreter#215."""
CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
TURNS: dict[str, list[dict[str, Any]]] = {
    "chat": [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": "1"},
    ],
    "messages": [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "call_1", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "1"}]},
    ],
}


@pytest.mark.parametrize("face", TURNS)
@pytest.mark.parametrize("message", MISSING.values(), ids=MISSING)
async def test_calls_of_tools_get_the_reasoning_that_a_provider_requires(
    message: str, face: str, tmp_path: Path
) -> None:
    class Reasoning(Vendor):
        refused = ""

        def report(self, body: dict[str, Any]) -> Refusal | None:
            missing = any(turn.get("tool_calls") and not turn.get("reasoning_content") for turn in body["messages"])
            error = {"error": {"message": message, "type": "invalid_request_error"}}
            return Refusal("", "", "chat", 400, error, {}, {}, False) if missing else None

    vendor = Reasoning()
    async with calls(tmp_path, vendor) as made:
        body = {"model": "chat-1", **BODIES[face], "messages": TURNS[face]}
        for attempts in (2, 1):
            before = len(vendor.received)
            async with made.session.post(made.gateway.url + path_of(face, "chat-1"), json=body) as response:
                assert response.status == 200, await response.text()
                assert len(vendor.received) - before == attempts
                dropped = "messages.reasoning=blank" if face == "chat" else ""
                assert response.headers.get("x-umg-dropped", "") == dropped
