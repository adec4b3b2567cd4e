"""Descriptions of models for model lists, from the facts that are known by model id. Pure: no I/O, no clock."""

from collections.abc import Sequence

from umg_grpc.knowledge.model_fact_types import ModelFacts, in_common
from umg_grpc.v1 import pb

INPUT_MEDIA = ("image", "file", "audio", "video")


def describe_known(models: Sequence[ModelFacts]) -> pb.Model:
    """Return the known limits and capabilities of a model that one or more providers serve. `models`: facts about the
    model at each provider; only facts common to all are described.
    """
    facts = models[0] if len(models) == 1 else in_common(models)
    abilities = facts.abilities or frozenset()
    media = abilities if facts.inputs is None else facts.inputs
    capabilities = pb.ModelCapabilities(
        input_modalities=[kind for kind in INPUT_MEDIA if kind in media],
        tools="tools" in abilities,
        parallel_tools="parallel_tools" in abilities,
        structured_output=facts.json_schema is True,
        search="search" in abilities,
        reasoning=_reasoning_control(facts),
        min_cached_tokens=facts.cache_min_tokens,
    )
    described = pb.Model(input_token_limit=facts.input_tokens, output_token_limit=facts.output_tokens)
    if capabilities.ByteSize():
        capabilities.output_modalities.append("text")
        described.capabilities.CopyFrom(capabilities)
    return described


def _reasoning_control(facts: ModelFacts) -> "pb.ReasoningControl.ValueType":
    if facts.thinking == "never":
        return pb.REASONING_CONTROL_UNSPECIFIED
    if any(effort != "none" for effort in facts.efforts or ()):
        return pb.REASONING_CONTROL_LEVEL
    if facts.budgets:
        return pb.REASONING_CONTROL_BUDGET
    reasons = facts.thinking is not None or "reasoning" in (facts.abilities or ())
    return pb.REASONING_CONTROL_SWITCH if reasons else pb.REASONING_CONTROL_UNSPECIFIED
