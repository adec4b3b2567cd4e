"""Classes of service and regions in the usage of answers, by which calls are charged."""

from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from umg_grpc.v1 import pb
from umg_grpc.wire.text_format_tables import TEXT_FORMATS

CHAT = {
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
}
RESPONSES = {"status": "completed", "output": [], "usage": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}}
MESSAGES = {"type": "message", "content": [], "stop_reason": "end_turn", "role": "assistant"}
NATIVE = {"candidates": [{"content": {"parts": [{"text": "x"}]}, "finishReason": "STOP"}]}


@dataclass(frozen=True)
class Stated:
    id: str
    format: str
    body: dict[str, Any]
    tier: str = ""
    region: str = ""
    usage: dict[str, Any] = field(default_factory=dict)


CASES = [
    Stated("chat", "chat", CHAT | {"service_tier": "priority"}, "priority"),
    Stated("chat, standard", "chat", CHAT | {"service_tier": "default"}),
    Stated("responses", "responses", RESPONSES | {"service_tier": "flex"}, "flex"),
    Stated("responses, standard", "responses", RESPONSES | {"service_tier": "auto"}),
    Stated("messages", "messages", MESSAGES | {"usage": {"input_tokens": 1, "output_tokens": 2, "service_tier": "batch"}}, "batch"),
    Stated("messages, fast", "messages", MESSAGES | {"usage": {"input_tokens": 1, "output_tokens": 2, "service_tier": "standard", "speed": "fast"}}, "fast"),
    Stated("messages, a region", "messages", MESSAGES | {"usage": {"input_tokens": 1, "output_tokens": 2, "inference_geo": "us"}}, "", "us"),
    Stated("messages, any region", "messages", MESSAGES | {"usage": {"input_tokens": 1, "output_tokens": 2, "inference_geo": "global"}}),
    Stated("native", "native", NATIVE | {"usageMetadata": {"promptTokenCount": 1, "serviceTier": "FLEX"}}, "flex"),
    Stated("native, by traffic", "native", NATIVE | {"usageMetadata": {"promptTokenCount": 1, "trafficType": "ON_DEMAND_PRIORITY"}}, "priority"),
    Stated("native, standard", "native", NATIVE | {"usageMetadata": {"promptTokenCount": 1, "trafficType": "ON_DEMAND"}}),
]  # fmt: skip


@pytest.mark.parametrize("passed", [False, True], ids=["decoded", "passed through"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_usage_of_an_answer_has_its_class_of_service_and_region(case: Stated, passed: bool) -> None:
    request = pb.GenerateRequest(model="m", source=pb.SourceDocument(format=case.format, body=b"{}"))
    response = TEXT_FORMATS[case.format].decode_response(
        msgspec.json.encode({"id": "r", "model": "m"} | case.body), request, passed
    )
    assert (response.usage.service_tier, response.usage.region) == (case.tier, case.region)
