"""Facts about one model, and the common facts of several models. Pure: no I/O and no clock."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Literal, TypeVar

from msgspec import Struct, structs

from umg_grpc.knowledge.model_quirk_definitions import ChatTools, Sampling, Thinking, ToolChoices

Value = TypeVar("Value")

Endpoint = Literal["chat", "responses"]
"""OpenAI's two text formats; a model may support only one."""

Ability = Literal["tools", "parallel_tools", "search", "reasoning", "image", "file", "audio", "video"]
"""Capability of a model besides text output, or a kind of media that it accepts."""

EFFORT_ORDER = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""All efforts, lowest first."""
SAMPLING_ORDER: tuple[Sampling, ...] = ("never", "without_reasoning", "one", "all")
"""Accepted sampling options, strictest first, like the orders below."""
TOOL_CHOICE_ORDER: tuple[ToolChoices, ...] = ("none", "required", "named", "without_reasoning", "all")
CHAT_TOOLS_ORDER: tuple[ChatTools, ...] = ("never", "effort_none", "without_effort", "always")
THINKING_ORDER: tuple[Thinking, ...] = ("always", "on", "off", "never")


class Facts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Facts about a model; None means unknown."""

    efforts: tuple[str, ...] | None = None
    """Accepted efforts, lowest first, with `none` if it switches reasoning off; empty if no effort is accepted."""
    default_effort: str | None = None
    thinking: Thinking | None = None
    budgets: bool | None = None
    budget_range: tuple[int, int] | None = None
    """Least and largest budget of reasoning tokens, except 0."""
    adaptive: bool | None = None
    """Whether the model chooses its amount of reasoning (`thinking: {type: adaptive}` of the messages format)."""
    max_effort_when_off: str | None = None
    """Highest effort that is accepted together with disabled thinking."""
    nearest_efforts: Mapping[str, str] | None = None
    """Effort that the model lacks -> effort that the vendor names as its equivalent."""
    sampling: Sampling | None = None
    forced_tools: ToolChoices | None = None
    prefill: bool | None = None
    """Whether the conversation may end with an assistant message, which the model then continues."""
    system_anywhere: bool | None = None
    """Whether instructions are accepted between the turns of a conversation (messages format)."""
    json_schema: bool | None = None
    rejects: frozenset[str] | None = None
    rejects_beside_reasoning: frozenset[str] | None = None
    """Members of a chat request that the model rejects while reasoning is on."""
    chat_tools: ChatTools | None = None
    endpoints: frozenset[Endpoint] | None = None
    inputs: frozenset[str] | None = None
    """Kinds of media in a prompt: `image`, `file`, `audio`, `video`."""
    abilities: frozenset[Ability] | None = None
    """Known abilities, only for model lists: a request is never changed because of a missing ability."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    retired: str | None = None
    """Date (ISO 8601) on which the vendor removes the model."""
    successor: str | None = None
    cache_min_tokens: int | None = None
    """Least number of tokens in a prompt that the vendor caches."""


FACT_NAMES = Facts.__struct_fields__


class ModelFacts(Facts, frozen=True, kw_only=True):
    """Facts about one model at one vendor."""

    sure: frozenset[str] = frozenset()
    """Names of the facts that are certain at this vendor."""


NO_FACTS = ModelFacts()


def known_facts(facts: Facts) -> dict[str, object]:
    """Return the known facts by name."""
    return {name: value for name in FACT_NAMES if (value := getattr(facts, name)) is not None}


def in_common(models: Sequence[ModelFacts]) -> ModelFacts:
    """Return facts that hold for all of the models: efforts that all accept, the lowest limit, the strictest rule. A
    model with an unknown fact is ignored for that fact. A fact is certain if it is certain and equal for each model.
    """
    common = ModelFacts(
        efforts=_combined((each.efforts for each in models), _shared_efforts),
        default_effort=_combined((each.default_effort for each in models), _same),
        thinking=_combined((each.thinking for each in models), partial(_first_of, THINKING_ORDER)),
        budgets=_combined((each.budgets for each in models), all),
        budget_range=_combined((each.budget_range for each in models), _shared_range),
        adaptive=_combined((each.adaptive for each in models), all),
        max_effort_when_off=_combined((each.max_effort_when_off for each in models), partial(_first_of, EFFORT_ORDER)),
        nearest_efforts=_combined((each.nearest_efforts for each in models), _same),
        sampling=_combined((each.sampling for each in models), partial(_first_of, SAMPLING_ORDER)),
        forced_tools=_combined((each.forced_tools for each in models), partial(_first_of, TOOL_CHOICE_ORDER)),
        prefill=_combined((each.prefill for each in models), all),
        system_anywhere=_combined((each.system_anywhere for each in models), all),
        json_schema=_combined((each.json_schema for each in models), all),
        rejects=_combined((each.rejects for each in models), lambda sets: frozenset().union(*sets)),
        rejects_beside_reasoning=_combined(
            (each.rejects_beside_reasoning for each in models), lambda sets: frozenset().union(*sets)
        ),
        chat_tools=_combined((each.chat_tools for each in models), partial(_first_of, CHAT_TOOLS_ORDER)),
        endpoints=_combined((each.endpoints for each in models), _shared),
        inputs=_combined((each.inputs for each in models), _shared),
        abilities=_combined((each.abilities for each in models), _shared),
        input_tokens=_combined((each.input_tokens for each in models), min),
        output_tokens=_combined((each.output_tokens for each in models), min),
        cache_min_tokens=_combined((each.cache_min_tokens for each in models), max),
    )
    facts = known_facts(common)
    sure = frozenset(
        name
        for name, value in facts.items()
        if all(name in each.sure and getattr(each, name) == value for each in models)
    )
    return structs.replace(common, sure=sure)


def _combined(values: Iterable[Value | None], combine: Callable[[list[Value]], Value | None]) -> Value | None:
    known = [value for value in values if value is not None]
    return combine(known) if known else None


def _first_of(order: Sequence[Value], values: list[Value]) -> Value:
    return min(values, key=order.index)


def _same(values: list[Value]) -> Value | None:
    return values[0] if all(value == values[0] for value in values) else None


def _shared(values: list[frozenset[Value]]) -> frozenset[Value]:
    return values[0].intersection(*values[1:])


def _shared_efforts(values: list[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(effort for effort in values[0] if all(effort in efforts for efforts in values))


def _shared_range(values: list[tuple[int, int]]) -> tuple[int, int]:
    return max(least for least, _ in values), min(most for _, most in values)
