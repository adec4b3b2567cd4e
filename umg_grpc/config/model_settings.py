"""Properties of public models in the config: reads and checks the section `models`."""

from collections.abc import Collection, Iterable, Iterator
from typing import Annotated, Literal, TypeVar

import msgspec

from umg_grpc.config.channel_section import OPERATION_PROTOCOLS, OWN_PROTOCOLS
from umg_grpc.config.config_values import Channel, Config, ModelInfo
from umg_grpc.config.file_sections import ConfigEntry, ModelLimits, Seconds
from umg_grpc.config.model_index import ModelIndex
from umg_grpc.config.price_settings import prices, unpriced
from umg_grpc.config.typed_sections_from_yaml import any_of, read_entry
from umg_grpc.config.value_parsers import duration, family, time
from umg_grpc.config.yaml_document import Path, Value, YamlDocument
from umg_grpc.operations import SCOPE_OPERATIONS
from umg_grpc.tokens.vocabularies import TOKENIZER_ROWS
from umg_grpc.v1 import pb
from umg_grpc.v1.limits import MAX_COUNT

Count = Annotated[int, msgspec.Meta(ge=1, le=MAX_COUNT)]
Length = Annotated[int, msgspec.Meta(ge=1, le=65_536)]
EnumValue = TypeVar("EnumValue")


def _enum_names(values: Iterable[tuple[str, EnumValue]], prefix: str) -> dict[str, EnumValue]:
    return {name.removeprefix(prefix).lower(): value for name, value in values if value}


_REASONING = _enum_names(pb.ReasoningControl.items(), "REASONING_CONTROL_")
_LIFECYCLES = _enum_names(pb.ModelLifecycle.items(), "MODEL_LIFECYCLE_")
_CAPABILITY_FIELDS = (
    *("inputs", "outputs", "tools", "parallel_tools", "structured_output", "search", "reasoning"),
    *("max_reasoning_tokens", "min_cached_tokens"),
)


class _CapabilitiesEntry(ConfigEntry, frozen=True):
    """Capabilities of a model. Operations and lengths of vectors are enforced; others inform callers."""

    operations: Annotated[list[str], msgspec.Meta(min_length=1)] | None = None
    """Operations that it is used for: `generate`, `embed`, `rerank`, `images`, `videos`."""
    inputs: list[str] | None = None
    """Kinds of input besides text, e.g. `image`, `file`."""
    outputs: list[str] | None = None
    """Kinds of output, e.g. `text`."""
    tools: bool | None = None
    """Whether it calls functions."""
    parallel_tools: bool | None = None
    """Whether it calls several functions in one turn."""
    structured_output: bool | None = None
    """Whether its response can follow a JSON schema."""
    search: bool | None = None
    """Whether it can search the web."""
    reasoning: str | None = None
    """Control of its reasoning: `switch`, `budget` or `level`."""
    max_reasoning_tokens: Count | None = None
    """Largest budget of reasoning tokens."""
    min_cached_tokens: Count | None = None
    """Length of the shortest prompt that the provider caches."""
    input_tokens: Count | None = None
    """Most input tokens of a call."""
    output_tokens: Count | None = None
    """Most output tokens of a call."""
    dimensions: Length | None = None
    """Length of its vectors."""
    other_dimensions: Literal["any"] | list[Length] | None = None
    """Other lengths that callers may request; `any` is each length up to `dimensions`."""
    task_types: list[str] | None = None
    """Task types of the native format that change its vectors, e.g. `RETRIEVAL_QUERY`."""


class _SettingsEntry(ConfigEntry, frozen=True):
    owned_by: str | None = None
    """Owner in the model lists; the name of its first channel if unset."""
    display_name: str | None = None
    """Name for people in the model lists; the id if unset."""
    description: str | None = None
    """Description in the model lists."""
    created: str | None = None
    """Release time in the model lists: a date, an ISO 8601 time or Unix seconds."""
    family: str | None = None
    """Family whose rules apply, for example `famG`; derived from the id if unset."""
    tokenizer: str | None = None
    """Vocabulary that counts its tokens; that of its family if unset."""
    lifecycle: str | None = None
    """`active`, `deprecated` or `retired`; the model is called in any case, unless its vendor has shut it down."""
    retires: str | None = None
    """Time at which it is retired: a date, an ISO 8601 time or Unix seconds."""
    price: dict[str, object] | None = None
    """Prices by unit, e.g. `{input: 1.25, output: 10}` in credits for a million tokens; its public price if unset."""
    unpriced: str | dict[str, object] | None = None
    """Prices without a `price` and a public one: `free`, `refuse`, or as `price`; those of its channel if unset."""
    capabilities: _CapabilitiesEntry | None = None
    hedge: Seconds | None = None
    cache: str | None = None
    """Time for which a response is cached for equal requests of the same key, e.g. `10m`; if unset, answers are cached
    where the caller wants it.
    """
    limits: ModelLimits | None = None


MODEL_TYPE: type[ConfigEntry] = _SettingsEntry
"""Type of an entry of `models`."""


