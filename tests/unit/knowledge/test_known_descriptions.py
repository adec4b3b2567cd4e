"""Descriptions of models, made of the facts about them."""

from dataclasses import dataclass, field

import pytest

from umg_grpc.knowledge.model_descriptions import describe_known
from umg_grpc.knowledge.model_fact_types import NO_FACTS, ModelFacts
from umg_grpc.v1 import pb

SWITCH, BUDGET, LEVEL = pb.REASONING_CONTROL_SWITCH, pb.REASONING_CONTROL_BUDGET, pb.REASONING_CONTROL_LEVEL


@dataclass(frozen=True)
class Case:
    id: str
    facts: list[ModelFacts]
    described: pb.Model = field(default_factory=pb.Model)


def can(**capabilities: object) -> pb.Model:
    return pb.Model(capabilities=pb.ModelCapabilities(output_modalities=["text"], **capabilities))  # type: ignore[arg-type]


def able(*abilities: str) -> ModelFacts:
    return ModelFacts(abilities=frozenset(abilities))  # type: ignore[arg-type]


CASES = [
    Case("nothing known", [NO_FACTS]),
    Case("limits", [ModelFacts(input_tokens=9, output_tokens=3)], pb.Model(input_token_limit=9, output_token_limit=3)),
    Case("abilities", [able("tools", "search", "image")], can(tools=True, search=True, input_modalities=["image"])),
    Case("hand-kept kinds of input", [ModelFacts(abilities=frozenset({"tools", "image"}), inputs=frozenset())], can(tools=True)),
    Case("a schema", [ModelFacts(json_schema=True)], can(structured_output=True)),
    Case("no schema", [ModelFacts(json_schema=False)]),
    Case("efforts", [ModelFacts(efforts=("none", "low"))], can(reasoning=LEVEL)),
    Case("budgets", [ModelFacts(budgets=True, efforts=())], can(reasoning=BUDGET)),
    Case("thinking alone", [ModelFacts(thinking="on", budgets=False)], can(reasoning=SWITCH)),
    Case("reasoning as an ability", [able("reasoning")], can(reasoning=SWITCH)),
    Case("no thinking", [ModelFacts(thinking="never", abilities=frozenset({"reasoning"}))]),
    Case("two providers", [able("tools", "image"), able("tools")], can(tools=True)),
    Case("limits of two providers", [ModelFacts(input_tokens=9), ModelFacts(input_tokens=5)], pb.Model(input_token_limit=5)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_known_facts_are_described(case: Case) -> None:
    assert describe_known(case.facts) == case.described