def models(document: YamlDocument, values: Value, served: ModelIndex | None) -> Iterator[tuple[str, ModelInfo]]:
    """Yield each model id in the section `models` with its properties. Report problems. `served`: index of the
    channels' models, None if a channel is unreadable.
    """
    for model, value in values.items() if isinstance(values, dict) else ():
        path: Path = ("models", model)
        entry = read_entry(document, path, {} if value is None else value, _SettingsEntry)
        found = served.find(model) if served is not None else None
        if served is not None and found is None:
            document.problem(path, "expected the id of a model that some channel serves")
        if entry:
            yield (
                model,
                ModelInfo(
                    owned_by=entry.owned_by,
                    display_name=entry.display_name,
                    create_time=time(document, (*path, "created"), entry.created),
                    family=family(document, (*path, "family"), entry.family),
                    tokenizer=_one_of(document, (*path, "tokenizer"), entry.tokenizer, TOKENIZER_ROWS),
                    described=_public_model(document, path, entry, found.protocols if found else ()),
                    hedge=entry.hedge,
                    cache=duration(document, (*path, "cache"), entry.cache) if entry.cache is not None else None,
                    limits=entry.limits if entry.limits != ModelLimits() else None,
                    unpriced=unpriced(document, (*path, "unpriced"), entry.unpriced),
                    price_place=document.place((*path, "price")) if entry.price else "",
                    unpriced_place=document.place((*path, "unpriced")),
                ),
            )


def _public_model(document: YamlDocument, path: Path, entry: _SettingsEntry, protocols: Collection[str]) -> pb.Model:
    model = pb.Model(description=entry.description)
    if (lifecycle := _one_of(document, (*path, "lifecycle"), entry.lifecycle, tuple(_LIFECYCLES))) in _LIFECYCLES:
        model.lifecycle = _LIFECYCLES[lifecycle]
    if (retires := time(document, (*path, "retires"), entry.retires)) is not None:
        model.retire_time.FromDatetime(retires)
    model.prices.extend(prices(document, (*path, "price"), entry.price or {}))
    if entry.capabilities is not None:
        at = (*path, "capabilities")
        model.operations.extend(_operations(document, (*at, "operations"), entry.capabilities.operations, protocols))
        _capabilities(document, at, entry.capabilities, model)
    return model


def _operations(
    document: YamlDocument, path: Path, words: list[str] | None, protocols: Collection[str]
) -> "Iterator[pb.ModelOperation.ValueType]":
    for position, word in enumerate(words or ()):
        if word not in SCOPE_OPERATIONS:
            document.problem((*path, position), f"expected {any_of(tuple(SCOPE_OPERATIONS))}")
        elif protocols and set(protocols).isdisjoint((*OPERATION_PROTOCOLS[SCOPE_OPERATIONS[word][0]], *OWN_PROTOCOLS)):
            needs = f"`{word}` takes a channel with {any_of(OPERATION_PROTOCOLS[SCOPE_OPERATIONS[word][0]])}"
            document.problem((*path, position), f"expected what a channel of the model can do; {needs}")
        else:
            yield from SCOPE_OPERATIONS[word]


def _capabilities(document: YamlDocument, path: Path, entry: _CapabilitiesEntry, model: pb.Model) -> None:
    model.MergeFrom(pb.Model(input_token_limit=entry.input_tokens, output_token_limit=entry.output_tokens))
    control = _one_of(document, (*path, "reasoning"), entry.reasoning, tuple(_REASONING))
    capabilities = pb.ModelCapabilities(
        input_modalities=entry.inputs,
        output_modalities=entry.outputs,
        tools=bool(entry.tools),
        parallel_tools=bool(entry.parallel_tools),
        structured_output=bool(entry.structured_output),
        search=bool(entry.search),
        reasoning=_REASONING.get(control or "", pb.REASONING_CONTROL_UNSPECIFIED),
        max_reasoning_tokens=entry.max_reasoning_tokens,
        min_cached_tokens=entry.min_cached_tokens,
    )
    if any(
        getattr(entry, name) is not None for name in _CAPABILITY_FIELDS
    ):  # else the built-in capabilities of the model apply
        model.capabilities.CopyFrom(capabilities)
    if entry.dimensions is not None:
        others = entry.other_dimensions or ()
        model.embedding.CopyFrom(
            pb.ModelEmbedding(
                default_dimensions=entry.dimensions,
                dimensions=() if others == "any" else sorted({*others, entry.dimensions} if others else ()),
                any_dimensions=others == "any",
                task_types=entry.task_types,
            )
        )
    elif entry.other_dimensions is not None or entry.task_types is not None:
        document.problem(path, "expected `dimensions`, the length of a vector, beside the other keys")


def _one_of(document: YamlDocument, path: Path, word: str | None, words: tuple[str, ...]) -> str | None:
    if word is not None and word not in words:
        document.problem(path, f"expected {any_of(words)}")
    return word


def vector_lengths(channel: Channel, config: Config) -> dict[str, int]:
    """Return the default vector length by the provider's model id, for models whose length the config states."""
    infos = {model.upstream: config.models.get(model.id) for model in channel.models}
    return {
        model: length
        for model, info in infos.items()
        if info and (length := info.described.embedding.default_dimensions)
    }
